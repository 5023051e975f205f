//! Packets that verified, known again by a hash of their bytes.
//!
//! A packet says its number in a byte or two, and quinn-proto takes the one next to the newest: it reads that of an old packet wrong,
//! so that a copy of it does not verify. Nor does it where keys have changed, or the connection is another one.

use std::{
    collections::{BTreeSet, VecDeque},
    hash::{DefaultHasher, Hasher},
};

/// Packets that are remembered: a minute of a thousand a second.
const MOST: usize = 1 << 16;

/// The newest packets that verified.
#[derive(Debug, Default)]
pub(super) struct Seen {
    hashes: BTreeSet<u64>,
    order: VecDeque<u64>,
}

impl Seen {
    /// A datagram has verified.
    pub(super) fn note(&mut self, datagram: &[u8]) {
        let hash = hash(datagram);
        if !self.hashes.insert(hash) {
            return;
        }
        self.order.push_back(hash);
        if self.order.len() > MOST {
            self.order.pop_front().iter().for_each(|oldest| _ = self.hashes.remove(oldest));
        }
    }

    /// Whether this one has.
    pub(super) fn has(&self, datagram: &[u8]) -> bool {
        self.hashes.contains(&hash(datagram))
    }
}

/// The same in every run.
fn hash(datagram: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(datagram);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_remembered() {
        let mut seen = Seen::default();
        let packet = |n: u64| [[7; 8], n.to_le_bytes()].concat();
        (0..MOST as u64 + 10).for_each(|n| seen.note(&packet(n)));
        (0..10).for_each(|_| seen.note(&packet(12)));
        let known = [0, 9, 10, 12, MOST as u64 + 9, MOST as u64 + 10].map(|n| seen.has(&packet(n)));
        assert_eq!(known, [false, false, true, true, true, false]);
    }
}
