//! A span of time as a constant, a distribution or a measured trace: costs, delays, jitter.

use crate::{
    seed::Stream,
    time::{Time, SECOND},
};
use serde::Deserialize;

/// Where a span comes from; all values in nanoseconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Dist {
    /// Always the same.
    Constant {
        /// The span.
        ns: i64,
    },
    /// Uniform between two spans.
    Uniform {
        /// Smallest.
        low_ns: i64,
        /// Largest.
        high_ns: i64,
    },
    /// Normal, cut at zero.
    Normal {
        /// Mean.
        mean_ns: f64,
        /// Standard deviation.
        sd_ns: f64,
    },
    /// `shift` plus an exponential.
    Exponential {
        /// Mean of the exponential part.
        mean_ns: f64,
        /// Smallest value.
        #[serde(default)]
        shift_ns: i64,
    },
    /// Gumbel (largest extreme value), cut at zero; the shape of blocked transfers (PROTOCOLS 7).
    Gumbel {
        /// Location.
        mode_ns: f64,
        /// Scale.
        scale_ns: f64,
    },
    /// Pareto with the given smallest value and tail index.
    Pareto {
        /// Smallest value.
        scale_ns: f64,
        /// Tail index, above 1 for a finite mean.
        shape: f64,
    },
    /// A measured trace, replayed in order and repeated.
    Trace {
        /// The recorded spans.
        ns: Vec<i64>,
    },
    /// Draws from a histogram of measured spans: inverse of the empirical distribution, linear between its points.
    Empirical {
        /// Quantiles at equally spaced probabilities from 0 to 1.
        quantiles_ns: Vec<i64>,
    },
}

impl Dist {
    /// True if every draw is the same span.
    pub fn constant(&self) -> Option<Time> {
        match self {
            Dist::Constant { ns } => Some(*ns),
            _ => None,
        }
    }
}

/// No stage or link takes longer than this.
const LONGEST: Time = 3600 * SECOND;

/// A distribution with its random stream and, for a trace, its position.
#[derive(Debug, Clone)]
pub struct Sampler {
    dist: Dist,
    stream: Stream,
    position: usize,
}

impl Sampler {
    /// A sampler of `dist` for the object `name`.
    pub fn new(dist: Dist, seed: u64, name: &str) -> Self {
        Self { dist, stream: Stream::new(seed, name), position: 0 }
    }

    /// The next span, from 0 to an hour.
    pub fn draw(&mut self) -> Time {
        let s = &mut self.stream;
        let ns = match &self.dist {
            Dist::Constant { ns } => *ns,
            Dist::Uniform { low_ns, high_ns } => low_ns + (s.unit() * (high_ns - low_ns) as f64) as i64,
            Dist::Normal { mean_ns, sd_ns } => (mean_ns + sd_ns * s.normal()) as i64,
            Dist::Exponential { mean_ns, shift_ns } => shift_ns + s.exponential(*mean_ns) as i64,
            Dist::Gumbel { mode_ns, scale_ns } => {
                (mode_ns - scale_ns * libm::log(-libm::log(1.0 - s.unit()))) as i64
            }
            Dist::Pareto { scale_ns, shape } => (scale_ns * libm::pow(1.0 - s.unit(), -1.0 / shape)) as i64,
            Dist::Trace { ns } => {
                let v = ns.get(self.position).copied().unwrap_or(0);
                self.position = if self.position + 1 < ns.len() { self.position + 1 } else { 0 };
                v
            }
            Dist::Empirical { quantiles_ns } => interpolate(quantiles_ns, s.unit()),
        };
        ns.clamp(0, LONGEST)
    }
}

fn interpolate(q: &[i64], u: f64) -> i64 {
    let last = match q.len() {
        0 => return 0,
        n => n - 1,
    };
    let x = u * last as f64;
    let i = (x as usize).min(last);
    let next = q[(i + 1).min(last)];
    q[i] + ((next - q[i]) as f64 * (x - i as f64)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(dist: Dist) -> f64 {
        let mut s = Sampler::new(dist, 1, "test");
        (0..100_000).map(|_| s.draw() as f64).sum::<f64>() / 1e5
    }

    #[test]
    fn means_match_theory() {
        let close = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 0.02, "{got} for {want}");
        close(mean(Dist::Uniform { low_ns: 1_000, high_ns: 3_000 }), 2_000.0);
        close(mean(Dist::Normal { mean_ns: 1e6, sd_ns: 1e5 }), 1e6);
        close(mean(Dist::Exponential { mean_ns: 5e3, shift_ns: 1_000 }), 6e3);
        close(mean(Dist::Gumbel { mode_ns: 1e6, scale_ns: 1e5 }), 1e6 + 0.577_215_7e5);
        close(mean(Dist::Pareto { scale_ns: 1e6, shape: 3.0 }), 1.5e6);
        close(mean(Dist::Empirical { quantiles_ns: vec![0, 10_000, 40_000] }), 15_000.0);
    }

    #[test]
    fn a_trace_repeats_in_order() {
        let mut s = Sampler::new(Dist::Trace { ns: vec![5, 7] }, 1, "t");
        assert_eq!([s.draw(), s.draw(), s.draw()], [5, 7, 5]);
    }
}
