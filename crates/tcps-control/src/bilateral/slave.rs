//! The slave: a mass before a wall, or two masses with a joint between them of which the second meets the wall.
//!
//! ```text
//! one    m x'' = F_s - F_e                         F_e = k_e (x - wall) beyond the wall
//! two    m x'' = F_s - J       m_2 y'' = J - F_e   J = k_j (x - y) + b_j (x' - y')      F_e of y
//! ```

use serde::Deserialize;

use super::{
    arm::{steady, stepped},
    Coupling, Motion,
};
use crate::params::{not_negative, positive};

/// Parameters.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SlaveParams {
    /// Mass, in kg.
    pub mass_kg: f64,
    /// Stiffness towards where it is to be, in N/m.
    pub kp_n_m: f64,
    /// Damping towards the velocity wanted, in N s/m.
    pub kd_n_s_m: f64,
    /// Where the wall begins, in m.
    pub wall_m: f64,
    /// Stiffness of the wall, in N/m.
    pub stiffness_n_m: f64,
    /// Second mass, in kg; 0: there is none.
    pub second_kg: f64,
    /// Stiffness of the joint between the masses, in N/m.
    pub joint_n_m: f64,
    /// Damping of the joint, in N s/m.
    pub joint_n_s_m: f64,
}

// [model: wall tests] wall of 500 N/m, mass 0.1 kg
impl Default for SlaveParams {
    fn default() -> Self {
        Self {
            mass_kg: 0.1,
            kp_n_m: 500.0,
            kd_n_s_m: 10.0,
            wall_m: 0.02,
            stiffness_n_m: 500.0,
            second_kg: 0.0,
            joint_n_m: 2000.0,
            joint_n_s_m: 2.0,
        }
    }
}

impl SlaveParams {
    /// Refuses what makes no sense or moves too fast for the integration.
    pub fn check(&self) -> Result<(), String> {
        positive("mass_kg", self.mass_kg)?;
        for (key, value) in [
            ("kp_n_m", self.kp_n_m),
            ("kd_n_s_m", self.kd_n_s_m),
            ("stiffness_n_m", self.stiffness_n_m),
            ("second_kg", self.second_kg),
            ("joint_n_m", self.joint_n_m),
            ("joint_n_s_m", self.joint_n_s_m),
        ] {
            not_negative(key, value)?;
        }
        if !self.wall_m.is_finite() {
            return Err(format!("wall_m = {}: it must be finite", self.wall_m));
        }
        let lightest = if self.second_kg > 0.0 { self.mass_kg.min(self.second_kg) } else { self.mass_kg };
        let spring = self.kp_n_m + self.stiffness_n_m + self.joint_n_m;
        steady("the slave", (spring / lightest).sqrt().max((self.kd_n_s_m + self.joint_n_s_m) / lightest))
    }

    /// Gains of the local controller.
    pub fn coupling(&self) -> Coupling {
        Coupling { kp: self.kp_n_m, kd: self.kd_n_s_m }
    }
}

/// The slave.
#[derive(Debug, Clone)]
pub struct Slave {
    params: SlaveParams,
    /// Where the driven mass is.
    pub at: Motion,
    second: Motion,
}

impl Slave {
    /// At rest at 0.
    pub fn new(params: SlaveParams) -> Self {
        Self { params, at: Motion::default(), second: Motion::default() }
    }

    /// Force of the wall, in N.
    pub fn contact_n(&self) -> f64 {
        let tip = if self.params.second_kg > 0.0 { self.second } else { self.at };
        self.params.stiffness_n_m * (tip.x - self.params.wall_m).max(0.0)
    }

    /// Moves on for `t` seconds under a force. Semi-implicit Euler.
    pub fn advance(&mut self, t: f64, force: f64) {
        let p = self.params;
        stepped(t, |dt| {
            let contact = self.contact_n();
            if p.second_kg > 0.0 {
                let joint =
                    p.joint_n_m * (self.at.x - self.second.x) + p.joint_n_s_m * (self.at.v - self.second.v);
                self.at.v += (force - joint) / p.mass_kg * dt;
                self.second.v += (joint - contact) / p.second_kg * dt;
                self.second.x += self.second.v * dt;
            } else {
                self.at.v += (force - contact) / p.mass_kg * dt;
            }
            self.at.x += self.at.v * dt;
        });
    }
}
