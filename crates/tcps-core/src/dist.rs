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
    /// Gumbel (largest extreme value), cut at zero; the shape of blocked transfers (Al-Mouhamed).
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
    /// Draws a bin of a measured histogram by its count, and uniformly within it.
    Histogram {
        /// Where bins begin, rising, and where the last one ends: one more than there are counts.
        edges_ns: Vec<i64>,
        /// Spans counted in each bin.
        counts: Vec<u32>,
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
    /// Of a histogram: how many spans are in each bin and those before it.
    cumulated: Vec<u64>,
}

impl Sampler {
    /// A sampler of `dist` for the object `name`.
    pub fn new(dist: Dist, seed: u64, name: &str) -> Self {
        let mut sum = 0;
        let counts = match &dist {
            Dist::Histogram { counts, .. } => &counts[..],
            _ => &[],
        };
        let cumulated = counts.iter().map(|&c| {
            sum += u64::from(c);
            sum
        });
        Self { cumulated: cumulated.collect(), stream: Stream::new(seed, name), position: 0, dist }
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
            Dist::Histogram { edges_ns, .. } => {
                let drawn = s.below(self.cumulated.last().copied().unwrap_or(0).max(1));
                let bin = self.cumulated.partition_point(|&c| c <= drawn);
                let edge = |i: usize| edges_ns.get(i).copied().unwrap_or(0);
                edge(bin) + (s.unit() * (edge(bin + 1) - edge(bin)) as f64) as i64
            }
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
        let (edges_ns, counts) = (vec![0, 1_000, 10_000, 50_000], vec![1, 0, 3]);
        close(mean(Dist::Histogram { edges_ns, counts }), 0.25 * 500.0 + 0.75 * 30_000.0);
        close(mean(Dist::Empirical { quantiles_ns: vec![0, 10_000, 40_000] }), 15_000.0);
    }

    #[test]
    fn a_histogram_gives_bins_as_often_as_they_were_counted_and_nothing_between() {
        let dist = Dist::Histogram { edges_ns: vec![100, 200, 300, 400], counts: vec![900, 0, 100] };
        let mut s = Sampler::new(dist, 1, "t");
        let drawn: Vec<_> = (0..100_000).map(|_| s.draw()).collect();
        let within = |low, high| drawn.iter().filter(|d| (low..high).contains(*d)).count() as f64 / 1e5;
        assert!((within(100, 200) - 0.9).abs() < 0.003 && (within(300, 400) - 0.1).abs() < 0.003);
        assert!((within(100, 150) - 0.45).abs() < 0.005, "uniform within a bin");
        assert_eq!(within(200, 300), 0.0);
    }

    #[test]
    fn a_trace_repeats_in_order() {
        let mut s = Sampler::new(Dist::Trace { ns: vec![5, 7] }, 1, "t");
        assert_eq!([s.draw(), s.draw(), s.draw()], [5, 7, 5]);
    }
}
