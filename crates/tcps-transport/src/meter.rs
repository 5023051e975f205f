//! Rate of a flow: a mean that forgets exponentially.

use tcps_core::time::{Time, MS, SECOND};

/// Time constant of the mean.
const MEAN_NS: Time = 200 * MS;
/// What is counted together.
const SLOT_NS: Time = MS;

/// Bits a second.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    bits: f64,
    mean_bps: f64,
    /// Until when `mean_bps` counts; `bits` are from then on.
    counted_ns: Option<Time>,
}

impl Meter {
    /// So many bytes leave.
    pub(crate) fn add(&mut self, now: Time, bytes: usize) {
        let counted_ns = *self.counted_ns.get_or_insert(now);
        if now - counted_ns >= SLOT_NS {
            self.mean_bps = self.mean_bps(now);
            (self.bits, self.counted_ns) = (0.0, Some(now));
        }
        self.bits += 8.0 * bytes as f64;
    }

    /// The mean at `now`, in bit/s: silence since the last byte weighs too.
    pub(crate) fn mean_bps(&self, now: Time) -> f64 {
        let gone_ns = self.counted_ns.map_or(0, |t| now.saturating_sub(t));
        if gone_ns < SLOT_NS {
            return self.mean_bps;
        }
        let weight = -libm::expm1(-(gone_ns as f64) / MEAN_NS as f64);
        let rate_bps = self.bits * SECOND as f64 / gone_ns as f64;
        self.mean_bps + weight * (rate_bps - self.mean_bps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow of 1 Mbit/s for 2 s from `start` on.
    fn steady(start: Time) -> Meter {
        let mut meter = Meter::default();
        (0..2000).for_each(|ms| meter.add(start + ms * MS, 125));
        meter
    }

    #[test]
    fn the_mean_of_a_steady_flow_is_its_rate() {
        let mean_bps = steady(0).mean_bps(2 * SECOND);
        assert!((mean_bps - 1e6).abs() < 1e3, "{mean_bps}");
    }

    #[test]
    fn a_flow_that_stops_is_forgotten_although_nothing_more_leaves() {
        let meter = steady(0);
        let after = |ns: Time| meter.mean_bps(2 * SECOND + ns);
        assert!((after(MEAN_NS) - 1e6 / std::f64::consts::E).abs() < 1e4, "{}", after(MEAN_NS));
        assert!(after(2 * SECOND) < 1e3, "{}", after(2 * SECOND));
    }

    #[test]
    fn a_clock_may_start_behind_0() {
        let mean_bps = steady(-10 * SECOND).mean_bps(-8 * SECOND);
        assert!((mean_bps - 1e6).abs() < 1e3, "{mean_bps}");
        assert_eq!(Meter::default().mean_bps(-SECOND), 0.0);
    }
}
