//! Feedback `limit`: shortens a vector to a highest length, direction kept. A device has a highest force, and a hand
//! a highest force that it should be given.

use serde::Deserialize;
use serde_json::Value;
use tcps_core::hook::{Hook, HookIn, HookOut, Verdict};

use super::{emit, too_few};
use crate::params::{parse, positive};

/// Parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Highest length, in the unit of the values.
    pub most: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { most: 5.0 }
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct Limit {
    params: Params,
    out: Vec<f64>,
}

impl Limit {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, String> {
        let params: Params = parse(params)?;
        positive("most", params.most)?;
        Ok(Self { params, out: Vec::new() })
    }
}

impl Hook for Limit {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        if input.x().iter().any(|v| !v.is_finite()) {
            return too_few("values", input.x());
        }
        let length = input.x().iter().map(|v| v * v).sum::<f64>().sqrt();
        let factor = if length > self.params.most { self.params.most / length } else { 1.0 };
        self.out.clear();
        self.out.extend(input.x().iter().map(|v| v * factor));
        emit(output, &self.out)
    }
}
