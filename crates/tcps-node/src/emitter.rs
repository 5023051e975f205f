//! Sources at their node, with their ticks and their echo commands.

use super::{
    job::{Job, Stage},
    Node,
};
use crate::{outside::Outside, source::Source};
use tcps_core::{
    record::{Kind, Record},
    sample::{Echo, Meta},
    seed::Stream,
    time::{Time, MS, NEVER},
};
use tcps_plan::{FlowPlan, Level, ProbePlan, RunError};

/// A loop that is late makes up for its ticks, one right after the other, if it is less late than this; after a longer
/// pause it leaves them out.
const MOST_LATE_NS: Time = MS;

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
        id: u16,
        flow: &FlowPlan,
        source: Source,
        probe: Option<&ProbePlan>,
        robot: Option<usize>,
        end: Time,
        seed: u64,
    ) -> Result<Self, RunError> {
        if matches!(source, Source::Robot) && robot.is_none() {
            return Err(RunError::new(format!(
                "flows.{}.source: its first component has no robot",
                flow.name
            )));
        }
        Ok(Self {
            flow: id,
            source,
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
    fn is_full(&self) -> bool {
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

/// The place of a flow's source among the emitters, which are in the order of flows.
pub(super) fn of(emitters: &[Emitter], flow: u16) -> Option<usize> {
    emitters.binary_search_by_key(&flow, |e| e.flow).ok()
}

/// Echo commands given at a source: rounds over all points, each round in an order of its own, so that traffic in
/// step with the commands does not meet one point more than another. Command `n` is for point `n` modulo their number.
/// Where moments are drawn, traffic in step with the period is met at every phase.
pub(super) struct Probe {
    points: Vec<u16>,
    /// Turns of this round that are still to come, the next one last.
    turns: Vec<u32>,
    order: Stream,
    period_ns: Time,
    /// Start of the period in which the next command is due, and the moment.
    from: Time,
    next: Time,
    moments: Option<Stream>,
    given: u32,
    count: u32,
    reply_to: u16,
}

impl Probe {
    pub(super) fn new(plan: &ProbePlan, seed: u64) -> Self {
        let mut probe = Self {
            points: plan.points.clone(),
            turns: Vec::new(),
            order: Stream::new(seed, &format!("probes.{}", plan.flow)),
            period_ns: plan.period_ns,
            from: plan.start_ns,
            next: plan.start_ns,
            moments: plan.drawn.then(|| Stream::new(seed, &format!("probes.{}.moments", plan.flow))),
            given: 0,
            count: plan.count.unwrap_or(u32::MAX),
            reply_to: plan.reply_to,
        };
        probe.due();
        probe
    }

    /// When in its period the next command is due.
    fn due(&mut self) {
        let within = self.moments.as_mut().map_or(0, |s| s.below(self.period_ns.max(1) as u64));
        self.next = self.from + within as Time;
    }

    /// The command for a sample made at `now`, if one is due: points take turns (interleaving, Polachan 2022).
    pub(super) fn command(&mut self, now: Time, injected_ns: Time) -> Option<Echo> {
        if now < self.next || self.given >= self.count || self.points.is_empty() {
            return None;
        }
        let passed = (now - self.from) / self.period_ns.max(1);
        // The sample after a drawn moment may be one of the next period, which has a command of its own.
        self.from += self.period_ns * if self.moments.is_some() { passed.max(1) } else { passed + 1 };
        self.due();
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
    pub(super) fn shuffle(&mut self) {
        for i in (1..self.turns.len()).rev() {
            self.turns.swap(i, self.order.below(i as u64 + 1) as usize);
        }
    }
}

impl Node {
    /// Whether the component that a source stands at is dead.
    fn is_dead_source(&self, i: usize) -> bool {
        let first = self.flows[self.emitters[i].flow as usize].visits.first().and_then(Option::as_ref);
        first.is_some_and(|v| !self.is_alive(v.component))
    }

    /// Makes the samples whose tick has come.
    pub(super) fn tick_emitter<O: Outside>(&mut self, i: usize, now: Time, out: &mut O) {
        while self.emitters[i].next() <= now {
            // [Al-Mouhamed] A frame is taken when a buffer is free for it.
            if self.is_dead_source(i) || self.emitters[i].is_full() {
                self.emitters[i].tick += 1;
                continue;
            }
            let here = self.clock.read(now);
            let mut job = self.pool.pop().unwrap_or_else(Job::empty);
            let e = &mut self.emitters[i];
            let late = now - e.next();
            // A loop that is late at the end makes the last sample of the plan, not one after it.
            let behind =
                if late < MOST_LATE_NS { 0 } else { late.min(e.stop_ns - 1 - e.next()) / e.period_ns };
            self.missed_ticks += behind as u64;
            e.tick += 1 + behind as u64;
            let echo = e.probe.as_mut().and_then(|p| p.command(now, here));
            // Samples are numbered by ticks: what a late loop leaves out leaves a gap, and a recording stays in time.
            let (flow, index) = (e.flow, (e.tick - 1) as u32);
            job.meta = Meta { flow, index, origin_ns: here, echo };
            e.buffers.0 += 1;
            job.buffered = true;
            if late > 0 && self.level >= Level::Packets {
                let node = self.id;
                out.record(Record { value: late, index, flow, node, ..Record::new(now, Kind::Late) });
            }
            (job.flow, job.visit, job.step, job.stage) = (e.flow, 0, 0, Stage::Enter);
            match e.robot.filter(|_| matches!(e.source, Source::Robot)) {
                Some(r) => {
                    job.values.clear();
                    job.values.extend_from_slice(self.robots[r].senses());
                    job.decoded = true;
                }
                None => {
                    let codec = self.flows[e.flow as usize].codec;
                    job.decoded = e.source.fill(codec, job.meta.index, &mut job.bytes, &mut job.values);
                }
            }
            job.coded = !job.decoded;
            self.todo.push_back(job);
            self.run(now, out);
        }
    }
}
