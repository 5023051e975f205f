//! Sampler `network_deadband`: the Weber rule with a share that grows as the transport merges more samples into a
//! packet, that is, with congestion (after Gokhale 2016, "opportunistic adaptive haptic sampling").
//!
//! ```text
//! δ = deltas[k - 1],  k samples to a packet;  5, 8, 12, 20 % for k = 1 … 4, and the last for more
//! ```
//! On a transport that never merges k stays 1.

use serde::Deserialize;
use serde_json::Value;
use tcps_core::hook::{Hook, HookIn, HookOut, Verdict};

use super::{share, verdict, weber::Weber};
use crate::params::parse;

/// Parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The least perceptible change for 1, 2 … samples to a packet.
    pub deltas: Vec<f64>,
}

// [Gokhale 2016]
impl Default for Params {
    fn default() -> Self {
        Self { deltas: vec![0.05, 0.08, 0.12, 0.20] }
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct NetworkDeadband {
    deltas: Vec<f64>,
    weber: Weber,
}

impl NetworkDeadband {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, String> {
        let Params { deltas } = parse(params)?;
        if deltas.is_empty() {
            return Err("deltas = []: one or more shares".to_owned());
        }
        deltas.iter().try_for_each(|&delta| share("deltas", delta))?;
        Ok(Self { deltas, weber: Weber::default() })
    }
}

// [Gokhale 2016] δ raised with congestion, by k
impl Hook for NetworkDeadband {
    fn call(&mut self, input: &HookIn, _output: &mut HookOut) -> Verdict {
        let k = usize::from(input.merging).clamp(1, self.deltas.len());
        verdict(input.present != 0 && self.weber.goes(input, self.deltas[k - 1]))
    }
}
