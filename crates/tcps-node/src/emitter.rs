//! Sources at their node, with their ticks and their echo commands.

use super::{assets::Assets, context::Context, due::Item, job::Stage, robot::Robots, sparse::Sparse};
use crate::{host::Host, source::Source};
use tcps_core::{
    ids::{ComponentId, FlowId, NodeId},
    record::{Kind, Record},
    sample::{Echo, Meta, PointId},
    seed::Stream,
    split::{Choice, Parts},
    time::{Time, MS, NEVER},
};
use tcps_plan::{Codec, FlowPlan, Level, Places, Plan, ProbePlan, RunError};

/// A loop that is late makes up for its ticks, one right after the other, if it is less late than this; after a longer
/// pause it leaves them out.
const MOST_LATE_NS: Time = MS;

/// A source at its node, with its tick.
struct Emitter {
    flow: FlowId,
    component: ComponentId,
    codec: Codec,
    source: Source,
    robot: Option<usize>,
    start_ns: Time,
    period_ns: Time,
    stop_ns: Time,
    tick: u64,
    running: bool,
    /// How many samples may be that have not left the node, if that is limited.
    buffers: Option<u32>,
    probe: Option<Box<Probe>>,
}

impl Emitter {
    fn new(
        id: FlowId,
        flow: &FlowPlan,
        source: Source,
        probe: Option<&ProbePlan>,
        robot: Option<usize>,
        end: Time,
        seed: u64,
    ) -> Result<Self, RunError> {
        if matches!(source, Source::Robot) && robot.is_none() {
            return Err(RunError::config(format!(
                "flows.{}.source: its first component has no robot",
                flow.name
            )));
        }
        Ok(Self {
            flow: id,
            component: flow.path[0].component,
            codec: flow.codec,
            source,
            robot,
            start_ns: flow.start_ns,
            period_ns: flow.period_ns.max(1),
            stop_ns: flow.stop_ns.unwrap_or(end).min(end),
            tick: 0,
            running: true,
            buffers: flow.buffers,
            probe: probe.map(|p| Box::new(Probe::new(p, seed))),
        })
    }

    /// Moment of the next sample.
    fn next(&self) -> Time {
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
/// Where moments are drawn, traffic in step with the period is met at every phase.
struct Probe {
    points: Vec<PointId>,
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
    reply_to: NodeId,
}

impl Probe {
    fn new(plan: &ProbePlan, seed: u64) -> Self {
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
    fn command(&mut self, now: Time, injected_ns: Time) -> Option<Echo> {
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
    fn shuffle(&mut self) {
        for i in (1..self.turns.len()).rev() {
            self.turns.swap(i, self.order.below(i as u64 + 1) as usize);
        }
    }
}

/// The sources of a node, in the order of flows.
#[derive(Default)]
pub(super) struct Emitters {
    emitters: Sparse<FlowId, Emitter>,
    /// Ticks that a late loop left out.
    pub(super) missed: u64,
    /// Samples whose time is followed to their sink.
    followed: Choice,
}

impl Emitters {
    /// The sources of these flows.
    pub(super) fn new(
        plan: &Plan,
        places: &Places,
        flows: impl Iterator<Item = FlowId>,
        robots: &Robots,
        assets: &mut dyn Assets,
    ) -> Result<Self, RunError> {
        let mut all = Self { followed: places.followed, ..Self::default() };
        for id in flows {
            let flow = &plan.flows[id];
            let robot = robots.of(flow.path[0].component);
            let probe = places.probe[usize::from(id)].map(|p| &plan.probes[p]);
            let source = Source::open(flow, assets)?;
            let (end, seed) = (plan.duration_ns, plan.seed);
            all.emitters.push(id, Emitter::new(id, flow, source, probe, robot, end, seed)?);
        }
        Ok(all)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.emitters.len()
    }

    /// The flows of those that have buffers for so many samples only.
    pub(super) fn with_buffers(&self) -> impl Iterator<Item = FlowId> + '_ {
        self.emitters.iter().filter(|e| e.buffers.is_some()).map(|e| e.flow)
    }

    /// Moment of the next sample of one.
    pub(super) fn next(&self, i: usize) -> Time {
        self.emitters.at(i).next()
    }

    /// Stops or starts a flow's source; ticks in between are left out.
    pub(super) fn set_running(&mut self, now: Time, flow: FlowId, running: bool) -> Option<Item> {
        let i = self.emitters.place(flow)?;
        let e = self.emitters.at_mut(i);
        if e.running != running {
            e.running = running;
            let passed = (now - e.start_ns).max(0) as u64;
            e.tick = e.tick.max(passed.div_ceil(e.period_ns as u64));
        }
        Some(Item::Emitter(i))
    }

    /// Makes the next sample whose tick has come; false if there is none.
    pub(super) fn tick<O: Host>(
        &mut self,
        i: usize,
        now: Time,
        robots: &Robots,
        cx: &mut Context<'_, O>,
    ) -> bool {
        let e = self.emitters.at_mut(i);
        while e.next() <= now {
            // [Al-Mouhamed] A frame is taken when a buffer is free for it.
            if !cx.here.is_alive(e.component)
                || e.buffers.is_some_and(|most| cx.jobs.buffered(e.flow) >= most)
            {
                e.tick += 1;
                continue;
            }
            let here = cx.read(now);
            let mut job = cx.out.spare().take();
            let late = now - e.next();
            // A loop that is late at the end makes the last sample of the plan, not one after it.
            let behind =
                if late < MOST_LATE_NS { 0 } else { late.min(e.stop_ns - 1 - e.next()) / e.period_ns };
            self.missed += behind as u64;
            e.tick += 1 + behind as u64;
            let echo = e.probe.as_mut().and_then(|p| p.command(now, here));
            // Samples are numbered by ticks: what a late loop leaves out leaves a gap, and a recording stays in time.
            let (flow, index) = (e.flow, (e.tick - 1) as u32);
            (job.meta, job.received_ns) = (Meta { flow, index, origin_ns: here, echo }, None);
            if late > 0 && cx.here.level >= Level::Packets {
                cx.out.record(Record { value: late, index, flow, ..cx.here.row(now, Kind::Late) });
            }
            (job.flow, job.visit, job.step, job.stage, job.codec) = (e.flow, 0, 0, Stage::Enter, e.codec);
            match self.followed.takes(index) {
                true => job.parts = Parts::new(now),
                false => job.parts.forget(now),
            }
            cx.jobs.buffer(&mut job);
            match e.robot.filter(|_| matches!(e.source, Source::Robot)) {
                Some(r) => {
                    job.values.clear();
                    job.values.extend_from_slice(robots.senses(r));
                    job.decoded = true;
                }
                None => job.decoded = e.source.fill(e.codec, index, &mut job.bytes, &mut job.values),
            }
            job.coded = !job.decoded;
            cx.jobs.go(job);
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(points: &[u16], count: Option<u32>) -> Probe {
        probe_with(points, count, false)
    }

    fn probe_with(points: &[u16], count: Option<u32>, drawn: bool) -> Probe {
        let plan = ProbePlan {
            flow: FlowId(0),
            points: points.iter().map(|p| PointId(*p)).collect(),
            period_ns: 10,
            drawn,
            start_ns: 5,
            count,
            reply_to: NodeId(0),
        };
        Probe::new(&plan, 1)
    }

    /// Moments at which a source that makes a sample at each gives a command.
    fn given(probe: &mut Probe) -> Vec<Time> {
        (0..40).filter(|now| probe.command(*now, 0).is_some()).collect()
    }

    #[test]
    fn a_command_is_given_once_a_period_as_often_as_asked_and_to_somebody() {
        assert_eq!(given(&mut probe(&[1, 2], None)), [5, 15, 25, 35]);
        assert_eq!(given(&mut probe(&[1, 2], Some(3))), [5, 15, 25]);
        assert!(given(&mut probe(&[1, 2], Some(0))).is_empty());
        assert!(given(&mut probe(&[], None)).is_empty());
    }

    /// Moments are drawn so that every phase is met, once in each period.
    #[test]
    fn drawn_moments_lie_one_in_each_period() {
        let mut probe = probe_with(&[1, 2], None, true);
        let given: Vec<Time> = (0..1005).filter(|now| probe.command(*now, 0).is_some()).collect();
        let periods: Vec<Time> = given.iter().map(|at| (at - 5).div_euclid(10)).collect();
        assert_eq!(periods, (0..100).collect::<Vec<_>>());
        let phases: std::collections::BTreeSet<Time> = given.iter().map(|at| (at - 5) % 10).collect();
        assert_eq!(phases.len(), 10);
    }

    /// Traffic in step with the commands would meet one point more than another, were some orders rarer than others.
    #[test]
    fn each_round_meets_every_point_once_in_any_order_alike() {
        let mut probe = probe(&[7, 8, 9], None);
        let mut now = 5;
        let mut next = || {
            now += 10;
            probe.command(now, 0).expect("one is due").target.0
        };
        let mut rounds = std::collections::BTreeMap::new();
        for _ in 0..600 {
            *rounds.entry([next(), next(), next()]).or_insert(0) += 1;
        }
        let orders = [[7, 8, 9], [7, 9, 8], [8, 7, 9], [8, 9, 7], [9, 7, 8], [9, 8, 7]];
        assert!(rounds.keys().eq(&orders), "{rounds:?}");
        // A hundred each; four standard deviations, the root of 600 · 1/6 · 5/6, are 36.
        assert!(rounds.values().all(|n| (64..=136).contains(n)), "{rounds:?}");
    }

    #[test]
    fn a_source_that_was_away_makes_up_for_no_commands() {
        let mut probe = probe(&[1, 2], None);
        let given: Vec<Time> =
            [5, 37, 38, 44, 45, 46].into_iter().filter(|now| probe.command(*now, 0).is_some()).collect();
        assert_eq!(given, [5, 37, 45]);
    }
}
