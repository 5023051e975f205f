//! Where the time of samples went, kept while they are between nodes: what a datagram cannot carry.
//!
//! ```text
//! node ── hand-over ──► entry ─────────────► taken over by the next node, with the transit of its last datagram
//!                         ▲ the datagram's transit, where it does not complete its sample at once
//! ```

use std::collections::VecDeque;
use tcps_core::{
    endpoint::Again,
    ids::{ChannelId, FlowId},
    sample::{is_before, Meta},
    split::{Choice, FlowSplit, Part, Parts},
    time::Time,
};
use tcps_net::Spent;

/// Samples behind the newest that has come out of a channel after which one is given up for lost.
const MOST_BEHIND: u32 = 1 << 10;

/// How a datagram passed from endpoint to endpoint.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Transit {
    /// When its endpoint gave it out.
    pub sent: Time,
    /// The (first) sample in it, and what of it was sent before.
    pub index: u32,
    pub again: Again,
    /// When it entered the network.
    pub entered: Time,
    /// When it had passed the network.
    pub arrived: Time,
    /// When the endpoint at the other side got it.
    pub taken: Time,
    /// Where its time in the network went; none if that is not known.
    pub spent: Option<Spent>,
}

impl Transit {
    /// What the time of this sample went to that the datagram has completed; `first` is when it was sent in vain.
    fn attribute(&self, index: u32, first: Option<Time>, parts: &mut Parts) {
        // It was in flight when the sample was handed over: the sample waited for it.
        if self.sent < parts.since {
            return parts.spend(Part::Held, self.taken);
        }
        let repeats = match self.again {
            Again::Nothing => false,
            Again::Older => is_before(index, self.index),
            Again::All => true,
        };
        if repeats {
            parts.spend(Part::Merging, first.unwrap_or(parts.since).clamp(parts.since, self.sent));
            parts.spend(Part::Retransmission, self.sent);
        }
        parts.spend(Part::Merging, self.sent);
        parts.spend(Part::System, self.entered);
        match &self.spent {
            Some(spent) => {
                parts.take(Part::Queueing, spent.queued_ns);
                parts.take(Part::Serialisation, spent.serial_ns);
                parts.take(Part::Radio, spent.again_ns);
                parts.spend(Part::Propagation, self.arrived);
            }
            None => parts.spend(Part::Unsplit, self.arrived),
        }
        parts.spend(Part::System, self.taken);
    }
}

/// A sample between two nodes.
#[derive(Debug)]
struct Entry {
    index: u32,
    over: bool,
    /// When it was made and handed over.
    times: [Time; 2],
    /// What else is known of it: most samples come straight from their source and go into one datagram.
    more: Option<Box<More>>,
}

#[derive(Debug)]
struct More {
    parts: Parts,
    /// The transit of the last datagram with a part of it, if that did not complete it at once.
    transit: Option<Transit>,
    /// When the first datagram with it was sent that was lost.
    lost: Option<Time>,
}

impl Entry {
    fn parts(&self) -> Parts {
        let plain = || {
            let mut parts = Parts::unknown(self.times[1]);
            parts.made = self.times[0];
            parts
        };
        self.more.as_ref().map_or_else(plain, |more| more.parts)
    }

    /// What else is known of it, to be changed.
    fn more(&mut self) -> &mut More {
        let parts = self.parts();
        self.more.get_or_insert_with(|| Box::new(More { parts, transit: None, lost: None }))
    }
}

/// The samples of a flow in a channel, in the order in which they were handed over.
#[derive(Debug, Default)]
struct Under {
    channel: ChannelId,
    samples: VecDeque<Entry>,
    /// They are not in the order of their numbers, since they came so from the channel before.
    shuffled: bool,
}

/// The samples of all flows.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// By flow, then by channel.
    under: Vec<Vec<Under>>,
    flows: Vec<FlowSplit>,
    followed: Choice,
    /// Some have other numbers than those that were chosen: a periodic stage has given them new ones.
    renumbered: bool,
}

impl Ledger {
    /// One for so many flows, of which these samples are followed.
    pub fn new(flows: usize, followed: Choice) -> Self {
        let under = std::iter::repeat_with(Vec::new).take(flows).collect();
        Self { under, flows: vec![FlowSplit::default(); flows], followed, renumbered: false }
    }

    /// Where a sample would be, if it is followed.
    #[inline]
    fn under(&mut self, channel: ChannelId, flow: FlowId, index: u32) -> Option<&mut Under> {
        if !self.renumbered && !self.followed.takes(index) {
            return None;
        }
        self.under.get_mut(flow.index())?.iter_mut().find(|u| u.channel == channel)
    }

    /// A sample goes into a channel.
    pub fn hand_over(&mut self, channel: ChannelId, meta: &Meta, parts: &Parts) {
        self.renumbered |= !self.followed.takes(meta.index);
        let channels = &mut self.under[meta.flow];
        let at = channels.iter().position(|u| u.channel == channel).unwrap_or_else(|| {
            channels.push(Under { channel, ..Under::default() });
            channels.len() - 1
        });
        let under = &mut channels[at];
        under.shuffled |= under.samples.back().is_some_and(|last| is_before(meta.index, last.index));
        let more = if parts.is_plain() {
            None
        } else {
            Some(Box::new(More { parts: *parts, transit: None, lost: None }))
        };
        under.samples.push_back(Entry {
            index: meta.index,
            over: false,
            times: [parts.made, parts.since],
            more,
        });
    }

    /// A datagram with a part of a sample was received, and has not completed it.
    pub fn pass(&mut self, channel: ChannelId, flow: FlowId, index: u32, transit: &Transit) {
        let Some(under) = self.under(channel, flow, index) else { return };
        if let Some(at) = under.find(index) {
            under.samples[at].more().transit = Some(*transit);
        }
    }

    /// A datagram that was sent for a sample is lost.
    pub fn lose(&mut self, channel: ChannelId, flow: FlowId, index: u32, sent: Time) {
        let Some(under) = self.under(channel, flow, index) else { return };
        if let Some(at) = under.find(index) {
            under.samples[at].more().lost.get_or_insert(sent);
        }
    }

    /// A sample comes out of a channel: where its time went until now goes into `parts`, if that is known. `transit` is that of
    /// the datagram that has completed it, if that was now.
    pub fn take_over(
        &mut self,
        now: Time,
        channel: ChannelId,
        meta: &Meta,
        transit: impl FnOnce() -> Option<Transit>,
        parts: &mut Parts,
    ) {
        let under = self.under(channel, meta.flow, meta.index);
        let Some((under, entry)) = under.and_then(|u| u.find(meta.index).map(|at| (u, at))) else {
            return parts.forget(now);
        };
        let entry = &mut under.samples[entry];
        entry.over = true;
        *parts = entry.parts();
        if let Some(transit) = transit().or(entry.more.as_ref().and_then(|more| more.transit)) {
            transit.attribute(meta.index, entry.more.as_ref().and_then(|more| more.lost), parts);
        }
        parts.spend(Part::Held, now);
        under.forget(meta.index);
    }

    /// A sample has come to its sink.
    pub fn has_come(&mut self, flow: FlowId, parts: &Parts, clock: Time) {
        self.flows[flow].add(parts, clock);
    }

    /// Where the time of each flow's samples went.
    pub fn flows(&self) -> &[FlowSplit] {
        &self.flows
    }
}

impl Under {
    /// The place of the sample with this number that has not come out yet.
    #[inline]
    fn find(&self, index: u32) -> Option<usize> {
        let first = self.samples.front()?.index;
        let place = index.wrapping_sub(first);
        let at = match self.samples.get(place as usize) {
            Some(entry) if entry.index == index => place as usize,
            _ if self.shuffled => self.samples.iter().position(|e| e.index == index)?,
            _ if is_before(index, first) => return None,
            _ => self.samples.binary_search_by_key(&place, |e| e.index.wrapping_sub(first)).ok()?,
        };
        self.samples.get(at).is_some_and(|e| !e.over).then_some(at)
    }

    /// Drops those in front that are over, or far behind this one.
    fn forget(&mut self, index: u32) {
        let done = |e: &Entry| e.over || is_before(e.index.wrapping_add(MOST_BEHIND), index);
        while self.samples.front().is_some_and(done) {
            self.samples.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeat_is_waited_for_from_the_first_sending_where_that_was_lost() {
        for (again, index, lost, [merging, retransmission]) in [
            (Again::Nothing, 7, true, [30, 0]),
            (Again::All, 7, true, [5, 25]),
            (Again::All, 7, false, [0, 30]),
            (Again::Older, 9, true, [5, 25]),
            (Again::Older, 7, true, [30, 0]),
        ] {
            let mut ledger = Ledger::new(1, Choice::default());
            let (meta, mut parts) =
                (Meta { flow: FlowId(0), index: 7, origin_ns: 0, echo: None }, Parts::new(10));
            ledger.hand_over(ChannelId(0), &meta, &parts);
            if lost {
                ledger.lose(ChannelId(0), FlowId(0), 7, 15);
            }
            let transit =
                Transit { sent: 40, index, again, entered: 40, arrived: 50, taken: 50, spent: None };
            ledger.take_over(50, ChannelId(0), &meta, || Some(transit), &mut parts);
            let found = [Part::Merging, Part::Retransmission].map(|p| parts.of(p));
            assert_eq!(found, [merging, retransmission], "{again:?} {index} {lost}");
            assert_eq!(parts.total(), 40);
        }
    }

    #[test]
    fn what_is_not_followed_is_not_looked_for_unless_numbers_are_new() {
        let many = Choice::of(1 << 20);
        let index = (0..).find(|i| !many.takes(*i)).unwrap_or(0);
        let (meta, mut parts) = (Meta { flow: FlowId(0), index, origin_ns: 0, echo: None }, Parts::new(10));
        let mut ledger = Ledger::new(1, many);
        ledger.take_over(20, ChannelId(0), &meta, || None, &mut parts);
        assert!(!parts.is_known());
        ledger.hand_over(ChannelId(0), &meta, &Parts::new(10));
        ledger.take_over(20, ChannelId(0), &meta, || None, &mut parts);
        assert!(parts.is_known(), "a periodic stage gave it this number");
    }
}
