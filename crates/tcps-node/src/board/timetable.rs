//! When a sample is where: a line that carries one byte after the other each way, and a board with one pair of hands.
//!
//! ```text
//! taken ──► line is free ── bytes ──► board is free: entry ── work ──► exit ──► line is free ── bytes ──► back
//! ```

use tcps_core::time::{Time, MS, SECOND};
use tcps_wire::board::{ANSWER_OVERHEAD, SAMPLE_OVERHEAD};

/// Bits on the line that a byte takes: a start bit, eight of its own, a stop bit.
const BITS_A_BYTE: f64 = 10.0;

/// Time after which nobody waits for a sample's answer any more; one that would take longer is not sent.
pub const LOST_NS: Time = 500 * MS;
/// A line that is behind by more takes nothing, however short: else short samples would leave no room for long ones.
const MOST_BEHIND_NS: Time = LOST_NS / 2;

/// What a line and its board can do, and when each is free again.
#[derive(Debug)]
pub struct Timetable {
    byte_ns: f64,
    work_ns: Time,
    down_free: Time,
    board_free: Time,
    up_free: Time,
}

/// A sample's moments in the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trip {
    /// When it enters.
    pub entry_ns: Time,
    /// When it leaves.
    pub exit_ns: Time,
}

impl Timetable {
    /// An empty line, and a board that holds each sample for so long.
    pub fn new(rate_bps: f64, work_us: u32) -> Self {
        let byte_ns = BITS_A_BYTE * SECOND as f64 / rate_bps;
        let (down_free, board_free, up_free) = (0, 0, 0);
        Self { byte_ns, work_ns: Time::from(work_us) * 1_000, down_free, board_free, up_free }
    }

    /// Time that a byte takes on the line.
    pub fn byte_ns(&self) -> f64 {
        self.byte_ns
    }

    /// Takes a sample with so many bytes of its own; `None` if the line is too far behind, or it would not be back in time.
    pub fn take(&mut self, now: Time, payload: usize) -> Option<Trip> {
        let behind_ns = self.down_free.max(self.board_free).max(self.up_free) - now;
        if behind_ns > MOST_BEHIND_NS {
            return None;
        }
        let down_ns = self.through(now.max(self.down_free), payload + SAMPLE_OVERHEAD);
        let entry_ns = down_ns.max(self.board_free);
        let exit_ns = entry_ns.saturating_add(self.work_ns);
        let back_ns = self.through(exit_ns.max(self.up_free), payload + ANSWER_OVERHEAD);
        if back_ns > now + LOST_NS {
            return None;
        }
        (self.down_free, self.board_free, self.up_free) = (down_ns, exit_ns, back_ns);
        Some(Trip { entry_ns, exit_ns })
    }

    /// When so many bytes are through that begin at a time.
    pub fn through(&self, from: Time, bytes: usize) -> Time {
        from.saturating_add((self.byte_ns * bytes as f64) as Time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_wait_for_the_line_and_for_the_board() {
        // 1 Mbit/s: 10 us a byte, so that 12 B take 200 us down; the board takes 500 us.
        let mut table = Timetable::new(1e6, 500);
        let trip = |entry_ns, exit_ns| Some(Trip { entry_ns, exit_ns });
        assert_eq!(table.take(0, 12), trip(200_000, 700_000));
        assert_eq!(table.take(0, 12), trip(700_000, 1_200_000), "the board was busy");
        assert_eq!(table.take(9 * MS, 32), trip(9_400_000, 9_900_000), "nothing was in the way");
        assert_eq!(table.take(9 * MS, 100), trip(10_480_000, 10_980_000), "the line was busy");
    }

    #[test]
    fn what_would_not_be_back_in_time_is_not_taken_and_takes_no_time() {
        assert_eq!(Timetable::new(1e-300, 0).take(0, 4), None);
        let mut table = Timetable::new(9_600.0, 0);
        let (first, each) = (32.0 * table.byte_ns(), 42.0 * table.byte_ns());
        let taken = (0..1_000).filter(|_| table.take(0, 24).is_some()).count();
        // Answers of 42 B follow the first sample's 32 B, and the last one that is taken brings the line over its bound.
        assert_eq!(taken, 1 + ((MOST_BEHIND_NS as f64 - first) / each) as usize);
        assert_eq!(table.take(0, 0), None, "a short one does not get ahead of a long one");
        assert!(table.take(LOST_NS, 24).is_some(), "it is free again");
    }
}
