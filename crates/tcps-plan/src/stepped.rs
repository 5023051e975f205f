//! The clock of a node over a run: events may step it.

use super::{Action, EventPlan, Plan};
use tcps_core::{
    ids::NodeId,
    time::{NodeClock, Time},
};

/// A clock with the steps that events make.
#[derive(Debug, Clone)]
pub struct SteppedClock {
    clock: NodeClock,
    /// Offsets, each from its time on.
    offsets: Vec<(Time, Time)>,
}

impl SteppedClock {
    /// The clock as it is at a time of the run.
    pub fn at(&self, t: Time) -> NodeClock {
        match self.offsets.partition_point(|(from, _)| *from <= t).checked_sub(1) {
            Some(last) => NodeClock { offset_ns: self.offsets[last].1, ..self.clock },
            None => self.clock,
        }
    }
}

impl Plan {
    /// The clock of a node over the run.
    pub fn stepped_clock(&self, node: NodeId) -> SteppedClock {
        let clock = self.nodes[node].clock;
        let step = |e: &EventPlan| match e.action {
            Action::Clock { node: whose, step_ns } if whose == node => Some((e.at_ns, step_ns)),
            _ => None,
        };
        let mut steps: Vec<_> = self.events.iter().filter_map(step).collect();
        steps.sort_by_key(|(at_ns, _)| *at_ns);
        let add = |offset_ns: &mut Time, (at_ns, step_ns): (Time, Time)| {
            *offset_ns = offset_ns.saturating_add(step_ns);
            Some((at_ns, *offset_ns))
        };
        SteppedClock { clock, offsets: steps.into_iter().scan(clock.offset_ns, add).collect() }
    }

    /// How far the clocks of two of these nodes are apart at most.
    pub fn clocks_apart_ns(&self, nodes: impl Iterator<Item = NodeId>) -> Time {
        let farthest = |node| {
            let stepped = self.stepped_clock(node);
            let drift = NodeClock { offset_ns: 0, ..stepped.clock }.error(self.duration_ns).saturating_abs();
            let offsets = stepped.offsets.iter().map(|(_, offset_ns)| *offset_ns);
            let errors = offsets.chain([stepped.clock.offset_ns]).map(Time::saturating_abs);
            errors.max().unwrap_or(0).saturating_add(drift)
        };
        nodes.map(farthest).max().unwrap_or(0).saturating_mul(2)
    }
}
