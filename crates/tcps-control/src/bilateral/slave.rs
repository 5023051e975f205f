//! The slave: a mass before a wall, or two masses with a joint between them of which the second meets the wall.
//!
//! ```text
//! one    m x'' = F_s - F_e                         F_e = k_e (x - wall) beyond the wall
//! two    m x'' = F_s - J       m_2 y'' = J - F_e   J = k_j (x - y) + b_j (x' - y')      F_e of y
//! ```

use tcps_core::{param::Fault, params};

use super::{
    arm::{steady, stepped},
    Coupling, Motion,
};

// [model: wall tests] wall of 500 N/m, mass 0.1 kg
params! {
    /// Parameters.
    #[derive(Copy)]
    pub struct SlaveParams {
        mass_kg: f64 = Number, "0.1", POSITIVE, "mass, in kg";
        kp_n_m: f64 = Number, "500", NOT_NEGATIVE, "stiffness towards the target position, in N/m";
        kd_n_s_m: f64 = Number, "10", NOT_NEGATIVE, "damping towards the target velocity, in N s/m";
        wall_m: f64 = Number, "0.02", ANY, "start of the wall, in m";
        stiffness_n_m: f64 = Number, "500", NOT_NEGATIVE, "stiffness of the wall, in N/m";
        second_kg: f64 = Number, "0", NOT_NEGATIVE, "second mass, in kg; 0: none";
        joint_n_m: f64 = Number, "2000", NOT_NEGATIVE, "stiffness of the joint between the masses, in N/m";
        joint_n_s_m: f64 = Number, "2", NOT_NEGATIVE, "damping of the joint, in N s/m";
    }
}

impl SlaveParams {
    /// Refuses what moves too fast for the integration.
    pub fn check(&self) -> Result<(), Fault> {
        let lightest = if self.second_kg > 0.0 { self.mass_kg.min(self.second_kg) } else { self.mass_kg };
        let spring = self.kp_n_m + self.stiffness_n_m + self.joint_n_m;
        steady("stiffness_n_m", (spring / lightest).sqrt().max((self.kd_n_s_m + self.joint_n_s_m) / lightest))
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
