//! A queue whose order and drops are decided by code of the user's.
//!
//! Packets stay here; the code is told their numbers. What fails is counted and named, and the oldest packet goes.

use super::{Context, Limit, QueueDiscipline, Refused};
use crate::{
    own::{Failures, Offer, QueueCode},
    packet::InFlight,
};
use std::collections::BTreeMap;
use tcps_core::{record::DropReason, time::Time};

/// A queue whose order and drops are decided by code of the user's.
pub(crate) struct OwnQueue {
    code: Box<dyn QueueCode>,
    waiting: BTreeMap<u32, InFlight>,
    limit: Limit,
    bytes: u64,
    next: u32,
    dropped: Vec<u32>,
    failures: Failures,
}

impl OwnQueue {
    pub fn new(code: Box<dyn QueueCode>, name: &str, x: &Context<'_>) -> Self {
        let failures = Failures::of(format!("queue {name} of links.{}", x.link));
        let (waiting, dropped) = (BTreeMap::new(), Vec::new());
        Self { code, waiting, limit: x.limit, bytes: 0, next: 0, dropped, failures }
    }

    fn take(&mut self, number: u32) -> Option<InFlight> {
        let in_flight = self.waiting.remove(&number)?;
        self.bytes -= u64::from(in_flight.packet.wire_bytes);
        Some(in_flight)
    }

    /// Throws out what the code has named.
    fn throw_out(&mut self, refused: &mut Vec<Refused>) {
        for number in std::mem::take(&mut self.dropped) {
            match self.take(number) {
                Some(in_flight) => refused.push((in_flight.packet, DropReason::Managed)),
                None => self.failures.note(format!("dropped packet {number}, which does not wait")),
            }
        }
    }
}

impl QueueDiscipline for OwnQueue {
    fn enqueue(&mut self, in_flight: InFlight, line_idle: bool, refused: &mut Vec<Refused>) {
        let packet = in_flight.packet;
        if !line_idle && !self.limit.admits(self.packets(), self.bytes, packet.wire_bytes) {
            return refused.push((packet, DropReason::Full));
        }
        let (number, bytes) = (self.next, packet.wire_bytes);
        self.next = self.next.wrapping_add(1);
        self.waiting.insert(number, in_flight);
        self.bytes += u64::from(bytes);
        let offer = Offer { number, bytes, flow: packet.class, dscp: packet.dscp };
        if let Err(what) = self.code.enqueue(in_flight.at, &offer, &mut self.dropped) {
            self.failures.note(what);
        }
        self.throw_out(refused);
    }

    fn dequeue(&mut self, now: Time, refused: &mut Vec<Refused>) -> Option<InFlight> {
        if self.waiting.is_empty() {
            return None;
        }
        let answer = self.code.dequeue(now, &mut self.dropped);
        self.throw_out(refused);
        let waiting = self.waiting.len();
        let wrong = match answer {
            Ok(Some(number)) => match self.take(number) {
                Some(in_flight) => return Some(in_flight),
                None => format!("sent packet {number}, which does not wait"),
            },
            Ok(None) if waiting == 0 => return None,
            Ok(None) => format!("sent nothing, and {waiting} packets wait"),
            Err(what) => what,
        };
        self.failures.note(wrong);
        let oldest = *self.waiting.keys().next()?;
        self.take(oldest)
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn packets(&self) -> u64 {
        self.waiting.len() as u64
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn failure(&self) -> Option<String> {
        self.failures.told()
    }
}
