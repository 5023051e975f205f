//! The step: what the far side answers jumps once.

use serde::Deserialize;
use tcps_core::time::Time;

/// What jumps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disturbance {
    /// The gain of the far side: the loop after the step has a c-th of it.
    #[default]
    Gain,
    /// Its output: the loop stays as it is.
    Output,
}

impl Disturbance {
    /// What a scenario calls them.
    pub const NAMES: &'static [&'static str] = &["gain", "output"];
}

/// What jumps, and when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jump {
    /// An answer of 1 falls to 1/c.
    pub c: f64,
    /// Moment of the step.
    pub t0_ns: Time,
    /// How it falls.
    pub disturbance: Disturbance,
}

impl Jump {
    /// Factor and summand of the answer from the step on; before, they are 1 and 0.
    // [Polachan 2022: steps] s = 1 for t < t0, 1/c for t >= t0
    pub fn after(c: f64, disturbance: Disturbance) -> (f64, f64) {
        match disturbance {
            Disturbance::Gain => (1.0 / c, 0.0),
            Disturbance::Output => (1.0, 1.0 / c - 1.0),
        }
    }

    /// h of an answer `y`.
    pub fn h(&self, at: Time, y: f64) -> f64 {
        let (scale, shift) = if at < self.t0_ns { (1.0, 0.0) } else { Self::after(self.c, self.disturbance) };
        scale * y + shift
    }
}
