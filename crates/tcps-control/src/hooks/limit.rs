//! Feedback `limit`: shortens a vector to a highest length, direction kept. A device has a highest force, and a hand
//! a highest force that it should be given.

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
};

use super::{emit, too_few};

params! {
    /// Parameters.
    pub struct Params {
        most: f64 = Number, "5", POSITIVE, "highest length, in the unit of the values";
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
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let params = Params::of(params)?;
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
