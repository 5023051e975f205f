//! What SCReAM makes of queue delays (RFC 8298 §4.1): their trend, and the target that they are held to.
//!
//! ```text
//! fraction = queue / target ─► EWMA 0.1 ─► every 50 ms one of 20 ─► autocorrelation · EWMA = trend, 0 to 1
//! 100 queues, one a round trip ─► mean + deviation ─► target, from the least to four times that
//! ```
//! The published limits are 0.1 and 0.4 s; with another least target the most is again four times it.

use std::collections::VecDeque;
use tcps_core::time::{Time, MS};

const WEIGHT: f64 = 0.1;
const FRACTIONS: usize = 20;
const FRACTION_NS: Time = 50 * MS;
const MEMORY: f64 = 0.99;
const NORMS: usize = 100;
const MOST: f64 = 4.0;
/// Share of round trips with losses above which others that fill buffers are there.
const LOSS_EVENTS: f64 = 0.002;
const CALM_VARIANCE: f64 = 0.2;

/// The trend of the queue.
// [RFC 8298]
#[derive(Debug, Default)]
pub(super) struct QueueDelay {
    last: f64,
    average: f64,
    history: VecDeque<f64>,
    noted_ns: Time,
    trend: f64,
    memory: f64,
}

impl QueueDelay {
    /// A packet has met a queue of `fraction` of the target.
    pub(super) fn add(&mut self, now: Time, fraction: f64) {
        self.last = fraction;
        self.average += WEIGHT * (fraction - self.average);
        if now.saturating_sub(self.noted_ns) < FRACTION_NS {
            return;
        }
        self.noted_ns = now;
        if self.history.len() == FRACTIONS {
            self.history.pop_front();
        }
        self.history.push_back(self.average);
        self.trend = (self.correlation() * self.average).clamp(0.0, 1.0);
        self.memory = (MEMORY * self.memory).max(self.trend);
    }

    /// Of each value with the next.
    fn correlation(&self) -> f64 {
        let mean = self.history.iter().sum::<f64>() / self.history.len().max(1) as f64;
        let off = || self.history.iter().map(|v| v - mean);
        let own: f64 = off().map(|v| v * v).sum();
        let next: f64 = off().zip(off().skip(1)).map(|(a, b)| a * b).sum();
        if own > 0.0 {
            next / own
        } else {
            0.0
        }
    }

    /// The queue that the newest packet met, as a fraction of the target.
    pub(super) fn last(&self) -> f64 {
        self.last
    }

    /// 0: the queue is short or shrinks. 1: it has reached the target and grows.
    pub(super) fn trend(&self) -> f64 {
        self.trend
    }

    /// The trend, forgotten slowly.
    pub(super) fn trend_memory(&self) -> f64 {
        self.memory
    }
}

/// The target of the queue, which gives way to others that fill buffers.
// [RFC 8298]
#[derive(Debug)]
pub(super) struct Target {
    least_ns: f64,
    now_ns: f64,
    norms: VecDeque<f64>,
    noted_ns: Time,
    /// Share of round trips with losses.
    loss_events: f64,
    lost: bool,
}

impl Target {
    /// A target of at least `least_ns`.
    pub(super) fn new(least_ns: f64) -> Self {
        Self {
            least_ns,
            now_ns: least_ns,
            norms: VecDeque::new(),
            noted_ns: 0,
            loss_events: 0.0,
            lost: false,
        }
    }

    /// The target now, in nanoseconds.
    pub(super) fn now_ns(&self) -> f64 {
        self.now_ns
    }

    /// Something was lost in this round trip.
    pub(super) fn lost(&mut self) {
        self.lost = true;
    }

    /// Once a round trip, a queue.
    pub(super) fn follow(&mut self, now: Time, queue_ns: f64, round_trip_ns: f64) {
        if (now.saturating_sub(self.noted_ns) as f64) < round_trip_ns {
            return;
        }
        self.noted_ns = now;
        let lost = f64::from(u8::from(std::mem::take(&mut self.lost)));
        self.loss_events += (lost - self.loss_events) / NORMS as f64;
        if self.norms.len() == NORMS {
            self.norms.pop_front();
        }
        self.norms.push_back(queue_ns / self.least_ns);
        self.now_ns = self.adjusted().clamp(self.least_ns, MOST * self.least_ns);
    }

    fn adjusted(&self) -> f64 {
        let n = self.norms.len().max(1) as f64;
        let mean = self.norms.iter().sum::<f64>() / n;
        let variance = self.norms.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
        let fitting_ns = (mean + variance.sqrt()) * self.least_ns;
        if self.loss_events > LOSS_EVENTS {
            1.5 * fitting_ns
        } else if variance < CALM_VARIANCE {
            fitting_ns
        } else if fitting_ns < self.least_ns {
            (0.5 * self.now_ns).max(fitting_ns)
        } else {
            0.9 * self.now_ns
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [RFC 8298]
    #[test]
    fn a_growing_queue_has_a_trend_and_a_short_or_noisy_one_has_none() {
        let trend = |queue: fn(i64) -> f64| {
            let mut q = QueueDelay::default();
            (0..2000).for_each(|ms| q.add(ms * MS, queue(ms)));
            (q.trend(), q.trend_memory())
        };
        let (growing, _) = trend(|ms| ms as f64 / 2000.0);
        assert!(growing > 0.6, "{growing}");
        let (short, _) = trend(|ms| if ms % 100 < 50 { 0.02 } else { 0.0 });
        assert!(short < 0.02, "{short}");
        let (over, memory) = trend(|ms| if ms < 1000 { ms as f64 / 1000.0 } else { 0.0 });
        assert!(over < 0.1 && memory > 0.3, "{over} {memory}");
    }

    // [RFC 8298]
    #[test]
    fn the_target_gives_way_to_a_standing_queue_and_comes_back() {
        let mut t = Target::new(10e6);
        let mut now = 0;
        let mut run = |t: &mut Target, trips: u32, queue_ns: f64, lost: bool| {
            for _ in 0..trips {
                now += 40 * MS;
                if lost {
                    t.lost();
                }
                t.follow(now, queue_ns, 30e6);
            }
            t.now_ns()
        };
        assert_eq!(run(&mut t, 200, 2e6, false), 10e6);
        let standing = run(&mut t, 200, 25e6, false);
        assert!((standing - 25e6).abs() < 1e5, "{standing}");
        let lossy = run(&mut t, 10, 25e6, true);
        assert!((lossy - 37.5e6).abs() < 1e5, "{lossy}");
        assert_eq!(run(&mut t, 10, 90e6, true), 40e6, "never above four times");
        assert_eq!(run(&mut t, 2000, 1e6, false), 10e6);
    }

    /// Where queues vary, the target cannot be the one that fits; it falls all the same, or it would stay high for ever.
    // [RFC 8298]
    #[test]
    fn the_target_is_mean_and_deviation_of_steady_queues_and_falls_where_they_vary() {
        let next = |from_ns: f64, queue_ms: fn(i64) -> f64| {
            let mut t = Target::new(10e6);
            (1..=100).for_each(|i| t.follow(i * 40 * MS, 1e6 * queue_ms(i), 30e6));
            t.now_ns = from_ns;
            t.follow(101 * 40 * MS, 1e6 * queue_ms(101), 30e6);
            t.now_ns().round()
        };
        let steady = |i| if i % 2 == 0 { 18.0 } else { 22.0 };
        assert_eq!([10e6, 36e6].map(|from_ns| next(from_ns, steady)), [22e6; 2]);
        let varies = |i| if i % 2 == 0 { 0.0 } else { 30.0 };
        assert_eq!(next(36e6, varies), 32.4e6, "slowly: what would fit is above the least");
        let spikes = |i| if i % 10 == 0 { 22.5 } else { 0.0 };
        assert_eq!(
            [36e6, 12e6].map(|from_ns| next(from_ns, spikes)),
            [18e6, 10e6],
            "quickly: 9 ms would fit"
        );
    }
}
