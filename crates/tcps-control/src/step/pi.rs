//! The controller of the step experiment: proportional and integral, driven by time.

/// Gains, with the bounds of the integral.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gains {
    /// Proportional gain.
    pub kp: f64,
    /// Integral gain, per ms.
    pub ki_per_ms: f64,
    /// The integral stays between -most and most (anti-windup).
    pub most: f64,
}

/// Largest integral unless said otherwise.
pub const MOST: f64 = 10.0;

impl Default for Gains {
    /// Those for a round trip of 10 ms and a period of 1 ms: g = Ki theta / 2 = 0.5.
    fn default() -> Self {
        Self { kp: 0.2, ki_per_ms: 1.0 / 11.0, most: MOST }
    }
}

/// The controller's state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pi {
    integral: f64,
}

impl Default for Pi {
    /// At rest: h = k = 1.
    fn default() -> Self {
        Self { integral: 1.0 }
    }
}

impl Pi {
    /// The command after `ms` milliseconds in which the error was `error`.
    // [Polachan 2022: steps] I += Ki T e; k = Kp e + I; I within [-10, 10]
    #[inline]
    pub fn update(&mut self, gains: &Gains, ms: f64, error: f64) -> f64 {
        self.integral = (self.integral + gains.ki_per_ms * ms * error).clamp(-gains.most, gains.most);
        gains.kp * error + self.integral
    }
}
