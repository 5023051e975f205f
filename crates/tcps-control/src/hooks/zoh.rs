//! Predictor `zoh`: the last sample holds (the edge predictor of Polachan 2022).

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::Fault,
};

use super::emit;

/// The hook.
#[derive(Debug, Clone, Default)]
pub struct Zoh {
    last: Option<Vec<f64>>,
}

impl Zoh {
    /// Takes no parameters.
    pub fn new(_: &Value) -> Result<Self, Fault> {
        Ok(Self::default())
    }
}

// [Polachan 2022], zero-order hold: x(t + h) = x(t)
impl Hook for Zoh {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present != 0 {
            let last = self.last.get_or_insert_with(Vec::new);
            last.clear();
            last.extend_from_slice(input.x());
        }
        match &self.last {
            Some(last) => emit(output, last),
            None => Verdict::Nothing,
        }
    }
}
