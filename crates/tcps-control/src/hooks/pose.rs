//! Kinematics `pose`: passes chosen values on, scaled and moved: `y_i = scale_i x_pick(i) + offset_i`.

use serde::Deserialize;
use serde_json::Value;
use tcps_core::hook::{Hook, HookIn, HookOut, Verdict};

use super::emit;
use crate::params::parse;

/// Parameters. Lists that are shorter than the sample are continued by their last value.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Which values, from 0; empty: all.
    pub pick: Vec<usize>,
    /// Factors.
    pub scale: Vec<f64>,
    /// What is added.
    pub offset: Vec<f64>,
}

impl Default for Params {
    fn default() -> Self {
        Self { pick: Vec::new(), scale: vec![1.0], offset: vec![0.0] }
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct Pose {
    params: Params,
    out: Vec<f64>,
}

impl Pose {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, String> {
        let params: Params = parse(params)?;
        if params.scale.is_empty() || params.offset.is_empty() {
            return Err("scale and offset need at least one value each".into());
        }
        Ok(Self { params, out: Vec::new() })
    }
}

impl Hook for Pose {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let (x, p) = (input.x(), &self.params);
        if let Some(beyond) = p.pick.iter().find(|&&i| i >= x.len()) {
            return Verdict::Failed(format!("pick {beyond}: the sample has {} values", x.len()));
        }
        let at = |list: &[f64], i: usize| list[i.min(list.len() - 1)];
        let n = if p.pick.is_empty() { x.len() } else { p.pick.len() };
        self.out.clear();
        self.out.extend((0..n).map(|i| {
            let value = x[p.pick.get(i).copied().unwrap_or(i)];
            at(&p.scale, i) * value + at(&p.offset, i)
        }));
        emit(output, &self.out)
    }
}
