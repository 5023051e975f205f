//! Round trips: smoothed, least, and how long an acknowledgement is waited for.
//!
//! ```text
//! srtt = srtt + (rtt - srtt) / 8          RTO = srtt + max(rttvar, 200 ms)
//! ```
//! Linux departs from RFC 6298 in two ways: the floor of 200 ms is under the variance and not under the sum, and the
//! variance is the largest mean deviation of a window, which falls only once a window.

use std::collections::VecDeque;
use tcps_core::time::{Time, MS, SECOND};

/// Least of the variance, as in Linux (TCP_RTO_MIN).
pub(super) const FLOOR_NS: Time = 200 * MS;
/// Time-out while no round trip is known.
// [RFC 6298 §2.1]
pub(super) const FIRST_NS: Time = SECOND;
/// The same after SYN was sent again (TCP_TIMEOUT_FALLBACK).
// [RFC 6298 §5.7]
const CAREFUL_NS: Time = 3 * SECOND;
/// The longest time-out, as in Linux.
pub(super) const LONGEST_NS: Time = 120 * SECOND;
/// How long a least round trip counts (tcp_min_rtt_wlen).
const LEAST_WINDOW_NS: Time = 300 * SECOND;

/// Estimates of the round trip of a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct RoundTrips {
    smoothed_ns: Option<Time>,
    /// SYN was sent again.
    is_careful: bool,
    deviation_ns: Time,
    largest_ns: Time,
    variance_ns: Time,
    /// Position that ends the window of the variance.
    window_end: u64,
    /// Candidates for the least of the window: later ones are larger.
    least: VecDeque<(Time, Time)>,
    /// Doublings since the last measurement.
    backoff: u32,
}

impl RoundTrips {
    /// A round trip was measured, when everything up to `acked` was acknowledged and `sent_to` the next number to be sent.
    // [RFC 6298 §2]
    pub(super) fn measured(&mut self, rtt_ns: Time, acked: u64, sent_to: u64) {
        let rtt_ns = rtt_ns.max(1);
        self.backoff = 0;
        let Some(smoothed) = &mut self.smoothed_ns else {
            self.smoothed_ns = Some(rtt_ns);
            self.deviation_ns = rtt_ns / 2;
            self.variance_ns = (2 * rtt_ns).max(FLOOR_NS);
            (self.largest_ns, self.window_end) = (self.variance_ns, sent_to);
            return;
        };
        let error = rtt_ns - *smoothed;
        *smoothed += error / 8;
        let excess = error.abs() - self.deviation_ns;
        // A round trip that falls is no reason to wait longer: it counts an eighth of one that rises.
        self.deviation_ns += if error < 0 && excess > 0 { excess / 32 } else { excess / 4 };
        self.largest_ns = self.largest_ns.max(4 * self.deviation_ns);
        self.variance_ns = self.variance_ns.max(self.largest_ns);
        if acked > self.window_end {
            self.variance_ns -= (self.variance_ns - self.largest_ns) / 4;
            (self.largest_ns, self.window_end) = (FLOOR_NS, sent_to);
        }
    }

    /// Notes a round trip for the least of them.
    pub(super) fn note_least(&mut self, now: Time, rtt_ns: Time) {
        let rtt_ns = rtt_ns.max(1);
        while self.least.back().is_some_and(|&(_, old)| old >= rtt_ns) {
            self.least.pop_back();
        }
        if self.least.len() < 64 {
            self.least.push_back((now, rtt_ns));
        }
        while self.least.len() > 1 && self.least[0].0 < now.saturating_sub(LEAST_WINDOW_NS) {
            self.least.pop_front();
        }
    }

    /// The smoothed round trip.
    pub(super) fn smoothed_ns(&self) -> Option<Time> {
        self.smoothed_ns
    }

    /// The least round trip of the last five minutes.
    pub(super) fn least_ns(&self) -> Option<Time> {
        self.least.front().map(|l| l.1)
    }

    /// How long an acknowledgement is waited for.
    pub(super) fn timeout_ns(&self) -> Time {
        self.base_ns().saturating_mul(1 << self.backoff.min(16)).min(LONGEST_NS)
    }

    /// The same without doublings.
    pub(super) fn base_ns(&self) -> Time {
        let first_ns = if self.is_careful { CAREFUL_NS } else { FIRST_NS };
        self.smoothed_ns.map_or(first_ns, |s| s + self.variance_ns)
    }

    /// SYN was sent again: the round trip may be longer than the time-out was.
    // [RFC 6298 §5.7]
    pub(super) fn be_careful(&mut self) {
        self.is_careful = true;
    }

    /// Waited in vain: the next time twice as long.
    // [RFC 6298 §5.5]
    pub(super) fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// The peer answers again.
    pub(super) fn answered(&mut self) {
        self.backoff = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [RFC 6298 §2] [RFC 6298 §2.1] [RFC 6298 §5.5]
    #[test]
    fn the_time_out_is_the_smoothed_round_trip_and_at_least_200_ms_of_variance() {
        let mut trips = RoundTrips::default();
        assert_eq!(trips.timeout_ns(), SECOND);
        trips.measured(30 * MS, 1, 10);
        assert_eq!(trips.timeout_ns(), 230 * MS);
        for round in 2..200 {
            trips.measured(30 * MS, round * 10, round * 10 + 9);
        }
        assert_eq!(trips.timeout_ns(), 230 * MS, "steady round trips keep the floor");
        trips.back_off();
        trips.back_off();
        assert_eq!(trips.timeout_ns(), 920 * MS);
        (0..40).for_each(|_| trips.back_off());
        assert_eq!(trips.timeout_ns(), LONGEST_NS);
        trips.measured(30 * MS, 5000, 5001);
        assert_eq!(trips.timeout_ns(), 230 * MS, "a measurement ends the doubling");
    }

    /// Above the floor it is that of the RFC, in which the variance counts four times: a path of 400 ms whose round trip doubles.
    // [RFC 6298 §2.2] [RFC 6298 §2.3]
    #[test]
    fn on_a_long_path_the_time_out_is_three_round_trips_and_rises_with_their_deviation() {
        let mut trips = RoundTrips::default();
        trips.measured(400 * MS, 1, 10);
        assert_eq!(trips.timeout_ns(), (400 + 4 * 200) * MS);
        trips.measured(800 * MS, 2, 10);
        assert_eq!(
            trips.timeout_ns(),
            (450 + 4 * 250) * MS,
            "7/8 of 400 and 1/8 of 800; 3/4 of 200 and 1/4 of 400"
        );
        trips.measured(50 * MS, 3, 10);
        let falls = 400 * MS + 4 * (250 * MS + (400 - 250) * MS / 32);
        assert_eq!(trips.timeout_ns(), falls, "one that falls counts an eighth");
    }

    /// A round trip of 900 ms once, then 30 ms: the variance jumps, and falls by a quarter of its excess a window.
    #[test]
    fn the_variance_is_the_largest_of_a_window() {
        let mut trips = RoundTrips::default();
        trips.measured(30 * MS, 1, 10);
        trips.measured(900 * MS, 2, 10);
        let high = trips.timeout_ns();
        assert!(high > 800 * MS, "{high}");
        let mut last = high;
        for round in 1..60 {
            trips.measured(30 * MS, round * 10 + 1, round * 10 + 10);
            assert!(trips.timeout_ns() <= last);
            last = trips.timeout_ns();
        }
        assert!(last < 240 * MS, "{last}");
    }

    #[test]
    fn the_least_round_trip_is_forgotten_after_five_minutes() {
        let mut trips = RoundTrips::default();
        for (second, rtt) in [(0, 30), (1, 50), (299, 45), (302, 60)] {
            trips.note_least(second * SECOND, rtt * MS);
        }
        assert_eq!(trips.least_ns(), Some(45 * MS));
    }
}
