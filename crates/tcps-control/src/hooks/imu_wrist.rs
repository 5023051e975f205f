//! Kinematics `imu_wrist`: from a hand-held inertial sensor to the position of the wrist.
//!
//! ```text
//! in   rates x, y, z (rad/s), specific force x, y, z (m/s²)          out  position x, y, z (m), velocity (m/s)
//!
//! R    orientation by a complementary filter           (orientation.rs, Mahony 2008)
//! a    R f - g                                         acceleration without gravity
//! p''  gain a - 2 w p' - w² p,  w = 2 pi hold_hz       leaky double integration
//! u    R l + p                                         forearm l, swung and moved
//! c'   (u - c) / follow_time                           the trunk goes along with what lasts
//! out  centre + reach tanh((u - c) / reach)            within reach
//! ```
//! The double integral of an acceleration drifts with the square of time; the leak (a critically damped spring towards
//! the centre) turns it into a band-pass around `hold_hz`. The forearm points to the front at the first sample.

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
    time::Time,
};

use super::{emit, too_few};
use crate::{
    orientation::{Orientation, GRAVITY},
    vector::{add, norm, scale, sub, three, V3},
};

/// Time constant of the velocity that is given out, in s.
const VELOCITY_TIME_S: f64 = 0.01;
/// A longer gap between samples is bridged as if it were this long, in s.
const LONGEST_STEP_S: f64 = 0.05;
/// More than any sensor of hands shows: rad/s, m/s².
const MOST_RATE: f64 = 100.0;
const MOST_FORCE: f64 = 1_000.0;

params! {
    /// Parameters.
    pub struct Params {
        centre_m: [f64; 3] = Array(3, &Number), "[0.30, 0, 0.18]", ANY, "wrist at rest, in m";
        reach_m: [f64; 3] = Array(3, &Number), "[0.05, 0.09, 0.07]", POSITIVE, "reach of the wrist from there, in m";
        forearm_m: f64 = Number, "0.25", NOT_NEGATIVE, "length of the forearm that the orientation swings, in m";
        gain: f64 = Number, "1", NOT_NEGATIVE, "weight of the doubly integrated acceleration";
        hold_hz: f64 = Number, "0.5", POSITIVE, "centre frequency of the leaky integration, in Hz";
        tilt_gain: f64 = Number, "1", NOT_NEGATIVE, "gain of the complementary filter, in 1/s";
        heading_time_s: f64 = Number, "0.4", POSITIVE, "time constant with which the operator's trunk follows a turn, in s";
        follow_time_s: f64 = Number, "2", POSITIVE, "time constant with which the trunk follows the hand, in s";
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct ImuWrist {
    params: Params,
    arm: Option<Arm>,
}

impl ImuWrist {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let params = Params::of(params)?;
        Ok(Self { params, arm: None })
    }
}

impl Hook for ImuWrist {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let Some((rate, force)) = measured(input.x()) else {
            return too_few("3 rates and 3 forces of a hand", input.x());
        };
        let arm = self.arm.get_or_insert_with(|| Arm::new(&self.params, input.origin_ns, force));
        arm.update(&self.params, input.origin_ns, rate, force);
        let [x, y, z] = arm.wrist;
        let [vx, vy, vz] = arm.wrist_velocity;
        emit(output, &[x, y, z, vx, vy, vz])
    }
}

/// Rates and forces, if they are there and possible.
fn measured(values: &[f64]) -> Option<(V3, V3)> {
    let (rate, force) = (three(values)?, three(values.get(3..)?)?);
    (norm(rate) < MOST_RATE && norm(force) < MOST_FORCE).then_some((rate, force))
}

/// The state between samples.
#[derive(Debug, Clone)]
struct Arm {
    orientation: Orientation,
    /// The forearm in the sensor's frame.
    forearm: V3,
    moved: V3,
    velocity: V3,
    trunk: V3,
    wrist: V3,
    wrist_velocity: V3,
    last_ns: Time,
}

impl Arm {
    fn new(params: &Params, now: Time, force: V3) -> Self {
        let orientation = Orientation::new(force, params.tilt_gain, params.heading_time_s);
        let forearm = orientation.to_sensor([params.forearm_m, 0.0, 0.0]);
        Self {
            orientation,
            forearm,
            moved: [0.0; 3],
            velocity: [0.0; 3],
            trunk: [params.forearm_m, 0.0, 0.0],
            wrist: params.centre_m,
            wrist_velocity: [0.0; 3],
            last_ns: now,
        }
    }

    fn update(&mut self, params: &Params, now: Time, rate: V3, force: V3) {
        let dt = (now.saturating_sub(self.last_ns) as f64 * 1e-9).clamp(0.0, LONGEST_STEP_S);
        // A sample that comes late, after a newer one, is older news: it moves nothing.
        self.last_ns = self.last_ns.max(now);
        if dt <= 0.0 {
            return;
        }
        self.orientation.update(dt, rate, force);
        self.integrate(params, dt, force);
        self.place(params, dt);
    }

    fn integrate(&mut self, params: &Params, dt: f64, force: V3) {
        let w = 2.0 * std::f64::consts::PI * params.hold_hz;
        let free = sub(self.orientation.to_world(force), [0.0, 0.0, GRAVITY]);
        let pull = add(scale(self.velocity, 2.0 * w), scale(self.moved, w * w));
        self.velocity = add(self.velocity, scale(sub(scale(free, params.gain), pull), dt));
        self.moved = add(self.moved, scale(self.velocity, dt));
    }

    fn place(&mut self, params: &Params, dt: f64) {
        let hand = add(self.orientation.to_world(self.forearm), self.moved);
        let wished = sub(hand, self.trunk);
        self.trunk = add(self.trunk, scale(wished, 1.0 - libm::exp(-dt / params.follow_time_s)));
        let wrist: V3 = std::array::from_fn(|i| {
            params.centre_m[i] + params.reach_m[i] * libm::tanh(wished[i] / params.reach_m[i])
        });
        let speed = scale(sub(wrist, self.wrist), 1.0 / dt);
        let part = 1.0 - libm::exp(-dt / VELOCITY_TIME_S);
        self.wrist_velocity = add(self.wrist_velocity, scale(sub(speed, self.wrist_velocity), part));
        self.wrist = wrist;
    }
}
