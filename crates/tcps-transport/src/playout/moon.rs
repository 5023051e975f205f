//! Adaptive playout by a percentile of the newest delays (Moon, Kurose, Towsley 1998).
//!
//! For haptics (model: playout): the 99th of the last 2 s. A delay above twice what is played begins a spike: then the
//! first delays of the spike count, until one is back below.

use super::schedule::Estimator;
use std::collections::{BTreeMap, VecDeque};
use tcps_core::time::Time;

/// The window of that work.
const MOST: usize = 10_000;

/// The estimator.
#[derive(Debug)]
pub(super) struct Moon {
    share: f64,
    window_ns: Time,
    delays: VecDeque<(Time, Time)>,
    counts: BTreeMap<Time, u32>,
    spike_ns: Option<Time>,
    played_ns: Time,
}

impl Moon {
    pub(super) fn new(share: f64, window_ns: Time) -> Self {
        let (delays, counts) = (VecDeque::new(), BTreeMap::new());
        Self { share, window_ns, delays, counts, spike_ns: None, played_ns: Time::MAX / 4 }
    }

    fn forget(&mut self, before_ns: Time) {
        while self.delays.len() > MOST || self.delays.front().is_some_and(|(at, _)| *at < before_ns) {
            let Some((_, delay)) = self.delays.pop_front() else { return };
            if let Some(n) = self.counts.get_mut(&delay) {
                *n -= 1;
                if *n == 0 {
                    self.counts.remove(&delay);
                }
            }
        }
    }

    fn percentile(&self) -> Time {
        let rank = (self.share * self.delays.len() as f64).max(1.0) as u32;
        let mut seen = 0;
        for (delay, n) in &self.counts {
            seen += n;
            if seen >= rank {
                return *delay;
            }
        }
        self.counts.keys().next_back().copied().unwrap_or(0)
    }
}

// [model: playout]
impl Estimator for Moon {
    fn observe(&mut self, at_ns: Time, delay_ns: Time) {
        self.delays.push_back((at_ns, delay_ns));
        *self.counts.entry(delay_ns).or_default() += 1;
        self.forget(at_ns.saturating_sub(self.window_ns));
        self.spike_ns = match self.spike_ns {
            None if delay_ns > self.played_ns.saturating_mul(2) => Some(delay_ns),
            Some(_) if delay_ns <= self.played_ns => None,
            other => other,
        };
        self.played_ns = self.percentile();
    }

    fn delay_ns(&self) -> Time {
        self.spike_ns.unwrap_or(0).max(self.percentile())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::{MS, SECOND};

    // [model: playout]
    #[test]
    fn the_percentile_is_that_of_the_window() {
        let mut m = Moon::new(0.99, 2 * SECOND);
        (0..1000).for_each(|i| m.observe(i * MS, (i % 100 + 1) * MS));
        assert_eq!(m.delay_ns(), 99 * MS);
        (0..3000).for_each(|i| m.observe((1000 + i) * MS, 5 * MS));
        assert_eq!(m.delay_ns(), 5 * MS, "what is older than 2 s is forgotten");
        m.observe(4001 * MS, 50 * MS);
        assert_eq!(m.delay_ns(), 50 * MS, "a spike");
        m.observe(4002 * MS, 5 * MS);
        assert_eq!(m.delay_ns(), 5 * MS);
    }
}
