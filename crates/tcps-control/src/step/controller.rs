//! The controller of a loop: the built-in one, or any linear system.

use super::{
    linear::{Linear, Motion, Rule},
    Gains, Pi,
};
use tcps_core::time::Time;

/// A controller at rest or in its loop.
#[derive(Debug, Clone)]
pub enum Controller {
    /// Proportional and integral.
    Pi(Gains, Pi),
    /// k = 1 + C e; by the bilinear rule, if C is in s.
    Linear(Motion),
}

impl Controller {
    /// A linear one.
    pub fn linear(system: Linear) -> Self {
        Self::Linear(Motion::new(system, Rule::Bilinear))
    }

    /// The command after `ms` milliseconds in which the error was `error`. One in z takes one of its steps.
    #[inline]
    pub fn update(&mut self, ms: f64, error: f64) -> f64 {
        match self {
            Self::Pi(gains, pi) => pi.update(gains, ms, error),
            Self::Linear(motion) => {
                motion.pass(match motion.step_ns() {
                    0 => (ms * 1e6).round() as Time,
                    step_ns => step_ns,
                });
                motion.answer(error)
            }
        }
    }
}
