//! Predictor `kalman_velocity`: Kalman filter of a motion at constant velocity.
//!
//! ```text
//! F = [1 T; 0 1]      Q = q [T^3/3 T^2/2; T^2/2 T]      R = sd^2
//! ```
//! Only the ratio q / sd^2 has an effect: larger follows faster and smooths less.

use serde::Deserialize;
use serde_json::Value;
use tcps_core::{model::Predictor, time::Time};

use super::kalman::{Kalman, Motion, Square};
use crate::params::{parse, positive};

/// Parameters, in the unit of the signal (here m).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Spectral density of the acceleration, in (m/s²)²·s.
    pub process: f64,
    /// Standard deviation of a measurement, in m.
    pub sd: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { process: 10.0, sd: 1e-4 }
    }
}

/// The predictor.
#[derive(Debug, Clone)]
pub struct KalmanVelocity(Kalman<Drift, 2>);

#[derive(Debug, Clone)]
struct Drift(f64);

// [PROTOCOLS 10] F = [1 T; 0 1], Q = q [T³/3 T²/2; T²/2 T]
impl Motion<2> for Drift {
    fn transition(&self, s: f64) -> Square<2> {
        [[1.0, s], [0.0, 1.0]]
    }

    fn noise(&self, s: f64) -> Square<2> {
        let q = self.0;
        [[q * s * s * s / 3.0, q * s * s / 2.0], [q * s * s / 2.0, q * s]]
    }
}

impl KalmanVelocity {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, String> {
        let params: Params = parse(params)?;
        positive("process", params.process)?;
        positive("sd", params.sd)?;
        Ok(Self(Kalman::new(Drift(params.process), params.sd)))
    }
}

impl Predictor for KalmanVelocity {
    fn update(&mut self, at: Time, sample: Option<&[f64]>) {
        self.0.update(at, sample);
    }

    fn predict(&self, at: Time, out: &mut [f64]) -> bool {
        self.0.predict(at, out)
    }
}
