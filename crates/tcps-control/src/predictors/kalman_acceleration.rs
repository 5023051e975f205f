//! Predictor `kalman_acceleration`: Kalman filter of a motion at constant acceleration.
//!
//! ```text
//! F = [1 T T^2/2; 0 1 T; 0 0 1]      Q = q [T^5/20 T^4/8 T^3/6; T^4/8 T^3/3 T^2/2; T^3/6 T^2/2 T]      R = sd^2
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
    /// Spectral density of the jerk, in (m/s³)²·s.
    pub process: f64,
    /// Standard deviation of a measurement, in m.
    pub sd: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { process: 1e5, sd: 1e-4 }
    }
}

/// The predictor.
#[derive(Debug, Clone)]
pub struct KalmanAcceleration(Kalman<Jerked, 3>);

#[derive(Debug, Clone)]
struct Jerked(f64);

// [PROTOCOLS 10] constant acceleration, analogous to constant velocity
impl Motion<3> for Jerked {
    fn transition(&self, s: f64) -> Square<3> {
        straight(s)
    }

    fn noise(&self, s: f64) -> Square<3> {
        white_jerk(self.0, s)
    }
}

/// Position, velocity and acceleration after `s` seconds without jerk.
pub(super) fn straight(s: f64) -> Square<3> {
    [[1.0, s, s * s / 2.0], [0.0, 1.0, s], [0.0, 0.0, 1.0]]
}

/// Covariance that white jerk of density `q` adds in `s` seconds.
pub(super) fn white_jerk(q: f64, s: f64) -> Square<3> {
    let (s2, s3) = (s * s, s * s * s);
    [
        [q * s2 * s3 / 20.0, q * s2 * s2 / 8.0, q * s3 / 6.0],
        [q * s2 * s2 / 8.0, q * s3 / 3.0, q * s2 / 2.0],
        [q * s3 / 6.0, q * s2 / 2.0, q * s],
    ]
}

impl KalmanAcceleration {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, String> {
        let params: Params = parse(params)?;
        positive("process", params.process)?;
        positive("sd", params.sd)?;
        Ok(Self(Kalman::new(Jerked(params.process), params.sd)))
    }
}

impl Predictor for KalmanAcceleration {
    fn update(&mut self, at: Time, sample: Option<&[f64]>) {
        self.0.update(at, sample);
    }

    fn predict(&self, at: Time, out: &mut [f64]) -> bool {
        self.0.predict(at, out)
    }
}
