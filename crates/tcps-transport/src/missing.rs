//! What a receiver misses in a sequence of 16-bit numbers, and when to ask for it.
//!
//! ```text
//! a gap ──► wait for reordering ──► ask ──► ask again after a round trip, at least 20 ms ──► given up
//! ```

use tcps_core::time::{Time, MS};

/// A gap that is longer than this, either way, is a new start, not a loss.
const LONGEST_GAP: i16 = 256;
const LEAST_WAIT_NS: Time = 20 * MS;

/// Numbers that are missing.
#[derive(Debug)]
pub(crate) struct Missing {
    newest: Option<u16>,
    gaps: Vec<Gap>,
    reorder_ns: Time,
    tries: u32,
    round_trip_ns: Time,
}

#[derive(Debug, Clone, Copy)]
struct Gap {
    number: u16,
    due_ns: Time,
    asked_ns: Time,
    asked: u32,
}

impl Missing {
    /// `reorder_ns`: how long a gap may come from reordering; `tries`: how often a number is asked for at most.
    pub(crate) fn new(reorder_ns: Time, tries: u32) -> Self {
        Self { newest: None, gaps: Vec::new(), reorder_ns, tries, round_trip_ns: LEAST_WAIT_NS }
    }

    /// Notes an arrival and the gap before it.
    pub(crate) fn note(&mut self, now: Time, number: u16) {
        let newest = *self.newest.get_or_insert(number);
        let ahead = number.wrapping_sub(newest) as i16;
        if ahead <= 0 {
            if !self.found(now, number) && ahead < -LONGEST_GAP {
                self.newest = Some(number);
                self.gaps.clear();
            }
            return;
        }
        self.newest = Some(number);
        if ahead > LONGEST_GAP || self.gaps.len() > usize::from(LONGEST_GAP.unsigned_abs()) {
            return self.gaps.clear();
        }
        let due_ns = now + self.reorder_ns;
        let gap = (1..ahead as u16).map(|i| newest.wrapping_add(i));
        self.gaps.extend(gap.map(|number| Gap { number, due_ns, asked_ns: 0, asked: 0 }));
    }

    /// A missing one is here: if it was asked for once, that took a round trip. Whether it was missing.
    pub(crate) fn found(&mut self, now: Time, number: u16) -> bool {
        let Some(at) = self.gaps.iter().position(|m| m.number == number) else { return false };
        let gap = self.gaps.remove(at);
        if gap.asked == 1 {
            self.round_trip_ns = (now - gap.asked_ns).max(0);
        }
        true
    }

    /// The numbers to ask for now, at most `room` of them, in ascending order; those asked for often enough are forgotten.
    // [RFC 4588] retransmission on request
    pub(crate) fn due(&mut self, now: Time, room: usize) -> Vec<u16> {
        let again_ns = now + self.round_trip_ns.max(LEAST_WAIT_NS);
        let tries = self.tries;
        self.gaps.retain(|m| m.due_ns > now || m.asked < tries);
        let mut numbers = Vec::new();
        for m in self.gaps.iter_mut().filter(|m| m.due_ns <= now).take(room) {
            numbers.push(m.number);
            *m = Gap { due_ns: again_ns, asked_ns: now, asked: m.asked + 1, ..*m };
        }
        numbers
    }

    /// When `due` is wanted.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.gaps.iter().map(|m| m.due_ns).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [RFC 4588]
    #[test]
    fn a_gap_is_asked_for_after_reordering_and_again_after_a_round_trip_and_then_no_more() {
        let mut missing = Missing::new(MS, 2);
        [65_534, 1].into_iter().for_each(|n| missing.note(0, n));
        assert_eq!((missing.due(0, 9), missing.poll_timeout()), (vec![], Some(MS)));
        missing.note(MS / 2, 0);
        assert_eq!(missing.due(MS, 9), [65_535], "0 was only late");
        assert_eq!(missing.poll_timeout(), Some(21 * MS));
        assert_eq!(missing.due(21 * MS, 9), [65_535]);
        assert_eq!((missing.due(41 * MS, 9), missing.poll_timeout()), (vec![], None));
    }

    #[test]
    fn what_was_asked_for_once_shows_the_round_trip_and_a_long_gap_is_a_new_start() {
        let mut missing = Missing::new(0, 3);
        [1, 4].into_iter().for_each(|n| missing.note(0, n));
        assert_eq!(missing.due(0, 1), [2]);
        assert!(missing.found(50 * MS, 2) && !missing.found(50 * MS, 2));
        assert_eq!((missing.due(50 * MS, 9), missing.poll_timeout()), (vec![3], Some(100 * MS)));
        missing.note(60 * MS, 5000);
        assert_eq!(missing.poll_timeout(), None);
        [10, 12].into_iter().for_each(|n| missing.note(70 * MS, n));
        assert_eq!(missing.due(70 * MS, 9), [11], "numbers began again");
    }
}
