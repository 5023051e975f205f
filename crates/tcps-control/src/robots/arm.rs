//! Robot `arm`: three servo joints, their limits, and a compliant wall in front.
//!
//! ```text
//! joint    q' = (q_command - q) / lag, never faster than the servo turns; exact over a tick
//! wall     the half space n.p > distance:  force on the tip = -n (stiffness depth + damping depth'), never pulling
//! sense    fx, fy, fz (N), x, y, z (m), in contact (0 or 1)
//! ```
//! The servos are stiff against the wall: the force is felt, it does not move the arm. The speed is that of an AX-12
//! without load. The lag lets the arm go 1 cm forth and back, to 1 mm each, in the published 110 ms
//! (Polachan 2022; Polachan 2022: echoes).

use serde::Deserialize;
use serde_json::Value;
use tcps_core::{
    param::{Fault, Params as _},
    params,
    robot::Robot,
    time::Time,
};

use crate::{
    skeleton,
    vector::{dot, norm, scale, sub, three, V3},
};

/// How near the tip must be to where it was sent, in m.
const ARRIVED_M: f64 = 0.001;
/// Values sensed.
const SENSES: usize = 7;

params! {
    /// Parameters.
    pub struct Params {
        command: Command = Choice(&["joints", "position"]), "joints", ANY, "what a command gives: angles of the joints, or a position";
        start_rad: [f64; 3] = Array(3, &Number), "[0.0, -0.33, 0.57]", ANY, "angles at the start, in rad";
        // [Polachan 2022]
        lag_s: f64 = Number, "0.024", POSITIVE, "lag of a servo, in s";
        speed_rad_s: f64 = Number, "4.573", POSITIVE, "highest speed of a servo, in rad/s";
        wall_m: f64 = Number, "0.32", ANY, "distance of the wall from the foot of the arm, along `wall_direction`, in m";
        wall_direction: [f64; 3] = Array(3, &Number), "[1, 0, 0]", ANY, "direction into the wall";
        stiffness_n_m: f64 = Number, "150", NOT_NEGATIVE, "stiffness of the wall, in N/m";
        damping_n_s_m: f64 = Number, "2", NOT_NEGATIVE, "damping of the wall, in N s/m";
    }
}

/// What a command is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Three angles in rad.
    #[default]
    Joints,
    /// A position of the tip in m.
    Position,
}

/// The robot.
#[derive(Debug, Clone)]
pub struct Arm {
    params: Params,
    into_wall: V3,
    joints: V3,
    /// Where the joints were sent, within their limits.
    goal: V3,
    tip: V3,
    force: V3,
    last: Option<Time>,
}

impl Arm {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let params = Params::of(params)?;
        if params.start_rad != skeleton::within_limits(params.start_rad) {
            let allowed = format!("angles within {:?}", skeleton::LIMITS_RAD);
            return Err(Fault::new("start_rad", format!("{:?}", params.start_rad), allowed));
        }
        if norm(params.wall_direction) <= 0.0 {
            return Err(Fault::new("wall_direction", "[0, 0, 0]", "a direction, such as [1, 0, 0]"));
        }
        let into_wall = scale(params.wall_direction, 1.0 / norm(params.wall_direction));
        let joints = params.start_rad;
        Ok(Self {
            into_wall,
            joints,
            goal: joints,
            tip: skeleton::tip(joints),
            force: [0.0; 3],
            last: None,
            params,
        })
    }

    /// Takes a command; one that is short or not finite changes nothing.
    fn command(&mut self, command: &[f64]) {
        let Some(wanted) = three(command) else { return };
        self.goal = match self.params.command {
            Command::Joints => skeleton::within_limits(wanted),
            Command::Position => skeleton::solve(wanted, self.goal),
        };
    }

    fn turn(&mut self, dt: f64) {
        let part = 1.0 - libm::exp(-dt / self.params.lag_s);
        let most = self.params.speed_rad_s * dt;
        self.joints = std::array::from_fn(|i| {
            self.joints[i] + ((self.goal[i] - self.joints[i]) * part).clamp(-most, most)
        });
    }

    /// The force of the wall on the tip, which came from `before` in `dt` seconds.
    fn touch(&mut self, before: V3, dt: f64) {
        let depth = dot(self.tip, self.into_wall) - self.params.wall_m;
        let speed = if dt > 0.0 { dot(sub(self.tip, before), self.into_wall) / dt } else { 0.0 };
        let push = if depth > 0.0 {
            (self.params.stiffness_n_m * depth + self.params.damping_n_s_m * speed).max(0.0)
        } else {
            0.0
        };
        self.force = scale(self.into_wall, -push);
    }
}

impl Robot for Arm {
    fn step(&mut self, now: Time, command: &[f64], sense: &mut [f64]) -> usize {
        let dt = self.last.map_or(0.0, |last| now.saturating_sub(last).max(0) as f64 * 1e-9);
        self.last = Some(now);
        self.command(command);
        self.turn(dt);
        let before = self.tip;
        self.tip = skeleton::tip(self.joints);
        self.touch(before, dt);
        let contact = dot(self.tip, self.into_wall) > self.params.wall_m;
        let ([fx, fy, fz], [x, y, z]) = (self.force, self.tip);
        let n = SENSES.min(sense.len());
        sense[..n].copy_from_slice(&[fx, fy, fz, x, y, z, f64::from(u8::from(contact))][..n]);
        n
    }

    fn arrived(&mut self) -> bool {
        norm(sub(self.tip, skeleton::tip(self.goal))) <= ARRIVED_M
    }
}
