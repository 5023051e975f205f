//! First in, first out; arrivals that do not fit are dropped. [model: FIFO link]

use super::{fifo::Fifo, Discipline, Limit, QueueDiscipline, Refused};
use crate::packet::InFlight;
use tcps_core::{
    param::{Draws, Entry},
    time::Time,
};

/// Its name, which links that name no discipline have.
pub use tcps_plan::net::DROP_TAIL as NAME;

/// In a scenario.
pub const ENTRY: Entry<Discipline> = Entry {
    id: 0,
    name: NAME,
    doc: "first in, first out",
    params: &[],
    draws: Draws::No,
    make: Discipline::new(|_, x| Ok(Box::new(DropTail::new(x.limit)))),
};

/// A drop-tail queue.
pub struct DropTail {
    fifo: Fifo,
    limit: Limit,
}

impl DropTail {
    /// An empty queue.
    pub fn new(limit: Limit) -> Self {
        Self { fifo: Fifo::default(), limit }
    }
}

impl QueueDiscipline for DropTail {
    fn enqueue(&mut self, in_flight: InFlight, line_idle: bool, refused: &mut Vec<Refused>) {
        self.fifo.offer(in_flight, line_idle, &self.limit, refused);
    }

    fn dequeue(&mut self, _now: Time, _refused: &mut Vec<Refused>) -> Option<InFlight> {
        self.fifo.pop()
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn packets(&self) -> u64 {
        self.fifo.packets()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }
}
