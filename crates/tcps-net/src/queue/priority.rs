//! Strict priority by differentiated services code point. [RFC 2474 §4.2.2]
//!
//! The limit is shared. An arrival that does not fit throws out the newest packets of less urgent classes, so that
//! a full queue of bulk data never costs an urgent packet; if that cannot make room, the arrival is dropped.

use super::{by_code_point, fifo::Fifo, Discipline, Limit, QueueDiscipline, Refused};
use crate::packet::InFlight;
use serde_json::Value;
use std::collections::BTreeSet;
use tcps_core::{
    param::{Draws, Entry, Fault, Params},
    params,
    record::DropReason,
    time::Time,
};

params! {
    /// Of a discipline with classes.
    pub struct Classes {
        classes: Vec<Vec<u8>> = List(&List(&CodePoint)), "[]", 0.0..=63.0,
            "2 to 64 classes, the most urgent first. Each is a list of code points (numbers or names such as \"EF\"). The \
             last class takes all other packets";
    }
}

impl Classes {
    /// The classes, each code point in one of them.
    pub fn checked(params: &Value) -> Result<Vec<Vec<u8>>, Fault> {
        let Self { classes } = Self::read(params)?;
        let fault = |found: &str, allowed: &str| Err(Fault::new("classes", found, allowed));
        let mut seen = BTreeSet::new();
        match classes.len() {
            2..=64 if classes.iter().flatten().all(|d| seen.insert(d)) => Ok(classes),
            2..=64 => fault("a code point twice", "each code point once"),
            n => fault(
                &format!("{n} classes"),
                "2 to 64 classes such as [[\"EF\"], []]; the last one takes the rest",
            ),
        }
    }
}

/// In a scenario.
pub const ENTRY: Entry<Discipline> = Entry {
    id: 1,
    name: "priority",
    doc: "strict priority of classes, by code point",
    params: &[Classes::TABLE],
    draws: Draws::No,
    make: Discipline::new(|params, x| Ok(Box::new(Priority::new(x.limit, &Classes::checked(params)?)))),
};

/// One queue per class, most urgent first.
pub struct Priority {
    queues: Vec<Fifo>,
    class_of: [u8; 256],
    limit: Limit,
    packets: u64,
    bytes: u64,
}

impl Priority {
    /// Classes by their code points; the last one takes the rest.
    pub fn new(limit: Limit, classes: &[Vec<u8>]) -> Self {
        let queues = classes.iter().map(|_| Fifo::default()).collect();
        Self { queues, class_of: by_code_point(classes), limit, packets: 0, bytes: 0 }
    }

    /// Packets and bytes of the classes less urgent than `class`.
    fn below(&self, class: usize) -> (u64, u64) {
        self.queues[class + 1..].iter().fold((0, 0), |(n, b), q| (n + q.packets(), b + q.bytes()))
    }

    fn make_room(&mut self, class: usize, bytes: u32, refused: &mut Vec<Refused>) -> bool {
        let (n, b) = self.below(class);
        if !self.limit.admits(self.packets - n, self.bytes - b, bytes) {
            return false;
        }
        for lower in (class + 1..self.queues.len()).rev() {
            while !self.limit.admits(self.packets, self.bytes, bytes) {
                let Some(out) = self.queues[lower].pop_newest() else { break };
                self.count_out(&out);
                refused.push((out.packet, DropReason::Full));
            }
        }
        true
    }

    fn count_out(&mut self, in_flight: &InFlight) {
        self.packets -= 1;
        self.bytes -= u64::from(in_flight.packet.wire_bytes);
    }
}

impl QueueDiscipline for Priority {
    fn enqueue(&mut self, in_flight: InFlight, line_idle: bool, refused: &mut Vec<Refused>) {
        let bytes = in_flight.packet.wire_bytes;
        let class = usize::from(self.class_of[usize::from(in_flight.packet.dscp)]);
        if line_idle || self.make_room(class, bytes, refused) {
            self.packets += 1;
            self.bytes += u64::from(bytes);
            self.queues[class].push(in_flight);
        } else {
            refused.push((in_flight.packet, DropReason::Full));
        }
    }

    fn dequeue(&mut self, _now: Time, _refused: &mut Vec<Refused>) -> Option<InFlight> {
        let in_flight = self.queues.iter_mut().find_map(Fifo::pop)?;
        self.count_out(&in_flight);
        Some(in_flight)
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn packets(&self) -> u64 {
        self.packets
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}
