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
    counted_ns: Time,
}

impl Meter {
    /// So many bytes leave.
    pub(crate) fn add(&mut self, now: Time, bytes: usize) {
        let gone_ns = now - self.counted_ns;
        if gone_ns >= SLOT_NS {
            let weight = gone_ns as f64 / (MEAN_NS + gone_ns) as f64;
            let rate_bps = self.bits * SECOND as f64 / gone_ns as f64;
            self.mean_bps += weight * (rate_bps - self.mean_bps);
            (self.bits, self.counted_ns) = (0.0, now);
        }
        self.bits += 8.0 * bytes as f64;
    }

    /// The mean so far, in bit/s.
    pub(crate) fn mean_bps(&self) -> f64 {
        self.mean_bps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_a_steady_flow_is_its_rate() {
        let mut meter = Meter::default();
        (0..2000).for_each(|ms| meter.add(ms * MS, 125));
        assert!((meter.mean_bps() - 1e6).abs() < 1e3, "{}", meter.mean_bps());
    }
}
