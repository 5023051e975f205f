//! Estimate of the queue behind a delay: what is above the least delay that has been seen.
//!
//! ```text
//! base = min over 60 s of  d - (k - 1)(T + σ)        q = d_avg - (k - 1)(T + σ) - base
//! ```
//! `T` is the time between samples, `σ` the time that a fragment more takes on the bottleneck: 8 · bytes · hops / rate.

use super::extreme::Extreme;
use tcps_core::{
    rate::Sent,
    time::{Time, SECOND},
};

const BASE_NS: Time = 60 * SECOND;

/// When a queue counts as empty, and when as congested.
// [PROTOCOLS 2.8]
#[derive(Debug)]
pub(super) struct Guard {
    steady_below_ns: f64,
    congested_above_ns: f64,
    period_ns: f64,
    /// Nanoseconds a byte on the bottleneck, times hops.
    byte_ns: f64,
    sigma_ns: f64,
    least: Extreme,
}

impl Guard {
    /// `byte_ns`: time that a byte takes on the bottleneck, times the hops that serialise.
    pub(super) fn new(steady_ns: f64, congested_ns: f64, period_ns: Time, byte_ns: f64) -> Self {
        Self {
            steady_below_ns: steady_ns,
            congested_above_ns: congested_ns,
            period_ns: period_ns as f64,
            byte_ns,
            sigma_ns: 0.0,
            least: Extreme::new(BASE_NS, 0.0, 1.0),
        }
    }

    /// A packet has left: what a fragment weighs.
    pub(super) fn sent(&mut self, packet: &Sent) {
        self.sigma_ns = f64::from(packet.payload_bytes) / f64::from(packet.fragments.max(1)) * self.byte_ns;
    }

    /// The queue behind a delay and its average, measured on packets of `k` fragments, in nanoseconds.
    pub(super) fn queue_ns(&mut self, now: Time, k: u8, delay_ns: f64, average_ns: f64) -> f64 {
        let own = f64::from(k - 1) * (self.period_ns + self.sigma_ns);
        let base = self.least.add(now, delay_ns - own);
        average_ns - own - base
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

    // [PROTOCOLS 2.8]
    #[test]
    fn merging_by_itself_is_no_queue() {
        let mut guard = Guard::new(1e6, 3e6, 1_000_000, 8e9 / 1.5e6);
        guard.sent(&Sent { generated_ns: 0, fragments: 4, payload_bytes: 280, wire_bytes: 347 });
        let gamma = |k: f64| (67.0 + 70.0 * k) * 8e9 / 1.5e6;
        let delay = |k: f64| 15e6 + (k - 1.0) * 1e6 + gamma(k);
        for k in [1u8, 4, 2, 3] {
            let d = delay(k.into());
            assert!(guard.queue_ns(0, k, d, d).abs() < 1e-3, "{k}");
        }
        let q = guard.queue_ns(0, 4, delay(4.0) + 2e6, delay(4.0) + 2e6);
        assert!((q - 2e6).abs() < 1.0 && !guard.steady(q) && !guard.congested(q));
    }
}
