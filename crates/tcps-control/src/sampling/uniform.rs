//! Sampler `uniform`: every n-th sample by its number.

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
};

use super::verdict;

params! {
    /// Parameters.
    pub struct Params {
        every: u32 = Count, "2", 1.0..=4_294_967_295.0, "sends one sample in this many";
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct Uniform {
    every: u32,
}

impl Uniform {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let Params { every } = Params::of(params)?;
        Ok(Self { every })
    }
}

impl Hook for Uniform {
    fn call(&mut self, input: &HookIn, _output: &mut HookOut) -> Verdict {
        verdict(input.present != 0 && (input.tagged != 0 || input.index.is_multiple_of(self.every)))
    }
}
