//! Elastic queue: one sample a period; queue monitoring (Stone and Jeffay 1995) keeps it short.
//!
//! ```text
//! arrival  n = length before     c[j] += 1 for j <= n, 0 for j > n
//!          some c[j] > T[j]:     the arriving (or the oldest) sample is dropped, all c = 0
//! period   P = EWMA (1/16) of the time between arrivals a number, between 1/60 and 1/5 s unless set otherwise, anew
//!          after a gap over 8 P
//! ```
//! QM(T, L): T[j] = T for j >= L, else infinite. The decay form: T[j] = base / factor^(j - from) for j >= from.

use super::policy::{Act, Arrival, Playout, MOST_WAITING};
use std::collections::VecDeque;
use tcps_core::time::Time;

/// Thresholds by length of the queue, in periods.
#[derive(Debug, Clone, Copy)]
pub(super) enum Table {
    /// QM(T, L).
    Step {
        /// T.
        threshold: u32,
        /// L.
        length: usize,
    },
    /// Falls with the length.
    Decay {
        /// Threshold at `from`.
        base: f64,
        /// What each further place divides it by.
        factor: f64,
        /// First place that counts.
        from: usize,
    },
    /// A queue of one, which a new arrival overwrites: no queue monitoring.
    Overwrite,
}

impl Table {
    // [Hudson 2001: monitoring]
    fn exceeded(&self, place: usize, count: u32) -> bool {
        match *self {
            Table::Step { threshold, length } => place >= length && count > threshold,
            Table::Decay { base, factor, from } => {
                let steps = place.saturating_sub(from);
                let threshold = (0..steps.min(64)).fold(base, |t, _| t / factor);
                place >= from && f64::from(count) > threshold
            }
            Table::Overwrite => false,
        }
    }
}

/// The queue.
#[derive(Debug)]
pub(super) struct Queue {
    table: Table,
    drop_oldest: bool,
    bounds_ns: [Time; 2],
    queue: VecDeque<Arrival>,
    counts: Vec<u32>,
    period_ns: Option<Time>,
    last: Option<(Time, u32)>,
    next_ns: Option<Time>,
}

impl Queue {
    /// `bounds_ns`: least and largest period.
    pub(super) fn new(table: Table, drop_oldest: bool, bounds_ns: [Time; 2]) -> Self {
        let (queue, counts) = (VecDeque::new(), Vec::new());
        Self { table, drop_oldest, bounds_ns, queue, counts, period_ns: None, last: None, next_ns: None }
    }

    pub(super) fn overwriting(bounds_ns: [Time; 2]) -> Self {
        Self::new(Table::Overwrite, true, bounds_ns)
    }

    /// Lost samples are counted in by their numbers, so that a loss becomes a gap and not a longer period.
    fn measure(&mut self, at_ns: Time, index: u32) {
        if self.last.is_some_and(|(_, last)| (index.wrapping_sub(last) as i32) <= 0) {
            return;
        }
        let Some((last_ns, last)) = self.last.replace((at_ns, index)) else { return };
        let between = (at_ns - last_ns) / Time::from(index.wrapping_sub(last));
        let [shortest_ns, longest_ns] = self.bounds_ns;
        self.period_ns = match self.period_ns {
            Some(p) if between > 8 * p => None,
            Some(p) => Some((p + (between - p) / 16).clamp(shortest_ns, longest_ns)),
            None => Some(between.clamp(shortest_ns, longest_ns)),
        };
    }

    fn too_long(&mut self) -> bool {
        let n = self.queue.len();
        self.counts.resize(n, 0);
        self.counts.iter_mut().for_each(|c| *c += 1);
        let exceeded = self.counts.iter().enumerate().any(|(i, c)| self.table.exceeded(i + 1, *c));
        if exceeded {
            self.counts.clear();
        }
        exceeded || n >= MOST_WAITING
    }
}

// [Hudson 2001: monitoring]
impl Playout for Queue {
    fn arrive(&mut self, arrival: Arrival, acts: &mut Vec<Act>) {
        self.measure(arrival.at_ns, arrival.index);
        self.next_ns.get_or_insert(arrival.at_ns);
        let overwrite = matches!(self.table, Table::Overwrite) && !self.queue.is_empty();
        if overwrite || self.too_long() {
            if !self.drop_oldest {
                return acts.push(Act::Dropped(arrival));
            }
            acts.extend(self.queue.pop_front().map(Act::Dropped));
        }
        self.queue.push_back(arrival);
    }

    fn next(&self) -> Option<Time> {
        self.next_ns
    }

    fn tick(&mut self, now: Time, acts: &mut Vec<Act>) {
        let period_ns = self.period_ns.unwrap_or(self.bounds_ns[0]);
        let due_ns = self.next_ns.unwrap_or(now) + period_ns;
        self.next_ns = Some(if due_ns > now { due_ns } else { now + period_ns });
        match self.queue.pop_front() {
            Some(sample) => acts.push(Act::Played { at_ns: now, sample }),
            None => acts.push(Act::Gap { at_ns: now }),
        }
        self.counts.truncate(self.queue.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use tcps_core::time::{MS, SECOND};

    const USUAL: [Time; 2] = [SECOND / 60, SECOND / 5];

    fn at(i: u32) -> Arrival {
        let at_ns = Time::from(i) * SECOND / 30;
        Arrival { at_ns, origin_ns: at_ns, index: i, key: 0, token: i }
    }

    /// Arrivals without a tick: how many until one is dropped.
    fn until_drop(table: Table) -> usize {
        let (mut q, mut acts) = (Queue::new(table, false, USUAL), Vec::new());
        for i in 0..10_000 {
            q.arrive(at(i), &mut acts);
            if !acts.is_empty() {
                return i as usize;
            }
        }
        usize::MAX
    }

    // [Hudson 2001: monitoring]
    #[test]
    fn a_place_that_was_full_too_long_drops_the_arriving_one() {
        // The queue has 2 before the third arrival: the count of place 2 exceeds 30 at the 31st after it.
        assert_eq!(until_drop(Table::Step { threshold: 30, length: 2 }), 32);
        assert_eq!(until_drop(Table::Step { threshold: 30, length: 5 }), 35);
        assert_eq!(
            until_drop(Table::Decay { base: 120.0, factor: 2.0, from: 3 }),
            10,
            "place 10 bears less than one"
        );
    }

    // [Hudson 2001: monitoring]
    #[test]
    fn without_monitoring_a_new_sample_overwrites_the_one_that_waits() {
        let (mut q, mut acts) = (Queue::overwriting(USUAL), Vec::new());
        (0..3).for_each(|i| q.arrive(at(i), &mut acts));
        assert_eq!(acts, [Act::Dropped(at(0)), Act::Dropped(at(1))]);
        q.tick(SECOND, &mut acts);
        assert_eq!(acts.last(), Some(&Act::Played { at_ns: SECOND, sample: at(2) }));
        q.tick(2 * SECOND, &mut acts);
        assert_eq!(acts.last(), Some(&Act::Gap { at_ns: 2 * SECOND }));
    }

    // [Hudson 2001: monitoring]
    #[test]
    fn the_period_is_the_mean_time_between_arrivals() {
        let mut q = Queue::new(Table::Step { threshold: 30, length: 2 }, true, USUAL);
        let mut acts = Vec::new();
        (0..200).for_each(|i| q.arrive(at(i), &mut acts));
        assert!((q.period_ns.unwrap() - SECOND / 30).abs() < SECOND / 3000);
        q.arrive(Arrival { at_ns: 20 * SECOND, ..at(200) }, &mut acts);
        assert_eq!(q.period_ns, None, "a long gap: measured anew");
    }

    // [Hudson 2001: monitoring]
    #[test]
    fn a_sixteenth_of_a_change_enters_the_period() {
        let mut q = Queue::overwriting(USUAL);
        let periods_ms = [0, 40, 96, 121].map(|at_ms| {
            let index = q.last.map_or(0, |(_, last)| last + 1);
            q.measure(at_ms * MS, index);
            q.period_ns.map(|period_ns| period_ns / MS)
        });
        assert_eq!(periods_ms, [None, Some(40), Some(41), Some(40)], "40, 56 and 25 ms apart");
    }
}
