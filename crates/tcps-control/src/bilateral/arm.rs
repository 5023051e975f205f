//! The operator: an arm that is drawn to where it wants to be, and the device in its hand.
//!
//! ```text
//! (m_device + m_arm) x'' = k (x_h - x) + b (x_h' - x') - F_l
//! ```
//! Defaults are in the lower range of the human arm (Tsuji et al. 1995: 1 to 2 kg, 5 to 40 N s/m, 100 to 600 N/m at the
//! hand; a wrist or finger has less), with the device of [model: wall tests].

use tcps_core::{param::Fault, params};

use super::Motion;

/// Longest step of the integration, in s.
const STEP_S: f64 = 1e-4;

params! {
    /// Parameters.
    #[derive(Copy)]
    pub struct ArmParams {
        device_kg: f64 = Number, "0.1", POSITIVE, "mass of the device, in kg";
        arm_kg: f64 = Number, "0.4", NOT_NEGATIVE, "mass of the arm, in kg";
        arm_n_s_m: f64 = Number, "5", NOT_NEGATIVE, "damping of the arm, in N s/m";
        arm_n_m: f64 = Number, "200", NOT_NEGATIVE, "stiffness of the arm, in N/m";
    }
}

impl ArmParams {
    /// Refuses what moves too fast for the integration.
    pub fn check(&self) -> Result<(), Fault> {
        let mass = self.device_kg + self.arm_kg;
        steady("arm_n_m", (self.arm_n_m / mass).sqrt().max(self.arm_n_s_m / mass))
    }
}

/// Refuses a system that moves too fast for the integration.
pub(super) fn steady(key: &str, fastest: f64) -> Result<(), Fault> {
    match fastest * STEP_S <= 0.5 {
        true => Ok(()),
        false => Err(Fault::new(
            key,
            format!("a rate of {fastest:.0} 1/s, too fast for the integration"),
            format!("gains for the mass that stay below {:.0} 1/s", 0.5 / STEP_S),
        )),
    }
}

/// Calls `advance` with steps that are short enough, over `t` seconds.
pub(super) fn stepped(t: f64, mut advance: impl FnMut(f64)) {
    let steps = libm::ceil(t / STEP_S - 1e-9).max(1.0);
    (0..steps as u32).for_each(|_| advance(t / steps));
}

/// Arm and device.
#[derive(Debug, Clone)]
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
