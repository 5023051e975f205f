//! What a flow carries, and the echo command that may ride on it.

use crate::{
    ids::{ComponentId, FlowId, NodeId, NONE},
    time::Time,
};
use serde::{Deserialize, Serialize};

/// An echo point: `2 * component` is its entry, `2 * component + 1` its exit, and `HELD | component` its hold-until-done
/// point, where the echo waits until the robot has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
#[repr(transparent)]
pub struct PointId(pub u16);

impl PointId {
    /// None.
    pub const NONE: Self = Self(NONE);
    /// Set in a hold-until-done point.
    pub const HELD: u16 = 0x8000;

    /// Entry point of a component.
    #[inline]
    pub fn entry(component: ComponentId) -> Self {
        Self(component.0 * 2)
    }

    /// Exit point of a component.
    #[inline]
    pub fn exit(component: ComponentId) -> Self {
        Self(component.0 * 2 + 1)
    }

    /// Hold-until-done point of a component.
    #[inline]
    pub fn held(component: ComponentId) -> Self {
        Self(Self::HELD | component.0)
    }

    /// Whether it is a hold-until-done point.
    #[inline]
    pub fn is_held(self) -> bool {
        self.0 & Self::HELD != 0
    }

    /// The component that it belongs to.
    #[inline]
    pub fn owner(self) -> ComponentId {
        ComponentId(if self.is_held() { self.0 & !Self::HELD } else { self.0 / 2 })
    }

    /// Its place among the points of its component: 0 entry, 1 exit, 2 hold-until-done.
    #[inline]
    pub fn side(self) -> usize {
        usize::from(if self.is_held() { 2 } else { self.0 & 1 })
    }
}

/// Whether a sample was made before another of its flow; numbers begin again at 0.
#[inline]
pub fn is_before(index: u32, other: u32) -> bool {
    other.wrapping_sub(index).wrapping_sub(1) < u32::MAX / 2
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
