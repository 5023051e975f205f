//! Packets in flight between a link's transmitter and the next place where something can happen to them.

use crate::packet::Parcel;
use std::collections::VecDeque;
use tcps_core::time::Time;

/// No pipe yet.
pub(crate) const NO_PIPE: u32 = u32::MAX;

/// The propagation of one link and of the pure links folded behind it. Ordered by arrival; only the head is on the agenda.
#[derive(Debug)]
pub(crate) struct Pipe {
    /// The link that fills it.
    pub link: u16,
    /// Pure links behind it that its packets pass without stopping.
    pub path: Vec<u16>,
    /// Sum of their delays.
    pub extra: Time,
    /// Vertex at its end.
    pub end: u16,
    /// True if its packets are only counted at the end: it needs no place on the agenda.
    pub quiet: bool,
    /// Packets, first to arrive first.
    pub parcels: VecDeque<Parcel>,
    /// Packets and bytes that went in.
    pub pushed: (u64, u64),
}

impl Pipe {
    /// Adds a packet that arrives at `parcel.at`; true if it is the new head.
    #[inline]
    pub fn push(&mut self, parcel: Parcel) -> bool {
        self.pushed.0 += 1;
        self.pushed.1 += u64::from(parcel.packet.wire_bytes);
        match self.parcels.back() {
            Some(last) if last.at > parcel.at => {
                let place = self.parcels.partition_point(|p| p.at <= parcel.at);
                self.parcels.insert(place, parcel);
                place == 0
            }
            last => {
                let head = last.is_none();
                self.parcels.push_back(parcel);
                head
            }
        }
    }

    /// How many packets are due at `now` and have not been taken out.
    pub fn due(&self, now: Time) -> usize {
        self.parcels.partition_point(|p| p.at <= now)
    }

    /// Packets and bytes that have not entered the last folded links, the first of which is entered `before_end`
    /// ahead of the arrival at the end.
    pub fn not_entered(&self, now: Time, before_end: Time) -> (u64, u64) {
        let later = self.parcels.iter().rev().take_while(|p| p.at - before_end > now);
        later.fold((0, 0), |(n, b), p| (n + 1, b + u64::from(p.packet.wire_bytes)))
    }
}
