//! What of a node is due, in the order in which it is called at one moment.

use super::Node;
use crate::rounds::Rounds;
use tcps_core::time::{Time, NEVER};

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

impl Node {
    /// The next whose turn it is at this moment.
    pub(super) fn turn(&mut self) -> Option<Item> {
        let number = self.due.turn()?;
        let sort = self.first.partition_point(|first| *first <= number) - 1;
        Some(SORTS[sort](number - self.first[sort]))
    }

    /// Looks again when something wants to be called; to be asked for wherever that may have changed.
    #[inline]
    pub(super) fn arm(&mut self, item: Item) {
        let (number, at) = self.wish(item);
        self.due.set(number, at);
    }

    /// The number of something among all, and when it wants to be called.
    #[inline]
    fn wish(&self, item: Item) -> (usize, Time) {
        let (sort, i, at) = match item {
            Item::Robot(i) => (0, i, self.robots[i].next),
            Item::Board(i) => (1, i, self.boards[i].next()),
            Item::Periodic(i) => (2, i, self.next_periodic(i)),
            Item::Display(i) => (3, i, self.next_display(&self.displays[i])),
            Item::Emitter(i) => (4, i, self.emitters[i].next()),
            Item::Port(i) => (5, i, self.next_port(i)),
        };
        (self.first[sort] + i, at)
    }

    /// How many there are of each sort.
    fn counts(&self) -> [usize; 6] {
        let (robots, boards, periodic) = (self.robots.len(), self.boards.len(), self.periodic.len());
        [robots, boards, periodic, self.displays.len(), self.emitters.len(), self.ports.len()]
    }

    /// Everything that there is.
    fn items(&self) -> impl Iterator<Item = Item> {
        SORTS.into_iter().zip(self.counts()).flat_map(|(sort, count)| (0..count).map(sort))
    }

    /// Numbers everything; none is armed.
    pub(super) fn number_all(&mut self) {
        let counts = self.counts();
        let mut count = 0;
        for (first, of_sort) in self.first.iter_mut().zip(counts) {
            *first = count;
            count += of_sort;
        }
        self.due = Rounds::new(count);
    }

    /// Arms everything.
    pub(super) fn arm_all(&mut self) {
        self.items().for_each(|item| self.arm(item));
    }

    /// Whether everything is armed for the moment at which it wants to be called.
    pub(super) fn is_armed(&self) -> bool {
        self.items().map(|item| self.wish(item)).all(|(number, at)| self.due.wish(number) == at)
    }

    fn next_periodic(&self, i: usize) -> Time {
        let (f, v, s) = self.periodic[i];
        let step = self.flows[f as usize].visits[v as usize].as_ref().map(|v| &v.steps[s as usize]);
        step.and_then(|s| s.periodic.as_ref()).map_or(NEVER, |p| p.next)
    }

    /// Run time at which an endpoint wants to be called.
    fn next_port(&self, i: usize) -> Time {
        self.ports[i].endpoint.poll_timeout().map_or(NEVER, |t| self.steady.when(t))
    }
}
