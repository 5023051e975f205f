//! What the other program says: its lines, and its accounts at the end.

use serde::Deserialize;
use tcps_core::{ids::LinkId, record::DropReason, time::Time};
use tcps_plan::net::{LinkStats, TrafficStats};
use tcps_plan::report::{NodeSelf, RealSelf, Spread};

/// What the program tells about itself.
#[derive(Debug, Clone, Deserialize)]
pub struct ForeignSelf {
    /// What the program is called.
    #[serde(default)]
    pub name: String,
    /// Events that it worked off.
    pub events: u64,
    /// Moments at which it was due on the machine's clock.
    pub moments: u64,
    /// How late it was at them.
    pub late_ns: Spread,
    /// Packets that devices which it holds itself would not take.
    pub unsent: u64,
    /// Packets that came from such devices and are for no node.
    pub strangers: u64,
    pub(super) links: Vec<LinkAccount>,
    pub(super) traffic: Vec<TrafficAccount>,
}

impl ForeignSelf {
    /// As a node among others: how late it was on the machine's clock, and what it could not hand on.
    pub fn node(&self) -> NodeSelf {
        let real = RealSelf {
            ticks: self.moments,
            late_ns: self.late_ns.clone(),
            unsent: self.unsent,
            strangers: self.strangers,
            ..RealSelf::default()
        };
        NodeSelf { name: self.name.clone(), cores: 1, real: Some(real), ..NodeSelf::default() }
    }
}

/// What became of the packets of a link.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct LinkAccount {
    packets: u64,
    bytes: u64,
    full: u64,
    lost: u64,
    dropped_bytes: u64,
    most_bytes: u64,
    most_packets: u64,
    busy_ns: Time,
}

/// What became of the packets of a background entry.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct TrafficAccount {
    packets: u64,
    bytes: u64,
    delivered: u64,
    dropped: u64,
}

/// A line of the program.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct JsonLine {
    /// How far it has gone.
    pub at: Time,
    pub arrived: Vec<u32>,
    /// Number, link, reason.
    pub dropped: Vec<(u32, LinkId, u8)>,
    pub ready: Option<String>,
    pub queues: Option<Vec<(u64, u64)>>,
    pub done: Option<ForeignSelf>,
    pub failed: Option<String>,
    pub overload_ns: Option<Time>,
}

impl LinkAccount {
    pub fn stats(&self, name: &str) -> LinkStats {
        let dropped = self.full + self.lost;
        let mut stats = LinkStats {
            name: name.into(),
            offered_packets: self.packets + dropped,
            offered_bytes: self.bytes + self.dropped_bytes,
            packets: self.packets,
            bytes: self.bytes,
            dropped_packets: dropped,
            dropped_bytes: self.dropped_bytes,
            max_queue_bytes: self.most_bytes,
            max_queue_packets: self.most_packets,
            busy_ns: self.busy_ns,
            ..LinkStats::default()
        };
        stats.drops[DropReason::Full as usize] = self.full;
        stats.drops[DropReason::Loss as usize] = self.lost;
        stats
    }
}

impl TrafficAccount {
    pub fn stats(&self, name: &str) -> TrafficStats {
        let Self { packets, bytes, delivered: delivered_packets, dropped: dropped_packets } = *self;
        TrafficStats { name: name.into(), packets, bytes, delivered_packets, dropped_packets }
    }
}
