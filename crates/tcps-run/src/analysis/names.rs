//! Names and places of numbered things, from the plan.

use crate::plan::{FlowPlan, Plan};
use tcps_core::{
    record::{DropReason, NONE},
    sample::{entry, exit, PointId, HELD},
};

/// Points of a flow that are told apart.
const MOST_POINTS: usize = 254;

/// `srv.entry`, `srv.exit`, or `robot.done` for the hold-until-done point.
pub fn point(plan: &Plan, point: PointId) -> String {
    let (component, side) = match point {
        NONE => return "unknown".into(),
        p if p & HELD != 0 => (p & !HELD, "done"),
        p if p % 2 == 0 => (p / 2, "entry"),
        p => (p / 2, "exit"),
    };
    format!("{}.{side}", self::component(plan, component))
}

/// Name of a component.
pub fn component(plan: &Plan, number: u16) -> String {
    plan.components.get(number as usize).map_or_else(|| format!("component {number}"), |c| c.name.clone())
}

/// Name of a link of the network.
pub fn link(plan: &Plan, number: u16) -> String {
    plan.network.links.get(number as usize).map_or_else(|| "unknown".into(), |l| l.name.clone())
}

/// Name of a node.
pub fn node(plan: &Plan, number: u16) -> String {
    plan.nodes.get(number as usize).map_or_else(|| "unknown".into(), |n| n.name.clone())
}

/// Where a packet was dropped: the first reasons are those of links, the others those of components.
pub fn place(plan: &Plan, reason: DropReason, point: u16) -> String {
    if reason < DropReason::Dead {
        link(plan, point)
    } else {
        component(plan, point)
    }
}

/// Points of a flow in the order of its path, and how many of them come up to its delivery.
pub fn points_of(flow: &FlowPlan) -> (Vec<PointId>, usize) {
    let visits: Vec<_> = flow.path.iter().filter(|v| v.component < HELD / 2).collect();
    let (Some(first), Some(last)) = (visits.first(), visits.last()) else { return (Vec::new(), 0) };
    if visits.len() < 2 {
        return (Vec::new(), 0);
    }
    let all = visits.iter().flat_map(|v| [entry(v.component), exit(v.component)]);
    let skipped = usize::from(first.steps.is_empty());
    let mut points: Vec<PointId> = all.skip(skipped).take(MOST_POINTS).collect();
    let length = points.len() - usize::from(points.len() < MOST_POINTS);
    if last.steps.is_empty() {
        points.truncate(length);
    }
    (points, length)
}

/// A stretch of a path between two points that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stretch {
    /// Between entry and exit of a component.
    Component(String),
    /// Between a component and the next; whether a network lies between them.
    Link(String, bool),
    /// From the exit of a component to the end of its movement.
    Actuation(String),
    /// Anything else.
    Span(String),
}

impl Stretch {
    /// `component`, `link`, `actuation` or `span`.
    pub fn what(&self) -> &'static str {
        match self {
            Stretch::Component(_) => "component",
            Stretch::Link(..) => "link",
            Stretch::Actuation(_) => "actuation",
            Stretch::Span(_) => "span",
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Stretch::Component(n) | Stretch::Link(n, _) | Stretch::Actuation(n) | Stretch::Span(n) => n,
        }
    }

    /// The stretch between two points of a flow.
    pub fn between(plan: &Plan, flow: &FlowPlan, from: PointId, to: PointId) -> Self {
        let (a, b) = (owner(from), owner(to));
        if a == b && to & HELD != 0 {
            return Stretch::Actuation(component(plan, a));
        }
        if a == b {
            return Stretch::Component(component(plan, a));
        }
        let hop = flow.path.windows(2).find(|w| w[0].component == a && w[1].component == b);
        match hop {
            Some(w) if from == exit(a) && to == entry(b) => {
                let name = format!("{} -> {}", component(plan, a), component(plan, b));
                Stretch::Link(name, w[0].channel.is_some())
            }
            _ => Stretch::Span(format!("{} -> {}", point(plan, from), point(plan, to))),
        }
    }
}

/// The component that a point belongs to.
pub fn owner(point: PointId) -> u16 {
    if point & HELD != 0 {
        point & !HELD
    } else {
        point / 2
    }
}
