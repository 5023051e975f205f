//! Sampler `network_deadband`: the Weber rule with a share that grows as the transport merges more samples into a
//! packet, that is, with congestion (after Gokhale 2016, "opportunistic adaptive haptic sampling").
//!
//! ```text
//! δ = deltas[k - 1],  k samples to a packet;  5, 8, 12, 20 % for k = 1 … 4, and the last for more
//! ```
//! On a transport that never merges k stays 1.

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
};

use super::{verdict, weber::Weber, SHARES};

// [Gokhale 2016]
params! {
    /// Parameters.
    pub struct Params {
        deltas: Vec<f64> = List(&Number), "[0.05, 0.08, 0.12, 0.20]", SHARES, "just noticeable difference for 1, 2 … samples per packet";
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
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let Params { deltas } = Params::of(params)?;
        if deltas.is_empty() {
            return Err(Fault::new("deltas", "[]", "one or more shares, such as [0.05, 0.1]"));
        }
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
