//! What the network did: its links, the background traffic on them, and how well an emulator kept to what was set.

use super::{Drawn, Spread};
use crate::net::{LinkStats, TrafficStats};
use serde::Serialize;
use std::collections::BTreeMap;
use tcps_core::{record::DropReason, time::Time};

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
    #[serde(skip_serializing_if = "is_zero")]
    marked: u64,
    /// The extra delays that it drew.
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter_ns: Option<Drawn>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
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
            marked: s.marked,
            jitter_ns: s.jitter_ns.as_deref().map(Drawn::of),
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

/// Set against delivered, for packets that go one way.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Emulated {
    /// Packets (of TCP: segments of at most 1448 bytes) that came in.
    pub packets: u64,
    /// Their bytes, without headers.
    pub bytes: u64,
    /// Copies that the network made of them.
    pub copies: u64,
    /// Those that went out, copies included.
    pub delivered: u64,
    /// Bytes that went out.
    pub delivered_bytes: u64,
    /// Those that the network lost, as it was set to.
    pub lost: u64,
    /// Why.
    pub drops: BTreeMap<&'static str, u64>,
    /// Those that the kernel would not take.
    pub unsent: u64,
    /// Those that were still in flight, neither lost nor out: packets and copies are these, those delivered, lost and unsent.
    pub inside: u64,
    /// Share of those decided that the network lost.
    pub set_loss: f64,
    /// Share of those decided that did not go out.
    pub delivered_loss: f64,
    /// Delay that the network gave.
    pub set_delay_ns: Spread,
    /// From the stamp of the kernel to the end of the send call.
    pub delivered_delay_ns: Spread,
    /// Emulation error: delivered delay less the one that was set.
    pub error_ns: Spread,
    /// Rate behind the first packet, over the span from the first to the last, as the network let them out; none over less
    /// than a second. Between nodes it is one of bytes on the wire, at a proxy of payload.
    pub set_rate_bps: Option<f64>,
    /// The same as they were handed to the kernel: less what it refused, over a time as much longer as lateness grew.
    pub delivered_rate_bps: Option<f64>,
    /// The rate set with all headers, as links count packets; none where it has them already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire_rate_bps: Option<f64>,
    /// When the network let the first packet out, and the last; none without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub released_ns: Option<(Time, Time)>,
    /// The longest time from the loss of a TCP segment until its bytes came out; none without one, and between nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_repair_ns: Option<Time>,
}

/// What came out in the last second.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Recent {
    /// Rate of what went out.
    pub rate_pps: f64,
    /// The same in bits.
    pub rate_bps: f64,
    /// Delivered delays.
    pub recent_delay_ns: Spread,
    /// Those lost.
    pub recent_lost: u64,
}

/// Set against delivered between two nodes.
#[derive(Debug, Clone, Serialize)]
pub struct EmulatedPath {
    /// From which node to which.
    pub path: String,
    /// What says when packets entered.
    pub stamps: &'static str,
    /// Counts, delays and rates.
    #[serde(flatten)]
    pub told: Emulated,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Reports show a line for each key: what never happened has none.
    #[test]
    fn a_link_tells_what_it_dropped_marked_and_drew_only_if_it_did() {
        let told = |stats: LinkStats| serde_json::to_value(Link::from(stats)).expect("JSON");
        let quiet = told(LinkStats { busy_ns: 1_500_000_000, ..LinkStats::default() });
        assert_eq!((&quiet["drops"], &quiet["busy_s"]), (&json!({}), &json!(1.5)));
        assert_eq!((quiet.get("marked"), quiet.get("jitter_ns")), (None, None));
        let mut stats = LinkStats { marked: 3, ..LinkStats::default() };
        [DropReason::Full, DropReason::Loss, DropReason::Full].into_iter().for_each(|r| stats.drop(100, r));
        let mut jitter = tcps_core::report::histogram();
        jitter.record(7).expect("in bounds");
        stats.jitter_ns = Some(Box::new(jitter));
        let busy = told(stats);
        assert_eq!(busy["drops"], json!({"full": 2, "loss": 1}));
        assert_eq!((&busy["dropped_packets"], &busy["dropped_bytes"]), (&json!(3), &json!(300)));
        assert_eq!((&busy["marked"], &busy["jitter_ns"]["max"]), (&json!(3), &json!(7)));
    }
}
