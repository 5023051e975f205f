//! Kinematics `aim`: where a simulated operator wants the tool who traces a circle on a surface by what he sees.
//!
//! ```text
//! other  x, y, z of the tool in the newest picture (m)        out  x, y, z wanted (m), way done (rad)
//!
//! r s' = speed, less the further the tool is seen behind: none where it is 2 `ahead_m` behind
//! c'   = - correct (distance of the tool from the axis - r)                      wanted radius  r + c + drift
//! ```
//! The circle lies in a plane of constant x. The hand waits at its beginning, `away_m` before the plane, until the tool
//! is seen at the surface. A picture counts `latency_ms` after it came: on-line corrections of reaching movements take
//! 160 ms (Saunders and Knill 2003). That one slows down under delay is what operators do (Ferrell 1965); how, and the
//! drift of an aim without pictures, are a model of our own.

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
    seed::Stream,
    time::Time,
};

use super::{beyond, emit};
use crate::{
    later::{Later, LATENCY_MS},
    vector::{three, V3},
};

const TURN_RAD: f64 = 2.0 * std::f64::consts::PI;
/// Longest time that one call bridges, in s.
const LONGEST_S: f64 = 0.1;
/// Farthest that a tool can be, in m.
const FARTHEST_M: f64 = 10.0;

params! {
    /// Parameters.
    pub struct Params {
        centre_m: [f64; 3] = Array(3, &Number), "[0.32, 0, 0.18]", -FARTHEST_M..=FARTHEST_M, "centre of the circle, in m; the surface is the plane at its x";
        radius_m: f64 = Number, "0.03", POSITIVE, "radius, in m";
        away_m: f64 = Number, "0.03", NOT_NEGATIVE, "distance of the wanted position before the surface, in m";
        touch_m: f64 = Number, "0.003", POSITIVE, "distance from the surface at which the tool counts as touching it, in m";
        turns: u32 = Count, "1", 0.0..=4_294_967_295.0, "number of turns";
        speed_m_s: f64 = Number, "0.04", POSITIVE, "speed along the circle, in m/s";
        ahead_m: f64 = Number, "0.01", POSITIVE, "lead of the wanted point over the seen tool at which the point begins to slow down, in m";
        correct_hz: f64 = Number, "1.5", NOT_NEGATIVE, "rate at which a seen error is corrected, in 1/s";
        latency_ms: f64 = Number, "160", LATENCY_MS, "reaction time to a picture, in ms";
        drift_m: f64 = Number, "0.0015", NOT_NEGATIVE, "root mean square of the drift on each axis, in m";
        drift_s: f64 = Number, "1", POSITIVE, "time constant of the drift, in s";
        seed: u64 = Count, "1", NOT_NEGATIVE, "seed of the drift";
    }
}

/// The hook.
#[derive(Debug)]
pub struct Aim {
    params: Params,
    noise: Stream,
    drift: [f64; 2],
    pictures: Later<V3>,
    newest: Option<V3>,
    seen: Option<V3>,
    /// Angle of the tool as seen, over several turns.
    angle: f64,
    way: f64,
    correction: f64,
    begun: bool,
    last_ns: Option<Time>,
}

impl Aim {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let p = Params::of(params)?;
        Ok(Self {
            noise: Stream::new(p.seed, "hooks.aim"),
            pictures: Later::new(p.latency_ms),
            params: p,
            drift: [0.0; 2],
            newest: None,
            seen: None,
            angle: 0.0,
            way: 0.0,
            correction: 0.0,
            begun: false,
            last_ns: None,
        })
    }

    /// Takes the newest picture, and looks at the one whose time has come.
    fn look(&mut self, now: Time, picture: Option<V3>) {
        if let Some(p) = picture.filter(|p| self.newest != Some(*p)) {
            self.newest = Some(p);
            self.pictures.push(now, p);
        }
        self.seen = self.pictures.due(now).or(self.seen);
    }

    /// Distance of the tool from the axis of the circle, in m; follows its angle.
    fn follow(&mut self, tool: V3) -> f64 {
        let [_, cy, cz] = self.params.centre_m;
        let (y, z) = (tool[1] - cy, tool[2] - cz);
        let turned = libm::atan2(z, y) - self.angle;
        self.angle += turned - TURN_RAD * libm::round(turned / TURN_RAD);
        libm::hypot(y, z)
    }

    fn advance(&mut self, dt: f64) {
        let (decay, p) = (libm::exp(-dt / self.params.drift_s), self.params.clone());
        let kick = p.drift_m * libm::sqrt(1.0 - decay * decay);
        self.drift = self.drift.map(|d| d * decay + kick * self.noise.normal());
        let Some(tool) = self.seen else { return };
        self.begun |= tool[0] >= p.centre_m[0] - p.touch_m;
        if !self.begun {
            return;
        }
        let distance = self.follow(tool);
        let most = p.radius_m / 2.0;
        self.correction -= p.correct_hz * (distance - p.radius_m) * dt;
        self.correction = self.correction.clamp(-most, most);
        let behind = p.radius_m * (self.way - self.angle);
        let share = (2.0 - behind / p.ahead_m).clamp(0.0, 1.0);
        self.way = (self.way + share * p.speed_m_s / p.radius_m * dt).min(TURN_RAD * f64::from(p.turns));
    }

    fn wanted(&self) -> [f64; 4] {
        let (p, [dy, dz]) = (&self.params, self.drift);
        let r = p.radius_m + self.correction;
        let [x, y, z] = p.centre_m;
        [x - p.away_m, y + r * libm::cos(self.way) + dy, z + r * libm::sin(self.way) + dz, self.way]
    }
}

impl Hook for Aim {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let picture = three(input.other()).filter(|p| p.iter().all(|v| v.abs() <= FARTHEST_M));
        if picture.is_none() && !input.other().is_empty() {
            return beyond("a picture with the tool's place within 10 m", input.other(), FARTHEST_M);
        }
        let last = self.last_ns.replace(input.now_ns).unwrap_or(input.now_ns);
        let dt = (input.now_ns.saturating_sub(last) as f64 * 1e-9).clamp(0.0, LONGEST_S);
        self.look(input.now_ns, picture);
        self.advance(dt);
        emit(output, &self.wanted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_angle_of_the_tool_is_followed_over_turns_around_the_centre() {
        let mut aim = Aim::new(&json!({"centre_m": [0.3, 0.1, 0.2]})).unwrap();
        for step in 0..=80 {
            let angle = 0.2 * f64::from(step);
            let distance = aim.follow([0.3, 0.1 + 0.05 * libm::cos(angle), 0.2 + 0.05 * libm::sin(angle)]);
            assert!((distance - 0.05).abs() < 1e-12 && (aim.angle - angle).abs() < 1e-9, "{angle}: {aim:?}");
        }
    }
}
