//! Where the time of packets went at a link, by flow.

use super::ASIDE_CLASS;
use tcps_core::time::Time;

/// Sums over packets of a flow that a link took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hop {
    /// How many it took.
    pub packets: u64,
    /// They waited for the line.
    pub queued_ns: Time,
    /// They were put on the line.
    pub serial_ns: Time,
    /// From the line to the far end, without `again_ns`: delay, jitter, what a radio link takes besides.
    pub propagated_ns: Time,
    /// A radio link sent them again.
    pub again_ns: Time,
}

impl Hop {
    /// Adds another, or takes back what has not happened where that counts below nothing.
    #[inline]
    fn add(&mut self, by: i64, other: &Hop) {
        self.packets = self.packets.wrapping_add_signed(by);
        self.queued_ns += other.queued_ns;
        self.serial_ns += other.serial_ns;
        self.propagated_ns += other.propagated_ns;
        self.again_ns += other.again_ns;
    }
}

/// Those of a link, in the order of flows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hops {
    flows: Vec<(u16, Hop)>,
    /// The place of the last packet's flow: the next packet is often of the same one, or of the next.
    last: usize,
}

impl Hops {
    /// A packet of a class was taken, or `by` -1 taken back.
    #[inline]
    pub fn add(&mut self, class: u16, by: i64, hop: &Hop) {
        if class >= ASIDE_CLASS {
            return;
        }
        let is_there = |at: usize| self.flows.get(at).is_some_and(|f| f.0 == class);
        self.last = match [self.last, self.last + 1].into_iter().find(|at| is_there(*at)) {
            Some(at) => at,
            None => self.find(class),
        };
        self.flows[self.last].1.add(by, hop);
    }

    fn find(&mut self, class: u16) -> usize {
        let found = self.flows.binary_search_by_key(&class, |f| f.0);
        found.unwrap_or_else(|at| {
            self.flows.insert(at, (class, Hop::default()));
            at
        })
    }

    /// The sums of a flow, if the link has taken packets of it.
    pub fn of(&self, flow: u16) -> Option<&Hop> {
        let at = self.flows.binary_search_by_key(&flow, |f| f.0).ok()?;
        Some(&self.flows[at].1).filter(|hop| hop.packets > 0)
    }
}
