//! First in, first out, with its bytes counted: what every discipline is made of.

use crate::packet::Parcel;
use std::collections::VecDeque;

/// Packets in order of arrival.
#[derive(Debug, Default)]
pub struct Fifo {
    parcels: VecDeque<Parcel>,
    bytes: u64,
}

impl Fifo {
    /// Adds at the end.
    pub fn push(&mut self, parcel: Parcel) {
        self.bytes += u64::from(parcel.packet.wire_bytes);
        self.parcels.push_back(parcel);
    }

    /// Takes the oldest.
    pub fn pop(&mut self) -> Option<Parcel> {
        let parcel = self.parcels.pop_front()?;
        self.bytes -= u64::from(parcel.packet.wire_bytes);
        Some(parcel)
    }

    /// Takes the newest.
    pub fn pop_newest(&mut self) -> Option<Parcel> {
        let parcel = self.parcels.pop_back()?;
        self.bytes -= u64::from(parcel.packet.wire_bytes);
        Some(parcel)
    }

    /// Size of the oldest.
    pub fn head_bytes(&self) -> Option<u32> {
        self.parcels.front().map(|p| p.packet.wire_bytes)
    }

    /// Packets in it.
    pub fn packets(&self) -> u64 {
        self.parcels.len() as u64
    }

    /// Bytes in it.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
