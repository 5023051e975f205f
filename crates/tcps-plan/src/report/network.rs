//! What the network did: its links, the background traffic on them, and how well an emulator kept to what was set.

use super::Spread;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use tcps_core::record::DropReason;
use tcps_net::{LinkStats, TrafficStats};

/// A link's accounts.
#[derive(Debug, Clone, Serialize)]
pub struct Link {
    name: String,
    packets: u64,
    bytes: u64,
    dropped_packets: u64,
    dropped_bytes: u64,
    drops: BTreeMap<&'static str, u64>,
    max_queue_bytes: u64,
    max_queue_packets: u64,
    busy_s: f64,
    duplicated: u64,
    corrupted: u64,
}

impl From<LinkStats> for Link {
    fn from(s: LinkStats) -> Self {
        let named = |r: &DropReason| (s.drops[*r as usize] > 0).then(|| (r.name(), s.drops[*r as usize]));
        Self {
            drops: DropReason::ALL.iter().filter_map(named).collect(),
            name: s.name,
            packets: s.packets,
            bytes: s.bytes,
            dropped_packets: s.dropped_packets,
            dropped_bytes: s.dropped_bytes,
            max_queue_bytes: s.max_queue_bytes,
            max_queue_packets: s.max_queue_packets,
            busy_s: s.busy_ns as f64 / 1e9,
            duplicated: s.duplicated,
            corrupted: s.corrupted,
        }
    }
}

/// A background flow's accounts.
#[derive(Debug, Clone, Serialize)]
pub struct Traffic {
    name: String,
    packets: u64,
    bytes: u64,
    delivered_packets: u64,
    dropped_packets: u64,
}

impl From<TrafficStats> for Traffic {
    fn from(s: TrafficStats) -> Self {
        let TrafficStats { name, packets, bytes, delivered_packets, dropped_packets } = s;
        Self { name, packets, bytes, delivered_packets, dropped_packets }
    }
}

/// Set against delivered between two nodes.
#[derive(Debug, Clone, Serialize)]
pub struct Emulated {
    path: String,
    packets: u64,
    set_delay_ns: Spread,
    delivered_delay_ns: Spread,
    /// Delivered later than set.
    error_ns: Spread,
    /// Bits on the wire between the first and the last packet, as the network let them out; none below 1 s.
    set_rate_bps: Option<f64>,
    /// The same as they were handed to the kernel.
    delivered_rate_bps: Option<f64>,
    set_loss: f64,
    delivered_loss: f64,
    /// What says when packets entered.
    stamps: &'static str,
}

impl Emulated {
    /// From histograms of (set, delivered, error), rates (set, delivered) and counts; `stamps` says what tells when
    /// packets entered.
    pub fn new(
        stamps: &'static str,
        path: String,
        (set, delivered, error): (&Histogram<u64>, &Histogram<u64>, &Histogram<u64>),
        (set_rate_bps, delivered_rate_bps): (Option<f64>, Option<f64>),
        entered: u64,
        lost: u64,
    ) -> Self {
        let share = |n: u64| n as f64 / entered.max(1) as f64;
        Self {
            path,
            packets: entered,
            set_delay_ns: Spread::of(set),
            delivered_delay_ns: Spread::of(delivered),
            error_ns: Spread::of(error),
            set_rate_bps,
            delivered_rate_bps,
            set_loss: share(lost),
            delivered_loss: share(entered - delivered.len().min(entered)),
            stamps,
        }
    }
}
