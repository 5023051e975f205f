//! Predictor `linear`: first order with decay.
//!
//! ```text
//! slope   (x_n - x_{n-m}) / (t_n - t_{n-m}),  m = 5 samples
//! out     x_n + slope g(h),   h = time since t_n
//! g(h)    h up to 50 ms; beyond, the slope decays with 30 ms: 50 ms + 30 ms (1 - exp(-(h - 50 ms) / 30 ms))
//! ```

use std::collections::VecDeque;

use serde_json::Value;
use tcps_core::{
    model::Predictor,
    param::{Fault, Params as _},
    params,
    time::Time,
};

use super::{seconds, usable};

params! {
    /// Parameters.
    pub struct Params {
        over: usize = Count, "5", 1.0..=1000.0, "the slope is that between the newest sample and the one so many before it";
        hold_ms: f64 = Number, "50", NOT_NEGATIVE, "time for which the slope holds, in ms";
        decay_ms: f64 = Number, "30", POSITIVE, "time constant of its decay, in ms";
    }
}

/// The predictor.
#[derive(Debug, Clone)]
pub struct Linear {
    params: Params,
    history: VecDeque<(Time, Vec<f64>)>,
    /// Per second.
    slope: Vec<f64>,
}

impl Linear {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let params = Params::of(params)?;
        Ok(Self { params, history: VecDeque::new(), slope: Vec::new() })
    }

    fn find_slope(&mut self) {
        self.slope.clear();
        let (Some((t0, x0)), Some((t1, x1))) = (self.history.front(), self.history.back()) else { return };
        let span = seconds(*t0, *t1);
        self.slope
            .extend(x1.iter().zip(x0).map(|(new, old)| if span > 0.0 { (new - old) / span } else { 0.0 }));
    }

    /// How long the slope counts after `h` seconds, in seconds.
    fn horizon(&self, h: f64) -> f64 {
        let (hold, decay) = (self.params.hold_ms * 1e-3, self.params.decay_ms * 1e-3);
        if h <= hold {
            h
        } else {
            hold + decay * (1.0 - libm::exp(-(h - hold) / decay))
        }
    }
}

// [model: predictors] first order over m = 5 samples, held 50 ms, decaying with 30 ms
impl Predictor for Linear {
    fn update(&mut self, at: Time, sample: Option<&[f64]>) {
        let Some(x) = usable(self.history.back().map(|(t, _)| *t), at, sample) else { return };
        if self.history.back().is_some_and(|(_, last)| last.len() != x.len()) {
            self.history.clear();
        }
        // The oldest entry gives its room to the new one.
        let full = self.history.len() > self.params.over;
        let mut entry = if full { self.history.pop_front() } else { None }.unwrap_or_default();
        entry.0 = at;
        entry.1.clear();
        entry.1.extend_from_slice(x);
        self.history.push_back(entry);
        self.find_slope();
    }

    fn predict(&self, at: Time, out: &mut [f64]) -> bool {
        let Some((t, last)) = self.history.back() else { return false };
        let g = self.horizon(seconds(*t, at));
        for ((y, x), slope) in out.iter_mut().zip(last).zip(&self.slope) {
            *y = x + slope * g;
        }
        true
    }
}
