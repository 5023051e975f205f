//! Which sample a packet begins with: number and exact time of origin out of a timestamp in milliseconds.
//!
//! ```text
//! anchor (index0, origin0)    n = round((timestamp - timestamp0) / period)
//! expected index0 + n, origin0 + n · period
//! ```
//! A sender whose samples are as expected says nothing more than the timestamp. Where they are not (at the start,
//! after a pause, on a clock that drifts), it sends the position itself, which becomes the new anchor; it goes on
//! doing so for [`SETTLED`] packets, so that a loss does not leave the receiver with an old one, and then in every
//! [`REFRESH`]th packet.

use tcps_core::{
    sample::Meta,
    time::{Time, MS},
};
use tcps_wire::telehaptic::trailer::Position;

const SETTLED: u32 = 64;
const REFRESH: u32 = 16;

/// Milliseconds of an origin time as the header has them.
pub(super) fn timestamp_ms(origin_ns: Time) -> u32 {
    origin_ns.div_euclid(MS) as u32
}

/// A sample whose number and time are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) index: u32,
    pub(super) origin_ns: Time,
}

impl Anchor {
    /// The sample that a packet with this timestamp begins with if all is regular.
    pub(super) fn expect(&self, period_ns: Time, timestamp_ms: u32) -> Anchor {
        let since_ms = timestamp_ms.wrapping_sub(self::timestamp_ms(self.origin_ns)) as i32;
        let twice = 2 * Time::from(since_ms) * MS + period_ns;
        self.after(period_ns, twice.div_euclid(2 * period_ns))
    }

    /// The sample `n` places later if all is regular.
    pub(super) fn after(&self, period_ns: Time, n: Time) -> Anchor {
        Anchor {
            index: self.index.wrapping_add(n as u32),
            origin_ns: self.origin_ns.wrapping_add(n.wrapping_mul(period_ns)),
        }
    }
}

/// The sender's side.
#[derive(Debug)]
pub(super) struct Announcer {
    period_ns: Time,
    anchor: Option<Anchor>,
    /// Packets since the anchor became another.
    since: u32,
    positions: Vec<Position>,
}

impl Announcer {
    pub(super) fn new(period_ns: Time) -> Self {
        Self { period_ns, anchor: None, since: 0, positions: Vec::new() }
    }

    /// The positions that a packet with these samples must carry.
    pub(super) fn announce(&mut self, metas: &[Meta]) -> &[Position] {
        self.positions.clear();
        let Some(first) = metas.first() else { return &self.positions };
        let own = Anchor { index: first.index, origin_ns: first.origin_ns };
        let expected = self.anchor.map(|a| a.expect(self.period_ns, timestamp_ms(own.origin_ns)));
        self.since = if expected == Some(own) { self.since.saturating_add(1) } else { 0 };
        if self.since < SETTLED || self.since % REFRESH == 0 {
            self.add(0, own);
        }
        self.anchor = Some(own);
        let mut before = own;
        for (i, m) in metas.iter().enumerate().skip(1) {
            let this = Anchor { index: m.index, origin_ns: m.origin_ns };
            if before.after(self.period_ns, 1) != this {
                self.add(i, this);
            }
            before = this;
        }
        &self.positions
    }

    fn add(&mut self, sample: usize, at: Anchor) {
        self.positions.push(Position { sample: sample as u8, index: at.index, origin_ns: at.origin_ns });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn meta(index: u32, origin_ns: Time) -> Meta {
        Meta { flow: 0, index, origin_ns, echo: None }
    }

    /// Number and time of each packet's first sample as a receiver finds them that loses the packets in `lost`.
    fn through(period_ns: Time, packets: &[Meta], lost: &[usize]) -> Vec<Option<Anchor>> {
        let (mut sender, mut anchor, mut out) = (Announcer::new(period_ns), None::<Anchor>, Vec::new());
        for (i, m) in packets.iter().enumerate() {
            let told = sender.announce(std::slice::from_ref(m)).first().copied();
            if lost.contains(&i) {
                out.push(None);
                continue;
            }
            let told = told.map(|p| Anchor { index: p.index, origin_ns: p.origin_ns });
            anchor = told.or(anchor.map(|a| a.expect(period_ns, timestamp_ms(m.origin_ns))));
            out.push(anchor);
        }
        out
    }

    #[test]
    fn a_regular_flow_needs_no_positions_but_the_refreshed_ones() {
        let mut sender = Announcer::new(MS);
        let told = |sender: &mut Announcer, i: u32| {
            !sender.announce(&[meta(i, Time::from(i) * MS + MS / 2)]).is_empty()
        };
        assert!((0..64).all(|i| told(&mut sender, i)));
        assert_eq!((64..64 + 160).filter(|i| told(&mut sender, *i)).count(), 10);
        assert!(told(&mut sender, 500), "a gap that time does not explain");
    }

    #[test]
    fn samples_in_a_packet_that_do_not_follow_each_other_are_announced_apart() {
        let mut sender = Announcer::new(MS);
        let told = sender.announce(&[meta(0, 0), meta(1, MS), meta(3, 3 * MS), meta(4, 4 * MS + 1)]);
        assert_eq!(told.iter().map(|p| p.sample).collect::<Vec<_>>(), [0, 2, 3]);
    }

    proptest! {
        #[test]
        fn whoever_loses_fewer_than_64_packets_in_a_row_knows_every_sample(
            start_ns in -3 * MS..10_000_000_000, period_ns in MS..50 * MS, jitter in 0i64..3,
            lost in proptest::collection::btree_set(1usize..400, 0..40), first_index: u32,
        ) {
            let packets: Vec<Meta> = (0..400u32)
                .map(|i| {
                    let late = (i as Time * 7919 % 500_000) * jitter;
                    meta(first_index.wrapping_add(i), start_ns + Time::from(i) * period_ns + late)
                })
                .collect();
            let lost: Vec<usize> = lost.into_iter().collect();
            for (m, got) in packets.iter().zip(through(period_ns, &packets, &lost)) {
                if let Some(got) = got {
                    prop_assert_eq!(got, Anchor { index: m.index, origin_ns: m.origin_ns });
                }
            }
        }
    }
}
