//! Who is called when: in each round those that are due, in the order of their numbers, without a look at all others.

use std::{cmp::Reverse, collections::BinaryHeap};
use tcps_core::agenda::Agenda;
use tcps_core::time::{Time, NEVER};

/// So few are searched through, which touches less memory than an agenda.
const FEW: usize = 8;

/// Objects (numbered from 0) and the moment at which each wants to be called.
///
/// One that becomes due while a round is on has its turn in it if its number is still to come, else in the next.
#[derive(Debug)]
pub struct Rounds {
    /// Of the few, kept in place; those that there are not never want to be called.
    few: [Time; FEW],
    many: Option<Box<Many>>,
    /// The moment of the round that is on, and the least number that is still to come.
    round: Option<(Time, u32)>,
}

/// Of more than a few.
#[derive(Debug, Default)]
struct Many {
    at: Vec<Time>,
    agenda: Agenda,
    /// Numbers that may have a turn in this round.
    due: BinaryHeap<Reverse<u32>>,
}

impl Default for Rounds {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Rounds {
    /// So many objects, of which none is due.
    pub fn new(count: usize) -> Self {
        let many = || Box::new(Many { at: vec![NEVER; count], ..Many::default() });
        Self { few: [NEVER; FEW], many: (count > FEW).then(many), round: None }
    }

    /// When an object wants to be called.
    pub fn wish(&self, id: usize) -> Time {
        match &self.many {
            None => self.few[id],
            Some(many) => many.at[id],
        }
    }

    /// When the next round is to be.
    #[inline]
    pub fn next(&self) -> Time {
        match &self.many {
            None => self.few.iter().copied().fold(NEVER, Time::min),
            Some(many) => many.agenda.first().0,
        }
    }

    /// Object `id` wants to be called at `time`, whatever it wanted before.
    #[inline]
    pub fn set(&mut self, id: usize, time: Time) {
        match &mut self.many {
            None => self.few[id] = time,
            Some(many) => many.set(id, time, self.round),
        }
    }

    /// Begins a round of those that are due at `now`.
    #[inline]
    pub fn begin(&mut self, now: Time) {
        self.round = Some((now, 0));
        if let Some(many) = &mut self.many {
            many.begin(now);
        }
    }

    /// Whose turn it is; it is not called again before it says when. None: the round is over.
    #[inline]
    pub fn turn(&mut self) -> Option<usize> {
        let (now, from) = self.round?;
        let id = match &mut self.many {
            None => (from as usize..FEW).find(|id| self.few[*id] <= now).inspect(|id| self.few[*id] = NEVER),
            Some(many) => many.turn(now, from),
        };
        self.round = id.map(|id| (now, id as u32 + 1));
        id
    }
}

impl Many {
    fn set(&mut self, id: usize, time: Time, round: Option<(Time, u32)>) {
        if std::mem::replace(&mut self.at[id], time) == time {
            return;
        }
        match time {
            NEVER => self.agenda.clear(id),
            _ => self.agenda.set(id, time),
        }
        if round.is_some_and(|(now, from)| time <= now && id as u32 >= from) {
            self.due.push(Reverse(id as u32));
        }
    }

    fn begin(&mut self, now: Time) {
        while self.agenda.first().0 <= now {
            let id = self.agenda.first().1;
            self.agenda.clear(id as usize);
            self.due.push(Reverse(id));
        }
    }

    fn turn(&mut self, now: Time, from: u32) -> Option<usize> {
        while let Some(Reverse(id)) = self.due.pop() {
            if id >= from && self.at[id as usize] <= now {
                self.at[id as usize] = NEVER;
                self.agenda.clear(id as usize);
                return Some(id as usize);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a turn does: it sets the wishes of these, at offsets from now, and has one of its own. None: never.
    type Turn = (Vec<(usize, Option<i64>)>, Option<i64>);

    fn moment(now: Time, by: Option<i64>) -> Time {
        by.map_or(NEVER, |by| now + by)
    }

    /// A walk over all objects in each round, which asks each whether it is due.
    fn walk(start: &[Time], turns: &[Turn], limit: usize) -> Vec<(Time, usize)> {
        let (mut at, mut told) = (start.to_vec(), Vec::new());
        while let Some(now) = at.iter().copied().min().filter(|t| *t < NEVER && told.len() < limit) {
            for id in 0..at.len() {
                if at[id] <= now {
                    let (others, own) = &turns[told.len() % turns.len()];
                    told.push((now, id));
                    others.iter().for_each(|(other, by)| at[other % start.len()] = moment(now, *by));
                    at[id] = moment(now, *own);
                }
            }
        }
        told
    }

    fn rounds(start: &[Time], turns: &[Turn], limit: usize) -> Vec<(Time, usize)> {
        let (mut rounds, mut told) = (Rounds::new(start.len()), Vec::new());
        start.iter().enumerate().for_each(|(id, t)| rounds.set(id, *t));
        while rounds.next() < NEVER && told.len() < limit {
            let now = rounds.next();
            rounds.begin(now);
            while let Some(id) = rounds.turn() {
                let (others, own) = &turns[told.len() % turns.len()];
                told.push((now, id));
                others.iter().for_each(|(other, by)| rounds.set(other % start.len(), moment(now, *by)));
                rounds.set(id, moment(now, *own));
            }
        }
        told
    }

    proptest! {
        /// Turns come in the order of a walk over all, also where wishes change within a round, or lie in the past.
        #[test]
        fn turns_are_those_of_a_walk_over_all(
            start in prop::collection::vec(0i64..20, 1..3 * FEW),
            turns in prop::collection::vec(
                (prop::collection::vec((0usize..3 * FEW, prop::option::of(-3i64..9)), 0..3), prop::option::of(0i64..9)),
                1..20,
            ),
        ) {
            prop_assert_eq!(rounds(&start, &turns, 200), walk(&start, &turns, 200));
        }
    }
}
