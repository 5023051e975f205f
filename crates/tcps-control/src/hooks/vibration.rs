//! Feedback `vibration`: forces felt through motors with an eccentric mass, one for each force, in a glove.
//!
//! ```text
//! drive      u = (|F| - least_n) / (most_n - least_n), 0 to 1
//! spin-up    f' = (u most_hz - f) / spin_up_s, or / spin_down_s while it slows; below `start` of the drive a motor that
//!            stands does not turn
//! out        for each motor: frequency f (Hz), amplitude of the force m r (2 pi f)^2 (N)
//! ```
//! The spin-up is why such motors cannot show a contact as fast as a haptic flow brings it. The defaults are in the range
//! of coin motors of 10 mm: some 200 Hz, 0.5 N at full speed, tens of milliseconds to get there.

use serde::Deserialize;
use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    time::Time,
};

use super::{emit, too_few};
use crate::params::{not_negative, parse, positive};

/// Most motors.
const MOTORS: usize = 16;
/// Longest gap between samples that is bridged, in s.
const LONGEST_GAP_S: f64 = 0.5;

/// Parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Force below which nothing is felt, in N.
    pub least_n: f64,
    /// Force of full drive, in N.
    pub most_n: f64,
    /// Frequency at full drive, in Hz.
    pub most_hz: f64,
    /// Time constants of the motor, in s.
    pub spin_up_s: f64,
    /// See above.
    pub spin_down_s: f64,
    /// Share of the drive that a standing motor needs to start.
    pub start: f64,
    /// Mass times its distance from the axis, in kg m.
    pub unbalance_kg_m: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            least_n: 0.1,
            most_n: 4.0,
            most_hz: 200.0,
            spin_up_s: 0.04,
            spin_down_s: 0.06,
            start: 0.15,
            unbalance_kg_m: 3.2e-7,
        }
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct Vibration {
    params: Params,
    hz: [f64; MOTORS],
    last_ns: Option<Time>,
}

impl Vibration {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, String> {
        let p: Params = parse(params)?;
        not_negative("least_n", p.least_n)?;
        positive("most_n - least_n", p.most_n - p.least_n)?;
        positive("most_hz", p.most_hz)?;
        positive("spin_up_s", p.spin_up_s)?;
        positive("spin_down_s", p.spin_down_s)?;
        not_negative("start", p.start)?;
        positive("unbalance_kg_m", p.unbalance_kg_m)?;
        Ok(Self { params: p, hz: [0.0; MOTORS], last_ns: None })
    }

    /// A motor's frequency after `dt` seconds under a force.
    fn spin(&self, hz: f64, force_n: f64, dt: f64) -> f64 {
        let p = &self.params;
        let drive = ((force_n.abs() - p.least_n) / (p.most_n - p.least_n)).clamp(0.0, 1.0);
        let stands = hz < 0.01 * p.most_hz;
        let wanted = if stands && drive < p.start { 0.0 } else { drive * p.most_hz };
        let time = if wanted > hz { p.spin_up_s } else { p.spin_down_s };
        hz + (wanted - hz) * (1.0 - libm::exp(-dt / time))
    }
}

impl Hook for Vibration {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let forces = input.x();
        if forces.is_empty() || forces.len() > MOTORS || forces.iter().any(|f| !f.is_finite()) {
            return too_few("1 to 16 forces", forces);
        }
        let last = self.last_ns.unwrap_or(input.now_ns);
        let dt = (input.now_ns.saturating_sub(last) as f64 * 1e-9).clamp(0.0, LONGEST_GAP_S);
        self.last_ns = Some(input.now_ns.max(last));
        let mut out = [0.0; 2 * MOTORS];
        for (i, &force) in forces.iter().enumerate() {
            self.hz[i] = self.spin(self.hz[i], force, dt);
            let w = 2.0 * std::f64::consts::PI * self.hz[i];
            out[2 * i] = self.hz[i];
            out[2 * i + 1] = self.params.unbalance_kg_m * w * w;
        }
        emit(output, &out[..2 * forces.len()])
    }
}
