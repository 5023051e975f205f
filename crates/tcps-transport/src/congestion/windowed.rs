//! The extreme of a span of time: the base that delays are compared with.
//!
//! ```text
//! least value of the last `span`, each let rise by `slope` since it was seen      sign -1: the largest value
//! ```

use std::collections::VecDeque;
use tcps_core::time::Time;

/// The least (with a sign, the largest) value of a span of time, on a slope.
#[derive(Debug)]
pub(crate) struct WindowedMin {
    span_ns: Time,
    slope: f64,
    sign: f64,
    /// Values in ascending order, each newer than the one before.
    rising: VecDeque<(Time, f64)>,
}

impl WindowedMin {
    /// The extreme of `span_ns`; `slope` is in units of the value a nanosecond, `sign` 1 for the least, -1 for the largest.
    pub(crate) fn new(span_ns: Time, slope: f64, sign: f64) -> Self {
        Self { span_ns, slope, sign, rising: VecDeque::new() }
    }

    /// Adds a value and gives the extreme of those that are not too old.
    pub(crate) fn add(&mut self, now: Time, value: f64) -> f64 {
        let tilted = self.sign * value - self.slope * now as f64;
        while self.rising.back().is_some_and(|(_, v)| *v >= tilted) {
            self.rising.pop_back();
        }
        self.rising.push_back((now, tilted));
        while self.rising.front().is_some_and(|(t, _)| *t < now.saturating_sub(self.span_ns)) {
            self.rising.pop_front();
        }
        let least = self.rising.front().map_or(tilted, |(_, v)| *v);
        self.sign * (least + self.slope * now as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::SECOND;

    // [model: DPM-G]
    #[test]
    fn the_least_value_is_forgotten_after_its_span() {
        let mut least = WindowedMin::new(60 * SECOND, 0.0, 1.0);
        let got: Vec<f64> = [(0, 5.0), (1, 3.0), (2, 4.0), (61, 9.0), (62, 8.0), (63, 9.0)]
            .map(|(s, v)| least.add(s * SECOND, v))
            .to_vec();
        assert_eq!(got, [5.0, 3.0, 3.0, 3.0, 4.0, 8.0]);
    }

    #[test]
    fn a_sign_gives_the_largest_and_a_slope_lets_old_values_rise() {
        let mut most = WindowedMin::new(10 * SECOND, 0.0, -1.0);
        assert_eq!(
            [(0, 1.0), (1, 3.0), (2, 2.0), (12, 0.0)].map(|(s, v)| most.add(s * SECOND, v)),
            [1.0, 3.0, 3.0, 2.0]
        );
        let mut least = WindowedMin::new(60 * SECOND, 1e-9, 1.0);
        assert_eq!([(0, 5.0), (3, 9.0), (5, 9.0)].map(|(s, v)| least.add(s * SECOND, v)), [5.0, 8.0, 9.0]);
    }
}
