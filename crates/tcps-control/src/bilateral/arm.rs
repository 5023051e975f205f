//! The operator: an arm that is drawn to where it wants to be, and the device in its hand.
//!
//! ```text
//! (m_device + m_arm) x'' = k (x_h - x) + b (x_h' - x') - F_l
//! ```
//! Defaults are in the lower range of the human arm (Tsuji et al. 1995: 1 to 2 kg, 5 to 40 N s/m, 100 to 600 N/m at the
//! hand; a wrist or finger has less), with the device of [model: wall tests].

use serde::Deserialize;

use super::Motion;
use crate::params::{not_negative, positive};

/// Longest step of the integration, in s.
const STEP_S: f64 = 1e-4;

/// Parameters.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ArmParams {
    /// Mass of the device, in kg.
    pub device_kg: f64,
    /// Mass of the arm, in kg.
    pub arm_kg: f64,
    /// Damping of the arm, in N s/m.
    pub arm_n_s_m: f64,
    /// Stiffness of the arm, in N/m.
    pub arm_n_m: f64,
}

impl Default for ArmParams {
    fn default() -> Self {
        Self { device_kg: 0.1, arm_kg: 0.4, arm_n_s_m: 5.0, arm_n_m: 200.0 }
    }
}

impl ArmParams {
    /// Refuses what makes no sense or moves too fast for the integration.
    pub fn check(&self) -> Result<(), String> {
        positive("device_kg", self.device_kg)?;
        not_negative("arm_kg", self.arm_kg)?;
        not_negative("arm_n_s_m", self.arm_n_s_m)?;
        not_negative("arm_n_m", self.arm_n_m)?;
        let mass = self.device_kg + self.arm_kg;
        steady("the arm", (self.arm_n_m / mass).sqrt().max(self.arm_n_s_m / mass))
    }
}

/// Refuses a system that moves too fast for the integration.
pub(super) fn steady(what: &str, fastest: f64) -> Result<(), String> {
    match fastest * STEP_S <= 0.5 {
        true => Ok(()),
        false => Err(format!("{what} moves at {fastest:.0} 1/s: at most {:.0}", 0.5 / STEP_S)),
    }
}

/// Calls `advance` with steps that are short enough, over `t` seconds.
pub(super) fn stepped(t: f64, mut advance: impl FnMut(f64)) {
    let steps = libm::ceil(t / STEP_S - 1e-9).max(1.0);
    (0..steps as u32).for_each(|_| advance(t / steps));
}

/// Arm and device.
#[derive(Debug, Clone, Default)]
pub struct Arm {
    params: ArmParams,
    /// Where the device is.
    pub at: Motion,
}

impl Arm {
    /// At rest at 0.
    pub fn new(params: ArmParams) -> Self {
        Self { params, at: Motion::default() }
    }

    /// Moves on for `t` seconds under the force of the device, with the hand drawn to `wanted`. Semi-implicit Euler.
    pub fn advance(&mut self, t: f64, wanted: Motion, force: f64) {
        let p = self.params;
        stepped(t, |dt| {
            let pull = p.arm_n_m * (wanted.x - self.at.x) + p.arm_n_s_m * (wanted.v - self.at.v);
            self.at.v += (pull - force) / (p.device_kg + p.arm_kg) * dt;
            self.at.x += self.at.v * dt;
        });
    }
}
