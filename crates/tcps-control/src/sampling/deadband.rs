//! Sampler `deadband`: a sample goes if it differs perceptibly from what the receiver predicts in its absence
//! (Hinterseer 2008), and now and then as a sign of life.
//!
//! ```text
//! |x - x̂| > max(δ |x̂|, floor),  δ = 10 %        or 100 ms since the last one
//! x̂ = the same predictor that the receiver runs, fed with what went
//! ```
//! A lost sample lets the two predictors drift apart until the next one goes; the sign of life bounds that time. The
//! receiver runs the predictor of this name as a `predict` hook.

use serde::Deserialize;
use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    model::Predictor,
    time::Time,
};

use super::{distance, must_go, norm, share, verdict};
use crate::{
    params::{not_negative, parse},
    predictor,
};

/// Parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The least perceptible difference, as a share of the prediction.
    pub delta: f64,
    /// The least perceptible difference where the signal is small, in the unit of the values.
    pub floor: f64,
    /// Longest time without a sample, in ns; 0: without end.
    pub keep_alive_ns: f64,
    /// Which values are compared; empty: all. A message of a bilateral scheme bears a number, which always differs.
    pub values: Vec<usize>,
    /// Name of the predictor.
    pub predictor: String,
    /// Its parameters.
    pub prediction: Value,
}

// [Hinterseer 2008: deadband]
impl Default for Params {
    fn default() -> Self {
        let predictor = "zoh".to_owned();
        let values = Vec::new();
        Self { delta: 0.10, floor: 0.01, keep_alive_ns: 100e6, values, predictor, prediction: Value::Null }
    }
}

/// The hook.
pub struct Deadband {
    params: Params,
    predictor: Box<dyn Predictor>,
    sent_ns: Option<Time>,
    guess: Vec<f64>,
}

impl Deadband {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, String> {
        let params: Params = parse(params)?;
        share("delta", params.delta)?;
        not_negative("floor", params.floor)?;
        not_negative("keep_alive_ns", params.keep_alive_ns)?;
        let predictor = predictor(&params.predictor, &params.prediction).map_err(|e| e.to_string())?;
        Ok(Self { params, predictor, sent_ns: None, guess: Vec::new() })
    }

    // [Hinterseer 2008: deadband]
    fn differs(&mut self, at: Time, x: &[f64]) -> bool {
        self.guess.clear();
        self.guess.resize(x.len(), 0.0);
        if !self.predictor.predict(at, &mut self.guess) {
            return true;
        }
        let chosen = &self.params.values;
        if !chosen.is_empty() {
            let pick =
                |of: &[f64]| -> Vec<f64> { chosen.iter().filter_map(|i| of.get(*i).copied()).collect() };
            return self.beyond(&pick(x), &pick(&self.guess));
        }
        self.beyond(x, &self.guess)
    }

    fn beyond(&self, x: &[f64], guess: &[f64]) -> bool {
        distance(x, guess) > (self.params.delta * norm(guess)).max(self.params.floor)
    }

    fn silent_for_too_long(&self, at: Time) -> bool {
        let silence = self.sent_ns.map_or(Time::MAX, |sent| at.saturating_sub(sent));
        self.params.keep_alive_ns > 0.0 && silence as f64 >= self.params.keep_alive_ns
    }
}

// [Hinterseer 2008: deadband]
impl Hook for Deadband {
    fn call(&mut self, input: &HookIn, _output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let (at, x) = (input.origin_ns, input.x());
        let goes = must_go(input) || self.differs(at, x) || self.silent_for_too_long(at);
        if goes {
            self.predictor.update(at, Some(x));
            self.sent_ns = Some(at);
        }
        verdict(goes)
    }
}
