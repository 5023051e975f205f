//! Predictor `zoh`: the last sample holds.

use serde_json::Value;
use tcps_core::{model::Predictor, param::Fault, time::Time};

use super::usable;

/// The predictor.
#[derive(Debug, Clone, Default)]
pub struct Zoh {
    at: Option<Time>,
    last: Vec<f64>,
}

impl Zoh {
    /// Takes no parameters.
    pub fn new(_: &Value) -> Result<Self, Fault> {
        Ok(Self::default())
    }
}

// [model: predictors] zero-order hold: x(t + h) = x(t)
impl Predictor for Zoh {
    fn update(&mut self, at: Time, sample: Option<&[f64]>) {
        if let Some(x) = usable(self.at, at, sample) {
            self.at = Some(at);
            self.last.clear();
            self.last.extend_from_slice(x);
        }
    }

    fn predict(&self, _at: Time, out: &mut [f64]) -> bool {
        out.iter_mut().zip(&self.last).for_each(|(y, x)| *y = *x);
        self.at.is_some()
    }
}
