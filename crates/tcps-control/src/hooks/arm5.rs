//! Inverse kinematics `arm5`: from a pose of the tool to the five joints of the robot `mujoco-arm`; and `arm5_pose` back.
//!
//! ```text
//! arm5        x, y, z (m), pitch, roll (rad), rest  ->  5 angles (rad), rest        short samples keep pitch and roll
//! arm5_pose   5 angles (rad), rest                  ->  x, y, z (m), pitch, roll (rad), rest
//! ```
//! Damped least squares with joint limits (Wampler 1986), warm from the angles before; no joint turns faster than
//! `speed_rad_s`. What follows the pose (the opening of the gripper) goes through.

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
    time::Time,
};

use super::{beyond, emit, too_few};
use crate::{
    chain::{self, Pose, JOINTS, Q},
    vector::three,
};

/// A longer gap between samples lets the joints turn as far as in this time, in s.
const LONGEST_GAP_S: f64 = 0.1;
/// More than any arm reaches (m) and any tool turns (rad).
const MOST: f64 = 100.0;
/// Most values that go through behind the pose.
const REST: usize = 16;

params! {
    /// Parameters of the inverse.
    pub struct Params {
        start_rad: Q = Array(5, &Number), "[0.0, 0.207, -0.305, 1.669, 0.0]", ANY, "start of the search, in rad";
        pitch_rad: f64 = Number, "1.5707963267948966", ANY, "pitch of the tool for samples without one, in rad below the horizontal";
        speed_rad_s: f64 = Number, "4.573", POSITIVE, "highest speed of a joint, in rad/s";
    }
}

/// The inverse.
#[derive(Debug, Clone)]
pub struct Arm5 {
    params: Params,
    /// What was found last, without the limit of the speed.
    found: Q,
    joints: Q,
    last_ns: Option<Time>,
}

impl Arm5 {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let params = Params::of(params)?;
        if params.start_rad != chain::within_limits(params.start_rad) {
            let allowed = format!("angles within {:?}", chain::LIMITS_RAD);
            return Err(Fault::new("start_rad", format!("{:?}", params.start_rad), allowed));
        }
        let start = params.start_rad;
        Ok(Self { params, found: start, joints: start, last_ns: None })
    }

    /// The joints on their way to what was found, no faster than they may turn.
    fn follow(&mut self, now: Time) {
        let gap_s = self.last_ns.map_or(0.0, |last| now.saturating_sub(last) as f64 * 1e-9);
        self.last_ns = Some(self.last_ns.map_or(now, |last| last.max(now)));
        let most = self.params.speed_rad_s * gap_s.clamp(0.0, LONGEST_GAP_S);
        for (joint, found) in self.joints.iter_mut().zip(self.found) {
            *joint += (found - *joint).clamp(-most, most);
        }
    }
}

impl Hook for Arm5 {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let x = input.x();
        let sane = x.iter().take(JOINTS).all(|v| v.abs() < MOST) && x.iter().all(|v| v.is_finite());
        let (Some(at), true) = (three(x), sane) else {
            return beyond("a pose of 3 to 5 values below 100", x, MOST);
        };
        let pitch = x.get(3).copied().unwrap_or(self.params.pitch_rad);
        let roll = x.get(4).copied().unwrap_or(self.params.start_rad[4]);
        self.found = chain::solve(Pose { at, pitch, roll }, self.found);
        self.follow(input.now_ns);
        with_rest(&self.joints, x, output)
    }
}

/// From angles to the pose.
#[derive(Debug, Clone)]
pub struct Arm5Pose;

/// Larger angles than any joint has turned: sines of much larger ones are no numbers.
const MOST_RAD: f64 = 1e6;

impl Arm5Pose {
    /// Takes no parameters.
    pub fn new(_: &Value) -> Result<Self, Fault> {
        Ok(Self)
    }
}

impl Hook for Arm5Pose {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let x = input.x();
        let (Some(q), true) = (x.first_chunk::<JOINTS>(), x.iter().all(|v| v.is_finite())) else {
            return too_few("5 angles", x);
        };
        if q.iter().any(|angle| angle.abs() > MOST_RAD) {
            return Verdict::Failed(format!("found angles {q:?}; allowed: up to {MOST_RAD:e} rad"));
        }
        let Pose { at: [px, py, pz], pitch, roll } = chain::pose(*q);
        with_rest(&[px, py, pz, pitch, roll], x, output)
    }
}

/// Gives five values out, and behind them what followed the first five of `x`.
fn with_rest(values: &[f64; JOINTS], x: &[f64], output: &mut HookOut) -> Verdict {
    let mut all = [0.0; JOINTS + REST];
    all[..JOINTS].copy_from_slice(values);
    let rest = x.get(JOINTS..).unwrap_or(&[]);
    let n = rest.len().min(REST);
    all[JOINTS..JOINTS + n].copy_from_slice(&rest[..n]);
    emit(output, &all[..JOINTS + n])
}
