//! Kinematics `compensator`: any linear controller of the step experiment, at each sample of the flow that it is on.
//!
//! ```text
//! e = reference - h,   k = 1 + C e        h = value `value` of the newest sample of the other direction
//! ```
//! C(s) is sampled by the bilinear rule (Tustin), with the time since the sample before; C(z) takes a step for each sample.
//! Until something has come back e is 0 and k is 1. Out: k.

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Named, Params as _},
    params,
    time::Time,
};

use super::{emit, too_few};
use crate::step::{plant, Controller};

params! {
    /// Parameters.
    pub struct Params {
        system: Option<Named> = Object, ABSENT, ANY, "the controller: a linear system as a plant of `docs/plants.md` is, such as `{ kind = \"transfer-function\", num = [0.2, 10], den = [1, 0] }`, or a class of your own; default `\"static\"`, which is C = 1";
        reference: f64 = Number, "1", ANY, "setpoint of h, the quantity at the far side";
        value: usize = Count, "0", NOT_NEGATIVE, "which returned value is h";
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct Compensator {
    controller: Controller,
    reference: f64,
    value: usize,
    last: Option<Time>,
}

impl Compensator {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let p = Params::of(params)?;
        let named = p.system.unwrap_or_else(|| Named::new("static", Value::Null));
        let system = plant::build(&named).map_err(|fault| fault.within("system"))?;
        Ok(Self {
            controller: Controller::linear(system),
            reference: p.reference,
            value: p.value,
            last: None,
        })
    }
}

impl Hook for Compensator {
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
        emit(output, &[self.controller.update(ms, error)])
    }
}
