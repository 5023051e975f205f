//! A distribution met one value at a time: exact moments, percentiles from a histogram with 3 digits.
//!
//! The sum is an integer, so that means of parts add up to the mean of the whole without rounding. Negative values
//! (a one-way delay under a clock offset, a delay variation) have a histogram of their own magnitudes.

use super::histogram::Histogram;
use serde::Serialize;

/// What is said of a distribution; the unit is that of the key it stands under.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Distribution {
    /// Number of values.
    pub n: u64,
    /// Smallest value, exact.
    pub min: f64,
    /// Mean, exact.
    pub mean: f64,
    /// Standard deviation (n - 1).
    pub sd: f64,
    /// Median, 3 digits.
    pub p50: f64,
    /// 95th percentile, 3 digits.
    pub p95: f64,
    /// 99th percentile, 3 digits.
    pub p99: f64,
    /// 99.9th percentile, 3 digits.
    pub p999: f64,
    /// Largest value, exact.
    pub max: f64,
}

impl Distribution {
    /// That of `n` equal values.
    pub fn constant(n: u64, v: f64) -> Self {
        Self { n, min: v, mean: v, sd: 0.0, p50: v, p95: v, p99: v, p999: v, max: v }
    }

    /// The same distribution moved by `by`.
    pub fn shifted(&self, by: f64) -> Self {
        Self {
            n: self.n,
            min: self.min + by,
            mean: self.mean + by,
            sd: self.sd,
            p50: self.p50 + by,
            p95: self.p95 + by,
            p99: self.p99 + by,
            p999: self.p999 + by,
            max: self.max + by,
        }
    }
}

/// Values counted so far.
#[derive(Debug, Clone)]
pub struct Tally {
    n: u64,
    sum: i128,
    /// Squares are summed about the first value, so that a large common part does not eat their digits.
    first: f64,
    squares: f64,
    min: i64,
    max: i64,
    /// Magnitudes of negative values.
    below: Option<Box<Histogram>>,
    above: Histogram,
}

impl Default for Tally {
    fn default() -> Self {
        let above = Histogram::default();
        Self { n: 0, sum: 0, first: 0.0, squares: 0.0, min: i64::MAX, max: i64::MIN, below: None, above }
    }
}

impl Tally {
    /// Counts a value.
    #[inline]
    pub fn add(&mut self, value: i64) {
        if self.n == 0 {
            self.first = value as f64;
        }
        self.n += 1;
        self.sum += value as i128;
        let from_first = value as f64 - self.first;
        self.squares += from_first * from_first;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        if value >= 0 {
            self.above.add(value as u64);
        } else {
            self.add_below(value);
        }
    }

    #[inline(never)]
    fn add_below(&mut self, value: i64) {
        self.below.get_or_insert_with(Default::default).add(value.unsigned_abs());
    }

    /// Number of values.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Smallest value.
    pub fn min(&self) -> Option<i64> {
        (self.n > 0).then_some(self.min)
    }

    /// Exact sum.
    pub fn sum(&self) -> i128 {
        self.sum
    }

    /// Mean; 0 of nothing.
    pub fn mean(&self) -> f64 {
        mean_of(self.sum, self.n)
    }

    /// Standard deviation (n - 1); 0 of fewer than two values.
    pub fn sd(&self) -> f64 {
        if self.n < 2 {
            return 0.0;
        }
        let n = self.n as f64;
        let off = self.mean() - self.first;
        ((self.squares - n * off * off).max(0.0) / (n - 1.0)).sqrt()
    }

    /// For each fraction, the smallest value that it does not exceed, to 3 digits; fractions must rise.
    pub fn quantiles<const N: usize>(&self, fractions: [f64; N]) -> [f64; N] {
        let mut found = [0.0; N];
        self.curve(&fractions).into_iter().zip(&mut found).for_each(|(value, f)| *f = value);
        found
    }

    /// The same for any number of fractions.
    pub fn curve(&self, fractions: &[f64]) -> Vec<f64> {
        let cells = self.cells();
        let (mut at, mut seen) = (0, cells.first().map_or(0, |c| c.2));
        let value = |&fraction: &f64| {
            let rank = ((fraction * self.n as f64).ceil() as u64).clamp(1, self.n);
            while seen < rank && at + 1 < cells.len() {
                at += 1;
                seen += cells[at].2;
            }
            let (low, high, _) = cells[at];
            match rank {
                1 => self.min as f64,
                rank if rank == self.n => self.max as f64,
                _ => ((low + high) / 2.0).clamp(self.min as f64, self.max as f64),
            }
        };
        if cells.is_empty() {
            return vec![0.0; fractions.len()];
        }
        fractions.iter().map(value).collect()
    }

    /// Everything said of it; `None` of nothing.
    pub fn distribution(&self) -> Option<Distribution> {
        let [p50, p95, p99, p999] = self.quantiles([0.5, 0.95, 0.99, 0.999]);
        (self.n > 0).then(|| Distribution {
            n: self.n,
            min: self.min as f64,
            mean: self.mean(),
            sd: self.sd(),
            p50,
            p95,
            p99,
            p999,
            max: self.max as f64,
        })
    }

    /// The histogram's cells in rising order: lower edge, upper edge, count.
    pub fn cells(&self) -> Vec<(f64, f64, u64)> {
        let mut cells = Vec::new();
        if let Some(h) = &self.below {
            cells.extend(h.cells().map(|(low, high, n)| (-high, -low, n)));
            cells.reverse();
        }
        cells.extend(self.above.cells());
        cells
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.above.heap_bytes() + self.below.as_ref().map_or(0, |h| h.heap_bytes())
    }
}

/// `sum / n`, the quotient and the remainder apart, so that a sum beyond 53 bits keeps its low digits.
pub fn mean_of(sum: i128, n: u64) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let n = i128::from(n);
    (sum / n) as f64 + (sum % n) as f64 / n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(values: impl IntoIterator<Item = i64>) -> Tally {
        let mut t = Tally::default();
        values.into_iter().for_each(|v| t.add(v));
        t
    }

    #[test]
    fn moments_are_exact_and_percentiles_have_3_digits() {
        let d = tally((1..=1000).map(|v| v * 1_000)).distribution().unwrap();
        assert_eq!((d.n, d.min, d.mean, d.max), (1000, 1e3, 500_500.0, 1e6));
        assert!((d.sd - 288_819.44).abs() < 0.01, "{}", d.sd);
        for (got, wanted) in [(d.p50, 500e3), (d.p95, 950e3), (d.p99, 990e3), (d.p999, 999e3)] {
            assert!((got / wanted - 1.0).abs() < 1e-3, "{got} against {wanted}");
        }
    }

    #[test]
    fn negative_values_keep_their_order() {
        let t = tally((-500..500).map(|v| v * 10));
        assert_eq!(t.mean(), -5.0);
        let [smallest, low, high, largest] = t.quantiles([0.0, 0.25, 0.75, 1.0]);
        assert_eq!((smallest, largest), (-5000.0, 4990.0));
        assert!((low + 2510.0).abs() <= 5.0 && (high - 2490.0).abs() <= 5.0, "{low} {high}");
        let cells = t.cells();
        assert!(cells.windows(2).all(|w| w[0].1 < w[1].0));
        assert_eq!(cells.iter().map(|c| c.2).sum::<u64>(), 1000);
    }

    #[test]
    fn a_small_spread_on_a_large_value_keeps_its_deviation() {
        let t = tally([1_000_000_000_001, 1_000_000_000_002, 1_000_000_000_003]);
        assert!((t.sd() - 1.0).abs() < 1e-9);
    }

    // [RFC 5481 §4.2]
    #[test]
    fn a_distribution_moves_as_a_whole() {
        let moved = tally([5, 7, 12]).distribution().unwrap().shifted(-5.0);
        assert_eq!(moved, tally([0, 2, 7]).distribution().unwrap());
    }

    #[test]
    fn memory_follows_the_spread_of_values_and_not_their_number() {
        let bytes = |t: Tally| t.heap_bytes();
        assert_eq!(bytes(Tally::default()), 0);
        let narrow = bytes(tally(0..100));
        assert!((1024..1200).contains(&narrow), "a page of 256 counts: {narrow}");
        assert_eq!(bytes(tally((0..10_000).map(|v| v % 100))), narrow);
        assert_eq!(bytes(tally(-99..100)), 2 * narrow, "negative values have a page of their own");
        assert!(bytes(tally([0, 1_000_000])) > narrow + 1024);
    }

    #[test]
    fn nothing_has_no_distribution_and_extremes_do_not_overflow() {
        assert_eq!(Tally::default().distribution(), None);
        let t = tally([i64::MIN, i64::MAX, 0]);
        assert_eq!(t.distribution().unwrap().min, i64::MIN as f64);
    }
}
