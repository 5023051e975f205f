//! What links and background traffic have counted.

use hdrhistogram::Histogram;
use tcps_core::{ids::LinkId, record::DropReason, time::Time};

/// Number of drop reasons, with an unused zeroth.
pub const REASONS: usize = DropReason::ALL.len() + 1;

/// What waits at a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Packets that wait, without the one in service.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time until a packet that arrives now would start (first in, first out).
    pub wait_ns: Time,
}

/// Counters of a link. At every moment `offered = carried + dropped + waiting`, in packets and in bytes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkStats {
    /// Name of the link.
    pub name: String,
    /// Packets that came to the link.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that it carried: their transmission began, and they were not lost.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets dropped for any reason.
    pub dropped_packets: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Dropped packets by number of the `DropReason`.
    pub drops: [u64; REASONS],
    /// Packets that wait now.
    pub waiting_packets: u64,
    /// Their bytes.
    pub waiting_bytes: u64,
    /// Most bytes that ever waited.
    pub max_queue_bytes: u64,
    /// Most packets that ever waited.
    pub max_queue_packets: u64,
    /// Time during which the line was in use.
    pub busy_ns: Time,
    /// Packets delivered twice.
    pub duplicated: u64,
    /// Packets in which it changed a bit: carried here, dropped where they arrive.
    pub corrupted: u64,
    /// Packets that its queue marked in place of dropping them. [RFC 3168]
    pub marked: u64,
    /// Extra delays that it drew from its jitter; none without one.
    pub jitter_ns: Option<Box<Histogram<u64>>>,
}

impl LinkStats {
    /// A packet comes to it.
    #[inline]
    pub fn offer(&mut self, bytes: u32) {
        self.offered_packets += 1;
        self.offered_bytes += u64::from(bytes);
    }

    /// It drops one.
    pub fn drop(&mut self, bytes: u32, reason: DropReason) {
        self.dropped_packets += 1;
        self.dropped_bytes += u64::from(bytes);
        self.drops[reason as usize] += 1;
    }

    /// So much waits.
    #[inline]
    pub fn waits(&mut self, packets: u64, bytes: u64) {
        self.max_queue_packets = self.max_queue_packets.max(packets);
        self.max_queue_bytes = self.max_queue_bytes.max(bytes);
    }
}

/// Counters of a traffic entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrafficStats {
    /// Name of the entry.
    pub name: String,
    /// Packets sent.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that reached their vertex, copies included.
    pub delivered_packets: u64,
    /// Packets dropped on the way, or on arrival because a bit was changed.
    pub dropped_packets: u64,
}

impl TrafficStats {
    /// A packet reached its vertex; what a link has damaged is dropped there.
    pub fn arrive(&mut self, damaged_by: Option<LinkId>) {
        match damaged_by {
            None => self.delivered_packets += 1,
            Some(_) => self.dropped_packets += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_grow_by_each_packet_and_its_bytes() {
        let mut link = LinkStats::default();
        (0..3).for_each(|_| link.offer(100));
        link.drop(100, DropReason::Full);
        link.drop(40, DropReason::Loss);
        for (packets, bytes) in [(2, 300), (5, 200), (1, 50)] {
            link.waits(packets, bytes);
        }
        assert_eq!((link.offered_packets, link.offered_bytes), (3, 300));
        assert_eq!((link.dropped_packets, link.dropped_bytes), (2, 140));
        assert_eq!([DropReason::Full, DropReason::Loss].map(|r| link.drops[r as usize]), [1, 1]);
        assert_eq!((link.max_queue_packets, link.max_queue_bytes), (5, 300));
        let mut traffic = TrafficStats::default();
        [None, Some(LinkId(0)), None].into_iter().for_each(|link| traffic.arrive(link));
        assert_eq!((traffic.delivered_packets, traffic.dropped_packets), (2, 1));
    }
}
