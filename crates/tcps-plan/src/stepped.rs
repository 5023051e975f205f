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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::plan;
    use serde_json::{json, Value};

    /// The clock of `left` is 5 ns ahead and gains 0.1 ns a nanosecond until the end at 1000 ns; events step it at 200 ns (by 30)
    /// and 600 ns (by -70), that of `right` at 400 ns (by 9).
    fn stepped() -> Plan {
        let step = |at_ns, node, step_ns: Time| -> Value {
            json!({"at_ns": at_ns, "name": "e", "action": {"kind": "clock", "node": node, "step_ns": step_ns}})
        };
        plan(&[
            ("/nodes/0/clock", json!({"offset_ns": 5, "drift_ppb": 100_000_000})),
            ("/events", json!([step(600, 0, -70), step(400, 1, 9), step(200, 0, 30)])),
        ])
    }

    /// Reports correct the stamps of a node by this: a step counts from its moment on, and at its own node only.
    #[test]
    fn a_clock_keeps_its_drift_and_has_the_steps_of_its_own_node_in_order() {
        let clock = stepped().stepped_clock(NodeId(0));
        for (t, offset_ns) in [(0, 5), (199, 5), (200, 35), (599, 35), (600, -35), (1_000, -35)] {
            assert_eq!(clock.at(t), NodeClock { offset_ns, drift_ppb: 100_000_000 }, "{t}");
        }
        let other = stepped().stepped_clock(NodeId(1));
        assert_eq!([399, 400].map(|t| other.at(t).offset_ns), [0, 9]);
    }

    /// Analysis takes stamps that are farther apart for damage: the farthest offset of a clock in the run, its drift to the end,
    /// and the same the other way at another node.
    #[test]
    fn clocks_are_apart_by_at_most_twice_the_error_of_the_worst() {
        let apart = |nodes: &[u16]| stepped().clocks_apart_ns(nodes.iter().map(|n| NodeId(*n)));
        assert_eq!(apart(&[0, 1]), 2 * (35 + 100));
        assert_eq!(apart(&[1]), 2 * 9);
        assert_eq!(apart(&[]), 0);
        let slow = plan(&[("/nodes/1/clock", json!({"offset_ns": -40, "drift_ppb": -20_000_000}))]);
        assert_eq!(slow.clocks_apart_ns([NodeId(1)].into_iter()), 2 * (40 + 20), "behind is as far as ahead");
    }
}
