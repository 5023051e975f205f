//! Confidence intervals of means: Student's t, and batch means for values that follow each other.
//!
//! Latencies behind a queue are correlated, so the plain interval is too narrow; means of 20 consecutive batches
//! are nearly independent (Law and Kelton, chapter 9). Both are reported.

use super::tally::{Distribution, Tally};
use serde::Serialize;
use std::f64::consts::PI;

/// Number of batches.
pub const BATCHES: usize = 20;
/// Fewest values for which batches are made: two a batch.
const FEWEST: u64 = 2 * BATCHES as u64;
/// Small batches that are kept; when they run out, neighbours merge.
const PARTS: usize = 64 * BATCHES;

/// The value that Student's t with `nu` degrees of freedom exceeds with probability 0.025.
///
/// Hill 1970, algorithm 396 (Comm. ACM 13): exact for 1 and 2, six digits beyond. This room only analyses, so it
/// may use the functions of the standard library.
// [Hill 1970]
pub fn t975(nu: u64) -> f64 {
    let p: f64 = 0.05;
    match nu {
        0 => f64::INFINITY,
        1 => 1.0 / libm::tan(p * PI / 2.0),
        2 => (2.0 / (p * (2.0 - p)) - 2.0).sqrt(),
        _ => hill(p, nu as f64),
    }
}

fn hill(p: f64, n: f64) -> f64 {
    let a = 1.0 / (n - 0.5);
    let b = (48.0 / a) / a;
    let mut c = ((20_700.0 * a / b - 98.0) * a - 16.0) * a + 96.36;
    let d = ((94.5 / (b + c) - 3.0) / b + 1.0) * (a * PI / 2.0).sqrt() * n;
    let mut y = libm::pow(d * p, 2.0 / n);
    if y > 0.05 + a {
        let x = -1.959_963_984_540_054;
        y = x * x;
        if n < 5.0 {
            c += 0.3 * (n - 4.5) * (x + 0.6);
        }
        c += (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b;
        y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x;
        y = libm::expm1(a * y * y);
    } else {
        let tail = 1.0 / (((n + 6.0) / (n * y) - 0.089 * d - 0.822) * (n + 2.0) * 3.0);
        y = ((tail + 0.5 / (n + 4.0)) * y - 1.0) * (n + 1.0) / (n + 2.0) + 1.0 / y;
    }
    (n * y).sqrt()
}

/// Half width of the 95 % interval of a mean.
pub fn half_width(n: u64, sd: f64) -> Option<f64> {
    (n >= 2).then(|| t975(n - 1) * sd / (n as f64).sqrt())
}

/// Sums of consecutive values; bounded, however many values come.
#[derive(Debug, Clone, Default)]
pub struct Batches {
    sums: Vec<i128>,
    size: u64,
    open: (u64, i128),
}

impl Batches {
    /// The next value.
    pub fn add(&mut self, value: i64) {
        self.size = self.size.max(1);
        self.open = (self.open.0 + 1, self.open.1 + i128::from(value));
        if self.open.0 == self.size {
            self.sums.push(self.open.1);
            self.open = (0, 0);
        }
        if self.sums.len() == PARTS {
            self.sums = self.sums.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.size *= 2;
        }
    }

    /// Half width of the 95 % interval from the means of 20 equal batches; the oldest values that do not fill a
    /// batch are left out. `None` below 40 values.
    pub fn half_width(&self) -> Option<f64> {
        let per = self.sums.len() / BATCHES;
        if (self.sums.len() as u64) * self.size < FEWEST || per == 0 {
            return None;
        }
        let kept = &self.sums[self.sums.len() - per * BATCHES..];
        let values = (per as u64 * self.size) as f64;
        let means: Vec<f64> = kept.chunks(per).map(|c| c.iter().sum::<i128>() as f64 / values).collect();
        let mean = means.iter().sum::<f64>() / BATCHES as f64;
        let variance = means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / (BATCHES - 1) as f64;
        half_width(BATCHES as u64, variance.sqrt())
    }
}

/// A distribution whose mean has intervals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// The distribution.
    #[serde(flatten)]
    pub distribution: Distribution,
    /// Half width of the 95 % interval of the mean, values taken as independent.
    pub ci95: Option<f64>,
    /// The same from 20 batch means.
    pub ci95_batch: Option<f64>,
}

/// Values of which an estimate is wanted.
#[derive(Debug, Clone, Default)]
pub struct Estimator {
    tally: Tally,
    batches: Batches,
}

impl Estimator {
    /// The next value.
    pub fn add(&mut self, value: i64) {
        self.tally.add(value);
        self.batches.add(value);
    }

    /// Number of values.
    pub fn n(&self) -> u64 {
        self.tally.n()
    }

    /// The estimate of the values times `factor`; `None` of nothing.
    pub fn estimate(&self, factor: f64) -> Option<Estimate> {
        let d = self.tally.distribution()?;
        let times = |v: f64| v * factor;
        Some(Estimate {
            ci95: half_width(d.n, d.sd).map(times),
            ci95_batch: self.batches.half_width().map(times),
            distribution: Distribution {
                n: d.n,
                min: times(d.min),
                mean: times(d.mean),
                sd: times(d.sd),
                p50: times(d.p50),
                p95: times(d.p95),
                p99: times(d.p99),
                p999: times(d.p999),
                max: times(d.max),
            },
        })
    }

    /// The values' histogram.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [Hill 1970]
    #[test]
    fn t_is_that_of_the_printed_tables() {
        let table = [
            (1, 12.7062),
            (2, 4.30265),
            (3, 3.18245),
            (4, 2.77645),
            (5, 2.57058),
            (9, 2.26216),
            (19, 2.09302),
            (29, 2.04523),
            (99, 1.98422),
            (4999, 1.96044),
        ];
        for (nu, t) in table {
            assert!((t975(nu) / t - 1.0).abs() < 5e-5, "{nu}: {} against {t}", t975(nu));
        }
    }

    // [Hill 1970]
    #[test]
    fn t_is_exact_to_six_digits_and_more_the_more_values_there_are() {
        // By scipy.stats.t.ppf(0.975, nu), with the error that the algorithm has.
        let table = [
            (3, 3.182_446_305_283_707_8, 1e-6),
            (4, 2.776_445_105_197_793_4, 1e-7),
            (5, 2.570_581_835_636_314_6, 1e-7),
            (6, 2.446_911_851_144_978_6, 1e-7),
            (8, 2.306_004_135_204_166, 1e-8),
            (12, 2.178_812_829_667_228_4, 2e-9),
            (19, 2.093_024_054_408_308_7, 2e-10),
            (49, 2.009_575_237_129_239_2, 1e-11),
            (999, 1.962_341_461_133_449_3, 1e-14),
        ];
        for (nu, t, allowed) in table {
            assert!((t975(nu) / t - 1.0).abs() < allowed, "{nu}: {} against {t}", t975(nu));
        }
        assert_eq!(t975(0), f64::INFINITY, "one value says nothing of how values spread");
    }

    #[test]
    fn half_width_of_known_values() {
        let mut e = Estimator::default();
        [8, 9, 10, 11, 12].into_iter().for_each(|v| e.add(v));
        let got = e.estimate(1.0).unwrap();
        assert!((got.ci95.unwrap() - 2.77645 * 2.5f64.sqrt() / 5f64.sqrt()).abs() < 1e-4);
        assert_eq!(got.ci95_batch, None);
        assert_eq!(e.estimate(0.5).unwrap().distribution.mean, 5.0);
    }

    // [Polachan 2022: echoes]
    #[test]
    fn batch_means_see_the_correlation_that_the_plain_interval_misses() {
        // Blocks of 100 equal values: 5000 values, but only 50 independent ones.
        let mut e = Estimator::default();
        let mut x = 1u64;
        for _ in 0..50 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (0..100).for_each(|_| e.add((x >> 44) as i64));
        }
        let got = e.estimate(1.0).unwrap();
        let ratio = got.ci95_batch.unwrap() / got.ci95.unwrap();
        assert!(ratio > 5.0 && ratio < 20.0, "{ratio}");
    }

    #[test]
    fn batches_hold_two_values_at_least() {
        let of = |n: i64| {
            let mut b = Batches::default();
            (0..n).for_each(|v| b.add(v));
            b.half_width()
        };
        assert_eq!(of(39), None);
        // Means of pairs: 0.5, 2.5, 4.5 ...
        let expected = t975(19) * (35.0f64 * 4.0).sqrt() / 20f64.sqrt();
        assert!((of(40).unwrap() / expected - 1.0).abs() < 1e-9);
    }

    #[test]
    fn batches_of_a_ramp_have_its_known_spread_and_bounded_memory() {
        let mut b = Batches::default();
        (0..100_000).for_each(|v| b.add(v));
        assert!(b.sums.len() < PARTS);
        // 20 equally spaced means a step s apart: variance s^2 * 20 * 21 / 12 = 35 s^2.
        let per = (b.sums.len() / BATCHES) as f64 * b.size as f64;
        let expected = t975(19) * (35.0 * per * per).sqrt() / 20f64.sqrt();
        assert!((b.half_width().unwrap() / expected - 1.0).abs() < 1e-9);
    }
}
