//! RACK: a segment is lost when one that was sent later has arrived, and a while has passed.
//!
//! ```text
//! lost:  sent before the newest that arrived, and  now >= sent + round trip + reordering window
//! ```
//! The reordering window is 0 until reordering has been seen, once recovery has begun or three segments have arrived
//! out of order, as in Linux.

use super::scoreboard::{Scoreboard, Sent};
use tcps_core::time::{Time, MS};

/// Segments out of order that are no longer thought to be reordering.
// [RFC 8985 §6.2]
const DUPLICATE_THRESHOLD: u32 = 3;
/// Recoveries for which a widened window is kept.
// [RFC 8985 §6.2]
const PERSISTENCE: u8 = 16;
/// Largest number of segments by which the network is thought to reorder.
const MOST_REORDERING: u32 = 300;

/// What is known of the newest segment that has arrived, and of reordering.
#[derive(Debug, Clone)]
pub(super) struct Rack {
    /// The how many-th of all that were sent it was.
    newest: Option<u64>,
    rtt_ns: Time,
    advanced: bool,
    /// Segments by which the network reorders.
    degree: u32,
    has_reordered: bool,
    steps: u32,
    persistence: u8,
    /// A duplicate was told of, and how much had been delivered when the window was last widened.
    duplicated: bool,
    widened_at: u64,
}

/// What `Rack::detect` needs to know of the connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    /// Least and smoothed round trip.
    pub(super) least_ns: Time,
    pub(super) smoothed_ns: Time,
    /// Whether losses are being repaired.
    pub(super) is_recovering: bool,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            newest: None,
            rtt_ns: 0,
            advanced: false,
            degree: DUPLICATE_THRESHOLD,
            has_reordered: false,
            steps: 1,
            persistence: 0,
            duplicated: false,
            widened_at: 0,
        }
    }
}

impl Rack {
    /// A segment has arrived.
    // [RFC 8985 §6.2, step 2]
    pub(super) fn arrived(
        &mut self,
        now: Time,
        segment: &Sent,
        least_ns: Option<Time>,
        echo_ns: Option<Time>,
    ) {
        let rtt_ns = now - segment.sent_ns;
        // An earlier copy was acknowledged: the last one was in flight for less than any round trip, or the stamp is older.
        let is_short = least_ns.is_some_and(|least| rtt_ns < least);
        let is_older = echo_ns.is_some_and(|echo| echo.saturating_add(MS) <= segment.sent_ns);
        if segment.ever_repeated && (is_short || is_older) {
            return;
        }
        self.advanced = true;
        self.rtt_ns = rtt_ns;
        self.newest = self.newest.max(Some(segment.order));
    }

    /// What arrived last is to be compared with all again.
    pub(super) fn again(&mut self) {
        self.advanced = self.newest.is_some();
    }

    /// A segment arrived so many segments later than it was sent.
    // [RFC 8985 §6.2, step 3]
    pub(super) fn reordered(&mut self, by: u32) {
        self.degree = self.degree.max(by.min(MOST_REORDERING));
        self.has_reordered = true;
    }

    /// Whether the network reorders by more than is usual.
    pub(super) fn has_reordered_much(&self) -> bool {
        self.degree > DUPLICATE_THRESHOLD
    }

    /// A duplicate has arrived at the receiver: a repeat was not needed.
    // [RFC 8985 §6.2, step 4]
    pub(super) fn duplicated(&mut self) {
        self.duplicated = true;
    }

    /// Widens the window for duplicates, at most once a round trip. `acked_delivered` is what had been delivered when the
    /// segment that is acknowledged now was sent, `delivered` what has been by now.
    // [RFC 8985 §6.2, step 4]
    pub(super) fn widen(&mut self, acked_delivered: u64, delivered: u64) {
        if acked_delivered < self.widened_at {
            self.duplicated = false;
        }
        if std::mem::take(&mut self.duplicated) {
            self.steps = (self.steps + 1).min(255);
            (self.widened_at, self.persistence) = (delivered, PERSISTENCE);
        } else if self.persistence == 0 {
            self.steps = 1;
        }
    }

    /// A recovery is over that was needed.
    pub(super) fn recovered(&mut self) {
        self.persistence = self.persistence.saturating_sub(1);
    }

    // [RFC 8985 §6.2, step 4]
    fn window_ns(&self, board: &Scoreboard, path: &Path) -> Time {
        if !self.has_reordered && (path.is_recovering || board.sacked() >= self.degree) {
            return 0;
        }
        (path.least_ns / 4).saturating_mul(Time::from(self.steps)).min(path.smoothed_ns)
    }

    /// Marks what is lost, if something has arrived since the last time; when to look again.
    // [RFC 8985 §6.2, step 5]
    pub(super) fn detect(&mut self, now: Time, board: &mut Scoreboard, path: &Path) -> Option<Time> {
        if !std::mem::take(&mut self.advanced) {
            return None;
        }
        self.look(now, board, path)
    }

    /// Marks what is lost; when to look again.
    pub(super) fn look(&mut self, now: Time, board: &mut Scoreboard, path: &Path) -> Option<Time> {
        let newest = self.newest?;
        // Without holes and repeats segments stand in the order in which they were sent.
        let is_plain = board.sacked() == 0 && board.lost() == 0 && board.repeated() == 0;
        if is_plain && board.first().is_none_or(|s| s.order >= newest) {
            return None;
        }
        let wait_ns = self.rtt_ns.saturating_add(self.window_ns(board, path));
        let mut again_ns = None;
        board.mark_lost(newest, |_, segment| {
            let due_ns = segment.sent_ns.saturating_add(wait_ns);
            let is_before = segment.order < newest;
            if is_before && due_ns > now {
                again_ns = again_ns.max(Some(due_ns));
            }
            is_before && due_ns <= now
        });
        again_ns
    }

    /// Whether at a time-out this segment is thought lost: it was sent long enough ago.
    // [RFC 8985 §6.3]
    pub(super) fn is_stale(&self, now: Time, segment: &Sent) -> bool {
        segment.sent_ns.saturating_add(self.rtt_ns) <= now
    }
}

#[cfg(test)]
mod tests {
    use super::super::scoreboard::AckSummary;
    use super::*;

    const PATH: Path = Path { least_ns: 40 * MS, smoothed_ns: 50 * MS, is_recovering: false };

    /// Segments of ten bytes from position 1 on, 1 ms apart; some of them arrive at `now`.
    fn arrive(rack: &mut Rack, now: Time, numbers: &[u64]) -> Scoreboard {
        let mut board = Scoreboard::default();
        (0..10).for_each(|i| board.push(1 + 10 * i, 11 + 10 * i, i as Time * MS, 0));
        for number in numbers {
            let range = (1 + 10 * number, 11 + 10 * number);
            board.sack(range, 0, &mut AckSummary::default(), &mut |s| {
                rack.arrived(now, s, Some(40 * MS), None)
            });
        }
        board
    }

    // [RFC 8985 §6.2]
    #[test]
    fn fewer_than_three_behind_a_gap_may_be_reordering_for_a_quarter_of_a_round_trip() {
        let mut rack = Rack::default();
        let mut board = arrive(&mut rack, 45 * MS, &[4, 5]);
        // The newest was sent at 5 ms and took 40 ms; the window is 10 ms.
        assert_eq!(rack.detect(45 * MS, &mut board, &PATH), Some((3 + 40 + 10) * MS));
        assert_eq!(board.lost(), 0);
        assert_eq!(rack.look(50 * MS, &mut board, &PATH), Some(53 * MS));
        assert_eq!(board.lost(), 1, "the one of 0 ms");
        assert_eq!(rack.look(53 * MS, &mut board, &PATH), None);
        assert_eq!(board.lost(), 4);
    }

    // [RFC 8985 §6.2]
    #[test]
    fn three_behind_a_gap_are_a_loss_unless_the_network_reorders() {
        let mut rack = Rack::default();
        let mut board = arrive(&mut rack, 46 * MS, &[4, 5, 6]);
        assert_eq!(rack.detect(46 * MS, &mut board, &PATH), None);
        assert_eq!(board.lost(), 4);
        let mut rack = Rack::default();
        rack.reordered(5);
        let mut board = arrive(&mut rack, 46 * MS, &[4, 5, 6]);
        assert_eq!(rack.detect(46 * MS, &mut board, &PATH), Some(53 * MS));
        assert_eq!(board.lost(), 0);
    }

    // [RFC 8985 §6.2, step 4]
    #[test]
    fn duplicates_widen_the_window_once_a_round_trip_for_sixteen_recoveries() {
        let mut rack = Rack::default();
        rack.duplicated();
        rack.widen(100, 120);
        assert_eq!(rack.steps, 2);
        rack.duplicated();
        rack.widen(110, 130);
        assert_eq!(rack.steps, 2, "what is acknowledged was sent before the window was widened");
        (0..16).for_each(|_| rack.recovered());
        rack.widen(200, 220);
        assert_eq!(rack.steps, 1);
    }
}
