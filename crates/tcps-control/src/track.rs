//! Where something was at moments of the past.

use std::collections::VecDeque;
use tcps_core::time::Time;

/// Moments that are remembered: 51 s of pictures that come every 50 ms.
const MOST: usize = 1024;

/// Places with their moments, the newest `MOST` of them.
#[derive(Debug, Default)]
pub struct Track {
    places: VecDeque<(Time, Vec<f64>)>,
}

impl Track {
    /// Notes where it is; moments must not go back.
    pub fn put(&mut self, at_ns: Time, place: Vec<f64>) {
        if self.places.len() == MOST {
            self.places.pop_front();
        }
        self.places.push_back((at_ns, place));
    }

    /// Where it was: on the line between the places noted before and after, else at the nearest; `None` before any is.
    pub fn at(&self, at_ns: Time) -> Option<Vec<f64>> {
        let after = self.places.partition_point(|p| p.0 < at_ns);
        let Some((later_ns, later)) = self.places.get(after) else {
            return self.places.back().map(|p| p.1.clone());
        };
        let Some((earlier_ns, earlier)) = after.checked_sub(1).and_then(|i| self.places.get(i)) else {
            return Some(later.clone());
        };
        let share = at_ns.abs_diff(*earlier_ns) as f64 / later_ns.abs_diff(*earlier_ns) as f64;
        Some(earlier.iter().zip(later).map(|(a, b)| a * (1.0 - share) + b * share).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_between_the_moments_noted() {
        let mut track = Track::default();
        assert_eq!(track.at(5), None);
        track.put(10, vec![1.0, -4.0]);
        track.put(20, vec![2.0, -4.0]);
        track.put(20, vec![3.0, -4.0]);
        track.put(40, vec![5.0, 0.0]);
        for (at_ns, x) in [(Time::MIN, 1.0), (10, 1.0), (15, 1.5), (20, 2.0), (30, 4.0), (40, 5.0), (99, 5.0)]
        {
            assert_eq!(track.at(at_ns).unwrap()[0], x, "{at_ns}");
        }
        assert_eq!(track.at(30), Some(vec![4.0, -2.0]));
    }

    #[test]
    fn of_a_long_way_the_end_is_remembered() {
        let mut track = Track::default();
        (0..3 * MOST as Time).for_each(|at_ns| track.put(at_ns, vec![at_ns as f64]));
        assert_eq!(track.places.len(), MOST);
        assert_eq!(track.at(0), Some(vec![2.0 * MOST as f64]));
    }
}
