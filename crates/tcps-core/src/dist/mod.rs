//! Delay models: spans of time, for costs, delays and jitter. A new one is a file here and its line in `DELAYS`.

mod constant;
mod empirical;
mod exponential;
mod gumbel;
mod histogram;
mod normal;
mod pareto;
mod spans;
mod trace;
mod uniform;

pub use spans::Spans;

use crate::{
    param::{Entry, Fault, Make, Named},
    seed::Stream,
    time::{Time, SECOND},
};
use serde::Deserialize;
use serde_json::Value;

/// The models by name.
pub const DELAYS: &[&Entry<Make<dyn Spans>>] = &[
    &constant::ENTRY,
    &uniform::ENTRY,
    &normal::ENTRY,
    &exponential::ENTRY,
    &gumbel::ENTRY,
    &pareto::ENTRY,
    &empirical::ENTRY,
    &trace::ENTRY,
    &histogram::ENTRY,
];

/// No stage or link takes longer than this.
pub const LONGEST: Time = 3600 * SECOND;

/// Where a span comes from, as a plan has it: `{"kind": "normal", "mean_ns": 3000000, "sd_ns": 1000000}`.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Named")]
pub struct Dist(Box<dyn Spans>);

impl Dist {
    /// The model `kind` with its parameters.
    pub fn new(kind: &str, params: Value) -> Result<Self, Fault> {
        Named::new(kind, params).try_into()
    }
}

impl TryFrom<Named> for Dist {
    type Error = Fault;

    fn try_from(model: Named) -> Result<Self, Fault> {
        let (entry, params) = model.of(DELAYS)?;
        (entry.make)(&params).map(Self)
    }
}

/// The parameters of a model, checked and completed.
pub fn checked(model: &Named) -> Result<Value, Fault> {
    let (entry, params) = model.of(DELAYS)?;
    (entry.make)(&params).map(|_| params)
}

/// A model with its random stream.
#[derive(Debug, Clone)]
pub struct Sampler {
    dist: Dist,
    stream: Stream,
}

impl Sampler {
    /// A sampler of `dist` for the object `name`.
    pub fn new(dist: Dist, seed: u64, name: &str) -> Self {
        Self { stream: Stream::new(seed, name), dist }
    }

    /// The next span, from 0 to an hour.
    pub fn draw(&mut self) -> Time {
        self.dist.0.next(&mut self.stream).clamp(0, LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sampler(kind: &str, params: Value) -> Sampler {
        Sampler::new(Dist::new(kind, params).unwrap(), 1, "test")
    }

    #[test]
    fn means_match_theory() {
        for (kind, params, mean) in [
            ("constant", json!({"span_ns": 2_000}), 2_000.0),
            ("uniform", json!({"low_ns": 1_000, "high_ns": 3_000}), 2_000.0),
            ("normal", json!({"mean_ns": 1_000_000, "sd_ns": 100_000}), 1e6),
            ("exponential", json!({"mean_ns": 5_000, "shift_ns": 1_000}), 6e3),
            ("gumbel", json!({"mode_ns": 1_000_000, "scale_ns": 100_000}), 1e6 + 0.577_215_7e5),
            ("pareto", json!({"scale_ns": 1_000_000, "shape": 3}), 1.5e6),
            ("empirical", json!({"quantiles_ns": [0, 10_000, 40_000]}), 15_000.0),
            ("trace", json!({"spans_ns": [5, 8, 8]}), 7.0),
            (
                "histogram",
                json!({"edges_ns": [0, 1_000, 10_000, 50_000], "counts": [1, 0, 3]}),
                0.25 * 500.0 + 0.75 * 30_000.0,
            ),
        ] {
            let mut s = sampler(kind, params);
            let got = (0..100_000).map(|_| s.draw() as f64).sum::<f64>() / 1e5;
            assert!((got / mean - 1.0).abs() < 0.02, "{kind}: {got} for {mean}");
        }
    }

    #[test]
    fn a_histogram_gives_bins_as_often_as_they_were_counted_and_nothing_between() {
        let bins = json!({"edges_ns": [100, 200, 300, 400], "counts": [900, 0, 100]});
        let mut s = sampler("histogram", bins);
        let drawn: Vec<_> = (0..100_000).map(|_| s.draw()).collect();
        let within = |low, high| drawn.iter().filter(|d| (low..high).contains(*d)).count() as f64 / 1e5;
        assert!((within(100, 200) - 0.9).abs() < 0.003 && (within(300, 400) - 0.1).abs() < 0.003);
        assert!((within(100, 150) - 0.45).abs() < 0.005, "uniform within a bin");
        assert_eq!(within(200, 300), 0.0);
    }

    #[test]
    fn a_trace_repeats_in_order() {
        let mut s = sampler("trace", json!({"spans_ns": [5, 7]}));
        assert_eq!([s.draw(), s.draw(), s.draw()], [5, 7, 5]);
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        for (kind, params, says) in [
            ("gauss", json!({}), "kind: found \"gauss\"; allowed: constant, uniform"),
            ("constant", json!({"span_ns": -1}), "span_ns: found -1 ns; allowed: a span of time from 0 ns"),
            ("constant", json!({}), "span_ns is missing"),
            (
                "uniform",
                json!({"low_ns": 2, "high_ns": 1}),
                "low_ns: found 2 ns; allowed: at most high, 1 ns",
            ),
            ("gumbel", json!({"mode_ns": 0, "scale_ns": 0}), "scale_ns: found 0 ns"),
            ("pareto", json!({"scale_ns": 1, "shape": 0}), "shape: found 0; allowed: a number above 0"),
            (
                "empirical",
                json!({"quantiles_ns": [1]}),
                "quantiles_ns: found 1 of them; allowed: two or more",
            ),
            ("empirical", json!({"quantiles_ns": [2, 1]}), "quantiles_ns: found quantiles out of order"),
            ("trace", json!({"spans_ns": []}), "spans_ns: found no span"),
            (
                "histogram",
                json!({"edges_ns": [1, 1], "counts": [1]}),
                "edges_ns: found edges that do not rise",
            ),
            ("histogram", json!({"edges_ns": [1, 2], "counts": [1, 2]}), "counts: found 2 for 1 bin"),
            ("histogram", json!({"edges_ns": [1, 2], "counts": [0]}), "counts: found nothing counted"),
        ] {
            let fault = Dist::new(kind, params).unwrap_err().to_string();
            assert!(fault.starts_with(says), "{fault}");
        }
    }
}
