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
