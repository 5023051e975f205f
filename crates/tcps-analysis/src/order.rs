//! Reordering by RFC 4737: a sample is reordered if its number is smaller than one that arrived before it.
//!
//! ```text
//! arrivals   1 2 5 3 4 6        NextExp 2 3 6 6 6 7
//! reordered        3 4          extent of 3: 1 (arrival 4 against arrival 3), of 4: 2
//! ```

use super::tally::mean_of;
use serde::Serialize;
use tcps_core::time::Time;

/// New maxima that are remembered to find how far a late sample was overtaken.
const REMEMBERED: usize = 256;
const MASK: usize = REMEMBERED - 1;

/// Reordering of a flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Reordering {
    /// Samples that arrived after a later one.
    pub reordered: u64,
    /// Reordered over delivered.
    pub ratio: f64,
    /// Mean distance in arrivals to the earliest later sample that came before.
    pub mean_extent: f64,
    /// Largest such distance (a lower bound beyond 256 arrivals in order).
    pub max_extent: u64,
    /// Longest time between the two.
    pub max_late_ns: i64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Maximum {
    index: u32,
    arrival: u64,
    time_ns: Time,
}

/// Watches arrivals; duplicates must not be shown to it.
#[derive(Debug)]
pub struct Order {
    maxima: Box<[Maximum; REMEMBERED]>,
    /// Maxima met, of which the last 256 are remembered.
    met: usize,
    /// Smallest number that is in order.
    next: u64,
    arrivals: u64,
    reordered: u64,
    extents: i128,
    max_extent: u64,
    max_late_ns: i64,
}

impl Default for Order {
    fn default() -> Self {
        let maxima = Box::new([Maximum::default(); REMEMBERED]);
        Self { maxima, met: 0, next: 0, arrivals: 0, reordered: 0, extents: 0, max_extent: 0, max_late_ns: 0 }
    }
}

impl Order {
    /// A sample arrived.
    // [RFC 4737 §3.3, §4.2]
    #[inline]
    pub fn arrive(&mut self, index: u32, time_ns: Time) {
        self.arrivals += 1;
        if u64::from(index) < self.next {
            return self.late(index, time_ns);
        }
        self.next = u64::from(index) + 1;
        self.maxima[self.met & MASK] = Maximum { index, arrival: self.arrivals, time_ns };
        self.met += 1;
    }

    #[cold]
    fn late(&mut self, index: u32, time_ns: Time) {
        self.reordered += 1;
        if let Some(overtaker) = self.overtaker(index) {
            let extent = self.arrivals - overtaker.arrival;
            self.extents += i128::from(extent);
            self.max_extent = self.max_extent.max(extent);
            self.max_late_ns = self.max_late_ns.max(time_ns.saturating_sub(overtaker.time_ns));
        }
    }

    /// The earliest arrival that is remembered with a larger number.
    fn overtaker(&self, index: u32) -> Option<Maximum> {
        let (mut low, mut high) = (self.met.saturating_sub(REMEMBERED), self.met);
        while low < high {
            let middle = (low + high) / 2;
            if self.maxima[middle & MASK].index > index {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        (low < self.met).then(|| self.maxima[low & MASK])
    }

    /// What was found.
    pub fn summary(&self) -> Reordering {
        Reordering {
            reordered: self.reordered,
            ratio: self.reordered as f64 / self.arrivals.max(1) as f64,
            mean_extent: mean_of(self.extents, self.reordered),
            max_extent: self.max_extent,
            max_late_ns: self.max_late_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(indices: &[u32]) -> Reordering {
        let mut order = Order::default();
        for (k, &i) in indices.iter().enumerate() {
            order.arrive(i, k as Time * 10);
        }
        order.summary()
    }

    // [RFC 4737 §3.3, §4.2]
    #[test]
    fn the_example_of_the_drawing() {
        let r = of(&[1, 2, 5, 3, 4, 6]);
        assert_eq!((r.reordered, r.mean_extent, r.max_extent, r.max_late_ns), (2, 1.5, 2, 20));
        assert!((r.ratio - 2.0 / 6.0).abs() < 1e-12);
    }

    #[test]
    fn a_gap_is_not_reordering() {
        assert_eq!(of(&[1, 2, 9, 10]).reordered, 0);
    }

    #[test]
    fn one_sample_that_comes_last_is_overtaken_by_all() {
        let r = of(&[1, 2, 3, 4, 5, 0]);
        assert_eq!((r.reordered, r.max_extent), (1, 5));
    }

    #[test]
    fn no_later_sample_has_overtaken_the_newest() {
        let r = of(&[1, 2, 2]);
        assert_eq!((r.mean_extent, r.max_extent, r.max_late_ns), (0.0, 0, 0));
    }
}
