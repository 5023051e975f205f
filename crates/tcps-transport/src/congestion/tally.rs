//! Mean delays over half a second, told in headers of the way back.
//!
//! ```text
//! notices of 500 ms ─► mean delay ─► above the least mean of 60 s: the queue
//! ```
//! Losses are not in it: of samples that were left out a receiver does not know that they were no loss.

use super::windowed::WindowedMin;
use tcps_core::{
    rate::DelayNotice,
    time::{Time, MS, SECOND},
};

const BASE_NS: Time = 60 * SECOND;
const INTERVAL_NS: Time = 500 * MS;

/// Delays since the last mean.
#[derive(Debug)]
pub(super) struct Tally {
    base: WindowedMin,
    began_ns: Option<Time>,
    sum_ns: f64,
    count: f64,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self { base: WindowedMin::new(BASE_NS, 0.0, 1.0), began_ns: None, sum_ns: 0.0, count: 0.0 }
    }

    /// Adds a notice; the queue in nanoseconds, if half a second is over and anything new was told.
    pub(super) fn add(&mut self, now: Time, notice: &DelayNotice) -> Option<f64> {
        if !notice.fresh {
            return None;
        }
        let began_ns = *self.began_ns.get_or_insert(now);
        let mut queue_ns = None;
        if now.saturating_sub(began_ns) >= INTERVAL_NS {
            let mean_ns = self.sum_ns / self.count;
            queue_ns = Some(mean_ns - self.base.add(now, mean_ns));
            (self.began_ns, self.sum_ns, self.count) = (Some(now), 0.0, 0.0);
        }
        self.sum_ns += notice.delay_ns as f64;
        self.count += 1.0;
        queue_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_second_of_delays_gives_their_mean_above_the_least() {
        let mut tally = Tally::new();
        let mut hears = |ms: Time, delay_ms: Time, fresh: bool| {
            let notice = DelayNotice {
                delay_ns: delay_ms * MS,
                fresh,
                generated_ns: 0,
                fragments: 1,
                wire_bytes: 137,
                certain: true,
                reverse_ns: 0,
                left_ns: 0,
            };
            tally.add(ms * MS, &notice)
        };
        assert_eq!([hears(0, 15, true), hears(100, 25, true), hears(499, 900, false)], [None; 3]);
        assert_eq!(hears(500, 30, true), Some(0.0), "the first mean is the base");
        assert_eq!([hears(600, 40, true), hears(999, 35, true)], [None; 2]);
        assert_eq!(hears(1000, 15, true), Some(15e6), "35 ms above 20 ms");
    }
}
