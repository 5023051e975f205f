//! What a node is made of: jobs, steps, visits, robots, emitters, ports, probes.

use crate::{
    code,
    error::RunError,
    plan::{Codec, Direction, FlowPlan, Plan, ProbePlan, SinkPlan, SourcePlan, StepKind, StepPlan},
    source::Source,
};
use hdrhistogram::Histogram;
use std::collections::VecDeque;
use tcps_core::{
    dist::Sampler,
    endpoint::Endpoint,
    hook::Hook,
    record::NONE,
    robot::Robot,
    sample::{entry, exit, Echo, Meta, PointId},
    seed::Stream,
    time::{Time, NEVER},
};

/// A sample inside a node, on its way along the stages of a visit.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) flow: u16,
    pub(super) visit: u16,
    pub(super) step: u16,
    pub(super) stage: Stage,
    pub(super) meta: Meta,
    /// Coded sample; valid if `coded`.
    pub(super) bytes: Vec<u8>,
    /// Decoded sample; valid if `decoded`.
    pub(super) values: Vec<f64>,
    pub(super) coded: bool,
    pub(super) decoded: bool,
    /// It holds up the next sample of its visit.
    pub(super) holds: bool,
    /// It takes one of the buffers of its source.
    pub(super) buffered: bool,
}

impl Job {
    pub(super) fn empty() -> Box<Self> {
        let meta = Meta { flow: 0, index: 0, origin_ns: 0, echo: None };
        let (bytes, values) = (Vec::with_capacity(256), Vec::with_capacity(16));
        let (coded, decoded, holds, buffered) = (false, false, false, false);
        Box::new(Self {
            flow: 0,
            visit: 0,
            step: 0,
            stage: Stage::Enter,
            meta,
            bytes,
            values,
            coded,
            decoded,
            holds,
            buffered,
        })
    }
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Before the entry point of its visit.
    Enter,
    /// Before the code of its step.
    Call,
    /// The step's core time is over; its delay comes next.
    Delay,
    /// The step is over.
    Next,
    /// The visit is over and the datagram has left: the next sample may come.
    Release,
}

/// A stage with its code, cost and delay.
pub(super) struct Step {
    pub(super) kind: StepKind,
    pub(super) name: String,
    pub(super) hook: Option<Box<dyn Hook>>,
    pub(super) cost: Option<Sampler>,
    pub(super) delay: Option<Sampler>,
    /// Latest delayed exit, so that a varying delay keeps the order.
    pub(super) last_exit: Time,
    pub(super) periodic: Option<Periodic>,
    pub(super) stats: StepStats,
}

/// The state of a stage that works at its own period.
pub(super) struct Periodic {
    pub(super) period_ns: Time,
    pub(super) next: Time,
    pub(super) index: u32,
    pub(super) waiting: Option<Box<Job>>,
    /// Origin of the newest sample it has seen.
    pub(super) origin_ns: Option<Time>,
}

/// Calls of a step.
pub struct StepStats {
    /// Times it ran.
    pub calls: u64,
    /// Times it failed.
    pub failures: u64,
    /// The first failure in words.
    pub error: Option<String>,
    /// Core time per call.
    pub cost_ns: Histogram<u64>,
}

impl Step {
    pub(super) fn new(
        plan: &StepPlan,
        name: &str,
        seed: u64,
        python: &mut dyn code::PythonCode,
    ) -> Result<Self, RunError> {
        let (bytes_in, bytes_out) = (plan.kind == StepKind::Decode, plan.kind == StepKind::Code);
        let hook = match &plan.run {
            Some(run) => Some(code::hook(run, bytes_in, bytes_out, python)?),
            None => None,
        };
        let sampler = |dist: &Option<_>, what: &str| {
            dist.clone().map(|d| Sampler::new(d, seed, &format!("{name}.{what}")))
        };
        Ok(Self {
            kind: plan.kind,
            name: plan.run.as_ref().map_or_else(|| "work".into(), |r| format!("{}:{}", r.name, r.symbol)),
            hook,
            cost: sampler(&plan.cost, "cost"),
            delay: sampler(&plan.delay, "delay"),
            last_exit: 0,
            periodic: plan.period_ns.map(|period_ns| Periodic {
                period_ns,
                next: NEVER,
                index: 0,
                waiting: None,
                origin_ns: None,
            }),
            stats: StepStats { calls: 0, failures: 0, error: None, cost_ns: histogram() },
        })
    }
}

/// A histogram of nanoseconds with three digits up to a minute.
pub fn histogram() -> Histogram<u64> {
    let mut h =
        Histogram::new_with_bounds(1, 60_000_000_000, 3).unwrap_or_else(|_| unreachable!("constant bounds"));
    h.auto(true);
    h
}

/// A component on a flow's way, as seen at its node.
pub(super) struct Visit {
    pub(super) component: u16,
    pub(super) entry: PointId,
    pub(super) exit: PointId,
    pub(super) first: bool,
    pub(super) last: bool,
    pub(super) steps: Vec<Step>,
    /// Channel to the next component, or `NONE`.
    pub(super) channel: u16,
    /// One sample at a time: a stage costs core time, or sends block.
    pub(super) serial: bool,
    pub(super) busy: bool,
    pub(super) waiting: VecDeque<Box<Job>>,
}

/// A flow, as seen at a node: visits elsewhere are `None`.
pub(super) struct FlowAt {
    pub(super) codec: Codec,
    pub(super) direction: Direction,
    pub(super) priority: i32,
    pub(super) dscp: u8,
    pub(super) blocking_send: bool,
    pub(super) sink: SinkPlan,
    /// The source's twin at a verifying sink.
    pub(super) expected: Option<Source>,
    pub(super) visits: Vec<Option<Visit>>,
}

impl FlowAt {
    pub(super) fn new(
        plan: &Plan,
        flow: &FlowPlan,
        here: impl Fn(u16) -> bool,
        python: &mut dyn code::PythonCode,
    ) -> Result<Self, RunError> {
        let last = flow.path.len().saturating_sub(1);
        let mut visits = Vec::new();
        for (i, v) in flow.path.iter().enumerate() {
            if !here(v.component) {
                visits.push(None);
                continue;
            }
            let component = &plan.components[v.component as usize].name;
            let mut steps = Vec::new();
            for (n, s) in v.steps.iter().enumerate() {
                steps.push(Step::new(s, &format!("{}.{component}.{n}", flow.name), plan.seed, python)?);
            }
            let serial = flow.blocking_send || steps.iter().any(|s| s.cost.is_some());
            visits.push(Some(Visit {
                component: v.component,
                entry: entry(v.component),
                exit: exit(v.component),
                first: i == 0,
                last: i == last,
                steps,
                channel: v.channel.unwrap_or(NONE),
                serial,
                busy: false,
                waiting: VecDeque::new(),
            }));
        }
        let verifies_here =
            matches!(flow.sink, SinkPlan::Verify) && visits.last().is_some_and(Option::is_some);
        Ok(Self {
            codec: flow.codec,
            direction: flow.direction,
            priority: flow.priority,
            dscp: flow.dscp,
            blocking_send: flow.blocking_send,
            sink: flow.sink.clone(),
            expected: if verifies_here { Some(Source::open(flow)?) } else { None },
            visits,
        })
    }
}

/// A source at its node, with its tick.
pub(super) struct Emitter {
    pub(super) flow: u16,
    pub(super) source: Source,
    pub(super) robot: Option<usize>,
    pub(super) start_ns: Time,
    pub(super) period_ns: Time,
    pub(super) stop_ns: Time,
    pub(super) tick: u64,
    pub(super) running: bool,
    /// Samples that have not left the node, and how many there may be.
    pub(super) buffers: (u32, u32),
    pub(super) probe: Option<Probe>,
}

impl Emitter {
    pub(super) fn new(
        id: usize,
        flow: &FlowPlan,
        probe: Option<&ProbePlan>,
        robot: Option<usize>,
        end: Time,
        seed: u64,
    ) -> Result<Self, RunError> {
        if matches!(flow.source, SourcePlan::Robot) && robot.is_none() {
            return Err(RunError::new(format!(
                "flows.{}.source: its first component has no robot",
                flow.name
            )));
        }
        Ok(Self {
            flow: id as u16,
            source: Source::open(flow)?,
            robot,
            start_ns: flow.start_ns,
            period_ns: flow.period_ns.max(1),
            stop_ns: flow.stop_ns.unwrap_or(end).min(end),
            tick: 0,
            running: true,
            buffers: (0, flow.buffers.unwrap_or(u32::MAX)),
            probe: probe.map(|p| Probe::new(p, seed)),
        })
    }

    /// Whether every buffer is taken.
    pub(super) fn is_full(&self) -> bool {
        self.buffers.0 >= self.buffers.1
    }

    /// Moment of the next sample.
    pub(super) fn next(&self) -> Time {
        let t = self.start_ns + self.tick as Time * self.period_ns;
        if self.running && t < self.stop_ns {
            t
        } else {
            NEVER
        }
    }
}

/// Echo commands given at a source: rounds over all points, each round in an order of its own, so that traffic in
/// step with the commands does not meet one point more than another. Command `n` is for point `n` modulo their number.
pub(super) struct Probe {
    points: Vec<u16>,
    /// Turns of this round that are still to come, the next one last.
    turns: Vec<u32>,
    order: Stream,
    period_ns: Time,
    next: Time,
    given: u32,
    count: u32,
    reply_to: u16,
}

impl Probe {
    fn new(plan: &ProbePlan, seed: u64) -> Self {
        Self {
            points: plan.points.clone(),
            turns: Vec::new(),
            order: Stream::new(seed, &format!("probes.{}", plan.flow)),
            period_ns: plan.period_ns,
            next: plan.start_ns,
            given: 0,
            count: plan.count.unwrap_or(u32::MAX),
            reply_to: plan.reply_to,
        }
    }

    /// The command for a sample made at `now`, if one is due: points take turns (interleaving, Polachan 2022).
    pub(super) fn command(&mut self, now: Time, injected_ns: Time) -> Option<Echo> {
        if now < self.next || self.given >= self.count || self.points.is_empty() {
            return None;
        }
        self.next += self.period_ns * ((now - self.next) / self.period_ns.max(1) + 1);
        let points = self.points.len() as u32;
        let round = self.given / points;
        if self.turns.is_empty() {
            self.turns = (0..points.min(self.count - self.given)).rev().collect();
            self.shuffle();
        }
        let turn = self.turns.pop()?;
        self.given += 1;
        let target = self.points[turn as usize];
        Some(Echo { target, sequence: round * points + turn, reply_to: self.reply_to, injected_ns })
    }

    /// Fisher and Yates.
    fn shuffle(&mut self) {
        for i in (1..self.turns.len()).rev() {
            self.turns.swap(i, self.order.below(i as u64 + 1) as usize);
        }
    }
}

/// A robot with its tick, its newest commands and the echoes that wait for it to arrive.
pub(super) struct RobotAt {
    pub(super) component: u16,
    pub(super) robot: Box<dyn Robot>,
    pub(super) period_ns: Time,
    pub(super) next: Time,
    /// Newest command per flow that drives it.
    pub(super) commands: Vec<(u16, Vec<f64>)>,
    pub(super) fused: Vec<f64>,
    pub(super) sense: Vec<f64>,
    pub(super) sensed: usize,
    pub(super) held: Vec<(u16, Echo)>,
}

impl RobotAt {
    /// A new command of a flow; several flows have equal authority.
    pub(super) fn command(&mut self, flow: u16, values: &[f64]) {
        match self.commands.iter_mut().find(|c| c.0 == flow) {
            Some(c) => {
                c.1.clear();
                c.1.extend_from_slice(values);
            }
            None => self.commands.push((flow, values.to_vec())),
        }
        let n = self.commands.iter().map(|c| c.1.len()).min().unwrap_or(0);
        let share = 1.0 / self.commands.len() as f64;
        self.fused.clear();
        self.fused.extend((0..n).map(|i| self.commands.iter().map(|c| c.1[i]).sum::<f64>() * share));
    }
}

/// One side of a channel.
pub(super) struct Port {
    pub(super) channel: u16,
    pub(super) peer: u16,
    pub(super) endpoint: Box<dyn Endpoint>,
    /// For each flow, the visit at which its samples arrive here, or `NONE`.
    pub(super) arrives: Vec<u16>,
    /// Samples of flows that this channel does not carry.
    pub(super) strays: u64,
}
