//! Inverse kinematics `arm3`: from a position of the wrist to the three joints of the built-in arm.
//!
//! Damped least squares with joint limits (Wampler 1986), warm from the angles before: in = x, y, z (m), more values
//! are left alone; out = 3 angles (rad).

use serde::Deserialize;
use serde_json::Value;
use tcps_core::hook::{Hook, HookIn, HookOut, Verdict};

use super::{emit, too_few};
use crate::{params::parse, skeleton, vector::three};

/// More than any arm reaches, in m.
const MOST_M: f64 = 100.0;

/// Parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Angles to look from at first, in rad.
    pub start_rad: [f64; 3],
}

impl Default for Params {
    fn default() -> Self {
        Self { start_rad: skeleton::START_RAD }
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct Arm3 {
    joints: [f64; 3],
}

impl Arm3 {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, String> {
        let params: Params = parse(params)?;
        if params.start_rad != skeleton::within_limits(params.start_rad) {
            return Err(format!("start_rad: beyond the limits {:?}", skeleton::LIMITS_RAD));
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
            return too_few("a position of 3 values below 100", input.x());
        };
        self.joints = skeleton::solve(target, self.joints);
        emit(output, &self.joints)
    }
}
