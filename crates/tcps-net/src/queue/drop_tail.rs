//! First in, first out; arrivals that do not fit are dropped. [model: FIFO link]

use super::{fifo::Fifo, Discipline, Limit, QueueDiscipline, Refused};
use crate::packet::Parcel;
use tcps_core::{param::Entry, record::DropReason, time::Time};

/// Its name, which links that name no discipline have.
pub use tcps_plan::net::DROP_TAIL as NAME;

/// In a scenario.
pub const ENTRY: Entry<Discipline> = Entry {
    id: 0,
    name: NAME,
    doc: "first in, first out",
    params: &[],
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
    fn enqueue(&mut self, parcel: Parcel, straight: bool, refused: &mut Vec<Refused>) {
        let bytes = parcel.packet.wire_bytes;
        if straight || self.limit.admits(self.fifo.packets(), self.fifo.bytes(), bytes) {
            self.fifo.push(parcel);
        } else {
            refused.push((parcel.packet, DropReason::Full));
        }
    }

    fn dequeue(&mut self, _now: Time, _refused: &mut Vec<Refused>) -> Option<Parcel> {
        self.fifo.pop()
    }

    fn packets(&self) -> u64 {
        self.fifo.packets()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }
}
