//! Kinematics `glove`: inertial sensors on upper arm and forearm and flex sensors on thumb and finger, to the wrist and
//! to the opening of the fingertips.
//!
//! ```text
//! in    upper arm: rates x, y, z (rad/s), specific force x, y, z (m/s²); forearm: the same six; bends of thumb and finger (0 to 1)
//! out   x, y, z (m), pitch, roll (rad) of the tool, opening of the gripper (m)
//!
//! R_u, R_f  orientation of each sensor by a complementary filter           (orientation.rs, Mahony 2008)
//! wrist     R_u l_u + R_f l_f                                              a chain of links: nothing is integrated twice
//! tips      each link of a finger turns by its share of the bend; opening = distance of the two tips
//! robot     centre + gain (wrist - wrist at the start), within reach; the roll is that of the forearm
//! ```
//! At the first sample the upper arm hangs down and the forearm points to the front. Gravity corrects the tilt; the
//! heading is what the rates say, so that their bias shows in it.

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
    time::Time,
};

use super::{emit, too_few};
use crate::{
    orientation::Orientation,
    vector::{add, norm, scale, sub, three, V3},
};

/// A longer gap between samples is bridged as if it were this long, in s.
const LONGEST_STEP_S: f64 = 0.05;
/// The heading has nothing to be corrected by: its leak takes for ever.
const NO_LEAK_S: f64 = 1e12;
/// Links of a finger (m) and how far each joint turns at full bend (rad).
const FINGER_M: [f64; 3] = [0.045, 0.025, 0.02];
const FINGER_RAD: [f64; 3] = [0.5, 0.6, 0.4];
const THUMB_M: [f64; 2] = [0.031, 0.025];
const THUMB_RAD: [f64; 2] = [0.1, 0.3];
/// The root of the thumb below that of the finger, in m, and its angle when straight, in rad.
const APART_M: f64 = 0.05;
const SPREAD_RAD: f64 = 0.5;
/// Values of a sensor.
const SIX: usize = 6;
/// More than any sensor of hands shows: rad/s, m/s².
const MOST_RATE: f64 = 100.0;
const MOST_FORCE: f64 = 1_000.0;

params! {
    /// Parameters.
    pub struct Params {
        upper_arm_m: f64 = Number, "0.3", POSITIVE, "length of the upper arm, in m";
        forearm_m: f64 = Number, "0.25", POSITIVE, "length of the forearm, in m";
        tilt_gain: f64 = Number, "0.5", NOT_NEGATIVE, "gain of the complementary filters, in 1/s";
        centre_m: V3 = Array(3, &Number), "[0.22, 0, 0.09]", ANY, "position of the robot's tool for the wrist's start, in m";
        reach_m: V3 = Array(3, &Number), "[0.1, 0.22, 0.075]", NOT_NEGATIVE, "reach of the tool from there, in m";
        gain: f64 = Number, "1", POSITIVE, "travel of the tool per travel of the wrist";
        pitch_rad: f64 = Number, "1.5707963267948966", ANY, "pitch of the tool, in rad";
        open_m: f64 = Number, "0.032", POSITIVE, "opening of the gripper for open fingers, in m";
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct Glove {
    params: Params,
    arm: Option<Arm>,
}

impl Glove {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let p = Params::of(params)?;
        Ok(Self { params: p, arm: None })
    }

    /// The opening of the gripper for two bends.
    fn opening(&self, thumb: f64, finger: f64) -> f64 {
        self.params.open_m * (aperture(thumb, finger) / aperture(0.0, 0.0)).clamp(0.0, 1.0)
    }
}

impl Hook for Glove {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let Some((sensors, bends)) = measured(input.x()) else {
            return too_few("two inertial sensors and two bends (14 values)", input.x());
        };
        let p = &self.params;
        let arm = self.arm.get_or_insert_with(|| Arm::new(p, input.origin_ns, &sensors));
        arm.update(input.origin_ns, &sensors);
        let (way, roll) = (scale(sub(arm.wrist(), arm.start), p.gain), arm.roll());
        let [x, y, z]: V3 =
            std::array::from_fn(|i| p.centre_m[i] + way[i].clamp(-p.reach_m[i], p.reach_m[i]));
        emit(output, &[x, y, z, p.pitch_rad, roll, self.opening(bends[0], bends[1])])
    }
}

/// Rates and force of both sensors, and the bends, if they are there.
fn measured(x: &[f64]) -> Option<([[V3; 2]; 2], [f64; 2])> {
    let sensor = |at: usize| {
        let (rate, force) = (three(x.get(at..)?)?, three(x.get(at + 3..)?)?);
        (norm(rate) < MOST_RATE && norm(force) < MOST_FORCE).then_some([rate, force])
    };
    let bends: &[f64; 2] = x.get(2 * SIX..)?.first_chunk()?;
    if bends.iter().any(|b| !b.is_finite()) {
        return None;
    }
    Some(([sensor(0)?, sensor(SIX)?], bends.map(|b| b.clamp(0.0, 1.0))))
}

/// The arm of the operator.
#[derive(Debug, Clone)]
struct Arm {
    filters: [Orientation; 2],
    /// Upper arm and forearm in the frames of their sensors.
    links: [V3; 2],
    /// What is to the left of the forearm, in the frame of its sensor.
    left: V3,
    start: V3,
    last_ns: Time,
}

impl Arm {
    fn new(p: &Params, now: Time, sensors: &[[V3; 2]; 2]) -> Self {
        let filters = [0, 1].map(|i| Orientation::new(sensors[i][1], p.tilt_gain, NO_LEAK_S));
        let links =
            [filters[0].to_sensor([0.0, 0.0, -p.upper_arm_m]), filters[1].to_sensor([p.forearm_m, 0.0, 0.0])];
        let left = filters[1].to_sensor([0.0, 1.0, 0.0]);
        let mut arm = Self { filters, links, left, start: [0.0; 3], last_ns: now };
        arm.start = arm.wrist();
        arm
    }

    fn update(&mut self, now: Time, sensors: &[[V3; 2]; 2]) {
        let dt = (now.saturating_sub(self.last_ns) as f64 * 1e-9).clamp(0.0, LONGEST_STEP_S);
        // A sample that comes late, after a newer one, is older news: it moves nothing.
        self.last_ns = self.last_ns.max(now);
        if dt > 0.0 {
            for (filter, [rate, force]) in self.filters.iter_mut().zip(sensors) {
                filter.update(dt, *rate, *force);
            }
        }
    }

    // [Polachan 2022]
    /// Where the wrist is from the shoulder.
    fn wrist(&self) -> V3 {
        add(self.filters[0].to_world(self.links[0]), self.filters[1].to_world(self.links[1]))
    }

    /// How far the forearm is turned about itself, against what lies level across it.
    fn roll(&self) -> f64 {
        let front = self.filters[1].to_world(self.links[1]);
        let left = self.filters[1].to_world(self.left);
        let across = [-front[1], front[0], 0.0];
        let level = norm(across);
        if level < 1e-9 {
            return 0.0;
        }
        let across = scale(across, 1.0 / level);
        let cosine = left[0] * across[0] + left[1] * across[1];
        libm::atan2(left[2], cosine)
    }
}

/// Distance of the tips of thumb and finger, in m.
fn aperture(thumb: f64, finger: f64) -> f64 {
    let [fx, fy] = tip(&FINGER_M, &FINGER_RAD.map(|a| -a * finger), 0.0);
    let [tx, ty] = tip(&THUMB_M, &THUMB_RAD.map(|a| a * thumb), -SPREAD_RAD);
    libm::hypot(fx - tx, fy + APART_M - ty)
}

/// The tip of links in a plane, each turned further by its angle.
fn tip(links: &[f64], turns: &[f64], start: f64) -> [f64; 2] {
    let (mut at, mut angle) = ([0.0; 2], start);
    for (length, turn) in links.iter().zip(turns) {
        angle += turn;
        at = [at[0] + length * libm::cos(angle), at[1] + length * libm::sin(angle)];
    }
    at
}
