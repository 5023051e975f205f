//! Sense `force`: the values of the robot's sense that the operator is to feel, `count` of them from `first`, scaled.

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
        first: usize = Count, "0", NOT_NEGATIVE, "the first value that is selected";
        count: usize = Count, "3", 1.0..=f64::INFINITY, "how many values are selected";
        scale: f64 = Number, "1", ANY, "factor";
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct Force {
    params: Params,
    out: Vec<f64>,
}

impl Force {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let params = Params::of(params)?;
        Ok(Self { params, out: Vec::new() })
    }
}

impl Hook for Force {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let p = &self.params;
        let Some(felt) = input.x().get(p.first..p.first.saturating_add(p.count)) else {
            return too_few("first + count values", input.x());
        };
        self.out.clear();
        self.out.extend(felt.iter().map(|value| value * p.scale));
        emit(output, &self.out)
    }
}
