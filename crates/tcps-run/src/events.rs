//! Events that concern nodes, of the scenario and of who steers the run, as a real loop lives through them.

use crate::os::ring::Producer;
use serde_json::Value;
use tcps_core::{
    ids::{ComponentId, NodeId},
    record::{Kind, Record},
    time::{Time, NEVER},
};
use tcps_node::Node;
use tcps_plan::{Action, EventPlan, Plan, RunError};

/// An event that was asked for while the run goes on.
#[derive(Debug, Clone)]
pub struct Steered {
    /// Its number in rows.
    pub number: u32,
    /// What happens, and when.
    pub event: EventPlan,
    /// Whether it leaves a row here.
    pub noted: bool,
}

/// Events that concern nodes, in order.
pub(crate) struct Events {
    order: Vec<usize>,
    times: Vec<Time>,
    steered: Vec<Steered>,
}

impl Events {
    /// The events of a plan.
    pub fn new(plan: &Plan) -> Self {
        let mut order: Vec<usize> = (0..plan.events.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse((plan.events[i].at_ns, i)));
        let times = order.iter().map(|&i| plan.events[i].at_ns).collect();
        Self { order, times, steered: Vec::new() }
    }

    /// When the next one is due.
    pub fn next(&self) -> Time {
        let steered = self.steered.iter().map(|s| s.event.at_ns).min();
        self.planned().min(steered.unwrap_or(NEVER))
    }

    fn planned(&self) -> Time {
        self.times.last().copied().unwrap_or(NEVER)
    }

    /// Takes an event that was asked for; one whose moment is over happens now.
    pub fn take(&mut self, now: Time, mut steered: Steered) {
        steered.event.at_ns = steered.event.at_ns.max(now);
        self.steered.push(steered);
    }

    /// The number of the next one of the plan that is due.
    pub fn due(&mut self, now: Time) -> Option<usize> {
        if self.planned() > now {
            return None;
        }
        self.times.pop();
        self.order.pop()
    }

    /// The next one that was asked for and is due.
    pub fn steered(&mut self, now: Time) -> Option<Steered> {
        let due = self.steered.iter().enumerate().filter(|(_, s)| s.event.at_ns <= now);
        let (place, _) = due.min_by_key(|(_, s)| (s.event.at_ns, s.number))?;
        Some(self.steered.remove(place))
    }

    /// Does at a node what is due; each event leaves a row in `ring`, those of the plan if it `notes` them.
    pub fn apply(&mut self, plan: &Plan, now: Time, node: &mut Node, ring: &mut Producer, notes: bool) {
        while let Some(i) = self.due(now) {
            act(&plan.events[i].action, now, node, notes.then_some((i as u32, &mut *ring)));
        }
        while let Some(s) = self.steered(now) {
            act(&s.event.action, now, node, s.noted.then_some((s.number, &mut *ring)));
        }
    }
}

/// An event that a node, or what lies between the nodes, is asked for while it runs, with its number in rows.
pub fn asked(plan: &Plan, node: Option<NodeId>, line: &Value) -> Result<(u32, EventPlan), RunError> {
    let mut table = line.as_object().cloned().unwrap_or_default();
    table.remove("op");
    let number = table.remove("number").and_then(|n| u32::try_from(n.as_u64()?).ok());
    let Some(number) = number.filter(|n| *n as usize >= plan.events.len()) else {
        return Err(RunError::config(format!(
            "control: event: found \"number\": {}; allowed: {} and more, since the plan has those below, as in \
             \"number\": {1}",
            line["number"],
            plan.events.len()
        )));
    };
    table.entry("at_ns").or_insert(0.into());
    let event: EventPlan =
        serde_json::from_value(table.into()).map_err(|e| RunError::config(format!("control: event: {e}")))?;
    plan.check_event(&event)?;
    let of = |component: ComponentId| plan.components[component].node;
    let whose = match event.action {
        Action::Flow { flow, .. } => plan.flows[flow].path.first().map(|v| of(v.component)),
        Action::Component { component, .. } => Some(of(component)),
        Action::Clock { node, .. } => Some(node),
        Action::Link(_) | Action::Reroute | Action::Traffic { .. } | Action::Attack(_) => None,
    };
    if whose != node {
        let name = |n: Option<NodeId>| n.map_or("the network", |n| plan.nodes[n].name.as_str());
        return Err(RunError::config(format!(
            "control: event {:?}: found an action of {} at {}; allowed: flow (at its first component), component, \
             clock of a node there, link, reroute, traffic, attack at the network",
            event.name,
            name(whose),
            name(node)
        )));
    }
    Ok((number, event))
}

fn act(action: &Action, now: Time, node: &mut Node, row: Option<(u32, &mut Producer)>) {
    match action {
        Action::Flow { flow, running } => node.set_running(now, *flow, *running),
        Action::Component { component, alive } => node.set_alive(*component, *alive),
        Action::Clock { node: whose, step_ns } => node.step_clock(*whose, *step_ns),
        Action::Link(_) | Action::Reroute | Action::Traffic { .. } | Action::Attack(_) => {}
    }
    if let Some((index, ring)) = row {
        ring.push(&Record { index, ..Record::new(now, Kind::Event) });
    }
}
