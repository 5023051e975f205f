//! Robot `wall_mass`: a mass on a rail that follows a commanded position through a spring and a damper and meets a wall.
//!
//! ```text
//! m x'' = Kp (x_d - x) + Kd (x_d' - x') - F_e         F_e = k_e (x - wall) beyond the wall, else 0
//! command  x_d (m), x_d' (m/s, 0 if absent)           sense  F_e (N), x (m), x' (m/s)
//! ```
//! The follower of the position-force scheme on one axis (model: position-force), with the wall of [model: wall tests].

use serde_json::Value;
use tcps_core::{
    param::{Fault, Params as _},
    params,
    robot::Robot,
    time::Time,
};

/// Longest step of the integration and longest gap that it bridges, in s.
const STEP_S: f64 = 1e-4;
const LONGEST_GAP_S: f64 = 0.1;
const ARRIVED_M: f64 = 0.001;

params! {
    /// Parameters.
    pub struct Params {
        mass_kg: f64 = Number, "0.1", POSITIVE, "mass, in kg";
        kp_n_m: f64 = Number, "500", NOT_NEGATIVE, "stiffness towards the command, in N/m";
        kd_n_s_m: f64 = Number, "10", NOT_NEGATIVE, "damping towards the command's velocity, in N s/m";
        wall_m: f64 = Number, "0.02", ANY, "start of the wall, in m";
        stiffness_n_m: f64 = Number, "500", NOT_NEGATIVE, "stiffness of the wall, in N/m";
    }
}

/// The robot.
#[derive(Debug, Clone)]
pub struct WallMass {
    params: Params,
    goal: [f64; 2],
    x: f64,
    v: f64,
    last: Option<Time>,
}

impl WallMass {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let p = Params::of(params)?;
        let fastest = ((p.kp_n_m + p.stiffness_n_m) / p.mass_kg).sqrt().max(p.kd_n_s_m / p.mass_kg);
        if fastest * STEP_S > 0.5 {
            return Err(Fault::new(
                "stiffness_n_m",
                format!("a rate of {fastest:.0} 1/s, too fast for the integration"),
                format!("gains for the mass that stay below {:.0} 1/s", 0.5 / STEP_S),
            ));
        }
        Ok(Self { params: p, goal: [0.0; 2], x: 0.0, v: 0.0, last: None })
    }

    fn contact_n(&self) -> f64 {
        self.params.stiffness_n_m * (self.x - self.params.wall_m).max(0.0)
    }

    // [model: position-force], [model: wall tests]
    /// Semi-implicit Euler.
    fn advance(&mut self, dt: f64) {
        let [x_d, v_d] = self.goal;
        let drive = self.params.kp_n_m * (x_d - self.x) + self.params.kd_n_s_m * (v_d - self.v);
        self.v += (drive - self.contact_n()) / self.params.mass_kg * dt;
        self.x += self.v * dt;
    }
}

impl Robot for WallMass {
    fn step(&mut self, now: Time, command: &[f64], sense: &mut [f64]) -> usize {
        if let Some(&x_d) = command.first().filter(|v| v.is_finite()) {
            self.goal = [x_d, command.get(1).copied().filter(|v| v.is_finite()).unwrap_or(0.0)];
        }
        let last = self.last.replace(now).unwrap_or(now);
        let gap = (now.saturating_sub(last) as f64 * 1e-9).clamp(0.0, LONGEST_GAP_S);
        let steps = libm::ceil(gap / STEP_S).max(1.0);
        for _ in 0..steps as u32 {
            self.advance(gap / steps);
        }
        let n = sense.len().min(3);
        sense[..n].copy_from_slice(&[self.contact_n(), self.x, self.v][..n]);
        n
    }

    fn arrived(&mut self) -> bool {
        (self.goal[0] - self.x).abs() <= ARRIVED_M
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::MS;

    fn settle(command: f64, ms: i64) -> [f64; 3] {
        let mut mass = WallMass::new(&Value::Null).unwrap();
        let mut sense = [0.0; 3];
        for t in 0..ms {
            mass.step(t * MS, &[command], &mut sense);
        }
        sense
    }

    /// [model: position-force], [model: wall tests] Two springs in series: 20 mm into a wall as stiff as the drive goes 10 mm deep at 5 N.
    #[test]
    fn drive_and_wall_share_the_way_by_their_stiffness() {
        let [force, x, v] = settle(0.04, 2_000);
        assert!(
            (x - 0.03).abs() < 1e-6 && (force - 5.0).abs() < 1e-3 && v.abs() < 1e-6,
            "{force} N at {x} m"
        );
    }

    #[test]
    fn in_free_space_it_arrives_and_feels_nothing() {
        let [force, x, _] = settle(0.01, 2_000);
        assert!((x - 0.01).abs() < 1e-9 && force == 0.0);
    }

    #[test]
    fn it_has_arrived_within_a_millimetre_of_the_command_and_never_where_the_wall_holds_it() {
        for (command, ends) in [(0.01, true), (-0.01, true), (0.04, false)] {
            let mut mass = WallMass::new(&Value::Null).unwrap();
            let mut arrived = |t: i64| {
                mass.step(t * MS, &[command], &mut [0.0; 3]);
                mass.arrived()
            };
            let at: Vec<_> = (0..2_000).map(&mut arrived).collect();
            assert_eq!((at[0], at[1_999]), (false, ends), "{command} m");
        }
    }
}
