//! Packets that wait to be sent; their buffers are used again.

use std::collections::VecDeque;
use tcps_wire::tcp::{Ends, Repr};

/// A queue of packets.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    packets: VecDeque<Vec<u8>>,
    pool: Vec<Vec<u8>>,
}

impl Leaving {
    /// Adds a segment with its content.
    pub(super) fn push(&mut self, ends: &Ends, segment: &Repr, content: [&[u8]; 2]) {
        let mut packet = self.pool.pop().unwrap_or_default();
        packet.clear();
        segment.emit(ends, content, &mut packet);
        self.packets.push_back(packet);
    }

    /// Appends the oldest packet to `out`; false if there is none.
    pub(super) fn pop(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(packet) = self.packets.pop_front() else { return false };
        out.extend_from_slice(&packet);
        self.pool.push(packet);
        true
    }

    /// Drops what waits.
    pub(super) fn clear(&mut self) {
        self.pool.extend(self.packets.drain(..));
    }
}
