//! Adaptive playout by mean and variation of the delay (Ramjee, Kurose, Towsley, Schulzrinne 1994).
//!
//! ```text
//! d = a d + (1 - a) n      v = a v + (1 - a) |d - n|      delay = d + 4 v       a = 0.998002
//! spike: |n_i - n_(i-1)| > 2 |v| + 100 ms: then d follows n at once, until the slope has died away
//! ```

use super::schedule::Estimator;
use tcps_core::time::{Time, MS};

const ALPHA: f64 = 0.998_002;
/// 800 ticks of 8 kHz: the units of that work.
const SPIKE_NS: f64 = 100.0 * MS as f64;
/// The spike is over when its slope is below this (63 ticks of 8 kHz).
const CALM_NS: f64 = 63.0 / 8.0 * MS as f64;

/// The estimator.
#[derive(Debug, Default)]
pub(super) struct Ramjee {
    mean_ns: f64,
    variation_ns: f64,
    before: [f64; 2],
    slope_ns: f64,
    spike: bool,
    n: u64,
}

// [model: playout]
impl Estimator for Ramjee {
    fn observe(&mut self, _: Time, delay_ns: Time) {
        let delay = delay_ns as f64;
        if self.n == 0 {
            (self.mean_ns, self.before) = (delay, [delay; 2]);
        }
        self.n += 1;
        let jump = (delay - self.before[0]).abs();
        if !self.spike && jump > 2.0 * self.variation_ns.abs() + SPIKE_NS {
            (self.spike, self.slope_ns) = (true, 0.0);
        } else if self.spike {
            let bend = (2.0 * delay - self.before[0] - self.before[1]).abs() / 8.0;
            self.slope_ns = self.slope_ns / 2.0 + bend;
            self.spike = self.slope_ns > CALM_NS;
        }
        self.mean_ns = match self.spike {
            true => self.mean_ns + delay - self.before[0],
            false => ALPHA * self.mean_ns + (1.0 - ALPHA) * delay,
        };
        self.variation_ns = ALPHA * self.variation_ns + (1.0 - ALPHA) * (self.mean_ns - delay).abs();
        self.before = [delay, self.before[0]];
    }

    fn delay_ns(&self) -> Time {
        (self.mean_ns + 4.0 * self.variation_ns) as Time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::seed::Stream;

    // [model: playout]
    #[test]
    fn it_follows_mean_and_variation_and_spikes_at_once() {
        let (mut r, mut chance) = (Ramjee::default(), Stream::new(1, "delays"));
        (0..20_000).for_each(|i| r.observe(i, (chance.uniform(10.0, 14.0) * MS as f64) as Time));
        let delay = r.delay_ns() as f64 / MS as f64;
        assert!((delay - (12.0 + 4.0 * 1.0)).abs() < 0.3, "{delay} ms: mean 12, variation 1");
        r.observe(0, 212 * MS);
        assert!(r.delay_ns() > 200 * MS, "a spike");
        (0..100).for_each(|i| r.observe(i, 12 * MS));
        assert!(r.delay_ns() < 30 * MS, "and it is over: {}", r.delay_ns());
    }

    /// A spike of one packet, 200 ms above 40 ms: of n packets behind it the slopes are 25, 37.5, 18.75, 9.4 and 4.7 ms, and
    /// below 7.9 ms it is over. Until then the delay follows each packet at once, then hardly.
    // [model: playout]
    #[test]
    fn a_spike_is_over_when_its_slope_has_died_away_however_long_the_delay_is() {
        let after = |calm: i64| {
            let mut r = Ramjee::default();
            (0..10).for_each(|i| r.observe(i, 40 * MS));
            r.observe(10, 240 * MS);
            (0..calm).for_each(|i| r.observe(11 + i, 40 * MS));
            r.observe(11 + calm, 60 * MS);
            r.delay_ns() / MS
        };
        assert_eq!([3, 4, 5, 50].map(after), [60, 60, 40, 40]);
    }
}
