//! Predictor `ar`: autoregression of order p, learned on line by recursive least squares.
//!
//! ```text
//! x^(n+1) = sum a_i x(n+1-i), i = 1..p, each value of the sample by itself, on the grid of the period T
//! a       recursive least squares, forgetting 0.995, P(0) = 1000 I, a(0) = (1, 0, ..)
//! gap     the guess goes in for the missing sample, and a is left as it is
//! ahead   iterated h / T times, linear in between
//! ```
//! If the fit would grow without bound (a root outside the unit circle), what it adds to the last sample is multiplied
//! by the largest `leak` = 1 - 2^-k in each step that keeps it bounded: it leaks towards the zero-order hold.

use serde_json::Value;
use tcps_core::{
    model::Predictor,
    param::{Fault, Params as _},
    params,
    time::Time,
};

use super::usable;

/// Highest order.
const MOST: usize = 8;
/// Most steps that are iterated; what lies beyond holds.
const MOST_STEPS: i64 = 1000;
/// A longer gap, in periods, starts the history again at the next sample.
const LONGEST_GAP: i64 = 64;
/// Uncertainty of the weights at the beginning, and the most that forgetting may let it grow to.
const P0: f64 = 1e3;
const P_MOST: f64 = 1e9;

params! {
    /// Parameters.
    pub struct Params {
        order: usize = Count, "4", 1.0..=MOST as f64, "samples in a prediction";
        period_ms: f64 = Number, "1", POSITIVE, "time between samples, in ms";
        forgetting: f64 = Number, "0.995", 0.5..=1.0, "weight of a sample relative to the one after it";
    }
}

/// The predictor.
#[derive(Debug, Clone)]
pub struct Ar {
    params: Params,
    period_ns: i64,
    last: Option<Time>,
    axes: Vec<Axis>,
}

/// One value of the samples.
#[derive(Debug, Clone)]
struct Axis {
    /// Newest first.
    past: [f64; MOST],
    weights: [f64; MOST],
    covariance: [[f64; MOST]; MOST],
    leak: f64,
    /// Last sample that was there.
    real: f64,
}

impl Ar {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let params = Params::of(params)?;
        if params.forgetting <= 0.5 {
            return Err(Fault::new("forgetting", params.forgetting, "above 0.5, at most 1"));
        }
        let period_ns = ((params.period_ms * 1e6) as i64).max(1);
        Ok(Self { params, period_ns, last: None, axes: Vec::new() })
    }

    /// Grid steps from the last sample to `at`, rounded.
    fn steps(&self, at: Time) -> i64 {
        self.last.map_or(0, |t| (at.saturating_sub(t).saturating_add(self.period_ns / 2)) / self.period_ns)
    }

    /// Guesses go in for `n` missing samples.
    fn bridge(&mut self, n: i64) {
        for axis in &mut self.axes {
            for _ in 0..n.min(LONGEST_GAP) {
                let guess = axis.guess(&axis.past, self.params.order);
                push(&mut axis.past, guess, self.params.order);
            }
        }
    }

    fn take(&mut self, at: Time, x: &[f64]) {
        let steps = self.steps(at);
        if self.axes.len() != x.len() {
            self.axes = x.iter().map(|v| Axis::new(*v, self.params.order)).collect();
        } else if steps > LONGEST_GAP {
            self.axes.iter_mut().zip(x).for_each(|(axis, v)| axis.begin(*v));
        } else {
            self.bridge(steps - 1);
            for (axis, v) in self.axes.iter_mut().zip(x) {
                axis.learn(*v, self.params.order, self.params.forgetting);
            }
        }
        self.last = Some(at);
    }
}

impl Axis {
    fn new(x: f64, order: usize) -> Self {
        let (mut weights, mut covariance) = ([0.0; MOST], [[0.0; MOST]; MOST]);
        weights[0] = 1.0;
        (0..order).for_each(|i| covariance[i][i] = P0);
        Self { past: [x; MOST], weights, covariance, leak: 1.0, real: x }
    }

    /// Starts the history again; the weights stay.
    fn begin(&mut self, x: f64) {
        (self.past, self.real) = ([x; MOST], x);
    }

    /// The sample after `past`.
    fn guess(&self, past: &[f64; MOST], order: usize) -> f64 {
        let free: f64 = (0..order).map(|i| self.weights[i] * past[i]).sum();
        self.real + self.leak * (free - self.real)
    }

    // [model: predictors] AR(p) by recursive least squares
    fn learn(&mut self, x: f64, order: usize, forgetting: f64) {
        let past = self.past;
        let mut gain = [0.0; MOST];
        for (g, row) in gain.iter_mut().zip(&self.covariance).take(order) {
            *g = (0..order).map(|j| row[j] * past[j]).sum();
        }
        let scale = forgetting + (0..order).map(|i| past[i] * gain[i]).sum::<f64>();
        let error = x - (0..order).map(|i| self.weights[i] * past[i]).sum::<f64>();
        (0..order).for_each(|i| self.weights[i] += gain[i] / scale * error);
        for i in 0..order {
            for j in 0..=i {
                let p = (self.covariance[i][j] - gain[i] * gain[j] / scale) / forgetting;
                (self.covariance[i][j], self.covariance[j][i]) = (p, p);
            }
        }
        self.mend(order);
        push(&mut self.past, x, order);
        self.real = x;
        self.leak = leak(&self.weights, order);
    }

    /// Without excitation forgetting blows the covariance up, and rounding may make it indefinite.
    fn mend(&mut self, order: usize) {
        let trace: f64 = (0..order).map(|i| self.covariance[i][i]).sum();
        let definite = (0..order).all(|i| self.covariance[i][i] > 0.0);
        if !definite || !trace.is_finite() || trace > P_MOST * order as f64 {
            for (i, row) in self.covariance.iter_mut().enumerate() {
                *row = [0.0; MOST];
                row[i] = if i < order { P0 } else { 0.0 };
            }
        }
        if self.weights.iter().any(|w| !w.is_finite()) {
            self.weights = [0.0; MOST];
            self.weights[0] = 1.0;
        }
    }
}

fn push(past: &mut [f64; MOST], x: f64, order: usize) {
    past.copy_within(..order - 1, 1);
    past[0] = x;
}

/// The largest 1 - 2^-k, or 1, by which the weights are multiplied so that no root lies outside the unit circle.
fn leak(weights: &[f64; MOST], order: usize) -> f64 {
    let candidates = [1.0].into_iter().chain((1..=10).rev().map(|k| 1.0 - libm::scalbn(1.0, -k)));
    candidates.into_iter().find(|&leak| bounded(weights, order, leak)).unwrap_or(0.0)
}

/// Whether all roots of z^p - leak (a_1 z^(p-1) + .. + a_p) lie in the unit circle (Levinson's recursion backwards:
/// all reflection coefficients below 1), up to the rounding that puts a constant signal's root beside 1.
fn bounded(weights: &[f64; MOST], order: usize, leak: f64) -> bool {
    const SLACK: f64 = 1e-6;
    let mut a = weights.map(|w| -leak * w);
    for n in (0..order).rev() {
        let k = a[n];
        if k.abs() > 1.0 + SLACK {
            return false;
        }
        let rest = 1.0 - k * k;
        if rest.abs() < SLACK {
            return true;
        }
        let before = a;
        (0..n).for_each(|i| a[i] = (before[i] - k * before[n - 1 - i]) / rest);
    }
    true
}

impl Predictor for Ar {
    fn update(&mut self, at: Time, sample: Option<&[f64]>) {
        match (usable(self.last, at, sample), sample) {
            (Some(x), _) => self.take(at, x),
            (None, None) => {
                let steps = self.steps(at);
                self.bridge(steps);
                self.last = self.last.map(|t| t + steps.max(0) * self.period_ns);
            }
            _ => {}
        }
    }

    fn predict(&self, at: Time, out: &mut [f64]) -> bool {
        let Some(last) = self.last else { return false };
        let ahead = at.saturating_sub(last).clamp(0, MOST_STEPS * self.period_ns);
        let share = (ahead % self.period_ns) as f64 / self.period_ns as f64;
        for (y, axis) in out.iter_mut().zip(&self.axes) {
            let mut past = axis.past;
            for _ in 0..ahead / self.period_ns {
                let next = axis.guess(&past, self.params.order);
                push(&mut past, next, self.params.order);
            }
            *y = past[0];
            if share > 0.0 {
                *y += share * (axis.guess(&past, self.params.order) - past[0]);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(a: &[f64]) -> [f64; MOST] {
        let mut w = [0.0; MOST];
        w[..a.len()].copy_from_slice(a);
        w
    }

    /// Roots by hand: 0.5 and 0.9 stay, 1.1 does not, nor does a pair at radius 1.05.
    #[test]
    fn the_recursion_tells_roots_inside_the_circle_from_those_outside() {
        assert!(bounded(&weights(&[1.4, -0.45]), 2, 1.0));
        assert!(!bounded(&weights(&[1.6, -0.55]), 2, 1.0));
        assert!(!bounded(&weights(&[1.0, -1.1025]), 2, 1.0));
        assert!(bounded(&weights(&[1.0]), 1, 1.0), "a hold");
    }

    /// [model: predictors] A leak makes an unstable fit bounded: here the root 1.1 of first order becomes 0.9625.
    #[test]
    fn an_unstable_fit_leaks() {
        assert_eq!(leak(&weights(&[0.9]), 1), 1.0);
        assert_eq!(leak(&weights(&[1.1]), 1), 0.875);
    }
}
