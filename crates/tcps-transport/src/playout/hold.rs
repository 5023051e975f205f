//! Zero-order hold: a display with ticks; of samples that came together the newest, or one a tick.

use super::policy::{Act, Arrival, Playout, MOST_WAITING};
use std::collections::VecDeque;
use tcps_core::time::Time;

/// A display.
#[derive(Debug)]
pub(super) struct Hold {
    period_ns: Time,
    burst: bool,
    queue: VecDeque<Arrival>,
    shown: Option<u32>,
    next_ns: Option<Time>,
}

impl Hold {
    pub(super) fn new(period_ns: Time, burst: bool) -> Self {
        Self { period_ns, burst, queue: VecDeque::new(), shown: None, next_ns: None }
    }

    fn is_older(&self, index: u32) -> bool {
        self.shown.is_some_and(|s| (index.wrapping_sub(s) as i32) <= 0)
    }
}

/// The first tick at or after a moment: ticks are whole multiples of the period.
fn tick_from(at_ns: Time, period_ns: Time) -> Time {
    (at_ns.div_euclid(period_ns) + Time::from(at_ns.rem_euclid(period_ns) > 0)) * period_ns
}

// [Gokhale 2017: zero-order hold]
impl Playout for Hold {
    fn arrive(&mut self, arrival: Arrival, acts: &mut Vec<Act>) {
        self.next_ns.get_or_insert_with(|| tick_from(arrival.at_ns, self.period_ns));
        if self.is_older(arrival.index) {
            return acts.push(Act::Late(arrival));
        }
        let at = self.queue.partition_point(|q| (q.index.wrapping_sub(arrival.index) as i32) < 0);
        self.queue.insert(at, arrival);
        if self.queue.len() > MOST_WAITING {
            acts.extend(self.queue.pop_front().map(Act::Dropped));
        }
    }

    fn next(&self) -> Option<Time> {
        self.next_ns
    }

    fn tick(&mut self, now: Time, acts: &mut Vec<Act>) {
        self.next_ns = Some(tick_from(now + 1, self.period_ns));
        while self.burst && self.queue.len() > 1 {
            acts.extend(self.queue.pop_front().map(Act::Dropped));
        }
        match self.queue.pop_front() {
            Some(sample) => {
                self.shown = Some(sample.index);
                acts.push(Act::Played { at_ns: now, sample });
            }
            None => acts.push(Act::Gap { at_ns: now }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playout::play;
    use tcps_core::time::MS;

    // [Gokhale 2017: zero-order hold]
    #[test]
    fn a_merged_packet_is_shown_one_a_tick_or_only_its_newest() {
        let together =
            |i: u32| Arrival { at_ns: 10 * MS, origin_ns: Time::from(i) * MS, index: i, key: 0, token: i };
        let arrivals: Vec<_> = (0..4).map(together).collect();
        let played = |burst: bool| {
            let acts = play(&mut Hold::new(MS, burst), &arrivals, 14 * MS);
            let of = |a: &Act| match a {
                Act::Played { at_ns, sample } => Some((at_ns / MS, sample.index)),
                _ => None,
            };
            acts.iter().filter_map(of).collect::<Vec<_>>()
        };
        assert_eq!(played(false), [(10, 0), (11, 1), (12, 2), (13, 3)]);
        assert_eq!(played(true), [(10, 3)]);
    }

    #[test]
    fn ticks_that_were_missed_are_left_out() {
        let (mut hold, mut acts) = (Hold::new(MS, false), Vec::new());
        (0..4u32).for_each(|i| {
            let arrival = Arrival { at_ns: 10 * MS, origin_ns: 0, index: i, key: 0, token: i };
            hold.arrive(arrival, &mut acts);
        });
        hold.tick(13 * MS + 200, &mut acts);
        assert_eq!(
            (acts.len(), hold.next()),
            (1, Some(14 * MS)),
            "one a tick, also after a pause of the loop"
        );
    }
}
