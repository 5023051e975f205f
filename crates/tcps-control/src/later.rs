//! What counts some time after it came: the latency of a simulated operator.

use std::{collections::VecDeque, ops::RangeInclusive};
use tcps_core::time::{Time, MS};

/// Latencies, in ms: operators answer within a second.
pub(crate) const LATENCY_MS: RangeInclusive<f64> = 0.0..=2_000.0;
/// What may wait: the longest latency at 8 kHz, both ends of it.
const WAITING: usize = 16_001;

/// Values by the moment from which they count.
#[derive(Debug)]
pub(crate) struct Later<T> {
    latency_ns: Time,
    waiting: VecDeque<(Time, T)>,
}

impl<T> Later<T> {
    /// With a latency in ms.
    pub fn new(latency_ms: f64) -> Self {
        Self { latency_ns: (latency_ms * MS as f64) as Time, waiting: VecDeque::new() }
    }

    /// Takes a value that came now; in a full queue it takes the place of the newest.
    pub fn push(&mut self, now: Time, value: T) {
        if self.waiting.len() == WAITING {
            self.waiting.pop_back();
        }
        self.waiting.push_back((now.saturating_add(self.latency_ns), value));
    }

    /// The newest value that counts since the last call, if there is one.
    pub fn due(&mut self, now: Time) -> Option<T> {
        let mut found = None;
        while self.waiting.front().is_some_and(|(due, _)| *due <= now) {
            found = self.waiting.pop_front().map(|(_, value)| value);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_counts_when_its_time_has_come_up_to_the_longest_latency() {
        let mut later = Later::new(*LATENCY_MS.end());
        let (period, behind) = (MS / 8, 16_000);
        for n in 0..4 * behind {
            later.push(n * period, n);
            assert_eq!(later.due(n * period), (n >= behind).then_some(n - behind));
        }
    }

    #[test]
    fn a_full_queue_keeps_the_newest() {
        let mut later = Later::new(*LATENCY_MS.end());
        (0..2 * WAITING).for_each(|n| later.push(0, n));
        assert_eq!(later.due(2_000 * MS - 1), None);
        assert_eq!(later.due(2_000 * MS), Some(2 * WAITING - 1));
    }
}
