//! Who is called when: in each round those that are due, in the order of their numbers, without a look at all others.

use std::{cmp::Reverse, collections::BinaryHeap};
use tcps_core::agenda::Agenda;
use tcps_core::time::{Time, NEVER};

/// So few are searched through, which touches less memory than an agenda.
const FEW: usize = 8;

/// Objects (numbered from 0) and the moment at which each wants to be called.
///
/// One that becomes due while a round is on has its turn in it if its number is still to come, else in the next.
#[derive(Debug, Default)]
pub struct Rounds {
    at: Vec<Time>,
    agenda: Agenda,
    /// Numbers that may have a turn in this round.
    due: BinaryHeap<Reverse<u32>>,
    /// The moment of the round that is on, and the least number that is still to come.
    round: Option<(Time, u32)>,
}

impl Rounds {
    /// So many objects, of which none is due.
    pub fn new(count: usize) -> Self {
        Self { at: vec![NEVER; count], ..Self::default() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// When an object wants to be called.
    pub fn wish(&self, id: usize) -> Time {
        self.at[id]
    }

    /// When the next round is to be.
    #[inline]
    pub fn next(&self) -> Time {
        match self.are_few() {
            true => self.at.iter().copied().min().unwrap_or(NEVER),
            false => self.agenda.first().0,
        }
    }

    #[inline]
    fn are_few(&self) -> bool {
        self.at.len() <= FEW
    }

    /// Object `id` wants to be called at `time`, whatever it wanted before.
    #[inline]
    pub fn set(&mut self, id: usize, time: Time) {
        if std::mem::replace(&mut self.at[id], time) == time || self.are_few() {
            return;
        }
        match time {
            NEVER => self.agenda.clear(id),
            _ => self.agenda.set(id, time),
        }
        if self.round.is_some_and(|(now, from)| time <= now && id as u32 >= from) {
            self.due.push(Reverse(id as u32));
        }
    }

    /// Begins a round of those that are due at `now`.
    pub fn begin(&mut self, now: Time) {
        self.round = Some((now, 0));
        while self.agenda.first().0 <= now {
            let id = self.agenda.first().1;
            self.agenda.clear(id as usize);
            self.due.push(Reverse(id));
        }
    }

    /// Whose turn it is; it is not called again before it says when. None: the round is over.
    pub fn turn(&mut self) -> Option<usize> {
        let (now, from) = self.round?;
        if self.are_few() {
            let due = self.at.iter().enumerate().skip(from as usize).find(|(_, at)| **at <= now);
            self.round = due.map(|(id, _)| (now, id as u32 + 1));
            return due.map(|(id, _)| id).inspect(|id| self.at[*id] = NEVER);
        }
        while let Some(Reverse(id)) = self.due.pop() {
            if id >= from && self.at[id as usize] <= now {
                self.round = Some((now, id + 1));
                self.at[id as usize] = NEVER;
                self.agenda.clear(id as usize);
                return Some(id as usize);
            }
        }
        self.round = None;
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
