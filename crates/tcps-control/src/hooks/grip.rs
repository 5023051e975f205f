//! Kinematics `grip`: the hand of a simulated operator on its device, which presses with a wanted force by what it feels.
//!
//! ```text
//! in     x, y, z where the hand wants to be (m)         other   force on the tool (N)
//! out    x, y, z (m) and velocity (m/s) of the device
//!
//! m x'' = k (wanted + push - x) - b x' + F                        F at most `most_n`, what the device can do
//! push' = press (wanted force - what was felt `latency_ms` ago)   along `into`
//! ```
//! Mass, damping and stiffness are those of the hook `hand`. The reaction to a force at the fingers takes 60 to 80 ms
//! (Johansson and Westling 1984). Tremor lies at 8 to 12 Hz (Elble and Koller 1990); its size and `press` are a model of
//! our own.

use serde::Deserialize;
use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    seed::Stream,
    time::Time,
};

use super::{emit, too_few};
use crate::{
    later::Later,
    params::{not_negative, parse, positive},
    vector::{add, dot, norm, scale, shorten, sub, three, V3},
};

/// Longest step of the integration and longest gap that it bridges, in s.
const STEP_S: f64 = 0.001;
const LONGEST_GAP_S: f64 = 0.1;
/// Farthest that a hand wants to be, in m, and most that can come back, in N.
const FARTHEST_M: f64 = 10.0;
const STRONGEST_N: f64 = 1e4;
/// How far a hand pushes, in m.
const PUSH_M: f64 = 0.1;
/// Time in which a tremor forgets its phase, in s.
const TREMOR_S: f64 = 0.25;

/// Parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Mass of hand and device, in kg.
    pub mass_kg: f64,
    /// Damping, in N s/m.
    pub damping_n_s_m: f64,
    /// Stiffness, in N/m.
    pub stiffness_n_m: f64,
    /// Highest force of the device, in N.
    pub most_n: f64,
    /// Direction in which the hand presses, of any length.
    pub into: [f64; 3],
    /// Force that it wants to press with, in N.
    pub wanted_n: f64,
    /// How fast it pushes for each N that is missing, in m/(s N).
    pub press_m_s_n: f64,
    /// Time from a force to what follows from it, in ms; at most 2000.
    pub latency_ms: f64,
    /// Frequency of the tremor, in Hz.
    pub tremor_hz: f64,
    /// Its root mean square on each axis, in m.
    pub tremor_m: f64,
    /// Names the tremor.
    pub seed: u64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            mass_kg: 1.0,
            damping_n_s_m: 20.0,
            stiffness_n_m: 300.0,
            most_n: 5.0,
            into: [1.0, 0.0, 0.0],
            wanted_n: 1.0,
            press_m_s_n: 0.03,
            latency_ms: 70.0,
            tremor_hz: 9.0,
            tremor_m: 1e-4,
            seed: 1,
        }
    }
}

/// The hook.
#[derive(Debug)]
pub struct Grip {
    params: Params,
    into: V3,
    noise: Stream,
    /// A pointer an axis that turns with the tremor.
    tremor: [[f64; 2]; 3],
    forces: Later<f64>,
    felt_n: f64,
    push_m: f64,
    at: Option<(V3, V3)>,
    last_ns: Option<Time>,
}

impl Grip {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, String> {
        let p: Params = parse(params)?;
        for (key, value) in [("mass_kg", p.mass_kg), ("most_n", p.most_n), ("length of into", norm(p.into))] {
            positive(key, value)?;
        }
        for (key, value) in [
            ("damping_n_s_m", p.damping_n_s_m),
            ("stiffness_n_m", p.stiffness_n_m),
            ("wanted_n", p.wanted_n),
            ("press_m_s_n", p.press_m_s_n),
            ("tremor_hz", p.tremor_hz),
            ("tremor_m", p.tremor_m),
        ] {
            not_negative(key, value)?;
        }
        // Semi-implicit Euler stays stable for w < 2 / step and damping rate < 1 / step.
        let fastest = libm::sqrt(p.stiffness_n_m / p.mass_kg).max(p.damping_n_s_m / p.mass_kg);
        if fastest * STEP_S > 0.5 {
            return Err(format!("a hand that moves at {fastest:.0} 1/s: at most {:.0}", 0.5 / STEP_S));
        }
        Ok(Self {
            into: scale(p.into, 1.0 / norm(p.into)),
            noise: Stream::new(p.seed, "hooks.grip"),
            tremor: [[0.0; 2]; 3],
            forces: Later::new(p.latency_ms)?,
            felt_n: 0.0,
            push_m: 0.0,
            at: None,
            last_ns: None,
            params: p,
        })
    }

    /// What presses against the hand now counts later.
    fn feel(&mut self, now: Time, force: V3) {
        self.forces.push(now, -dot(force, self.into));
        self.felt_n = self.forces.due(now).unwrap_or(self.felt_n);
    }

    fn step(&mut self, wanted: V3, force: V3, dt: f64) {
        let p = &self.params;
        self.push_m += p.press_m_s_n * (p.wanted_n - self.felt_n) * dt;
        self.push_m = self.push_m.clamp(-PUSH_M, PUSH_M);
        let goal = add(wanted, scale(self.into, self.push_m));
        let (mut x, mut v) = self.at.unwrap_or((wanted, [0.0; 3]));
        let pull = sub(scale(sub(goal, x), p.stiffness_n_m), scale(v, p.damping_n_s_m));
        v = add(v, scale(add(pull, force), dt / p.mass_kg));
        x = add(x, scale(v, dt));
        self.at = Some((x, v));
    }

    /// The tremor after `dt` seconds, in m.
    fn tremble(&mut self, dt: f64) -> V3 {
        let p = &self.params;
        let (decay, turn) = (libm::exp(-dt / TREMOR_S), 2.0 * std::f64::consts::PI * p.tremor_hz * dt);
        let (kick, sine, cosine) =
            (p.tremor_m * libm::sqrt(1.0 - decay * decay), libm::sin(turn), libm::cos(turn));
        for pointer in &mut self.tremor {
            let [a, b] = *pointer;
            let (m, n) = (self.noise.normal(), self.noise.normal());
            *pointer =
                [decay * (cosine * a - sine * b) + kick * m, decay * (sine * a + cosine * b) + kick * n];
        }
        self.tremor.map(|[a, _]| a)
    }
}

impl Hook for Grip {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let Some(wanted) = three(input.x()).filter(|x| x.iter().all(|v| v.abs() <= FARTHEST_M)) else {
            return too_few("a place of 3 values within 10 m", input.x());
        };
        let force = if input.other().is_empty() { Some([0.0; 3]) } else { three(input.other()) };
        let Some(force) = force.filter(|f| norm(*f) <= STRONGEST_N) else {
            return too_few("a force of 3 values", input.other());
        };
        let last = self.last_ns.replace(input.now_ns).unwrap_or(input.now_ns);
        let gap = (input.now_ns.saturating_sub(last) as f64 * 1e-9).clamp(0.0, LONGEST_GAP_S);
        self.feel(input.now_ns, force);
        let steps = libm::ceil(gap / STEP_S).max(1.0);
        for _ in 0..steps as u32 {
            self.step(wanted, shorten(force, self.params.most_n), gap / steps);
        }
        let (x, v) = self.at.unwrap_or((wanted, [0.0; 3]));
        let [x, y, z] = add(x, self.tremble(gap));
        emit(output, &[x, y, z, v[0], v[1], v[2]])
    }
}
