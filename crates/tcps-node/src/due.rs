//! What of a node is due, in the order in which it is called at one moment.

use crate::rounds::Rounds;
use tcps_core::time::Time;

/// Something that wants to be called at a moment, by its place among those of its sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    Robot(usize),
    Board(usize),
    Periodic(usize),
    Display(usize),
    Emitter(usize),
    Port(usize),
}

/// In the order in which they are called at one moment.
const SORTS: [fn(usize) -> Item; 6] =
    [Item::Robot, Item::Board, Item::Periodic, Item::Display, Item::Emitter, Item::Port];

/// Robots, boards, periodic steps, displays, emitters and ports, which are called in this order when they are due.
#[derive(Default)]
pub(super) struct Due {
    rounds: Rounds,
    /// The number of the first of each sort, and how many there are.
    first: [u16; 6],
    counts: [u16; 6],
}

impl Due {
    /// So many of each sort; none is armed.
    pub(super) fn new(counts: [usize; 6]) -> Self {
        let (mut count, counts) = (0, counts.map(|of_sort| of_sort as u16));
        let first = counts.map(|of_sort| {
            count += of_sort;
            count - of_sort
        });
        Self { rounds: Rounds::new(count.into()), first, counts }
    }

    /// Everything that there is.
    pub(super) fn items(&self) -> impl Iterator<Item = Item> {
        SORTS.into_iter().zip(self.counts).flat_map(|(sort, count)| (0..count.into()).map(sort))
    }

    /// Something wants to be called at `at`; to be told wherever that may have changed.
    #[inline]
    pub(super) fn set(&mut self, item: Item, at: Time) {
        self.rounds.set(self.number(item), at);
    }

    /// When something is called.
    pub(super) fn wish(&self, item: Item) -> Time {
        self.rounds.wish(self.number(item))
    }

    /// When the next one is called.
    pub(super) fn next(&self) -> Time {
        self.rounds.next()
    }

    /// Begins a round of those that are due at `now`.
    pub(super) fn begin(&mut self, now: Time) {
        self.rounds.begin(now);
    }

    /// The next whose turn it is at this moment.
    pub(super) fn turn(&mut self) -> Option<Item> {
        let number = self.rounds.turn()?;
        let sort = self.first.partition_point(|first| usize::from(*first) <= number) - 1;
        Some(SORTS[sort](number - usize::from(self.first[sort])))
    }

    #[inline]
    fn number(&self, item: Item) -> usize {
        let (sort, i) = match item {
            Item::Robot(i) => (0, i),
            Item::Board(i) => (1, i),
            Item::Periodic(i) => (2, i),
            Item::Display(i) => (3, i),
            Item::Emitter(i) => (4, i),
            Item::Port(i) => (5, i),
        };
        usize::from(self.first[sort]) + i
    }
}
