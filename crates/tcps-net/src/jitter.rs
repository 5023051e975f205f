//! Extra delay per packet, with the order kept or not.

use tcps_core::{dist::Sampler, model::DelayModel, time::Time};
use tcps_plan::net::JitterSpec;

/// Draws from a distribution. Whoever keeps the order delays a packet to the arrival of the one before it, which
/// raises the mean above that of the distribution.
pub struct Jitter {
    sampler: Sampler,
    reorder: bool,
}

impl Jitter {
    /// The jitter of `spec` for the random object `name`.
    pub fn new(spec: &JitterSpec, seed: u64, name: &str) -> Self {
        Self { sampler: Sampler::new(spec.delay.clone(), seed, name), reorder: spec.reorder }
    }
}

impl DelayModel for Jitter {
    fn delay(&mut self, _now: Time) -> Time {
        self.sampler.draw()
    }

    fn reorders(&self) -> bool {
        self.reorder
    }
}
