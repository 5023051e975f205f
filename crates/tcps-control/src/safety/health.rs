//! How well commands come: the age of the newest, and loss, order and rate over the last 64.

use std::collections::VecDeque;

use tcps_core::time::Time;

/// Commands that are looked back on.
const WINDOW: usize = 64;
/// A number that is this far behind belongs to a sender that has started again, if its sample is newer.
const RESTARTED: u32 = 2000;

/// What is too much.
#[derive(Debug, Clone, Copy)]
pub struct Thresholds {
    /// Share of commands lost.
    pub loss: f64,
    /// Share of commands that came after a newer one.
    pub reordered: f64,
    /// Fewest commands a second; 0: any.
    pub least_hz: f64,
}

/// Keeps account of commands.
#[derive(Debug, Clone)]
pub struct Health {
    /// Numbers and moments of the newest commands, and how many were superseded since the one before.
    window: VecDeque<(u32, Time, u32)>,
    /// Commands that came since the newest one, and were superseded.
    superseded: u32,
    /// For the newest arrivals, whether each came after a newer one.
    late: VecDeque<bool>,
    newest: Option<u32>,
    /// Origin of the newest sample that commands were made of.
    origin_ns: Option<Time>,
    age_ns: Time,
}

/// How a command is placed among those that were judged.
struct Place {
    newer: bool,
    /// Whether it is made of a newer sample.
    unknown: bool,
    /// Whether its sender has started again.
    restarted: bool,
}

/// What a command is that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Older than one that came before.
    Old,
    /// Newer, but of a sample that is no newer than one that was known: a predictor's.
    Predicted,
    /// Of a newer sample.
    New,
}

impl Default for Health {
    fn default() -> Self {
        Self::since(Time::MAX, None)
    }
}

impl Health {
    /// The newest sample is so old, and of this origin; what came before it is not known.
    pub fn since(age_ns: Time, origin_ns: Option<Time>) -> Self {
        Self {
            window: VecDeque::new(),
            superseded: 0,
            late: VecDeque::new(),
            newest: None,
            origin_ns,
            age_ns,
        }
    }

    /// Time goes on by `dt`.
    pub fn pass(&mut self, dt: Time) {
        self.age_ns = self.age_ns.saturating_add(dt);
    }

    /// A command with a number came at `now`, made of the sample of this origin. One of a sample that is no newer than the
    /// newest known is no sign of life: the age goes on.
    pub fn arrive(&mut self, now: Time, number: u32, origin_ns: Time) -> Arrival {
        let Place { newer, unknown, restarted } = self.place(number, origin_ns);
        if restarted {
            self.window.clear();
        }
        self.came(!newer && !restarted);
        if !newer && !restarted {
            return Arrival::Old;
        }
        self.newest = Some(number);
        self.window.push_back((number, now, std::mem::take(&mut self.superseded)));
        if self.window.len() > WINDOW {
            self.window.pop_front();
        }
        if !unknown {
            return Arrival::Predicted;
        }
        self.origin_ns = Some(origin_ns);
        self.age_ns = 0;
        Arrival::New
    }

    /// A command came and was superseded by another before it was judged: it counts as one that came, and as late where that
    /// other one, or the newest that was judged, came before it.
    pub fn superseded(&mut self, number: u32, origin_ns: Time, overtaken: bool) {
        self.superseded = self.superseded.saturating_add(1);
        let Place { newer, restarted, .. } = self.place(number, origin_ns);
        self.came(overtaken || !(newer || restarted));
    }

    fn place(&self, number: u32, origin_ns: Time) -> Place {
        let behind = self.newest.map_or(0, |n| n.wrapping_sub(number));
        let newer = self.newest.is_none_or(|n| number.wrapping_sub(n).wrapping_sub(1) < u32::MAX / 2);
        let unknown = self.origin_ns.is_none_or(|known| origin_ns > known);
        Place { newer, unknown, restarted: !newer && behind > RESTARTED && unknown }
    }

    fn came(&mut self, late: bool) {
        self.late.push_back(late);
        if self.late.len() > WINDOW {
            self.late.pop_front();
        }
    }

    /// The clock that origins are compared by was put back: the next sample is newer than any before.
    pub fn forget_origin(&mut self) {
        self.origin_ns = None;
    }

    /// Time since the newest sample; endless before the first.
    pub fn age_ns(&self) -> Time {
        self.age_ns
    }

    /// Origin of the newest sample.
    pub fn origin_ns(&self) -> Option<Time> {
        self.origin_ns
    }

    /// In which way commands come worse than a share of what the thresholds allow, if they do.
    pub fn poor(&self, limits: &Thresholds, share: f64) -> Option<&'static str> {
        let (first, last) = (self.window.front()?, self.window.back()?);
        let came =
            self.window.iter().skip(1).map(|(.., superseded)| 1.0 + f64::from(*superseded)).sum::<f64>();
        let meant = f64::from(last.0.wrapping_sub(first.0)).max(1.0);
        let seconds = (last.1.saturating_sub(first.1)) as f64 * 1e-9;
        let late = self.late.iter().filter(|l| **l).count() as f64 / self.late.len().max(1) as f64;
        if self.window.len() > 1 && 1.0 - came / meant > share * limits.loss {
            Some("commands are lost")
        } else if late > share * limits.reordered {
            Some("commands are out of order")
        } else {
            (came < seconds * limits.least_hz / share).then_some("commands arrive too rarely")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::MS;

    const LIMITS: Thresholds = Thresholds { loss: 0.3, reordered: 0.2, least_hz: 0.0 };

    fn coming(numbers: impl IntoIterator<Item = u32>) -> Health {
        let mut health = Health::default();
        for (i, n) in numbers.into_iter().enumerate() {
            health.pass(MS);
            health.arrive(i as Time * MS, n, i as Time);
        }
        health
    }

    #[test]
    fn what_was_superseded_within_a_tick_was_not_lost() {
        let every_third = |superseded| {
            let mut health = Health::default();
            for i in 0..100 {
                (0..superseded).for_each(|n| health.superseded(i as u32 * 3 + n, i, false));
                health.arrive(i * 3 * MS, i as u32 * 3 + 2, i);
            }
            health.poor(&LIMITS, 1.0).is_some()
        };
        assert!(!every_third(2), "two of three commands are superseded, and none is lost");
        assert!(every_third(1) && every_third(0), "a third, two thirds are lost");
    }

    #[test]
    fn the_age_counts_from_the_newest_sample_that_was_not_known() {
        let mut health = Health::default();
        assert_eq!(health.age_ns(), Time::MAX, "endless before the first");
        assert_eq!(health.arrive(0, 5, 50), Arrival::New);
        health.pass(3 * MS);
        assert_eq!((health.arrive(0, 6, 50), health.age_ns()), (Arrival::Predicted, 3 * MS));
        assert_eq!((health.arrive(0, 6, 60), health.age_ns()), (Arrival::Old, 3 * MS), "the same again");
        assert_eq!((health.arrive(0, 4, 60), health.age_ns()), (Arrival::Old, 3 * MS));
        assert_eq!(
            (health.arrive(0, 7, 49), health.age_ns()),
            (Arrival::Predicted, 3 * MS),
            "an older sample"
        );
        assert_eq!(
            (health.arrive(0, 8, 50), health.age_ns()),
            (Arrival::Predicted, 3 * MS),
            "it was no newest"
        );
        assert_eq!((health.arrive(0, 9, 60), health.age_ns()), (Arrival::New, 0));
        health.pass(MS);
        health.forget_origin();
        assert_eq!(
            (health.arrive(0, 10, 20), health.age_ns()),
            (Arrival::New, 0),
            "by a clock that was put back"
        );
        health.pass(Time::MAX);
        health.pass(MS);
        assert_eq!(health.age_ns(), Time::MAX);
    }

    #[test]
    fn numbers_wrap_and_a_sender_that_starts_again_is_newer() {
        let mut health = coming([u32::MAX - 1, u32::MAX]);
        assert_eq!(health.arrive(0, 0, 9), Arrival::New);
        let mut health = coming([RESTARTED + 10]);
        assert_eq!(health.arrive(0, 10, 9), Arrival::Old, "so far behind is late");
        assert_eq!(health.arrive(0, 9, 0), Arrival::Old, "farther is late, too, if its sample is no newer");
        assert!(*health.late.back().unwrap() && health.newest == Some(RESTARTED + 10));
        assert_eq!(health.arrive(0, 9, 9), Arrival::New, "else a restart");
        assert_eq!(health.window.len(), 1, "and what was lost before it is forgotten");
        assert!(!health.late.back().unwrap());
    }

    #[test]
    fn half_the_ring_ahead_is_behind() {
        let mut health = coming([7]);
        assert_eq!(health.arrive(0, 7 + (1 << 31), 0), Arrival::Old);
        assert_eq!(health.arrive(0, 6 + (1 << 31), 0), Arrival::Predicted, "one less is ahead");
    }

    #[test]
    fn loss_is_judged_over_the_last_64() {
        assert!(coming([]).poor(&LIMITS, 1.0).is_none() && coming([3]).poor(&LIMITS, 1.0).is_none());
        assert!(coming((0..200).map(|n| n * 10 / 7)).poor(&LIMITS, 1.02).is_none(), "30 % are lost");
        assert!(coming((0..200).map(|n| n * 10 / 7)).poor(&LIMITS, 0.95).is_some());
        assert!(
            coming([0, 2]).poor(&Thresholds { loss: 0.5, ..LIMITS }, 1.0).is_none(),
            "at the threshold it is well"
        );
        let lossy = |good: u32| coming((0..100u32).map(|n| n * 2).chain((0..good).map(|n| 199 + n)));
        assert!(lossy(20).poor(&LIMITS, 1.0).is_some() && lossy(64).poor(&LIMITS, 1.0).is_none());
        assert_eq!((lossy(99).window.len(), lossy(99).late.len()), (WINDOW, WINDOW));
    }

    #[test]
    fn order_is_judged_over_the_last_64() {
        // Each fourth comes after the one behind it.
        let numbers = (0..40u32).flat_map(|n| [4 * n, 4 * n + 1, 4 * n + 3, 4 * n + 2]);
        let health = coming(numbers);
        assert!(health.poor(&Thresholds { loss: 0.9, ..LIMITS }, 1.0).is_some());
        assert!(
            health.poor(&Thresholds { loss: 0.9, reordered: 0.25, ..LIMITS }, 1.0).is_none(),
            "a share that is allowed"
        );
    }

    #[test]
    fn a_late_command_counts_though_it_shares_a_tick_with_a_newer_one() {
        let share = |within: bool| {
            let mut health = Health::default();
            for i in 0..100 {
                let (at, n) = (Time::from(i) * 2 * MS, i * 2);
                health.arrive(at, n + 1, at);
                if within {
                    health.superseded(n, at - MS, true);
                } else {
                    health.arrive(at, n, at - MS);
                }
            }
            assert_eq!(health.late.len(), WINDOW);
            health.late.iter().filter(|l| **l).count()
        };
        assert_eq!((share(true), share(false)), (WINDOW / 2, WINDOW / 2));
        let mut health = coming([5]);
        health.superseded(4, 0, false);
        health.superseded(6, 1, false);
        assert_eq!(
            Vec::from(health.late),
            [false, true, false],
            "behind the newest that was judged, ahead of it"
        );
        let mut health = coming([RESTARTED + 10]);
        health.superseded(0, 9, false);
        assert_eq!(Vec::from(health.late), [false, false], "of a sender that was restarted");
    }

    #[test]
    fn the_rate_is_judged_where_it_is_asked_for() {
        let health = coming(0..100);
        let least = |least_hz: f64| Thresholds { least_hz, ..LIMITS };
        assert!(health.poor(&least(999.0), 1.0).is_none() && health.poor(&least(1001.0), 1.0).is_some());
        assert!(
            health.poor(&least(900.0), 0.8).is_some() && health.poor(&least(700.0), 0.8).is_none(),
            "farther off to be good again"
        );
        let mut at_once = Health::default();
        (0..3).for_each(|n| _ = at_once.arrive(0, n, Time::from(n)));
        assert!(at_once.poor(&least(1e9), 1.0).is_none(), "of no span no rate is known");
        let mut slow = Health::default();
        (0..3).for_each(|n| _ = slow.arrive(Time::from(n) * 500 * MS, n, Time::from(n)));
        assert!(
            slow.poor(&least(2.0), 1.0).is_none() && slow.poor(&least(2.001), 1.0).is_some(),
            "at the threshold it is enough"
        );
        slow.arrive(-1_000 * MS, 3, 3);
        assert!(slow.poor(&least(1e9), 1.0).is_none(), "nor by a clock that was put back");
    }
}
