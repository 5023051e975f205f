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

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
    time::Time,
};

use super::{emit, too_few};

/// Most motors.
const MOTORS: usize = 16;
/// Longest gap between samples that is bridged, in s.
const LONGEST_GAP_S: f64 = 0.5;

params! {
    /// Parameters.
    pub struct Params {
        least_n: f64 = Number, "0.1", NOT_NEGATIVE, "force below which motors stop, in N";
        most_n: f64 = Number, "4", POSITIVE, "force of full drive, in N";
        most_hz: f64 = Number, "200", POSITIVE, "frequency at full drive, in Hz";
        spin_up_s: f64 = Number, "0.04", POSITIVE, "time constant of a motor that gets faster, in s";
        spin_down_s: f64 = Number, "0.06", POSITIVE, "time constant of one that gets slower, in s";
        start: f64 = Number, "0.15", NOT_NEGATIVE, "share of the drive that starts a resting motor";
        unbalance_kg_m: f64 = Number, "3.2e-7", POSITIVE, "mass times its distance from the axis, in kg m";
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
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let p = Params::of(params)?;
        if p.most_n <= p.least_n {
            return Err(Fault::new("most_n", p.most_n, format!("above least_n = {}", p.least_n)));
        }
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
