//! What a sender makes of an acknowledgement.
//!
//! ```text
//! numbers, SACK ──► scoreboard ──► round trips ──► RACK ──► recovery ──► congestion window ──► timer
//! ```

use super::{
    ack::{Ack, Found},
    losses::Losses,
    recovery::Phase,
    scoreboard::{AckSummary, Sent},
    sender::Sender,
    timer::Timer,
};
use crate::congestion::window;
use tcps_core::time::Time;

impl Sender {
    /// An acknowledgement has come, of what was sent.
    pub(super) fn acknowledge(&mut self, now: Time, ack: &Ack<'_>) {
        let (is_old, has_advanced) = (ack.position < self.acked, ack.position > self.acked);
        let grown = !is_old && self.take_window(ack);
        let is_duplicate = !is_old && !has_advanced && !ack.has_content && !grown;
        let (blocks, duplicated) = self.take_duplicate(ack);
        let (summary, delivered_then) = self.take_numbers(now, ack, blocks);
        let found = Found { summary, has_advanced, is_duplicate, duplicated };
        self.take_round_trips(now, ack, &found.summary);
        self.rack.widen(delivered_then, self.delivered);
        self.judge_probe(ack, &found);
        let is_dubious = !found.has_advanced && !ack.has_content && !grown
            || found.summary.sacked
            || found.duplicated
            || ack.has_mark
            || self.recovery.phase() != Phase::Open;
        let losses = if is_dubious { self.judge_losses(now, ack, &found) } else { Losses::default() };
        if !losses.set_timer {
            self.take_timer(now, &found);
        }
        self.move_window(now, &found, losses.count);
    }

    // [RFC 9293 §3.10.7.4]
    fn take_window(&mut self, ack: &Ack<'_>) -> bool {
        let allowed_to = ack.position.saturating_add(ack.window);
        let is_newer = ack.position > self.acked || ack.sequence > self.allowed_by;
        let grows = allowed_to > self.allowed_to;
        if is_newer || ack.sequence == self.allowed_by && (grows || ack.window == 0) {
            (self.allowed_by, self.allowed_to) = (ack.sequence, allowed_to);
            self.largest_window = self.largest_window.max(ack.window);
            if self.board.is_empty() && grows && matches!(self.timer, Some(Timer::Closed(_))) {
                self.trips.answered();
                self.timer = None;
            }
            return true;
        }
        false
    }

    /// Enters what has arrived, and how much had been delivered when the newest of it was sent.
    fn take_numbers(&mut self, now: Time, ack: &Ack<'_>, blocks: &[(u64, u64)]) -> (AckSummary, u64) {
        let least_ns = self.trips.least_ns();
        let before_timeout = match self.recovery.phase() {
            Phase::Loss => self.recovery.high,
            _ => 0,
        };
        let (mut summary, mut delivered_then) = (AckSummary::default(), 0);
        let rack = &mut self.rack;
        // Behind a gap a stamp is not that of the segment which arrived.
        let mut arrived = |s: &Sent, echo_ns| {
            rack.arrived(now, s, least_ns, echo_ns);
            delivered_then = delivered_then.max(s.delivered);
        };
        for &(start, end) in blocks {
            if start < end && start >= self.acked && end <= self.sent_to {
                self.board.sack((start, end), before_timeout, &mut summary, &mut |s| arrived(s, None));
            }
        }
        if ack.position > self.acked {
            let (position, echo_ns) = (ack.position, ack.echo_ns);
            self.board.acknowledge(position, before_timeout, &mut summary, &mut |s| arrived(s, echo_ns));
            self.acked = ack.position;
            self.buffer.release(ack.position);
            self.recovery.advanced();
        }
        self.delivered += u64::from(summary.delivered);
        if let Some(low) = summary.reordered {
            let by = self.board.highest().saturating_sub(low).div_ceil(self.limits.segment_bytes);
            self.rack.reordered(by as u32);
        }
        (summary, delivered_then)
    }

    /// The blocks without the first, if that tells of a duplicate, and whether it is of a repeat.
    // [RFC 2883 §4]
    fn take_duplicate<'a>(&mut self, ack: &Ack<'a>) -> (&'a [(u64, u64)], bool) {
        let Some((&first, rest)) = ack.blocks.split_first() else { return (ack.blocks, false) };
        let is_below = first.1 <= ack.position;
        let is_inside = rest.first().is_some_and(|second| first.0 >= second.0 && first.1 <= second.1);
        if first.0 >= first.1 || !(is_below || is_inside) || first.1 > self.sent_to {
            return (ack.blocks, false);
        }
        let is_repeat = self.recovery.duplicated(first);
        if is_repeat {
            self.rack.duplicated();
        }
        (rest, is_repeat)
    }

    // RFC 6298 §3 RFC 7323 §4.1
    fn take_round_trips(&mut self, now: Time, ack: &Ack<'_>, summary: &AckSummary) {
        let acked = summary.acked_sent_ns.filter(|_| !summary.repeated);
        let oldest = acked.or(summary.sacked_sent_ns).map(|s| now - s.0);
        let newest = summary.sacked_sent_ns.or(acked).map(|s| now - s.1);
        let echoed = ack.echo_ns.filter(|_| summary.acked).map(|t| now - t);
        if let (Some(smoothed), Some(least)) = (oldest.or(echoed), newest.or(echoed)) {
            self.trips.note_least(now, least);
            self.trips.measured(smoothed, self.acked, self.sent_to);
        }
        if summary.delivered > 0 {
            let (acked, sent_to) = (self.acked, self.sent_to);
            let told = window::Ack { now, rtt_ns: newest.or(echoed), acked, sent_to };
            if self.control.as_mut().is_some_and(|c| c.acknowledged(&told, &self.window)) {
                self.window.threshold = self.window.segments;
            }
        }
    }

    fn take_timer(&mut self, now: Time, found: &Found) {
        let first_sent_ns = self.board.first().map(|s| s.sent_ns);
        let is_later = found.summary.sacked_sent_ns.is_some_and(|s| Some(s.0) > first_sent_ns);
        if self.board.is_empty() {
            self.timer = self.timer.filter(|t| matches!(t, Timer::Closed(_)));
        } else if found.summary.acked || found.summary.sacked && is_later {
            self.reschedule(now);
        }
    }

    /// Moves the congestion window.
    // [RFC 5681 §3.1] [RFC 6937 §3]
    fn move_window(&mut self, now: Time, found: &Found, lost: u32) {
        let is_limited = self.is_limited();
        let Some(control) = &mut self.control else { return };
        let delivered = found.summary.delivered;
        if self.recovery.is_reducing() {
            let is_good = found.has_advanced && lost == 0;
            self.recovery.proceed(&mut self.window, self.board.in_flight(), delivered, is_good);
            return;
        }
        let may_grow = found.summary.acked || self.rack.has_reordered_much() && delivered > 0;
        if !may_grow || !is_limited {
            return;
        }
        let left = if self.window.in_slow_start() { self.window.slow_start(delivered) } else { delivered };
        if left > 0 {
            let interval = control.interval(now, self.window.segments, left);
            self.window.avoid(interval, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ack, in_flight};
    use super::*;
    use tcps_core::time::MS;

    /// Acknowledgements overtake each other: an older window would let too much out, or stop everything.
    // [RFC 9293 §3.10.7.4]
    #[test]
    fn the_window_is_that_of_the_newest_segment() {
        let mut sender = in_flight(5);
        let mut told = |position, sequence, window| {
            sender.acknowledge(50 * MS, &Ack { sequence, window, ..ack(position) });
            sender.allowed_to
        };
        assert_eq!(told(1, 100, 5_000), 5_001);
        assert_eq!(told(1, 60, 9_000), 5_001, "an older segment");
        assert_eq!(told(1, 100, 4_000), 5_001, "of two with one number, that with the smaller window");
        assert_eq!(told(1, 100, 6_000), 6_001);
        assert_eq!(told(1, 100, 0), 1, "the peer takes nothing more");
        assert_eq!(told(11, 100, 3_000), 3_011, "one that acknowledges more is newer");
        assert_eq!(told(11, 200, 2_000), 2_011);
        assert_eq!(told(1, 300, 9_000), 2_011, "one that acknowledges less is older");
    }

    /// What a peer or a forger says of other bytes must not count as delivered.
    // [RFC 2018 §4]
    #[test]
    fn a_block_counts_only_within_what_is_in_flight() {
        let mut sender = in_flight(10);
        sender.acknowledge(45 * MS, &ack(21));
        for (block, sacked) in [((31, 102), 0), ((20, 51), 0), ((51, 31), 0), ((21, 31), 1), ((31, 101), 8)] {
            sender.acknowledge(50 * MS, &Ack { blocks: &[block], ..ack(21) });
            assert_eq!(sender.board.sacked(), sacked, "{block:?}");
        }
    }
}
