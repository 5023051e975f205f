//! Kinematics `pi`: the controller of the step experiment (Polachan 2022: steps), at each sample of the flow that it is on.
//!
//! ```text
//! e = reference - h,   I += Ki T e,   k = Kp e + I        h = value `value` of the newest sample of the other direction
//! ```
//! It is driven by time: T is the time since the sample before. Until something has come back e is 0 and k is 1. Out: k.

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
    time::Time,
};

use super::{emit, too_few};
use crate::step::{Gains, Pi};

params! {
    /// Parameters.
    pub struct Params {
        kp: f64 = Number, "0.2", NOT_NEGATIVE, "proportional gain";
        ki_per_ms: f64 = Number, "0.09090909090909091", NOT_NEGATIVE, "integral gain, per ms";
        most: f64 = Number, "10", POSITIVE, "bound of the integral";
        reference: f64 = Number, "1", ANY, "setpoint of h, the quantity at the far side";
        value: usize = Count, "0", NOT_NEGATIVE, "which returned value is h";
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
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let p = Params::of(params)?;
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
                None => return too_few(&format!("value {} of the returned sample", self.value), back),
            },
        };
        let k = self.state.update(&self.gains, ms, error);
        emit(output, &[k])
    }
}
