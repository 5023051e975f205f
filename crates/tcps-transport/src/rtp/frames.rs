//! Samples out of packets that do not say which sample they are part of: all packets with one timestamp, up to
//! the one with the marker.
//!
//! ```text
//! number     7  8  9 │ 10 11 │ 12          a sample is whole when its last packet has the marker, none between
//! timestamp  a  a  a │  b  b │  c          is missing, and the one before its first has another timestamp
//! marker           M │     M │
//! ```

use crate::udp::MAX_SAMPLE_BYTES;

/// Samples that are put together at a time.
const SLOTS: usize = 8;
/// Packets that are remembered.
const MEMORY: usize = 1024;

#[derive(Debug, Default)]
struct Slot {
    timestamp: u32,
    packets: Vec<(u32, Vec<u8>)>,
    end: Option<u32>,
    bytes: usize,
}

/// Samples in parts.
#[derive(Debug)]
pub(crate) struct Frames {
    slots: Vec<Slot>,
    seen: Vec<Option<(u32, u32)>>,
    first: Option<u32>,
    incomplete: u64,
}

impl Frames {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), seen: vec![None; MEMORY], first: None, incomplete: 0 }
    }

    /// Samples given up so far.
    pub(crate) fn incomplete(&self) -> u64 {
        self.incomplete
    }

    /// Takes a packet with the number `seq` in; false if it has been had.
    pub(crate) fn add(&mut self, seq: u32, timestamp: u32, marker: bool, payload: &[u8]) -> bool {
        self.first.get_or_insert(seq);
        let place = &mut self.seen[seq as usize % MEMORY];
        if *place == Some((seq, timestamp)) {
            return false;
        }
        *place = Some((seq, timestamp));
        let at = match self.slots.iter().position(|s| s.timestamp == timestamp) {
            Some(at) => at,
            None => {
                if self.slots.len() == SLOTS {
                    self.slots.remove(0);
                    self.incomplete += 1;
                }
                self.slots.push(Slot { timestamp, ..Slot::default() });
                self.slots.len() - 1
            }
        };
        let slot = &mut self.slots[at];
        slot.bytes += payload.len();
        if slot.bytes > MAX_SAMPLE_BYTES {
            self.slots.remove(at);
            self.incomplete += 1;
            return true;
        }
        let behind = slot.packets.partition_point(|(n, _)| (n.wrapping_sub(seq) as i32) < 0);
        slot.packets.insert(behind, (seq, payload.to_vec()));
        if marker {
            slot.end = Some(seq);
        }
        true
    }

    /// A sample that is whole: its timestamp and bytes.
    pub(crate) fn complete(&mut self) -> Option<(u32, Vec<u8>)> {
        let at = self.slots.iter().position(|s| self.is_whole(s))?;
        let slot = self.slots.remove(at);
        let bytes = slot.packets.iter().flat_map(|(_, payload)| payload.iter().copied()).collect();
        Some((slot.timestamp, bytes))
    }

    fn is_whole(&self, slot: &Slot) -> bool {
        let (Some(end), Some((start, _))) = (slot.end, slot.packets.first()) else { return false };
        let count = end.wrapping_sub(*start).wrapping_add(1) as usize;
        count == slot.packets.len() && self.is_start(*start, slot.timestamp)
    }

    fn is_start(&self, seq: u32, timestamp: u32) -> bool {
        let before = seq.wrapping_sub(1);
        let known = self.seen[before as usize % MEMORY].filter(|(n, _)| *n == before);
        self.first == Some(seq) || known.is_some_and(|(_, t)| t != timestamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(frames: &mut Frames) -> Vec<(u32, Vec<u8>)> {
        std::iter::from_fn(|| frames.complete()).collect()
    }

    #[test]
    fn packets_of_one_moment_without_an_end_are_bounded() {
        let mut f = Frames::new();
        let payload = vec![0; MAX_SAMPLE_BYTES / 500];
        for seq in 0..600 {
            f.add(seq, 1, false, &payload);
        }
        assert_eq!(f.incomplete(), 1);
    }

    // [RFC 3550 §5.1]
    #[test]
    fn the_marker_ends_a_sample_in_any_order_of_its_packets() {
        let mut f = Frames::new();
        for (seq, t, marker) in [(7, 100, false), (9, 100, true), (10, 200, true)] {
            assert!(f.add(seq, t, marker, &[seq as u8]));
        }
        assert_eq!(whole(&mut f), [(200, vec![10])], "the first lacks its middle");
        assert!(f.add(8, 100, false, &[8]));
        assert!(!f.add(8, 100, false, &[8]), "a copy");
        assert_eq!(whole(&mut f), [(100, vec![7, 8, 9])]);
    }

    #[test]
    fn a_sample_whose_first_packet_is_missing_waits_and_is_given_up() {
        let mut f = Frames::new();
        f.add(1, 0, true, b"a");
        assert_eq!(whole(&mut f).len(), 1);
        f.add(3, 10, true, b"c");
        assert_eq!(whole(&mut f), [], "packet 2 may belong to it");
        for i in 0..8 {
            f.add(5 + 2 * i, 20 + i, true, b"x");
        }
        assert_eq!(whole(&mut f), [], "each lacks the one before");
        assert_eq!(f.incomplete(), 1, "the oldest made room");
        f.add(4, 19, true, b"d");
        assert_eq!(whole(&mut f).len(), 1, "number 5 now has its start");
    }

    #[test]
    fn numbers_wrap() {
        let mut f = Frames::new();
        f.add(u32::MAX, 1, false, b"a");
        f.add(0, 1, true, b"b");
        assert_eq!(whole(&mut f), [(1, b"ab".to_vec())]);
    }
}
