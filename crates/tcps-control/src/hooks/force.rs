//! Sense `force`: the values of the robot's sense that the operator is to feel, `count` of them from `first`, scaled.

use serde::Deserialize;
use serde_json::Value;
use tcps_core::hook::{Hook, HookIn, HookOut, Verdict};

use super::{emit, too_few};
use crate::params::parse;

/// Parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The first value.
    pub first: usize,
    /// How many.
    pub count: usize,
    /// Factor.
    pub scale: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { first: 0, count: 3, scale: 1.0 }
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
    pub fn new(params: &Value) -> Result<Self, String> {
        let params: Params = parse(params)?;
        if params.count == 0 || !params.scale.is_finite() {
            return Err("count must be at least 1 and scale finite".into());
        }
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
