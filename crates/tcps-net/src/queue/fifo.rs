//! First in, first out, with its bytes counted: what every discipline is made of.

use super::{Limit, Refused};
use crate::packet::InFlight;
use std::collections::VecDeque;
use tcps_core::record::DropReason;

/// Packets in order of arrival.
#[derive(Debug, Default)]
pub struct Fifo {
    packets: VecDeque<InFlight>,
    bytes: u64,
}

impl Fifo {
    /// Adds at the end.
    pub fn push(&mut self, in_flight: InFlight) {
        self.bytes += u64::from(in_flight.packet.wire_bytes);
        self.packets.push_back(in_flight);
    }

    /// Adds at the end what the line takes at once (`line_idle`) or the limit admits; whether it was added.
    #[inline]
    pub fn offer(
        &mut self,
        in_flight: InFlight,
        line_idle: bool,
        limit: &Limit,
        refused: &mut Vec<Refused>,
    ) -> bool {
        let admitted = line_idle || limit.admits(self.packets(), self.bytes, in_flight.packet.wire_bytes);
        match admitted {
            true => self.push(in_flight),
            false => refused.push((in_flight.packet, DropReason::Full)),
        }
        admitted
    }

    /// Takes the oldest.
    pub fn pop(&mut self) -> Option<InFlight> {
        let in_flight = self.packets.pop_front()?;
        self.bytes -= u64::from(in_flight.packet.wire_bytes);
        Some(in_flight)
    }

    /// Takes the newest.
    pub fn pop_newest(&mut self) -> Option<InFlight> {
        let in_flight = self.packets.pop_back()?;
        self.bytes -= u64::from(in_flight.packet.wire_bytes);
        Some(in_flight)
    }

    /// Size of the oldest.
    pub fn head_bytes(&self) -> Option<u32> {
        self.packets.front().map(|p| p.packet.wire_bytes)
    }

    /// Packets in it.
    pub fn packets(&self) -> u64 {
        self.packets.len() as u64
    }

    /// Bytes in it.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
