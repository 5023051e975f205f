//! What nodes and their loops tell about themselves.

use super::Spread;
use serde::Serialize;

/// What a node tells about itself.
#[derive(Debug, Clone, Default, Serialize)]
pub struct NodeSelf {
    /// Its name.
    pub name: String,
    /// Its cores.
    pub cores: u16,
    /// Core time of stages.
    pub busy_s: f64,
    /// Skipped ticks: the loop was late by more than it makes up for.
    pub missed_ticks: u64,
    /// Datagrams outside channels that were refused.
    pub asides_refused: u64,
    /// What only a real loop can tell.
    #[serde(flatten)]
    pub real: Option<RealSelf>,
}

/// What a real loop tells about itself.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RealSelf {
    /// Sessions of the loop, of a node that has several loops.
    pub sessions: Vec<String>,
    /// Ticks of the loop.
    pub ticks: u64,
    /// How late it woke up.
    pub late_ns: Spread,
    /// Times it stalled for over 1 ms.
    pub gaps_over_1ms: u64,
    /// Rows lost because the ring was full.
    pub ring_overflows: u64,
    /// Datagrams that the kernel dropped at its sockets.
    pub socket_drops: u64,
    /// From the kernel's receive stamp to the loop.
    pub stamp_to_loop_ns: Spread,
    /// How long its send calls took.
    pub send_ns: Spread,
    /// How long it took to get the interpreter back after a wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter_wait_ns: Option<Spread>,
    /// Datagrams from senders that are not peers.
    pub strangers: u64,
    /// Packets whose port cannot be read: behind extension headers, in a VLAN, in a fragment after the first.
    pub unread: u64,
    /// Datagrams that the kernel would not take.
    pub unsent: u64,
    /// Steps of the wall clock.
    pub clock_steps: u64,
    /// How it waited.
    pub waiting: String,
    /// Privileges it has, and those it was refused.
    pub privileges: Vec<String>,
    /// What lies between its code and the network; absent at the emulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantiles_ns: Option<Boundary>,
}

/// What lies between a loop's code and its network, as percentiles in nanoseconds, for virtual time to load.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Boundary {
    /// From the moment that a timer was set for to the one at which the loop went on.
    pub wakeup: Vec<u64>,
    /// A send call.
    pub send: Vec<u64>,
    /// From the kernel's receive stamp to the loop.
    pub receive: Vec<u64>,
}
