//! What is done when the timer of a sender runs out, and when it is set again.

use super::{
    recovery::Phase,
    rto::{FIRST_NS, FLOOR_NS, LONGEST_NS},
    sender::{Segment, Sender},
    timer::Timer,
};
use tcps_core::time::{Time, MS};

/// Least wait for a probe beyond two round trips, two ticks of Linux at 250 Hz.
const LEAST_NS: Time = 8 * MS;

/// What is to be sent because a timer has run out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expiry {
    /// What `Sender::next` gives.
    Next,
    /// This segment, and then what `Sender::next` gives.
    Segment(Segment),
    /// An acknowledgement with an old number, which the peer answers.
    Question,
}

impl Sender {
    /// When the oldest segment is overdue.
    fn overdue_ns(&self) -> Option<Time> {
        self.board.first().map(|s| s.sent_ns.saturating_add(self.trips.timeout_ns()))
    }

    /// Sets the time-out anew.
    // [RFC 6298 §5]
    pub(super) fn rearm(&mut self, now: Time) {
        let fresh = now.saturating_add(self.trips.timeout_ns());
        let at = match self.timer {
            Some(Timer::Probe(_) | Timer::Reorder(_)) => self.overdue_ns().unwrap_or(fresh).max(now + 1),
            _ => fresh,
        };
        self.timer = self.board.first().map(|_| Timer::Timeout(at));
    }

    /// Sets the timer for a probe, if there is to be one; whether it did.
    // [RFC 8985 §7.2]
    fn schedule_probe(&mut self, now: Time, has_advanced: bool) -> bool {
        let calm = matches!(self.recovery.phase(), Phase::Open | Phase::Reduced);
        if self.board.is_empty() || !calm {
            return false;
        }
        let wait_ns = match self.trips.smoothed_ns() {
            // One segment alone may wait for a delayed acknowledgement.
            Some(rtt_ns) => 2 * rtt_ns + if self.board.len() == 1 { FLOOR_NS } else { LEAST_NS },
            None => FIRST_NS,
        };
        let timeout_ns = match self.overdue_ns().filter(|t| !has_advanced && *t > now) {
            Some(at) => at - now,
            None => self.trips.timeout_ns(),
        };
        self.timer = Some(Timer::Probe(now.saturating_add(wait_ns.min(timeout_ns))));
        true
    }

    /// Something new has been sent.
    pub(super) fn schedule(&mut self, now: Time) {
        if matches!(self.timer, None | Some(Timer::Closed(_))) {
            self.rearm(now);
        }
        // A stronger reason to wait stands already.
        if !matches!(self.timer, Some(Timer::Reorder(_))) {
            self.schedule_probe(now, false);
        }
    }

    /// Something old was acknowledged.
    pub(super) fn reschedule(&mut self, now: Time) {
        if !self.schedule_probe(now, true) {
            self.rearm(now);
        }
    }

    /// Without anything in flight, something waits for the peer's window.
    // [RFC 9293 §3.8.6.1]
    pub(super) fn watch_window(&mut self, now: Time) {
        if !self.board.is_empty() {
            return;
        }
        if !self.has_new() {
            self.timer = None;
        } else if !matches!(self.timer, Some(Timer::Closed(_))) {
            let wait_ns = self.trips.timeout_ns().max(FLOOR_NS);
            self.timer = Some(Timer::Closed(now.saturating_add(wait_ns)));
            self.window_waits += 1;
        }
    }

    /// Does what is due at `now`.
    pub(super) fn expire(&mut self, now: Time) -> Option<Expiry> {
        let timer = self.timer.filter(|t| t.at() <= now)?;
        self.timer = None;
        match timer {
            Timer::Timeout(_) => self.time_out(now),
            Timer::Probe(_) => Some(self.probe_tail(now)),
            Timer::Reorder(_) => Some(self.look_again(now)),
            Timer::Closed(_) => Some(self.ask_again(now)),
        }
    }

    // [RFC 6298 §5.4] [RFC 8985 §6.3]
    fn time_out(&mut self, now: Time) -> Option<Expiry> {
        let first = *self.board.first()?;
        if first.sacked {
            self.board.forget_sacks();
        }
        let rack = &self.rack;
        self.board.mark_lost(u64::MAX, |at, s| at == 0 || first.sacked || rack.is_stale(now, s));
        let in_flight = self.board.in_flight();
        self.recover(|recovery, on| recovery.time_out(on, in_flight));
        (self.probe, self.new_first) = (None, false);
        self.tells_reduced = self.ecn;
        let segment = self.repeat(0, now);
        self.trips.back_off();
        self.timer = Some(Timer::Timeout(now.saturating_add(self.trips.timeout_ns())));
        Some(Expiry::Segment(segment))
    }

    // [RFC 8985 §7.3]
    fn probe_tail(&mut self, now: Time) -> Expiry {
        let mut expiry = Expiry::Next;
        self.timer = Some(Timer::Probe(now));
        if self.probe.is_none() {
            let new = self.next_new(now, true);
            let is_repeat = new.is_none();
            if let Some(segment) = new.or_else(|| self.repeat_last(now)) {
                self.probe = Some((self.sent_to, is_repeat));
                expiry = Expiry::Segment(segment);
                self.timer = None;
            }
        }
        self.rearm(now);
        expiry
    }

    // [RFC 8985 §6.2, step 5]
    fn look_again(&mut self, now: Time) -> Expiry {
        let (before, lost) = (self.board.in_flight(), self.board.lost());
        let path = self.path();
        self.rack.look(now, &mut self.board, &path);
        if self.board.in_flight() != before && self.recovery.phase() != Phase::Recovery {
            self.enter_recovery(false);
            let is_good = self.board.lost() == lost;
            self.recovery.proceed(&mut self.window, self.board.in_flight(), 1, is_good);
        }
        self.timer = Some(Timer::Reorder(now));
        self.rearm(now);
        Expiry::Next
    }

    /// Sends what the peer's window has room for, or asks if it has grown.
    fn ask_again(&mut self, now: Time) -> Expiry {
        self.trips.back_off();
        let wait_ns = self.trips.timeout_ns().clamp(FLOOR_NS, LONGEST_NS);
        let end = self.allowed_to.min(self.sent_to + self.segment_bytes);
        if self.has_new() && end > self.sent_to {
            let end = end.min(self.buffer.end()).max(self.sent_to + 1);
            let segment = self.send(now, end);
            self.rearm(now);
            return Expiry::Segment(segment);
        }
        self.timer = self.has_new().then_some(Timer::Closed(now.saturating_add(wait_ns)));
        Expiry::Question
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ack, burst, in_flight};
    use super::*;

    // [RFC 8985 §6.3]
    #[test]
    fn at_a_time_out_the_first_segment_is_lost_and_others_only_if_sent_a_round_trip_ago() {
        let mut sender = in_flight(3);
        sender.acknowledge(41 * MS, &ack(11));
        burst(&mut sender, 230 * MS, 3);
        assert_eq!((sender.board.len(), sender.board.lost()), (5, 0));
        let expiry = sender.time_out(250 * MS);
        assert!(matches!(expiry, Some(Expiry::Segment(_))), "the first is sent again: {expiry:?}");
        let board = &sender.board;
        assert_eq!((board.lost(), board.repeats(), board.in_flight()), (2, vec![(11, 21)], 4));
    }

    /// A round trip may have become longer than the time-out: nothing is known of what was sent later.
    // [RFC 8985 §6.3]
    #[test]
    fn at_a_time_out_the_first_segment_is_lost_however_lately_it_was_sent() {
        let mut sender = in_flight(1);
        sender.acknowledge(41 * MS, &ack(11));
        burst(&mut sender, 230 * MS, 3);
        sender.time_out(250 * MS);
        assert_eq!((sender.board.lost(), sender.board.repeats()), (1, vec![(11, 21)]));
    }
}
