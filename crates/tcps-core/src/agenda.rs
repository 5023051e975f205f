//! What is due next: a heap with at most one entry per object, so that it stays as small as the network.
//!
//! An entry has four below it, which lie side by side: with thousands of objects a way through it touches half the memory that
//! one through a binary heap does.

use crate::time::{Time, NEVER};

const ABSENT: u32 = u32::MAX;
/// Entries below one.
const ARITY: usize = 4;

/// A moment and the object that it is of, in one number that is compared in one go.
type Entry = i128;

#[inline]
fn entry(time: Time, id: usize) -> Entry {
    Entry::from(time) << u32::BITS | id as Entry
}

#[inline]
fn moment(entry: Entry) -> Time {
    (entry >> u32::BITS) as Time
}

/// Objects (numbered from 0) and the moment at which each wants to be called. Ties go to the smaller number.
#[derive(Debug, Default)]
pub struct Agenda {
    heap: Vec<Entry>,
    place: Vec<u32>,
}

impl Agenda {
    /// The earliest moment and its object; `(NEVER, _)` if nothing is due.
    #[inline]
    pub fn first(&self) -> (Time, u32) {
        self.heap.first().map_or((NEVER, ABSENT), |e| (moment(*e), *e as u32))
    }

    /// When object `id` is due.
    #[inline]
    pub fn time_of(&self, id: usize) -> Time {
        match self.place.get(id) {
            Some(&p) if p != ABSENT => moment(self.heap[p as usize]),
            _ => NEVER,
        }
    }

    /// Makes object `id` due at `time`, in place of an earlier wish.
    #[inline]
    pub fn set(&mut self, id: usize, time: Time) {
        if id >= self.place.len() {
            self.place.resize(id + 1, ABSENT);
        }
        let entry = entry(time, id);
        match self.place[id] {
            ABSENT => {
                self.heap.push(entry);
                self.rise(self.heap.len() - 1, entry);
            }
            p if entry < self.heap[p as usize] => self.rise(p as usize, entry),
            p => self.sink(p as usize, entry),
        }
    }

    /// Removes object `id`.
    #[inline]
    pub fn clear(&mut self, id: usize) {
        let Some(&p) = self.place.get(id) else { return };
        if p == ABSENT {
            return;
        }
        self.place[id] = ABSENT;
        let p = p as usize;
        let Some(last) = self.heap.pop() else { return };
        if p < self.heap.len() {
            if last < self.heap[p] {
                self.rise(p, last);
            } else {
                self.sink(p, last);
            }
        }
    }

    /// Removes the objects from number `id` on.
    pub fn clear_from(&mut self, id: usize) {
        for i in id..self.place.len() {
            self.clear(i);
        }
    }

    #[inline]
    fn rise(&mut self, mut hole: usize, entry: Entry) {
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(hole, self.heap[parent]);
            hole = parent;
        }
        self.put(hole, entry);
    }

    #[inline]
    fn sink(&mut self, mut hole: usize, entry: Entry) {
        let n = self.heap.len();
        loop {
            let first = ARITY * hole + 1;
            if first >= n {
                break;
            }
            let (mut child, mut least) = (first, self.heap[first]);
            for other in first + 1..n.min(first + ARITY) {
                if self.heap[other] < least {
                    (child, least) = (other, self.heap[other]);
                }
            }
            if entry <= least {
                break;
            }
            self.put(hole, least);
            hole = child;
        }
        self.put(hole, entry);
    }

    #[inline]
    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.place[entry as u32 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The agenda agrees with a search through a plain table after any sequence of settings and removals.
        #[test]
        fn agrees_with_a_plain_table(ops in prop::collection::vec((0usize..12, 0i64..50, any::<bool>()), 1..200)) {
            let mut agenda = Agenda::default();
            let mut table = [NEVER; 12];
            for (id, time, remove) in ops {
                if remove {
                    agenda.clear(id);
                    table[id] = NEVER;
                } else {
                    agenda.set(id, time);
                    table[id] = time;
                }
                let first = (0..12).map(|i| (table[i], i as u32)).filter(|e| e.0 != NEVER).min();
                prop_assert_eq!(agenda.first(), first.unwrap_or((NEVER, ABSENT)));
                prop_assert_eq!(agenda.time_of(id), table[id]);
            }
        }
    }
}
