//! Predictor `operator`: a model of the operator's hand, whose acceleration is deliberate and soon changes, and which
//! comes to rest if nothing drives it.
//!
//! ```text
//! x' = v        v' = a - v / rest        a' = -a / tau + white noise
//! ```
//! The correlated acceleration is that of Singer 1970 ("Estimating optimal tracking filter performance for manned
//! maneuvering targets"); the damping of the velocity is added for hands. The noise is taken as white jerk of density
//! 2 s_a^2 / tau, as it is for spans shorter than `tau`.

use serde_json::Value;
use tcps_core::{
    param::{Fault, Params as _},
    params,
};

use super::{
    kalman::{Kalman, Motion, Square},
    kalman_acceleration::white_jerk,
};

params! {
    /// Parameters, in the unit of the signal (here m).
    pub struct Params {
        tau_ms: f64 = Number, "10", POSITIVE, "time over which the acceleration is correlated, in ms";
        rest_ms: f64 = Number, "100", POSITIVE, "time in which the velocity fades, longer than `tau_ms`, in ms";
        acceleration: f64 = Number, "100", POSITIVE, "standard deviation of the acceleration, in m/s²";
        sd: f64 = Number, "1e-4", POSITIVE, "standard deviation of a measurement, in m";
    }
}

/// The predictor.
pub type Operator = Kalman<Hand, 3>;

/// A hand.
#[derive(Debug, Clone)]
pub struct Hand {
    tau_s: f64,
    rest_s: f64,
    density: f64,
}

// [model: predictors] model-based, for the kinematic side
impl Motion<3> for Hand {
    fn transition(&self, s: f64) -> Square<3> {
        let (tau, rest) = (self.tau_s, self.rest_s);
        let (fast, slow) = (libm::exp(-s / tau), libm::exp(-s / rest));
        let rate = 1.0 / tau - 1.0 / rest;
        let way = |e: f64, time: f64| time * (1.0 - e);
        [
            [1.0, way(slow, rest), (way(slow, rest) - way(fast, tau)) / rate],
            [0.0, slow, (slow - fast) / rate],
            [0.0, 0.0, fast],
        ]
    }

    fn noise(&self, s: f64) -> Square<3> {
        white_jerk(self.density, s.min(self.tau_s))
    }
}

impl Kalman<Hand, 3> {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let p = Params::of(params)?;
        if p.rest_ms <= p.tau_ms {
            return Err(Fault::new("rest_ms", p.rest_ms, format!("above tau_ms = {}", p.tau_ms)));
        }
        let tau_s = p.tau_ms * 1e-3;
        let density = 2.0 * p.acceleration * p.acceleration / tau_s;
        Ok(Self::of(Hand { tau_s, rest_s: p.rest_ms * 1e-3, density }, p.sd))
    }
}
