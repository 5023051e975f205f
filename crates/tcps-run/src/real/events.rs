//! Scenario events that concern nodes, as a real loop lives through them.

use crate::os::ring::Producer;
use tcps_core::{
    record::{Kind, Record},
    time::{Time, NEVER},
};
use tcps_node::Node;
use tcps_plan::{Action, Plan};

/// Scenario events that concern nodes, in order.
pub(super) struct Events {
    order: Vec<usize>,
    times: Vec<Time>,
}

impl Events {
    /// The events of a plan.
    pub fn new(plan: &Plan) -> Self {
        let mut order: Vec<usize> = (0..plan.events.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse((plan.events[i].at_ns, i)));
        let times = order.iter().map(|&i| plan.events[i].at_ns).collect();
        Self { order, times }
    }

    /// When the next one is due.
    pub fn next(&self) -> Time {
        self.times.last().copied().unwrap_or(NEVER)
    }

    /// The number of the next one that is due.
    pub fn due(&mut self, now: Time) -> Option<usize> {
        if self.next() > now {
            return None;
        }
        self.times.pop();
        self.order.pop()
    }

    /// Does at a node what is due; each event leaves a row in `ring`, if there is one.
    pub fn apply(&mut self, plan: &Plan, now: Time, node: &mut Node, mut ring: Option<&mut Producer>) {
        while let Some(i) = self.due(now) {
            match &plan.events[i].action {
                Action::Flow { flow, running } => node.set_running(now, *flow, *running),
                Action::Component { component, alive } => node.set_alive(*component, *alive),
                Action::Clock { node: whose, step_ns } => node.step_clock(*whose, *step_ns),
                Action::Link { .. } | Action::Reroute | Action::Traffic { .. } => {}
            }
            if let Some(ring) = &mut ring {
                ring.push(&Record { index: i as u32, ..Record::new(now, Kind::Event) });
            }
        }
    }
}
