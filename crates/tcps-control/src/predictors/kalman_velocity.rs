//! Predictor `kalman_velocity`: Kalman filter of a motion at constant velocity.
//!
//! ```text
//! F = [1 T; 0 1]      Q = q [T^3/3 T^2/2; T^2/2 T]      R = sd^2
//! ```
//! q is the spectral density of the acceleration, in (m/s²)²·s.

use super::kalman::{Driven, Kalman, Motion, Square};

/// The predictor.
pub type KalmanVelocity = Kalman<Drift, 2>;

/// Constant velocity, driven by white acceleration.
#[derive(Debug, Clone)]
pub struct Drift(f64);

impl Driven<2> for Drift {
    const PROCESS: f64 = 10.0;

    fn with(density: f64) -> Self {
        Self(density)
    }
}

// [model: predictors] F = [1 T; 0 1], Q = q [T³/3 T²/2; T²/2 T]
impl Motion<2> for Drift {
    fn transition(&self, s: f64) -> Square<2> {
        [[1.0, s], [0.0, 1.0]]
    }

    fn noise(&self, s: f64) -> Square<2> {
        let q = self.0;
        [[q * s * s * s / 3.0, q * s * s / 2.0], [q * s * s / 2.0, q * s]]
    }
}
