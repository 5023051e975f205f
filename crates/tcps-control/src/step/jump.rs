//! The step: what the far side answers jumps once.

use tcps_core::time::Time;

/// What jumps, and when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jump {
    /// The answer falls to 1/c of what it was.
    pub c: f64,
    /// Moment of the step.
    pub t0_ns: Time,
}

impl Jump {
    /// s(t): the share of the answer that is left.
    // [Polachan 2022: steps] s = 1 for t < t0, 1/c for t >= t0
    pub fn scale(&self, at: Time) -> f64 {
        if at < self.t0_ns {
            1.0
        } else {
            1.0 / self.c
        }
    }
}
