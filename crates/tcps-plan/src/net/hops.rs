//! Where the time of packets went at a link, by flow.

use super::class::ASIDE_CLASS;
use tcps_core::{ids::FlowId, time::Time};

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
        // Where all flows from the first on have been here, their numbers say their places.
        let first = self.flows.first().map_or(0, |f| f.0);
        let counted = usize::from(class.wrapping_sub(first));
        self.last = match [self.last, self.last + 1, counted].into_iter().find(|at| is_there(*at)) {
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
    pub fn of(&self, flow: FlowId) -> Option<&Hop> {
        let at = self.flows.binary_search_by_key(&flow.0, |f| f.0).ok()?;
        Some(&self.flows[at].1).filter(|hop| hop.packets > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is taken back after a change is as if it had not been; a flow with no packet left has no sums.
    #[test]
    fn all_parts_of_a_packet_are_added_and_taken_back() {
        let hop =
            |n| Hop { packets: 0, queued_ns: n, serial_ns: 2 * n, propagated_ns: 3 * n, again_ns: 4 * n };
        let mut hops = Hops::default();
        [5, 7].into_iter().for_each(|n| hops.add(1, 1, &hop(n)));
        assert_eq!(hops.of(FlowId(1)), Some(&Hop { packets: 2, ..hop(12) }));
        hops.add(1, -1, &hop(-7));
        assert_eq!(hops.of(FlowId(1)), Some(&Hop { packets: 1, ..hop(5) }));
        hops.add(1, -1, &hop(-5));
        assert_eq!(hops.of(FlowId(1)), None);
    }

    /// Flows are found with and without gaps in their numbers, whatever the order in which they come.
    #[test]
    fn sums_are_those_of_each_flow() {
        for flows in [&[5][..], &[3, 4, 5, 6], &[0, 2, 3, 900, 901], &[7, 1, 6, 2, 5, 3, 4]] {
            let mut hops = Hops::default();
            for round in 1..4 {
                for &flow in flows {
                    hops.add(flow, 1, &Hop { queued_ns: Time::from(flow) * round, ..Hop::default() });
                }
            }
            for flow in 0..1_000 {
                let found = hops.of(FlowId(flow)).map(|hop| (hop.packets, hop.queued_ns));
                assert_eq!(found, flows.contains(&flow).then_some((3, Time::from(flow) * 6)));
            }
        }
    }
}
