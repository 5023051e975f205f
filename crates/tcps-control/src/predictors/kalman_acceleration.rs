//! Predictor `kalman_acceleration`: Kalman filter of a motion at constant acceleration.
//!
//! ```text
//! F = [1 T T^2/2; 0 1 T; 0 0 1]      Q = q [T^5/20 T^4/8 T^3/6; T^4/8 T^3/3 T^2/2; T^3/6 T^2/2 T]      R = sd^2
//! ```
//! q is the spectral density of the jerk, in (m/s³)²·s.

use super::kalman::{Driven, Kalman, Motion, Square};

/// The predictor.
pub type KalmanAcceleration = Kalman<Jerked, 3>;

/// Constant acceleration, driven by white jerk.
#[derive(Debug, Clone)]
pub struct Jerked(f64);

impl Driven<3> for Jerked {
    const PROCESS: f64 = 1e5;

    fn with(density: f64) -> Self {
        Self(density)
    }
}

// [model: predictors] constant acceleration, analogous to constant velocity
impl Motion<3> for Jerked {
    fn transition(&self, s: f64) -> Square<3> {
        [[1.0, s, s * s / 2.0], [0.0, 1.0, s], [0.0, 0.0, 1.0]]
    }

    fn noise(&self, s: f64) -> Square<3> {
        white_jerk(self.0, s)
    }
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
