//! Sampler `weber`: a sample goes if it differs perceptibly from the last one that went (adaptive sampling).
//!
//! ```text
//! |x - x_last| >= δ (|x_last| + small),   δ = 12 %
//! ```
//! Lengths are those of the whole vector. `small` keeps a signal that rests at zero from going all the time, as in the
//! public reference implementation of the rule.

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
};

use super::{distance, keep, must_go, norm, verdict, SHARES};

/// Added to the length of the last sample, in the unit of the values.
const SMALL: f64 = 1e-5;

params! {
    /// Parameters.
    pub struct Params {
        delta: f64 = Number, "0.12", SHARES, "just noticeable difference, as a share of the last sample";
    }
}

/// The last sample that went, and the rule.
#[derive(Debug, Clone, Default)]
pub(super) struct Weber {
    last: Vec<f64>,
}

impl Weber {
    /// Whether the sample goes; notes it if so.
    // [Hinterseer 2008: Weber sampler]
    pub(super) fn goes(&mut self, input: &HookIn, delta: f64) -> bool {
        let x = input.x();
        let differs =
            self.last.len() != x.len() || distance(x, &self.last) >= delta * (norm(&self.last) + SMALL);
        let goes = differs || must_go(input);
        if goes && x.iter().all(|v| v.is_finite()) {
            keep(&mut self.last, x);
        }
        goes
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct WeberSampler {
    delta: f64,
    weber: Weber,
}

impl WeberSampler {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let Params { delta } = Params::of(params)?;
        Ok(Self { delta, weber: Weber::default() })
    }
}

impl Hook for WeberSampler {
    fn call(&mut self, input: &HookIn, _output: &mut HookOut) -> Verdict {
        verdict(input.present != 0 && self.weber.goes(input, self.delta))
    }
}
