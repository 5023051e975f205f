//! Names and places of numbered things, from the plan.

use tcps_core::{
    ids::{ComponentId, LinkId, NodeId},
    record::{DropReason, Place},
    sample::PointId,
};
use tcps_plan::Plan;

/// `srv.entry`, `srv.exit`, or `robot.held` for the hold-until-done point.
pub fn point(plan: &Plan, point: PointId) -> String {
    if point == PointId::NONE {
        return "unknown".into();
    }
    let side = ["entry", "exit", "held"][point.side()];
    format!("{}.{side}", component(plan, point.owner()))
}

/// Name of a component.
pub fn component(plan: &Plan, id: ComponentId) -> String {
    plan.components.get(id.index()).map_or_else(|| format!("component {id}"), |c| c.name.clone())
}

/// Name of a link of the network.
pub fn link(plan: &Plan, id: LinkId) -> String {
    plan.network.links.get(id.index()).map_or_else(|| "unknown".into(), |l| l.name.clone())
}

/// Name of a node; the emulator's rows have the number after the last node's.
pub fn node(plan: &Plan, id: NodeId) -> String {
    match plan.nodes.get(id.index()) {
        Some(node) => node.name.clone(),
        None if id.index() == plan.nodes.len() => "emulator".into(),
        None => "unknown".into(),
    }
}

/// Where a packet was dropped: by most reasons on a link, by the others at a component or in a channel.
pub fn place(plan: &Plan, reason: DropReason, point: u16) -> String {
    match reason.place() {
        Place::Component => component(plan, ComponentId(point)),
        Place::Channel => plan.channels.get(usize::from(point)).map_or("unknown".into(), |c| c.name.clone()),
        _ => link(plan, LinkId(point)),
    }
}
