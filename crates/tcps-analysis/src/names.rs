//! Names and places of numbered things, from the plan.

use tcps_core::{
    record::{DropReason, Place, NONE},
    sample::{PointId, HELD},
};
use tcps_plan::Plan;

/// `srv.entry`, `srv.exit`, or `robot.held` for the hold-until-done point.
pub fn point(plan: &Plan, point: PointId) -> String {
    let (component, side) = match point {
        NONE => return "unknown".into(),
        p if p & HELD != 0 => (p & !HELD, "held"),
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

/// Name of a node; the emulator's rows have the number after the last node's.
pub fn node(plan: &Plan, number: u16) -> String {
    match plan.nodes.get(number as usize) {
        Some(node) => node.name.clone(),
        None if number as usize == plan.nodes.len() => "emulator".into(),
        None => "unknown".into(),
    }
}

/// Where a packet was dropped: by most reasons on a link, by the others at a component.
pub fn place(plan: &Plan, reason: DropReason, point: u16) -> String {
    match reason.place() {
        Place::Component => component(plan, point),
        _ => link(plan, point),
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
