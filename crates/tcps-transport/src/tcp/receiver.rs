//! The receiving half of a connection: bytes in order, bytes behind gaps, and the window.
//!
//! ```text
//! segment ──► ring of bytes ──► read         ▒ read  █ in order  ░ window
//!               └► ranges behind gaps ──► SACK, duplicates
//! ```

use std::collections::VecDeque;
use tcps_wire::tcp::Blocks;

/// The most gaps that are kept; segments behind more are dropped.
const MOST_RANGES: usize = 4096;

/// What became of a segment's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// It continues the stream. Whether it closed the last gap.
    InOrder { closes_gaps: bool },
    /// It is behind a gap.
    OutOfOrder,
    /// All of it had come before, or was outside the window.
    Useless,
}

/// The receiving half of a connection.
#[derive(Debug)]
pub(super) struct Receiver {
    /// Bytes from `read_to` on; behind `next` there are gaps.
    bytes: VecDeque<u8>,
    read_to: u64,
    next: u64,
    /// Ranges received beyond gaps, in order: first position, and the one after the last.
    ranges: Vec<(u64, u64)>,
    /// Positions in the ranges that were extended last, the newest first.
    newest: [u64; Blocks::MOST],
    /// A duplicate that the peer is to be told of.
    duplicate: Option<(u64, u64)>,
    /// Where the stream ends.
    end: Option<u64>,
    limit_bytes: u64,
    segment_bytes: u64,
    /// Behind what was offered.
    offered_to: u64,
}

impl Receiver {
    /// A receiver with room for so many bytes, that gets segments of so many.
    pub(super) fn new(limit_bytes: usize, segment_bytes: u64) -> Self {
        let limit_bytes = limit_bytes as u64;
        Self {
            bytes: VecDeque::new(),
            read_to: 1,
            next: 1,
            ranges: Vec::new(),
            newest: [0; Blocks::MOST],
            duplicate: None,
            end: None,
            limit_bytes,
            segment_bytes,
            offered_to: 1 + limit_bytes,
        }
    }

    /// The next position that is expected, with the end of the stream as a position.
    pub(super) fn expected(&self) -> u64 {
        self.next + u64::from(self.has_ended())
    }

    /// Whether everything has come, and that it is all.
    pub(super) fn has_ended(&self) -> bool {
        self.end == Some(self.next)
    }

    /// Whether everything has been read as well.
    pub(super) fn is_over(&self) -> bool {
        self.has_ended() && self.read_to == self.next
    }

    /// Whether something is behind a gap.
    pub(super) fn has_gaps(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Behind what was offered to the peer.
    pub(super) fn offered_to(&self) -> u64 {
        self.offered_to
    }

    /// Takes the content of a segment; `is_last`: the stream ends with it.
    pub(super) fn take(&mut self, start: u64, content: &[u8], is_last: bool) -> Content {
        let end = start + content.len() as u64;
        let is_behind_all = self.ranges.last().is_none_or(|r| r.1 <= end);
        if is_last && is_behind_all && end >= self.next && end <= self.offered_to {
            self.end.get_or_insert(end);
        }
        if start < self.next && !content.is_empty() {
            self.note_duplicate(start, end.min(self.next));
        }
        // Nothing is behind the end.
        let most = self.offered_to.min(self.end.unwrap_or(u64::MAX));
        let (from, to) = (start.max(self.next), end.min(most));
        if from >= to {
            return if is_last && self.has_ended() && end == self.next {
                Content::InOrder { closes_gaps: false }
            } else {
                Content::Useless
            };
        }
        let had_gaps = self.has_gaps();
        if from > self.next && !self.insert(from, to) {
            return Content::Useless;
        }
        self.store(from, &content[(from - start) as usize..(to - start) as usize]);
        if from > self.next {
            return Content::OutOfOrder;
        }
        self.advance(to);
        Content::InOrder { closes_gaps: had_gaps && !self.has_gaps() }
    }

    fn store(&mut self, from: u64, content: &[u8]) {
        let at = (from - self.read_to) as usize;
        if at == self.bytes.len() {
            self.bytes.extend(content);
            return;
        }
        if self.bytes.len() < at + content.len() {
            self.bytes.resize(at + content.len(), 0);
        }
        let (first, second) = self.bytes.as_mut_slices();
        let in_first = first.len().saturating_sub(at).min(content.len());
        let (one, two) = content.split_at(in_first);
        if !one.is_empty() {
            first[at..at + one.len()].copy_from_slice(one);
        }
        if !two.is_empty() {
            let at = at + in_first - first.len();
            second[at..at + two.len()].copy_from_slice(two);
        }
    }

    /// Everything before `to` has come, and the ranges that begin there.
    fn advance(&mut self, to: u64) {
        self.next = to;
        let mut reached = 0;
        while let Some(&(first, behind)) = self.ranges.get(reached).filter(|r| r.0 <= self.next) {
            if first < to {
                self.note_duplicate(first, behind.min(to));
            }
            self.next = self.next.max(behind);
            reached += 1;
        }
        self.ranges.drain(..reached);
    }

    /// Notes bytes received behind a gap. False if there are too many gaps.
    fn insert(&mut self, start: u64, end: u64) -> bool {
        let first = self.ranges.partition_point(|r| r.1 < start);
        let behind = first + self.ranges[first..].partition_point(|r| r.0 <= end);
        let mut merged = (start, end);
        for &(a, b) in &self.ranges[first..behind] {
            let overlap = (a.max(start), b.min(end));
            if overlap.0 < overlap.1 {
                self.duplicate = Some(overlap);
            }
            merged = (merged.0.min(a), merged.1.max(b));
        }
        if first == behind && self.ranges.len() >= MOST_RANGES {
            return false;
        }
        self.ranges.splice(first..behind, [merged]);
        let known = self.newest.iter().position(|p| (merged.0..merged.1).contains(p));
        self.newest[..=known.unwrap_or(Blocks::MOST - 1)].rotate_right(1);
        self.newest[0] = start;
        true
    }

    // [RFC 2883 §4]
    fn note_duplicate(&mut self, start: u64, end: u64) {
        self.duplicate = Some((start, end));
    }

    /// What the peer is to be told of, a duplicate first, then what was extended last.
    // [RFC 2018 §4] [RFC 2883 §4]
    pub(super) fn blocks(&self, mut put: impl FnMut(u64, u64)) {
        if let Some((start, end)) = self.duplicate {
            put(start, end);
        }
        let mut told: [(u64, u64); Blocks::MOST] = [(0, 0); Blocks::MOST];
        for (i, position) in self.newest.iter().enumerate() {
            let at = self.ranges.partition_point(|r| r.1 <= *position);
            if let Some(&range) = self.ranges.get(at).filter(|r| r.0 <= *position && !told.contains(r)) {
                told[i] = range;
                put(range.0, range.1);
            }
        }
    }

    /// The peer is being told of the duplicate.
    pub(super) fn forget_duplicate(&mut self) {
        self.duplicate = None;
    }

    /// Whether the peer is to be told of a duplicate.
    pub(super) fn has_duplicate(&self) -> bool {
        self.duplicate.is_some()
    }

    /// The window that is offered now, in bytes from `next` on. It never shrinks, and grows by what is worth it only.
    // [RFC 9293 §3.8.6.2.2]
    pub(super) fn window(&mut self) -> u64 {
        let to = self.read_to + self.limit_bytes;
        let worth = self.segment_bytes.min(self.limit_bytes / 2);
        if to >= self.offered_to + worth || to >= self.next + self.limit_bytes {
            self.offered_to = self.offered_to.max(to);
        }
        self.offered_to.saturating_sub(self.next)
    }

    /// Whether the window would be twice what is left of the one that was offered.
    pub(super) fn has_opened(&self) -> bool {
        let left = self.offered_to.saturating_sub(self.next);
        let could = (self.read_to + self.limit_bytes).saturating_sub(self.next);
        2 * left <= self.limit_bytes
            && could >= 2 * left
            && could >= self.segment_bytes.min(self.limit_bytes / 2)
    }

    /// Hands out the bytes received in order; how many.
    pub(super) fn read(&mut self, mut take: impl FnMut(&[u8])) -> u64 {
        let count = (self.next - self.read_to) as usize;
        let (first, second) = self.bytes.as_slices();
        let (one, two) = (count.min(first.len()), count.saturating_sub(first.len()));
        for part in [&first[..one], &second[..two]] {
            if !part.is_empty() {
                take(part);
            }
        }
        self.bytes.drain(..count);
        self.read_to = self.next;
        count as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn blocks(receiver: &mut Receiver) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        receiver.blocks(|start, end| found.push((start, end)));
        receiver.forget_duplicate();
        found
    }

    fn read(receiver: &mut Receiver) -> Vec<u8> {
        let mut found = Vec::new();
        receiver.read(|part| found.extend_from_slice(part));
        found
    }

    // [RFC 2018 §4]
    #[test]
    fn what_came_last_is_told_first_and_adjacent_segments_are_one_block() {
        let mut receiver = Receiver::new(1000, 10);
        for start in [21, 51, 81, 111, 141, 31] {
            assert_eq!(receiver.take(start, &[0; 10], false), Content::OutOfOrder);
        }
        assert_eq!(blocks(&mut receiver), [(21, 41), (141, 151), (111, 121), (81, 91)]);
        assert_eq!(receiver.take(1, &[0; 20], false), Content::InOrder { closes_gaps: false });
        assert_eq!(receiver.expected(), 41);
        assert_eq!(blocks(&mut receiver), [(141, 151), (111, 121), (81, 91)]);
    }

    // [RFC 2883 §4]
    #[test]
    fn duplicates_are_told_once() {
        let mut receiver = Receiver::new(1000, 10);
        receiver.take(1, &[0; 10], false);
        assert_eq!(receiver.take(1, &[0; 10], false), Content::Useless);
        assert_eq!(blocks(&mut receiver), [(1, 11)]);
        assert_eq!(blocks(&mut receiver), []);
        receiver.take(21, &[0; 10], false);
        receiver.take(21, &[0; 10], false);
        assert_eq!(blocks(&mut receiver), [(21, 31), (21, 31)]);
    }

    // [RFC 9293 §3.8.6.2.2]
    #[test]
    fn the_window_opens_by_a_segment_at_least() {
        let mut receiver = Receiver::new(40, 10);
        assert_eq!(receiver.window(), 40);
        receiver.take(1, &[0; 40], false);
        assert_eq!((receiver.window(), receiver.has_opened()), (0, false));
        assert_eq!(receiver.take(41, &[0; 1], false), Content::Useless, "there is no room");
        assert_eq!(read(&mut receiver).len(), 40);
        assert!(receiver.has_opened());
        assert_eq!(receiver.window(), 40);
    }

    #[test]
    fn a_window_has_opened_when_it_would_be_twice_what_is_left() {
        let mut receiver = Receiver::new(40, 10);
        receiver.take(1, &[0; 10], false);
        read(&mut receiver);
        // What is left of the first 40 bytes, and the room that there is: 15 of 25, 11 of 21, 10 of 20.
        let opened = [(11, 15), (26, 4), (30, 1)].map(|(start, length)| {
            receiver.take(start, &vec![0; length], false);
            receiver.has_opened()
        });
        assert_eq!(opened, [false, false, true]);
    }

    proptest! {
        #[test]
        fn the_stream_comes_out_as_it_was_however_it_is_cut_and_repeated(
            pieces in proptest::collection::vec((0usize..400, 1usize..60), 1..200), reads: u64,
        ) {
            let stream: Vec<u8> = (0..400).map(|i| (i * 7 % 251) as u8).collect();
            let mut receiver = Receiver::new(200, 10);
            let mut got = Vec::new();
            let all = (0..400).step_by(20).map(|i| (i, 20));
            for (i, (start, length)) in pieces.into_iter().chain(all.clone()).chain(all).enumerate() {
                let end = (start + length).min(stream.len());
                receiver.take(1 + start as u64, &stream[start..end], end == stream.len());
                if reads >> (i % 64) & 1 == 1 || i >= 20 {
                    got.extend(read(&mut receiver));
                    receiver.window();
                }
            }
            for _ in 0..3 {
                for start in (0..400).step_by(20) {
                    receiver.take(1 + start as u64, &stream[start..start + 20], start == 380);
                    got.extend(read(&mut receiver));
                    receiver.window();
                }
            }
            prop_assert!(got == stream && receiver.is_over());
        }
    }
}
