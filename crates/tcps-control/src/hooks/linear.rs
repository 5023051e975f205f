//! Predictor `linear`: first order with decay (PROTOCOLS 10).
//!
//! ```text
//! slope   (x_n - x_{n-m}) / (t_n - t_{n-m}),  m = 5 samples, times of origin
//! out     x_n + slope g(h),   h = time since x_n arrived
//! g(h)    h up to 50 ms; beyond, the slope decays with 30 ms: 50 ms + 30 ms (1 - exp(-(h - 50 ms) / 30 ms))
//! ```

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    time::Time,
};

use super::emit;
use crate::params::{not_negative, parse, positive};

/// Parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Samples between the two that give the slope.
    pub over: usize,
    /// Time for which the slope holds, in ms.
    pub hold_ms: f64,
    /// Time constant of its decay, in ms.
    pub decay_ms: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { over: 5, hold_ms: 50.0, decay_ms: 30.0 }
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct Linear {
    params: Params,
    history: VecDeque<(Time, Vec<f64>)>,
    arrived_ns: Time,
    slope: Vec<f64>,
    guess: Vec<f64>,
}

impl Linear {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, String> {
        let params: Params = parse(params)?;
        if !(1..=1000).contains(&params.over) {
            return Err(format!("over = {}: 1 to 1000", params.over));
        }
        not_negative("hold_ms", params.hold_ms)?;
        positive("decay_ms", params.decay_ms)?;
        Ok(Self { params, history: VecDeque::new(), arrived_ns: 0, slope: Vec::new(), guess: Vec::new() })
    }

    /// Takes a sample, unless it is older than one already taken.
    fn update(&mut self, now: Time, origin: Time, x: &[f64]) {
        if self.history.back().is_some_and(|(newest, _)| origin <= *newest) {
            return;
        }
        if self.history.back().is_some_and(|(_, last)| last.len() != x.len()) {
            self.history.clear();
        }
        // The oldest entry gives its room to the new one.
        let full = self.history.len() > self.params.over;
        let mut entry = if full { self.history.pop_front() } else { None }.unwrap_or_default();
        entry.0 = origin;
        entry.1.clear();
        entry.1.extend_from_slice(x);
        self.history.push_back(entry);
        self.arrived_ns = now;
        self.find_slope();
    }

    fn find_slope(&mut self) {
        self.slope.clear();
        let (Some((t0, x0)), Some((t1, x1))) = (self.history.front(), self.history.back()) else { return };
        let span = (t1 - t0) as f64;
        self.slope
            .extend(x1.iter().zip(x0).map(|(new, old)| if span > 0.0 { (new - old) / span } else { 0.0 }));
    }

    /// How long the slope counts after `h` nanoseconds, in nanoseconds.
    fn horizon(&self, h: f64) -> f64 {
        let (hold, decay) = (self.params.hold_ms * 1e6, self.params.decay_ms * 1e6);
        if h <= hold {
            h
        } else {
            hold + decay * (1.0 - libm::exp(-(h - hold) / decay))
        }
    }
}

// [PROTOCOLS 10] first order over m = 5 samples, held 50 ms, decaying with 30 ms
impl Hook for Linear {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present != 0 {
            self.update(input.now_ns, input.origin_ns, input.x());
        }
        let g = self.horizon((input.now_ns - self.arrived_ns).max(0) as f64);
        let Some((_, last)) = self.history.back() else { return Verdict::Nothing };
        self.guess.clear();
        self.guess.extend(last.iter().zip(&self.slope).map(|(x, slope)| x + slope * g));
        emit(output, &self.guess)
    }
}
