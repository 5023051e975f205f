//! Where the time of samples goes at a node on the machine's clock, as far as its own stamps tell.
//!
//! ```text
//! made, or stamp of the kernel ─ system ─ entry ─ waiting · working · delay · board ─ hand-over ─ merging ─ send call
//!                                                                                     └─ playout ─ sink
//! ```
//! A leg is that of a flow from where it comes in to the channel by which it leaves, or to its sink. What lies between the
//! legs (kernels, a network, what the receiving endpoint keeps) no clock of one node has seen both ends of.

use std::collections::VecDeque;
use tcps_core::{
    endpoint::{Again, Transmit},
    ids::{ChannelId, FlowId},
    sample::{is_before, Meta},
    split::{FlowSplit, Part, Parts},
    time::Time,
};

/// Samples that may wait for their datagram; of more the oldest is forgotten.
const MOST_WAITING: usize = 1 << 10;

/// The legs of a node's loop.
#[derive(Debug, Default)]
pub(super) struct Legs(Vec<Leg>);

#[derive(Debug)]
struct Leg {
    flow: FlowId,
    /// By which it leaves, or `NONE`.
    channel: ChannelId,
    /// Handed over, and not yet known to be sent.
    waiting: VecDeque<(u32, Parts)>,
    /// The (first) sample in the last datagram of the flow, and when that was sent.
    sent: Option<(u32, Time)>,
    split: FlowSplit,
}

impl Legs {
    fn at(&mut self, flow: FlowId, channel: ChannelId) -> &mut Leg {
        let at = self.0.iter().position(|l| (l.flow, l.channel) == (flow, channel)).unwrap_or_else(|| {
            let (waiting, sent, split) = (VecDeque::new(), None, FlowSplit::default());
            self.0.push(Leg { flow, channel, waiting, sent, split });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// A sample goes into a channel.
    pub fn hand_over(&mut self, channel: ChannelId, meta: &Meta, parts: &Parts) {
        let leg = self.at(meta.flow, channel);
        if leg.waiting.len() == MOST_WAITING {
            leg.waiting.pop_front();
        }
        leg.waiting.push_back((meta.index, *parts));
    }

    /// A datagram is sent. Samples before the first one in it were in the one before, if they had been handed over by then.
    pub fn transmit(&mut self, now: Time, channel: ChannelId, datagram: &Transmit) {
        let found = self.0.iter_mut().find(|l| (l.flow, l.channel) == (datagram.flow, channel));
        let Some(leg) = found else { return };
        let is_newer = leg.sent.is_none_or(|(last, _)| is_before(last, datagram.index));
        if datagram.again == Again::All || !is_newer {
            return;
        }
        leg.leave(now, |index, _| is_before(index, datagram.index));
        leg.sent = Some((datagram.index, now));
    }

    /// A sample has come to its sink.
    pub fn has_come(&mut self, flow: FlowId, parts: &Parts) {
        self.at(flow, ChannelId::NONE).split.add(parts, 0);
    }

    /// Where time went, by flow, whether at its sink, and leg.
    pub fn finish(self) -> Vec<(FlowId, bool, FlowSplit)> {
        let end = |mut leg: Leg| {
            if let Some((_, at)) = leg.sent {
                leg.leave(at, |_, parts| parts.since <= at);
            }
            (leg.flow, leg.channel == ChannelId::NONE, leg.split)
        };
        self.0.into_iter().map(end).collect()
    }
}

impl Leg {
    /// Samples are known to have been sent, at `now` at the latest.
    fn leave(&mut self, now: Time, which: impl Fn(u32, &Parts) -> bool) {
        while self.waiting.front().is_some_and(|(index, parts)| which(*index, parts)) {
            let Some((_, mut parts)) = self.waiting.pop_front() else { return };
            let at = self.sent.map(|s| s.1).filter(|t| *t >= parts.since).unwrap_or(now);
            parts.spend(Part::Merging, at.max(parts.since));
            self.split.add(&parts, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merging(samples: &[(u32, Time)], datagrams: &[(Time, u32, Again)]) -> (u64, Time) {
        let mut legs = Legs::default();
        let mut datagrams = datagrams.iter().peekable();
        for &(index, at) in samples {
            while let Some((now, first, again)) = datagrams.next_if(|d| d.0 < at) {
                legs.transmit(*now, ChannelId(3), &Transmit::new(100, FlowId(1), *first).again(*again));
            }
            let meta = Meta { flow: FlowId(1), index, origin_ns: 0, echo: None };
            legs.hand_over(ChannelId(3), &meta, &Parts::new(at));
        }
        for (now, first, again) in datagrams {
            legs.transmit(*now, ChannelId(3), &Transmit::new(100, FlowId(1), *first).again(*again));
        }
        let [(FlowId(1), false, split)] = &legs.finish()[..] else { panic!("one leg") };
        (split.samples, split.parts[Part::Merging as usize].sum)
    }

    #[test]
    fn samples_wait_until_the_datagram_that_they_are_in() {
        let (new, again) = (Again::Nothing, Again::All);
        let four = [(0, 0), (1, 10), (2, 20), (3, 30)];
        assert_eq!(
            merging(&four, &[(1, 0, new), (11, 1, new), (21, 2, new), (31, 3, new)]),
            (4, 4),
            "each its own"
        );
        assert_eq!(merging(&four, &[(12, 0, new), (33, 2, new)]), (4, 12 + 2 + 13 + 3), "two in each");
        assert_eq!(
            merging(&four, &[(12, 0, new), (15, 0, again), (33, 2, new)]),
            (4, 30),
            "a repeat is none of these"
        );
        assert_eq!(merging(&four, &[(12, 0, new)]), (2, 14), "the last two were not sent");
        assert_eq!(
            merging(&four, &[(34, 3, new)]),
            (4, 34 + 24 + 14 + 4),
            "a stream sends the newest and all before it"
        );
    }
}
