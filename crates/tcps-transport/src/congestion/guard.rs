//! Estimate of the queue behind a delay: what is above the least delay that has been seen.
//!
//! ```text
//! own = (k - 1) T + 8 · bytes · hops / rate        base = min over 60 s of  d - own        q = d_avg - own - base
//! ```
//! `T` is the time between samples; `k` and `bytes` are those of the very packet whose delay was measured, whatever is
//! sent by now. What the headers take is in `own` and in the base, and so in neither's difference. Around a change of k a
//! notice may be of a packet with either k; such a one is judged, but it does not enter the base.

use super::windowed::WindowedMin;
use tcps_core::{
    rate::DelayNotice,
    time::{Time, SECOND},
};

const BASE_NS: Time = 60 * SECOND;

/// When a queue counts as empty, and when as congested.
// [model: DPM-G]
#[derive(Debug)]
pub(super) struct Guard {
    steady_below_ns: f64,
    congested_above_ns: f64,
    period_ns: f64,
    /// Nanoseconds a byte on the bottleneck, times hops.
    byte_ns: f64,
    least: WindowedMin,
    base_ns: Option<f64>,
}

impl Guard {
    /// `byte_ns`: time that a byte takes on the bottleneck, times the hops that serialise.
    pub(super) fn new(steady_ns: f64, congested_ns: f64, period_ns: Time, byte_ns: f64) -> Self {
        Self {
            steady_below_ns: steady_ns,
            congested_above_ns: congested_ns,
            period_ns: period_ns as f64,
            byte_ns,
            least: WindowedMin::new(BASE_NS, 0.0, 1.0),
            base_ns: None,
        }
    }

    /// The queue behind a measured delay and its average, in nanoseconds; `None` before the first measurement that is
    /// certain. A packet with k = 1 that is taken for one with k = 4 would hold the base 3 ms too low for a minute.
    pub(super) fn queue_ns(&mut self, now: Time, notice: &DelayNotice, average_ns: f64) -> Option<f64> {
        let merging_ns = f64::from(notice.fragments.saturating_sub(1)) * self.period_ns;
        let own_ns = merging_ns + f64::from(notice.wire_bytes) * self.byte_ns;
        if notice.certain {
            self.base_ns = Some(self.least.add(now, notice.delay_ns as f64 - own_ns));
        }
        Some(average_ns - own_ns - self.base_ns?)
    }

    /// Whether such a queue is one for a larger k.
    pub(super) fn congested(&self, queue_ns: f64) -> bool {
        queue_ns > self.congested_above_ns
    }

    /// Whether such a queue is none.
    pub(super) fn steady(&self, queue_ns: f64) -> bool {
        queue_ns <= self.steady_below_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [model: DPM-G]
    #[test]
    fn merging_by_itself_is_no_queue() {
        let mut guard = Guard::new(1e6, 3e6, 1_000_000, 8e9 / 1.5e6);
        for k in [1u8, 4, 2, 3] {
            let n = measured(k, 0);
            let q = guard.queue_ns(0, &n, n.delay_ns as f64).unwrap();
            assert!(q.abs() < 2.0, "{k}: {q}");
        }
        let n = measured(4, 2_000_000);
        let q = guard.queue_ns(0, &n, n.delay_ns as f64).unwrap();
        assert!((q - 2e6).abs() < 2.0 && !guard.steady(q) && !guard.congested(q));
    }

    // [model: DPM-G]
    #[test]
    fn a_queue_of_just_the_bounds_is_steady_and_not_congested() {
        let guard = Guard::new(1e6, 3e6, 1_000_000, 8e9 / 1.5e6);
        assert_eq!([1e6, 1.001e6].map(|queue_ns| guard.steady(queue_ns)), [true, false]);
        assert_eq!([3e6, 3.001e6].map(|queue_ns| guard.congested(queue_ns)), [false, true]);
    }

    /// The delay of a packet of `k` fragments of 70 B behind a queue.
    fn measured(k: u8, queue_ns: Time) -> DelayNotice {
        let wire_bytes = 67 + 70 * u32::from(k);
        let own_ns = Time::from(k - 1) * 1_000_000 + (f64::from(wire_bytes) * 8e9 / 1.5e6) as Time;
        DelayNotice {
            delay_ns: 15_000_000 + own_ns + queue_ns,
            fresh: true,
            generated_ns: 0,
            fragments: k,
            wire_bytes,
            certain: true,
            reverse_ns: 0,
            left_ns: 0,
        }
    }

    // [model: DPM-G]
    #[test]
    fn a_delay_is_judged_by_the_size_of_its_own_packet() {
        let mut guard = Guard::new(1e6, 3e6, 1_000_000, 8e9 / 1.5e6);
        let full = measured(4, 0);
        guard.queue_ns(0, &full, full.delay_ns as f64);
        // A packet of four fragments without sound and picture, 58 B a fragment less, is 1.2 ms faster.
        let bare_ns = (232.0 * 8e9 / 1.5e6) as Time;
        let bare = DelayNotice { wire_bytes: 347 - 232, delay_ns: full.delay_ns - bare_ns, ..full };
        let q = guard.queue_ns(1, &bare, bare.delay_ns as f64).unwrap();
        assert!(q.abs() < 2.0, "{q}");
        let q = guard.queue_ns(2, &full, full.delay_ns as f64).unwrap();
        assert!(q.abs() < 2.0, "the base is that of before: {q}");
    }
    // [model: DPM-G]
    #[test]
    fn a_doubtful_delay_leaves_the_base_alone() {
        let mut guard = Guard::new(1e6, 3e6, 1_000_000, 8e9 / 1.5e6);
        let doubtful = DelayNotice { certain: false, ..measured(1, 0) };
        assert_eq!(guard.queue_ns(0, &doubtful, 15e6), None, "nothing to compare with");
        let (one, four) = (measured(1, 0), measured(4, 0));
        guard.queue_ns(0, &one, one.delay_ns as f64);
        // A packet with k = 1 is taken for one with k = 4: its queue seems 4.1 ms below none.
        let wrong = DelayNotice { delay_ns: one.delay_ns, certain: false, ..four };
        guard.queue_ns(1, &wrong, one.delay_ns as f64);
        let q = guard.queue_ns(2, &four, four.delay_ns as f64).unwrap();
        assert!(q.abs() < 2.0 && guard.steady(q), "no queue: {q}");
    }
}
