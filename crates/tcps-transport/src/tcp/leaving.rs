//! Packets that wait to be sent; their buffers are used again.

use std::collections::VecDeque;
use tcps_core::endpoint::Again;
use tcps_wire::tcp::{Ends, Repr};

/// A queue of packets.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    packets: VecDeque<(Vec<u8>, Again)>,
    pool: Vec<Vec<u8>>,
}

impl Leaving {
    /// Adds a segment with its content, all of which was sent before or none.
    pub(super) fn push(&mut self, ends: &Ends, segment: &Repr, content: [&[u8]; 2], again: Again) {
        let mut packet = self.pool.pop().unwrap_or_default();
        packet.clear();
        segment.emit(ends, content, &mut packet);
        self.packets.push_back((packet, again));
    }

    /// Appends the oldest packet to `out`, and tells whether its content was sent before.
    pub(super) fn pop(&mut self, out: &mut Vec<u8>) -> Option<Again> {
        let (packet, again) = self.packets.pop_front()?;
        out.extend_from_slice(&packet);
        self.pool.push(packet);
        Some(again)
    }

    /// Drops what waits.
    pub(super) fn clear(&mut self) {
        self.pool.extend(self.packets.drain(..).map(|(packet, _)| packet));
    }
}
