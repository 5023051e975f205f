//! What a flow carries, and the echo command that may ride on it.

use crate::{
    ids::{ComponentId, FlowId, NodeId},
    time::Time,
};

/// An echo point: `2 * component` is its entry, `2 * component + 1` its exit.
pub type PointId = u16;
/// Set in the hold-until-done point of a component: the echo waits until the robot has arrived.
pub const HELD: PointId = 0x8000;

/// Whether a sample was made before another of its flow; numbers begin again at 0.
#[inline]
pub fn is_before(index: u32, other: u32) -> bool {
    other.wrapping_sub(index).wrapping_sub(1) < u32::MAX / 2
}

/// Entry point of a component.
pub fn entry(component: ComponentId) -> PointId {
    component.0 * 2
}

/// Exit point of a component.
pub fn exit(component: ComponentId) -> PointId {
    component.0 * 2 + 1
}

/// Hold-until-done point of a component.
pub fn held(component: ComponentId) -> PointId {
    HELD | component.0
}

/// The component that a point belongs to.
pub fn owner(point: PointId) -> ComponentId {
    ComponentId(if point & HELD != 0 { point & !HELD } else { point / 2 })
}

/// An echo command: the sample it rides on is handled like any other, and the component that owns `target`
/// also answers at once (Polachan 2022; Polachan 2022: echoes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// The point that answers.
    pub target: PointId,
    /// Number of the command.
    pub sequence: u32,
    /// Node that waits for the answer.
    pub reply_to: NodeId,
    /// When the command was given, on the clock of the node that gave it.
    pub injected_ns: Time,
}

/// The identity of a sample on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// The flow it belongs to.
    pub flow: FlowId,
    /// Its number within the flow.
    pub index: u32,
    /// When it was made, on the clock of the node that made it.
    pub origin_ns: Time,
    /// The echo command on it, if any.
    pub echo: Option<Echo>,
}

/// The answer to an echo command: one 32-byte datagram of its own (`tcps-wire`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EchoReply {
    /// The point that answered.
    pub point: PointId,
    /// The flow whose sample carried the command.
    pub flow: FlowId,
    /// Number of the command.
    pub sequence: u32,
    /// When the command was given, on the giver's clock.
    pub injected_ns: Time,
    /// When the command reached the point, on the answering node's clock.
    pub reached_ns: Time,
}
