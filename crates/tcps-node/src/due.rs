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

impl Node {
    /// How many there are of each sort.
    fn counts(&self) -> [usize; 6] {
        let (robots, boards, periodic) = (self.robots.len(), self.boards.len(), self.periodic.len());
        [robots, boards, periodic, self.displays.len(), self.emitters.len(), self.ports.len()]
    }

    /// The next whose turn it is at this moment.
    pub(super) fn turn(&mut self) -> Option<Item> {
        let mut number = self.due.turn()?;
        let sorts = [Item::Robot, Item::Board, Item::Periodic, Item::Display, Item::Emitter, Item::Port];
        for (sort, count) in sorts.into_iter().zip(self.counts()) {
            if number < count {
                return Some(sort(number));
            }
            number -= count;
        }
        None
    }

    /// Looks again when something wants to be called; to be asked for wherever that may have changed.
    #[inline]
    pub(super) fn arm(&mut self, item: Item) {
        let [robots, boards, periodic, displays, emitters, _] = self.counts();
        let (first, i, at) = match item {
            Item::Robot(i) => (0, i, self.robots[i].next),
            Item::Board(i) => (robots, i, self.boards[i].next()),
            Item::Periodic(i) => (robots + boards, i, self.next_periodic(i)),
            Item::Display(i) => (robots + boards + periodic, i, self.next_display(&self.displays[i])),
            Item::Emitter(i) => (robots + boards + periodic + displays, i, self.emitters[i].next()),
            Item::Port(i) => (robots + boards + periodic + displays + emitters, i, self.next_port(i)),
        };
        self.due.set(first + i, at);
    }

    /// The same for everything.
    pub(super) fn arm_all(&mut self) {
        let counts = self.counts();
        if self.due.is_empty() {
            self.due = Rounds::new(counts.iter().sum());
        }
        let sorts = [Item::Robot, Item::Board, Item::Periodic, Item::Display, Item::Emitter, Item::Port];
        for (sort, count) in sorts.into_iter().zip(counts) {
            (0..count).for_each(|i| self.arm(sort(i)));
        }
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
