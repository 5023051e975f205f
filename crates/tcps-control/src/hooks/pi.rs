//! Kinematics `pi`: the controller of the step experiment (Polachan 2022: steps), at each sample of the flow that it is on.
//!
//! ```text
//! e = reference - h,   I += Ki T e,   k = Kp e + I        h = value `value` of the newest sample of the other direction
//! ```
//! It is driven by time: T is the time since the sample before. Until something has come back e is 0 and k is 1. Out: k.

use serde::Deserialize;
use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    time::Time,
};

use super::{emit, too_few};
use crate::{
    params::{not_negative, parse, positive},
    step::{Gains, Pi},
};

/// Parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Proportional gain.
    pub kp: f64,
    /// Integral gain, per ms.
    pub ki_per_ms: f64,
    /// Bound of the integral.
    pub most: f64,
    /// What h is to be.
    pub reference: f64,
    /// Which value of the sample that comes back is h.
    pub value: usize,
}

impl Default for Params {
    fn default() -> Self {
        let Gains { kp, ki_per_ms, most } = Gains::default();
        Self { kp, ki_per_ms, most, reference: 1.0, value: 0 }
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct PiHook {
    gains: Gains,
    reference: f64,
    value: usize,
    state: Pi,
    last: Option<Time>,
}

impl PiHook {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, String> {
        let p: Params = parse(params)?;
        not_negative("kp", p.kp)?;
        not_negative("ki_per_ms", p.ki_per_ms)?;
        positive("most", p.most)?;
        if !p.reference.is_finite() {
            return Err(format!("reference = {}: it must be finite", p.reference));
        }
        let gains = Gains { kp: p.kp, ki_per_ms: p.ki_per_ms, most: p.most };
        Ok(Self { gains, reference: p.reference, value: p.value, state: Pi::default(), last: None })
    }
}

impl Hook for PiHook {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let last = self.last.replace(input.now_ns).unwrap_or(input.now_ns);
        let ms = input.now_ns.saturating_sub(last).max(0) as f64 * 1e-6;
        let error = match input.other() {
            [] => 0.0,
            back => match back.get(self.value).filter(|h| h.is_finite()) {
                Some(h) => self.reference - h,
                None => return too_few(&format!("value {} of what comes back", self.value), back),
            },
        };
        let k = self.state.update(&self.gains, ms, error);
        emit(output, &[k])
    }
}
