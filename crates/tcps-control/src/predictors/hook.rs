//! A predictor as a `predict` hook: it answers for now, and a correction is blended in over 3 ms.
//!
//! ```text
//! guess(now)   the predictor at   origin of the newest sample + time since it came + ahead_ms
//! out          guess(now) + jump (1 - t / blend_ms),   t = time since the newest sample came,
//!              jump = what was given out for that moment less what is guessed for it now
//! ```
//! Gaps are filled and the age of a sample at its arrival is left as it is; `ahead_ms` makes up for a known one. Where
//! the clocks of the nodes agree, `to = "now"` takes the true age.

use serde::Deserialize;
use serde_json::{Map, Value};
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    model::Predictor,
    param::{Entry, Fault, Make, Params as _},
    params,
    time::Time,
};

// [model: predictors] blend over 3 ms
params! {
    /// Parameters of every predictor's hook, beside those of the predictor itself.
    pub struct Params {
        to: To = Choice(&["arrival", "now"]), "arrival", ANY, "moment that the output predicts";
        ahead_ms: f64 = Number, "0", NOT_NEGATIVE, "time beyond the moment of `to`, in ms";
        most_ms: f64 = Number, "200", POSITIVE, "longest prediction beyond the newest sample, in ms; later the output stays the same";
        blend_ms: f64 = Number, "3", NOT_NEGATIVE, "time over which a correction is blended in, in ms";
    }
}

/// The moment that a guess is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum To {
    /// The moment of origin of what would be arriving now.
    Arrival,
    /// Now, by the clocks of both nodes.
    Now,
}

/// The hook.
pub struct Predict {
    params: Params,
    predictor: Box<dyn Predictor>,
    newest: Option<Newest>,
    jump: Vec<f64>,
    guess: Vec<f64>,
}

/// The newest sample's moments.
#[derive(Debug, Clone, Copy)]
struct Newest {
    origin: Time,
    arrived: Time,
}

impl Predict {
    /// Reads its parameters and gives the others to the predictor.
    pub fn new(params: &Value, predictor: &Entry<Make<dyn Predictor>>) -> Result<Self, Fault> {
        let (mine, theirs) = divided(params);
        let params = Params::of(&mine)?;
        let predictor = (predictor.make)(&predictor.complete(&theirs)?)?;
        Ok(Self { params, predictor, newest: None, jump: Vec::new(), guess: Vec::new() })
    }

    /// The predictor's time that belongs to `now`.
    fn at(&self, newest: Newest, now: Time) -> Time {
        let since = match self.params.to {
            To::Arrival => now.saturating_sub(newest.arrived),
            To::Now => now.saturating_sub(newest.origin),
        };
        let ahead = since.max(0).saturating_add(ns(self.params.ahead_ms));
        newest.origin.saturating_add(ahead.min(ns(self.params.most_ms)))
    }

    /// Guesses for `now` into `self.guess`, blended.
    fn answer(&mut self, now: Time) -> bool {
        let Some(newest) = self.newest else { return false };
        let known = self.predictor.predict(self.at(newest, now), &mut self.guess);
        let span = ns(self.params.blend_ms).max(1) as f64;
        let share = 1.0 - (now.saturating_sub(newest.arrived)).max(0) as f64 / span;
        if share > 0.0 {
            self.guess.iter_mut().zip(&self.jump).for_each(|(y, jump)| *y += share * jump);
        }
        known
    }

    fn take(&mut self, now: Time, origin: Time, x: &[f64]) {
        if self.newest.is_some_and(|n| origin <= n.origin) {
            return;
        }
        let before = self.guess.len() == x.len() && self.answer(now);
        self.guess.resize(x.len(), 0.0);
        self.jump.clear();
        self.jump.extend(self.guess.iter().map(|y| if before { *y } else { 0.0 }));
        self.predictor.update(origin, Some(x));
        let newest = Newest { origin, arrived: now };
        self.newest = Some(newest);
        self.predictor.predict(self.at(newest, now), &mut self.guess);
        self.jump.iter_mut().zip(&self.guess).for_each(|(old, new)| {
            *old = if before && self.params.blend_ms > 0.0 { *old - new } else { 0.0 };
        });
    }
}

impl Hook for Predict {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present != 0 {
            if input.x().is_empty() || input.x().iter().any(|v| !v.is_finite()) {
                return Verdict::Failed(format!(
                    "needs values, all finite; found {} of them",
                    input.x().len()
                ));
            }
            self.take(input.now_ns, input.origin_ns, input.x());
        }
        match self.answer(input.now_ns) {
            true => {
                output.set(&self.guess);
                Verdict::Emit
            }
            false => Verdict::Nothing,
        }
    }
}

/// The hook's parameters and the predictor's.
fn divided(params: &Value) -> (Value, Value) {
    let given = params.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), value.clone()));
    let (mine, theirs): (Map<_, _>, Map<_, _>) =
        given.partition(|(key, _)| Params::TABLE.iter().any(|p| p.key == key));
    (mine.into(), theirs.into())
}

fn ns(ms: f64) -> Time {
    (ms * 1e6) as Time
}
