//! Time as signed 64-bit nanoseconds, and the clock of a node.

use serde::Deserialize;

/// A moment or a span, in nanoseconds since the start of the run.
pub type Time = i64;
/// Later than any event.
pub const NEVER: Time = i64::MAX;
/// Nanoseconds in a microsecond.
pub const US: Time = 1_000;
/// Nanoseconds in a millisecond.
pub const MS: Time = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: Time = 1_000_000_000;

/// A node's own clock: `read(t) = t + offset + drift * t`.
///
/// The same object models an unsynchronised clock in virtual time and impairs a real one in software, so that
/// a clock error can be put into either world and looked for with the same estimator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeClock {
    /// Error at the start of the run, in nanoseconds.
    pub offset_ns: i64,
    /// Rate error in parts per billion; positive runs fast.
    pub drift_ppb: i64,
}

impl NodeClock {
    /// What this clock shows at true time `t`.
    pub fn read(&self, t: Time) -> Time {
        if self.drift_ppb == 0 {
            return t + self.offset_ns;
        }
        t + self.offset_ns + (t as i128 * self.drift_ppb as i128 / 1_000_000_000) as i64
    }

    /// The first true time at which this clock shows `local` or more.
    pub fn when(&self, local: Time) -> Time {
        let mut t = local - self.offset_ns;
        t -= self.read(t) - local;
        while self.read(t) < local {
            t += local - self.read(t);
        }
        while self.read(t - 1) >= local {
            t -= 1;
        }
        t
    }

    /// How far this clock is ahead of the truth at true time `t`.
    pub fn error(&self, t: Time) -> Time {
        self.read(t) - t
    }
}

/// Time to put `bytes` on a line of `rate_bps`, rounded to the nearest nanosecond; 0 for an infinite rate.
pub fn serialisation_ns(bytes: u32, rate_bps: f64) -> Time {
    if rate_bps.is_finite() {
        (bytes as f64 * 8e9 / rate_bps + 0.5) as Time
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_with_50_ppm_gains_50_us_a_second() {
        let clock = NodeClock { offset_ns: 7, drift_ppb: 50_000 };
        assert_eq!(clock.error(SECOND), 50_007);
        assert_eq!(clock.error(0), 7);
    }

    #[test]
    fn the_time_at_which_a_clock_shows_something_is_the_first_one() {
        for drift_ppb in [0, 50_000, -50_000, 999] {
            let clock = NodeClock { offset_ns: -3, drift_ppb };
            for local in [0, 1, 999_999, SECOND, 86_400 * SECOND + 1] {
                let t = clock.when(local);
                assert!(clock.read(t) >= local && clock.read(t - 1) < local, "{drift_ppb} {local}");
            }
        }
    }

    #[test]
    fn serialisation_of_the_backward_packet_is_the_published_0_7307_ms() {
        // [Gokhale 2017: streams], Gokhale 2017 table: 137 B at 1.5 Mbit/s.
        assert_eq!(serialisation_ns(137, 1.5e6), 730_667);
        assert_eq!(serialisation_ns(137, f64::INFINITY), 0);
    }
}
