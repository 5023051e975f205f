//! Kinematics `pose`: passes chosen values on, scaled and moved: `y_i = scale_i x_pick(i) + offset_i`.

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
};

use super::emit;

params! {
    /// Parameters. Lists that are shorter than the sample are continued by their last value.
    pub struct Params {
        pick: Vec<usize> = List(&Count), "[]", NOT_NEGATIVE, "values to select, from 0; empty: all";
        scale: Vec<f64> = List(&Number), "[1]", ANY, "factors";
        offset: Vec<f64> = List(&Number), "[0]", ANY, "offsets to add";
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
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let params = Params::of(params)?;
        if params.scale.is_empty() || params.offset.is_empty() {
            let key = if params.scale.is_empty() { "scale" } else { "offset" };
            return Err(Fault::new(key, "[]", "at least one value, such as [0.5]"));
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
