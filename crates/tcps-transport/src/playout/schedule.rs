//! Playout at origin time plus a delay that an estimator gives.

use super::policy::{Act, Arrival, Playout, MOST_WAITING};
use std::collections::BTreeSet;
use tcps_core::time::Time;

/// Says how long after its making a sample is to be shown.
pub(super) trait Estimator: std::fmt::Debug + Send {
    /// A sample came with this delay.
    fn observe(&mut self, at_ns: Time, delay_ns: Time);
    /// The delay to play with.
    fn delay_ns(&self) -> Time;
}

/// Always the same delay.
#[derive(Debug)]
pub(super) struct Fixed {
    pub(super) delay_ns: Time,
}

impl Estimator for Fixed {
    fn observe(&mut self, _: Time, _: Time) {}
    fn delay_ns(&self) -> Time {
        self.delay_ns
    }
}

/// Samples that wait for their moment.
#[derive(Debug)]
pub(super) struct Schedule<E> {
    estimator: E,
    update_ns: Time,
    updated_ns: Option<Time>,
    delay_ns: Time,
    waiting: BTreeSet<(Time, u32, Arrival)>,
}

impl<E: Estimator> Schedule<E> {
    pub(super) fn new(estimator: E, update_ns: Time) -> Self {
        Self { estimator, update_ns, updated_ns: None, delay_ns: 0, waiting: BTreeSet::new() }
    }
}

// [model: playout]
impl<E: Estimator> Playout for Schedule<E> {
    fn arrive(&mut self, a: Arrival, acts: &mut Vec<Act>) {
        self.estimator.observe(a.at_ns, a.delay_ns());
        if self.updated_ns.is_none_or(|t| a.at_ns - t >= self.update_ns) {
            self.updated_ns = Some(a.at_ns);
            self.delay_ns = self.estimator.delay_ns();
        }
        let moment = a.origin_ns.saturating_add(self.delay_ns);
        if moment < a.at_ns {
            return acts.push(Act::Late(a));
        }
        self.waiting.insert((moment, a.index, a));
        if self.waiting.len() > MOST_WAITING {
            acts.extend(self.waiting.pop_last().map(|(_, _, latest)| Act::Dropped(latest)));
        }
    }

    fn next(&self) -> Option<Time> {
        self.waiting.first().map(|w| w.0)
    }

    fn tick(&mut self, now: Time, acts: &mut Vec<Act>) {
        while self.next().is_some_and(|t| t <= now) {
            if let Some((at_ns, _, sample)) = self.waiting.pop_first() {
                acts.push(Act::Played { at_ns, sample });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playout::play;
    use tcps_core::time::{MS, SECOND};

    // [model: playout]
    #[test]
    fn a_fixed_delay_takes_the_jitter_and_loses_the_late() {
        let arrival = |(i, delay): (u32, Time)| {
            let origin_ns = Time::from(i) * 10 * MS;
            Arrival { at_ns: origin_ns + delay * MS, origin_ns, index: i, key: 0, token: i }
        };
        let arrivals: Vec<_> = (0..).zip([5, 20, 21, 9]).map(arrival).collect();
        let mut sorted = arrivals.clone();
        sorted.sort_by_key(|a| a.at_ns);
        let acts = play(&mut Schedule::new(Fixed { delay_ns: 20 * MS }, 0), &sorted, SECOND);
        let played: Vec<_> = acts
            .iter()
            .filter_map(|a| match a {
                Act::Played { at_ns, sample } => Some(at_ns - sample.origin_ns),
                _ => None,
            })
            .collect();
        assert_eq!(played, [20 * MS; 3]);
        assert!(acts.contains(&Act::Late(arrivals[2])));
    }
}
