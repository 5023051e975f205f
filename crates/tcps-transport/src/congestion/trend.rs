//! Whether the last few delays rise or fall: the readings of "neither an increasing nor a decreasing trend".

/// Most values that are looked at.
pub(super) const MOST_VALUES: usize = 16;

/// A reading of the published words.
// [Gokhale 2017: triggers]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trend {
    /// Every value above the one before it, or every one below.
    Strict,
    /// A least-squares slope beyond twice its standard error.
    Slope,
    /// The last value further from the first than values are from their neighbours on average.
    Ends,
    /// Nothing is a trend.
    Ignored,
}

impl Trend {
    /// The names in scenarios.
    pub(super) const NAMES: [&'static str; 4] = ["strict", "slope", "ends", "ignored"];

    /// The reading with this name.
    pub(super) fn named(name: &str) -> Self {
        match name {
            "slope" => Self::Slope,
            "ends" => Self::Ends,
            "ignored" => Self::Ignored,
            _ => Self::Strict,
        }
    }

    /// Whether these values, the oldest first, have a trend.
    pub(super) fn is_in(self, values: &[f64]) -> bool {
        match self {
            Self::Strict => {
                let steps = || values.windows(2).map(|w| w[1] - w[0]);
                steps().all(|s| s > 0.0) || steps().all(|s| s < 0.0)
            }
            Self::Slope => slopes(values),
            Self::Ends => {
                let steps: f64 = values.windows(2).map(|w| (w[1] - w[0]).abs()).sum();
                let ends = values.last().zip(values.first()).map_or(0.0, |(b, a)| b - a);
                ends.abs() * (values.len() as f64 - 1.0) > steps
            }
            Self::Ignored => false,
        }
    }
}

fn slopes(values: &[f64]) -> bool {
    let n = values.len() as f64;
    let (mid, mean) = ((n - 1.0) / 2.0, values.iter().sum::<f64>() / n);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (i, y) in values.iter().enumerate() {
        let (x, y) = (i as f64 - mid, y - mean);
        (xx, xy, yy) = (xx + x * x, xy + x * y, yy + y * y);
    }
    let slope = xy / xx;
    let residual = (yy - slope * xy).max(0.0);
    slope * slope > 4.0 * residual / (n - 2.0).max(1.0) / xx
}

#[cfg(test)]
mod tests {
    use super::*;

    // [Gokhale 2017: triggers]
    #[test]
    fn the_readings_differ_where_one_value_breaks_the_order() {
        let rising = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        let broken = [1.0, 2.0, 3.0, 4.0, 3.9, 6.0, 7.0, 8.0];
        let flat = [5.0, 5.1, 5.0, 4.9, 5.0, 5.1, 5.0, 5.0];
        let all = [Trend::Strict, Trend::Slope, Trend::Ends, Trend::Ignored];
        assert_eq!(all.map(|t| t.is_in(&rising)), [true, true, true, false]);
        assert_eq!(all.map(|t| t.is_in(&broken)), [false, true, true, false]);
        assert_eq!(all.map(|t| t.is_in(&flat)), [false; 4]);
        let falling = rising.map(|v| -v);
        assert!(Trend::Strict.is_in(&falling) && Trend::Slope.is_in(&falling) && Trend::Ends.is_in(&falling));
        assert_eq!(Trend::NAMES.map(Trend::named), all);
    }

    // [Gokhale 2017: triggers]
    #[test]
    fn a_slope_is_a_trend_beyond_twice_its_standard_error() {
        // Slopes of 0.8 and 1.1; residual squares of 1.8 and 2.7 give standard errors of 0.42 and 0.52.
        assert!(!Trend::Slope.is_in(&[0.0, 2.0, 1.0, 3.0]));
        assert!(Trend::Slope.is_in(&[0.0, 2.0, 1.0, 4.0]));
    }
}
