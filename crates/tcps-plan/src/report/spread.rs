//! A histogram in a few numbers.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Mean and percentiles of a histogram in nanoseconds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Spread {
    mean: f64,
    p50: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

impl Spread {
    /// Of a histogram.
    pub fn of(h: &Histogram<u64>) -> Self {
        let q = |p| h.value_at_quantile(p);
        Self { mean: h.mean(), p50: q(0.5), p99: q(0.99), p999: q(0.999), max: h.max() }
    }
}

/// Draws from a distribution.
#[derive(Debug, Clone, Serialize)]
pub struct Drawn {
    n: u64,
    sd: f64,
    #[serde(flatten)]
    spread: Spread,
}

impl Drawn {
    /// Of a histogram.
    pub fn of(h: &Histogram<u64>) -> Self {
        Self { n: h.len(), sd: h.stdev(), spread: Spread::of(h) }
    }
}

/// What calls of code of the user's took, which the network waited for.
#[derive(Debug, Clone, Serialize)]
pub struct CodeCost {
    name: String,
    calls: u64,
    took_ns: Spread,
}

impl CodeCost {
    /// Of code by its name.
    pub fn of(name: String, took_ns: &Histogram<u64>) -> Self {
        Self { name, calls: took_ns.len(), took_ns: Spread::of(took_ns) }
    }
}

/// Percentiles 0 to 100 of a histogram; none if it is empty.
pub fn quantiles(h: &Histogram<u64>) -> Vec<u64> {
    let all = if h.is_empty() { 0..0 } else { 0..101 };
    all.map(|p| h.value_at_quantile(f64::from(p) / 100.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// 1 to 100 ns, each once: the percentile is the number.
    fn hundred() -> Histogram<u64> {
        let mut h = tcps_core::report::histogram();
        (1..=100).for_each(|n| h.record(n).expect("in bounds"));
        h
    }

    /// Pages and comparisons read these keys.
    #[test]
    fn a_spread_has_the_mean_and_the_percentiles_of_its_histogram() {
        let spread = json!({"mean": 50.5, "p50": 50, "p99": 99, "p999": 100, "max": 100});
        assert_eq!(serde_json::to_value(Spread::of(&hundred())).unwrap(), spread);
        let cost = serde_json::to_value(CodeCost::of("m:C".into(), &hundred())).unwrap();
        assert_eq!(cost, json!({"name": "m:C", "calls": 100, "took_ns": spread}));
        let drawn = serde_json::to_value(Drawn::of(&hundred())).unwrap();
        let sd = drawn["sd"].as_f64().unwrap();
        assert!((sd - f64::sqrt(833.25)).abs() < 1e-9, "of 100 draws, not an estimate from them: {sd}");
        assert_eq!((&drawn["n"], &drawn["p99"]), (&json!(100), &json!(99)), "beside its percentiles");
    }

    /// Virtual time draws costs and latencies between these; a stage that was never called has none to draw from.
    #[test]
    fn there_are_101_percentiles_from_the_smallest_to_the_largest_or_none() {
        let found = quantiles(&hundred());
        assert_eq!(found.len(), 101);
        assert_eq!([0, 1, 50, 99, 100].map(|p| found[p]), [1, 1, 50, 99, 100]);
        assert_eq!(quantiles(&tcps_core::report::histogram()), [0; 0]);
    }
}
