//! Sampler `deadband`: a sample goes if it differs perceptibly from what the receiver predicts in its absence
//! (Hinterseer 2008), and now and then as a sign of life.
//!
//! ```text
//! |x - x̂| > max(δ |x̂|, floor),  δ = 10 %        or 100 ms since the last one
//! x̂ = the same predictor that the receiver runs, fed with what went
//! ```
//! A lost sample lets the two predictors drift apart until the next one goes; the sign of life bounds that time. The
//! receiver runs the predictor of this name as a `predict` hook.

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    model::Predictor,
    param::{Fault, Params as _},
    params,
    time::Time,
};

use super::{distance, must_go, norm, verdict, SHARES};
use crate::predictor;

// [Hinterseer 2008: deadband]
params! {
    /// Parameters.
    pub struct Params {
        delta: f64 = Number, "0.10", SHARES, "just noticeable difference, as a share of the prediction";
        floor: f64 = Number, "0.01", NOT_NEGATIVE, "just noticeable difference of small signals, in the unit of the values";
        keep_alive_ns: f64 = Ns, "100 ms", 0.0..=1e15, "longest time without a sample; 0: without end";
        values: Vec<usize> = List(&Count), "[]", NOT_NEGATIVE, "values to compare; empty: all. A message of a bilateral scheme carries a number, which always differs";
        predictor: String = Text, "zoh", ANY, "name of the predictor";
        prediction: Value = Object, "{}", ANY, "parameters of the predictor";
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
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let params = Params::of(params)?;
        let predictor =
            predictor(&params.predictor, &params.prediction).map_err(|e| e.within("prediction"))?;
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
