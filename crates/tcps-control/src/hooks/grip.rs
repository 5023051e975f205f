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

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
    seed::Stream,
    time::Time,
};

use super::{beyond, emit, too_few};
use crate::{
    later::{Later, LATENCY_MS},
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

params! {
    /// Parameters.
    pub struct Params {
        mass_kg: f64 = Number, "1", POSITIVE, "mass of hand and device, in kg";
        damping_n_s_m: f64 = Number, "20", NOT_NEGATIVE, "damping, in N s/m";
        stiffness_n_m: f64 = Number, "300", NOT_NEGATIVE, "stiffness, in N/m";
        most_n: f64 = Number, "5", POSITIVE, "highest force of the device, in N";
        into: [f64; 3] = Array(3, &Number), "[1, 0, 0]", ANY, "direction in which the hand presses, of any length";
        wanted_n: f64 = Number, "1", NOT_NEGATIVE, "wanted force, in N";
        press_m_s_n: f64 = Number, "0.03", NOT_NEGATIVE, "speed of pushing per missing N, in m/(s N)";
        latency_ms: f64 = Number, "70", LATENCY_MS, "reaction time to a force, in ms";
        tremor_hz: f64 = Number, "9", NOT_NEGATIVE, "frequency of the tremor, in Hz";
        tremor_m: f64 = Number, "1e-4", NOT_NEGATIVE, "root mean square of the tremor on each axis, in m";
        seed: u64 = Count, "1", NOT_NEGATIVE, "seed of the tremor";
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
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let p = Params::of(params)?;
        if norm(p.into) <= 0.0 {
            return Err(Fault::new("into", format!("{:?}", p.into), "a direction, such as [1, 0, 0]"));
        }
        // Semi-implicit Euler stays stable for w < 2 / step and damping rate < 1 / step.
        let fastest = libm::sqrt(p.stiffness_n_m / p.mass_kg).max(p.damping_n_s_m / p.mass_kg);
        if fastest * STEP_S > 0.5 {
            return Err(Fault::new(
                "stiffness_n_m",
                format!("a rate of {fastest:.0} 1/s, too fast for the integration"),
                format!("gains for the mass that stay below {:.0} 1/s", 0.5 / STEP_S),
            ));
        }
        Ok(Self {
            into: scale(p.into, 1.0 / norm(p.into)),
            noise: Stream::new(p.seed, "hooks.grip"),
            tremor: [[0.0; 2]; 3],
            forces: Later::new(p.latency_ms),
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
            return beyond("a place of 3 values within 10 m", input.x(), FARTHEST_M);
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
