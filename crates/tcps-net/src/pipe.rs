//! Packets in flight between a link's transmitter and the next place where something can happen to them.

use crate::packet::InFlight;
#[expect(
    clippy::disallowed_types,
    reason = "looked up for every packet, in 30 instructions (a BTreeMap: 140 with 300 pipes), and never walked through"
)]
use std::collections::HashMap;
use std::{
    collections::{BTreeMap, VecDeque},
    hash::{BuildHasherDefault, Hasher},
};
use tcps_core::{
    ids::{LinkId, VertexId},
    time::Time,
};

/// Numbers of pipes: few of all pairs of a link and a destination are ever met.
#[derive(Debug, Default)]
pub(crate) struct PipeOf {
    /// By link, destination and whether the packet is background.
    #[expect(clippy::disallowed_types, reason = "as above")]
    met: HashMap<u64, u32, BuildHasherDefault<Spread>>,
    /// By link, path and whether it is quiet.
    shared: BTreeMap<(LinkId, Vec<LinkId>, bool), u32>,
}

impl PipeOf {
    /// The pipe of packets that leave a link for a destination, if there has been one.
    #[inline]
    pub fn get(&self, link: LinkId, dst: VertexId, background: bool) -> Option<usize> {
        self.met.get(&key(link, dst, background)).map(|id| *id as usize)
    }

    /// The same for the first of them: the pipe with this path, or number `next` if there is none.
    pub fn share(
        &mut self,
        link: LinkId,
        dst: VertexId,
        background: bool,
        (path, quiet): (&[LinkId], bool),
        next: usize,
    ) -> usize {
        let id = *self.shared.entry((link, path.to_vec(), quiet)).or_insert(next as u32);
        self.met.insert(key(link, dst, background), id);
        id as usize
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.met.clear();
        self.shared.clear();
    }
}

#[inline]
fn key(link: LinkId, dst: VertexId, background: bool) -> u64 {
    u64::from(link.0) << 17 | u64::from(dst.0) << 1 | u64::from(background)
}

/// Spreads keys over a table by one multiplication (Fibonacci hashing): they are numbers of ours, of which nobody makes
/// many that collide.
#[derive(Debug, Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(self.0 ^ u64::from(*byte)));
    }

    #[inline]
    fn write_u64(&mut self, key: u64) {
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// The propagation of one link and of the pure links folded behind it. Ordered by arrival; only the head is on the agenda.
#[derive(Debug)]
pub(crate) struct Pipe {
    /// The link that fills it.
    pub link: LinkId,
    /// Pure links behind it that its packets pass without stopping.
    pub path: Vec<LinkId>,
    /// Sum of their delays.
    pub extra: Time,
    /// Vertex at its end.
    pub end: VertexId,
    /// True if its packets are only counted at the end: it needs no place on the agenda.
    pub quiet: bool,
    /// Packets, first to arrive first.
    pub packets: VecDeque<InFlight>,
    /// Packets and bytes that went in.
    pub pushed: (u64, u64),
}

impl Pipe {
    /// Adds a packet that arrives at `in_flight.at`; true if it is the new head.
    #[inline]
    pub fn push(&mut self, in_flight: InFlight) -> bool {
        self.pushed.0 += 1;
        self.pushed.1 += u64::from(in_flight.packet.wire_bytes);
        match self.packets.back() {
            Some(last) if last.at > in_flight.at => {
                let place = self.packets.partition_point(|p| p.at <= in_flight.at);
                self.packets.insert(place, in_flight);
                place == 0
            }
            last => {
                let head = last.is_none();
                self.packets.push_back(in_flight);
                head
            }
        }
    }

    /// How many packets are due at `now` and have not been taken out.
    pub fn due(&self, now: Time) -> usize {
        self.packets.partition_point(|p| p.at <= now)
    }

    /// Packets and bytes that have not entered the last folded links, the first of which is entered `before_end`
    /// ahead of the arrival at the end.
    pub fn not_entered(&self, now: Time, before_end: Time) -> (u64, u64) {
        let later = self.packets.iter().rev().take_while(|p| p.at - before_end > now);
        later.fold((0, 0), |(n, b), p| (n + 1, b + u64::from(p.packet.wire_bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    /// Numbers of links and of destinations follow one another, and the table takes the lowest bits for the place and the
    /// highest ones for a first comparison: both differ from key to key, or a packet would search through all pipes.
    #[test]
    fn keys_of_a_network_are_spread() {
        let (links, destinations) = (64, 32);
        let hasher = BuildHasherDefault::<Spread>::default();
        let keys = (0..links).flat_map(|l| (0..destinations).map(move |d| (LinkId(l), VertexId(d))));
        let hashes: Vec<u64> =
            keys.flat_map(|(l, d)| [true, false].map(|b| hasher.hash_one(key(l, d, b)))).collect();
        for (what, shift, places) in [("place", 0, 4096), ("first comparison", 57, 128)] {
            let mut met = vec![0; places];
            hashes.iter().for_each(|h| met[(h >> shift) as usize % places] += 1);
            let (mean, most) = (hashes.len() / places, met.iter().copied().max().unwrap_or(0));
            assert!(most <= mean + 8, "{what}: {most} keys at one, {mean} in the mean");
        }
    }
}
