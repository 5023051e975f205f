//! Windows of time that repeat: when a line, or a class of packets, may send.
//!
//! ```text
//! 0      from       to    cycle
//! |.......|==open===|.......|.......|==open===|.......|      a packet starts where all of it fits
//! ```

use tcps_core::time::Time;

/// Open windows of a cycle that begins at time 0 and repeats without end.
#[derive(Debug, Clone)]
pub struct Windows {
    cycle_ns: Time,
    /// From and to, in order and apart; one that reaches into the next cycle has joined the first window there.
    open: Vec<(Time, Time)>,
}

impl Windows {
    /// Windows between 0 and `cycle_ns`, in order. Those that touch are one, also over the end of the cycle.
    pub fn new(cycle_ns: Time, windows: &[(Time, Time)]) -> Self {
        let cycle_ns = cycle_ns.max(1);
        let mut open: Vec<(Time, Time)> = Vec::new();
        for &(from, to) in windows.iter().filter(|w| w.0 < w.1) {
            match open.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => open.push((from, to)),
            }
        }
        let reaches_over = open.len() > 1 && open[0].0 == 0 && open.last().is_some_and(|w| w.1 == cycle_ns);
        if reaches_over {
            let first = open.remove(0);
            open.iter_mut().last().into_iter().for_each(|last| last.1 += first.1);
        }
        Self { cycle_ns, open }
    }

    /// The first moment from `now` on at which `length_ns` fits into one window; `None` if none is as long.
    pub fn start(&self, now: Time, length_ns: Time) -> Option<Time> {
        if self.open == [(0, self.cycle_ns)] {
            return Some(now);
        }
        // A window of the cycle before may still be open, and what does not fit now fits in the next cycle.
        let cycle = now.div_euclid(self.cycle_ns);
        (cycle - 1..=cycle + 1).find_map(|n| {
            let base = n.saturating_mul(self.cycle_ns);
            self.open.iter().find_map(|&(from, to)| {
                let (start, end) = (now.max(base.saturating_add(from)), base.saturating_add(to));
                (start < end && start.saturating_add(length_ns) <= end).then_some(start)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_does_not_fit_waits_for_the_next_window() {
        let w = Windows::new(100, &[(10, 30), (60, 70)]);
        let found = [(0, 5), (10, 20), (11, 20), (26, 5), (70, 5), (95, 15)].map(|(t, l)| w.start(t, l));
        assert_eq!(found, [10, 10, 110, 60, 110, 110].map(Some));
        assert_eq!(w.start(0, 21), None, "no window is as long");
    }

    #[test]
    fn windows_that_touch_are_one_also_over_the_end_of_the_cycle() {
        let w = Windows::new(100, &[(0, 10), (80, 90), (90, 100)]);
        assert_eq!([w.start(0, 10), w.start(85, 25), w.start(95, 20)], [Some(0), Some(85), Some(180)]);
        assert_eq!(Windows::new(100, &[(0, 40), (40, 100)]).start(7, Time::MAX), Some(7), "it never closes");
    }

    proptest! {
        /// The start is the first moment at which a search step by step finds the whole length open.
        #[test]
        fn starts_are_those_of_a_search(
            cycle in 1i64..40,
            cuts in prop::collection::vec(0i64..40, 0..8),
            (now, length) in (0i64..200, 1i64..60),
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().filter(|&c| c <= cycle).collect();
            cuts.sort_unstable();
            let windows: Vec<_> = cuts.chunks_exact(2).map(|w| (w[0], w[1])).collect();
            let open = |t: i64| windows.iter().any(|w| (w.0..w.1).contains(&(t % cycle)));
            let fits = |t: &i64| (*t..t + length).all(open);
            let search = (now..now + 2 * cycle).find(fits);
            prop_assert_eq!(Windows::new(cycle, &windows).start(now, length), search);
        }
    }
}
