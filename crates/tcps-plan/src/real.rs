//! Settings of the real driver.

use serde::Deserialize;
use std::net::IpAddr;
use tcps_core::time::Time;

/// Settings of the real driver.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RealPlan {
    /// How a loop waits.
    pub waiting: Waiting,
    /// Length of the spin at the end of a hybrid wait.
    pub spin_ns: Time,
    /// Ask for SCHED_FIFO and locked memory.
    pub realtime: bool,
    /// IPv6 in place of IPv4.
    pub ipv6: bool,
    /// What the emulator stands between.
    pub network: Isolation,
    /// Addresses of the sockets of nodes on other computers or in namespaces made for them; empty: those of `network`.
    pub addresses: Vec<IpAddr>,
    /// Address of the emulator's gates; absent: loopback.
    pub gates: Option<IpAddr>,
    /// What background traffic is.
    pub background: Background,
    /// Whether the devices of nodes in namespaces carry Ethernet frames, for a program that holds them itself.
    pub frames: bool,
}

impl Default for RealPlan {
    fn default() -> Self {
        Self {
            waiting: Waiting::Timer,
            spin_ns: 50_000,
            realtime: true,
            ipv6: false,
            network: Isolation::Gates,
            addresses: Vec::new(),
            gates: None,
            background: Background::Events,
            frames: false,
        }
    }
}

/// Where the nodes of a real run have their sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// On loopback, with UDP gates of the emulator between them.
    Gates,
    /// In network namespaces of their own, with TUN devices that the emulator holds.
    Namespaces,
}

/// What background traffic is between nodes in namespaces of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Background {
    /// Events of the network that lies between the nodes.
    Events,
    /// Datagrams of nodes that have nothing else, and are the ends of its entries.
    Datagrams,
}

/// Ways of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// Blocking poll with millisecond time-outs.
    Blocking,
    /// ppoll with nanosecond deadlines and timer slack 1 ns.
    Timer,
    /// As timer, with the last part spun.
    Hybrid,
}
