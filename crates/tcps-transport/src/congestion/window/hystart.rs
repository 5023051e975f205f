//! HyStart: the end of slow start before the queue overflows, by two signs.
//!
//! ```text
//! train   acknowledgements that follow each other closely last longer than half the least round trip
//! delay   the least round trip of a round exceeds the least ever by an eighth, between 4 and 16 ms
//! ```
//! This is the HyStart of Ha and Rhee 2011 as Linux has it, which the world runs; HyStart++ (RFC 9406) keeps the second
//! sign and adds a slower slow start behind it.

use super::{Ack, Window};
use tcps_core::time::{Time, MS};

/// Below this window nothing is looked for.
const LEAST_WINDOW: u32 = 16;
/// Acknowledgements of a train are at most so far apart.
const SPACING_NS: Time = 2 * MS;
/// What merging in hosts may add to a round trip.
const MERGING_NS: Time = MS;
/// Round trips after which the least of a round counts.
const SAMPLES: u32 = 8;
/// Bounds of the rise in round trips that ends slow start.
// [RFC 9406 §4.3]
const RISE_NS: [Time; 2] = [4 * MS, 16 * MS];

/// Looks for the end of slow start.
#[derive(Debug, Default)]
pub(super) struct HyStart {
    least_ns: Option<Time>,
    found: bool,
    /// Begin of the round, its last acknowledgement in the train, and the position that ends it.
    start_ns: Time,
    last_ns: Time,
    end: u64,
    /// Least round trip of the round, and how many there were.
    round_least_ns: Time,
    samples: u32,
}

impl HyStart {
    /// The least round trip ever.
    pub(super) fn least_ns(&self) -> Option<Time> {
        self.least_ns
    }

    /// A round trip was measured. True if slow start is to end.
    pub(super) fn measured(&mut self, ack: &Ack, rtt_ns: Time, window: &Window) -> bool {
        let least_ns = self.least_ns.map_or(rtt_ns, |l| l.min(rtt_ns));
        self.least_ns = Some(least_ns);
        if self.found || !window.in_slow_start() {
            return false;
        }
        if ack.acked > self.end {
            (self.start_ns, self.last_ns, self.end) = (ack.now, ack.now, ack.sent_to);
            (self.round_least_ns, self.samples) = (Time::MAX, 0);
        }
        if window.segments < LEAST_WINDOW {
            return false;
        }
        self.found = self.is_long_train(ack.now, least_ns) | self.has_risen(rtt_ns, least_ns);
        self.found
    }

    fn is_long_train(&mut self, now: Time, least_ns: Time) -> bool {
        if now - self.last_ns > SPACING_NS {
            return false;
        }
        self.last_ns = now;
        now - self.start_ns > (least_ns + MERGING_NS) / 2
    }

    fn has_risen(&mut self, rtt_ns: Time, least_ns: Time) -> bool {
        self.round_least_ns = self.round_least_ns.min(rtt_ns);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        self.round_least_ns > least_ns + (least_ns / 8).clamp(RISE_NS[0], RISE_NS[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a round of acknowledgements, so far apart, with these round trips. After how many slow start ends.
    fn round(hystart: &mut HyStart, begin: Time, apart_ns: Time, rtt_ns: Time, window: u32) -> Option<u32> {
        let window = Window { segments: window, ..Window::new() };
        let base = begin as u64;
        (1..=40).find(|i| {
            let now = begin + Time::from(*i) * apart_ns;
            let ack = Ack { now, rtt_ns: Some(rtt_ns), acked: base + u64::from(*i), sent_to: base + 100 };
            hystart.measured(&ack, rtt_ns, &window)
        })
    }

    // [RFC 9406 §4.3]
    #[test]
    fn a_round_whose_least_round_trip_has_risen_ends_slow_start() {
        let mut hystart = HyStart::default();
        assert_eq!(round(&mut hystart, 0, 3 * MS, 30 * MS, 20), None);
        assert_eq!(round(&mut hystart, 200 * MS, 3 * MS, 34 * MS, 20), None, "4 ms are within the bound");
        assert_eq!(round(&mut hystart, 400 * MS, 3 * MS, 35 * MS, 20), Some(9), "after eight round trips");
    }

    #[test]
    fn a_train_longer_than_half_the_least_round_trip_ends_slow_start() {
        let mut hystart = HyStart::default();
        assert_eq!(round(&mut hystart, 0, 3 * MS, 30 * MS, 20), None);
        // (30 ms + 1 ms) / 2 = 15.5 ms, 1 ms apart from the first on.
        assert_eq!(round(&mut hystart, 200 * MS, MS, 30 * MS, 20), Some(17));
    }

    #[test]
    fn small_windows_are_left_alone() {
        let mut hystart = HyStart::default();
        assert_eq!(round(&mut hystart, 0, 3 * MS, 30 * MS, 15), None);
        assert_eq!(round(&mut hystart, 200 * MS, MS, 90 * MS, 15), None);
    }
}
