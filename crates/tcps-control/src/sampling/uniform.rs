//! Sampler `uniform`: every n-th sample by its number.

use serde::Deserialize;
use serde_json::Value;
use tcps_core::hook::{Hook, HookIn, HookOut, Verdict};

use super::verdict;
use crate::params::parse;

/// Parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// One sample in so many goes.
    pub every: u32,
}

impl Default for Params {
    fn default() -> Self {
        Self { every: 2 }
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct Uniform {
    every: u32,
}

impl Uniform {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, String> {
        let Params { every } = parse(params)?;
        if every == 0 {
            return Err("every = 0: 1 or more".to_owned());
        }
        Ok(Self { every })
    }
}

impl Hook for Uniform {
    fn call(&mut self, input: &HookIn, _output: &mut HookOut) -> Verdict {
        verdict(input.present != 0 && (input.tagged != 0 || input.index.is_multiple_of(self.every)))
    }
}
