//! A hole in what has arrived that the peer does not fill.
//!
//! A sender sends the first byte that is not acknowledged before any other after a time-out. Who sends on for seconds without it
//! takes it for acknowledged: somebody else has said so, and it will never come.

use tcps_core::time::{Time, SECOND};

/// Seconds, or time-outs if they are longer, in each of which something behind the hole comes and the hole does not.
const MOST: u8 = 4;

/// The first hole.
#[derive(Debug, Default)]
pub(super) struct Hole {
    expected: u64,
    counted_ns: Time,
    count: u8,
}

impl Hole {
    /// Content from behind the byte that is expected has come.
    pub(super) fn beyond(&mut self, now: Time, expected: u64, timeout_ns: Time) {
        if self.expected != expected {
            *self = Self { expected, counted_ns: now, count: 0 };
        } else if now.saturating_sub(self.counted_ns) >= timeout_ns.max(SECOND) {
            (self.counted_ns, self.count) = (now, self.count.saturating_add(1));
        }
    }

    /// Whether the peer will not fill it.
    pub(super) fn is_forgotten(&self, expected: u64) -> bool {
        self.expected == expected && self.count >= MOST
    }
}
