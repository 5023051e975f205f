//! Laws of sizes (bytes), numbers and think times (seconds) of traffic over connections.

use crate::seed::Stream;
use serde::Deserialize;

/// Draws tried before a truncated law gives its bound.
const TRIES: u32 = 1000;

/// A distribution of positive numbers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Law {
    /// Always the same.
    Constant {
        /// The value.
        value: f64,
    },
    /// Lognormal: the logarithm has mean `mu` and deviation `sigma`. What falls outside the bounds is drawn again.
    Lognormal {
        /// Mean of the natural logarithm.
        mu: f64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
        /// Least value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// Pareto, less a constant: `scale / u^(1/shape) - less`. What exceeds the largest value becomes it.
    Pareto {
        /// Least value, before `less`.
        scale: f64,
        /// Tail index.
        shape: f64,
        /// Largest value, before `less`.
        max: f64,
        /// What is taken off.
        #[serde(default)]
        less: f64,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: f64,
    },
    /// Measured: the first value whose cumulative probability reaches a uniform draw.
    Empirical {
        /// Values in rising order.
        values: Vec<f64>,
        /// Cumulative probability of each, the last one 1.
        cumulative: Vec<f64>,
    },
}

impl Law {
    /// A value.
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        match self {
            Law::Constant { value } => *value,
            Law::Exponential { mean } => stream.exponential(*mean),
            Law::Lognormal { mu, sigma, min, max } => {
                within(*min, *max, || libm::exp(mu + sigma * stream.normal()))
            }
            Law::Pareto { scale, shape, max, less } => {
                (scale / libm::pow(1.0 - stream.unit(), 1.0 / shape)).min(*max) - less
            }
            Law::Empirical { values, cumulative } => {
                let u = stream.unit();
                let at = cumulative.partition_point(|c| *c <= u);
                values.get(at).or(values.last()).copied().unwrap_or(0.0)
            }
        }
    }

    /// What is wrong with it, if anything.
    pub fn fault(&self) -> Option<&'static str> {
        let number = |x: &f64| x.is_finite() && *x >= 0.0;
        let sound = match self {
            Law::Constant { value } => number(value),
            Law::Exponential { mean } => number(mean),
            Law::Lognormal { mu, sigma, min, max } => {
                mu.is_finite() && number(sigma) && number(min) && number(max) && min <= max
            }
            Law::Pareto { scale, shape, max, less } => {
                *scale > 0.0
                    && *shape > 0.0
                    && max.is_finite()
                    && scale <= max
                    && number(less)
                    && less <= scale
            }
            Law::Empirical { values, cumulative } => {
                let rising = |v: &[f64]| v.windows(2).all(|w| w[0] <= w[1]) && v.iter().all(number);
                let end = cumulative.last().is_some_and(|c| (c - 1.0).abs() < 1e-6);
                values.len() == cumulative.len() && rising(values) && rising(cumulative) && end
            }
        };
        (!sound).then_some("a law with finite, positive and ordered parameters")
    }
}

/// A draw between two bounds; the nearer bound if a thousand draws all miss.
fn within(min: f64, max: f64, mut draw: impl FnMut() -> f64) -> f64 {
    let mut x = draw();
    for _ in 0..TRIES {
        if (min..=max).contains(&x) {
            return x;
        }
        x = draw();
    }
    x.clamp(min, max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(law: &Law, n: u32) -> f64 {
        let mut stream = Stream::new(1, "law");
        (0..n).map(|_| law.draw(&mut stream)).sum::<f64>() / f64::from(n)
    }

    /// The means that the model gives for its parameters. [3GPP TR 25.892 §A.2]
    #[test]
    fn the_3gpp_web_page_has_its_published_means() {
        let main = Law::Lognormal { mu: 8.37, sigma: 1.37, min: 100.0, max: 2e6 };
        // The parameters are published with two decimals.
        assert!((mean(&main, 400_000) / 10_710.0 - 1.0).abs() < 0.05, "{}", mean(&main, 400_000));
        let embedded = Law::Lognormal { mu: 6.17, sigma: 2.36, min: 50.0, max: 2e6 };
        assert!((mean(&embedded, 400_000) / 7_758.0 - 1.0).abs() < 0.08, "{}", mean(&embedded, 400_000));
        let number = Law::Pareto { scale: 2.0, shape: 1.1, max: 55.0, less: 2.0 };
        let count = mean(&number, 400_000);
        assert!((count - 5.64).abs() < 0.1, "{count}");
    }

    #[test]
    fn measured_values_come_as_often_as_they_were_measured() {
        let law = Law::Empirical { values: vec![1.0, 5.0, 9.0], cumulative: vec![0.5, 0.75, 1.0] };
        let mut stream = Stream::new(2, "law");
        let mut counts = [0u32; 3];
        for _ in 0..100_000 {
            counts[(law.draw(&mut stream) / 4.0) as usize] += 1;
        }
        assert!(counts[0].abs_diff(50_000) < 800 && counts[1].abs_diff(25_000) < 800, "{counts:?}");
    }

    #[test]
    fn laws_that_cannot_be_drawn_from_are_refused() {
        for bad in [
            Law::Constant { value: f64::NAN },
            Law::Exponential { mean: -1.0 },
            Law::Lognormal { mu: 1.0, sigma: 1.0, min: 5.0, max: 4.0 },
            Law::Pareto { scale: 0.0, shape: 1.0, max: 4.0, less: 0.0 },
            Law::Empirical { values: vec![], cumulative: vec![] },
            Law::Empirical { values: vec![2.0, 1.0], cumulative: vec![0.5, 1.0] },
            Law::Empirical { values: vec![1.0, 2.0], cumulative: vec![0.5, 0.9] },
        ] {
            assert!(bad.fault().is_some(), "{bad:?}");
        }
    }
}
