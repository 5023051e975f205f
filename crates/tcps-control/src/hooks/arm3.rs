//! Inverse kinematics `arm3`: from a position of the wrist to the three joints of the built-in arm.
//!
//! Damped least squares with joint limits (Wampler 1986), warm from the angles before: in = x, y, z (m), more values
//! are left alone; out = 3 angles (rad).

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
};

use super::{beyond, emit};
use crate::{skeleton, vector::three};

/// More than any arm reaches, in m.
const MOST_M: f64 = 100.0;

params! {
    /// Parameters.
    pub struct Params {
        start_rad: [f64; 3] = Array(3, &Number), "[0.0, -0.33, 0.57]", ANY, "start of the search, in rad";
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct Arm3 {
    joints: [f64; 3],
}

impl Arm3 {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let params = Params::of(params)?;
        if params.start_rad != skeleton::within_limits(params.start_rad) {
            let allowed = format!("angles within {:?}", skeleton::LIMITS_RAD);
            return Err(Fault::new("start_rad", format!("{:?}", params.start_rad), allowed));
        }
        Ok(Self { joints: params.start_rad })
    }
}

impl Hook for Arm3 {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let Some(target) = three(input.x()).filter(|at| at.iter().all(|v| v.abs() < MOST_M)) else {
            return beyond("a position of 3 values below 100", input.x(), MOST_M);
        };
        self.joints = skeleton::solve(target, self.joints);
        emit(output, &self.joints)
    }
}
