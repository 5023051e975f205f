//! Gaussian and Gumbel laws fitted to a distribution by their moments, and how far they are from it.
//!
//! ```text
//! Gaussian   F(x) = (1 + erf((x - m) / (s sqrt 2))) / 2        m mean, s standard deviation
//! Gumbel     F(x) = exp(-exp(-(x - mode) / scale))             scale = s sqrt 6 / pi, mode = m - 0.5772 scale
//! distance   largest |F(x) - share of values up to x|          (Kolmogorov)
//! ```

use super::tally::Tally;
use serde::Serialize;
use std::f64::consts::PI;

const EULER: f64 = 0.577_215_664_901_532_9;

/// A fitted law.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fit {
    /// Mean (Gaussian) or mode (Gumbel), in the unit of the values.
    pub location: f64,
    /// Standard deviation (Gaussian) or scale (Gumbel).
    pub scale: f64,
    /// Kolmogorov distance, 0 to 1: the smaller, the better.
    pub distance: f64,
}

/// Both laws.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fits {
    /// Normal law.
    pub gaussian: Fit,
    /// Law of largest extremes.
    pub gumbel: Fit,
}

/// Fits both; `None` where nothing varies.
pub fn fit(values: &Tally) -> Option<Fits> {
    let (mean, sd) = (values.mean(), values.sd());
    if sd <= 0.0 {
        return None;
    }
    let scale = sd * 6f64.sqrt() / PI;
    let mode = mean - EULER * scale;
    let cells = values.cells();
    let distance = |law: &dyn Fn(f64) -> f64| kolmogorov(&cells, values.n(), law);
    Some(Fits {
        gaussian: Fit { location: mean, scale: sd, distance: distance(&|x| gaussian((x - mean) / sd)) },
        gumbel: Fit { location: mode, scale, distance: distance(&|x| gumbel((x - mode) / scale)) },
    })
}

fn gaussian(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

fn gumbel(z: f64) -> f64 {
    libm::exp(-libm::exp(-z))
}

/// The law is compared just below and at the far edge of each cell.
fn kolmogorov(cells: &[(f64, f64, u64)], n: u64, law: &dyn Fn(f64) -> f64) -> f64 {
    let (mut before, mut worst) = (0u64, 0f64);
    for &(low, high, count) in cells {
        let after = before + count;
        worst = worst.max((law(low) - before as f64 / n as f64).abs());
        worst = worst.max((law(high) - after as f64 / n as f64).abs());
        before = after;
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: i64 = 20_000;

    fn drawn(inverse: impl Fn(f64) -> f64) -> Fits {
        let mut t = Tally::default();
        (0..N).for_each(|i| t.add(inverse((i as f64 + 0.5) / N as f64) as i64));
        fit(&t).unwrap()
    }

    #[test]
    fn gumbel_values_are_recognised_with_their_parameters() {
        let f = drawn(|u| 5e6 - 3e5 * libm::log(-libm::log(u)));
        assert!(
            (f.gumbel.location / 5e6 - 1.0).abs() < 1e-3 && (f.gumbel.scale / 3e5 - 1.0).abs() < 0.01,
            "{f:?}"
        );
        assert!(f.gumbel.distance < 0.01 && f.gaussian.distance > 0.05, "{f:?}");
    }

    #[test]
    fn normal_values_are_recognised_with_their_parameters() {
        // Sum of 12 stratified uniforms through the logistic approximation would be rough; invert by bisection.
        let inverse = |u: f64| {
            let (mut low, mut high) = (-8.0, 8.0);
            for _ in 0..60 {
                let mid: f64 = (low + high) / 2.0;
                if gaussian(mid) < u {
                    low = mid;
                } else {
                    high = mid;
                }
            }
            1e6 + 1e4 * low
        };
        let f = drawn(inverse);
        assert!(
            (f.gaussian.location - 1e6).abs() < 10.0 && (f.gaussian.scale / 1e4 - 1.0).abs() < 0.01,
            "{f:?}"
        );
        assert!(f.gaussian.distance < 0.03 && f.gumbel.distance > 0.05, "{f:?}");
    }

    #[test]
    fn a_constant_has_no_fit_and_nothing_has_none() {
        let mut t = Tally::default();
        assert_eq!(fit(&t), None);
        (0..9).for_each(|_| t.add(7));
        assert_eq!(fit(&t), None);
    }
}
