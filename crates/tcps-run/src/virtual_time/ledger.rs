//! Where the time of samples went, kept while they are between nodes: what a datagram cannot carry.
//!
//! ```text
//! node ── hand-over ──► entry ─────────────► taken over by the next node, with the way of the datagram that completed it
//!                         ▲ the datagram's way, where it does not complete its sample at once
//! ```

use std::collections::VecDeque;
use tcps_core::{
    sample::Meta,
    split::{FlowSplit, Part, Parts},
    time::Time,
};
use tcps_net::Spent;

/// Samples behind the newest that has come out of a channel after which one is given up for lost.
const MOST_BEHIND: u32 = 1 << 10;

/// The way of a datagram from endpoint to endpoint.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Way {
    /// When its endpoint gave it out.
    pub sent: Time,
    /// When it entered the network.
    pub entered: Time,
    /// When it had passed the network.
    pub arrived: Time,
    /// When the endpoint at the other side got it.
    pub taken: Time,
    /// Where its time in the network went; none if that is not known.
    pub spent: Option<Spent>,
}

impl Way {
    /// What the sample's time went to that this datagram has completed.
    fn attribute(&self, parts: &mut Parts) {
        // It was under way when the sample was handed over: the sample came before, and waited for it.
        if self.sent < parts.since {
            return parts.spend(Part::Held, self.taken);
        }
        parts.spend(Part::Endpoint, self.sent);
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
    /// The way of the last datagram with a part of it, if that did not complete it at once.
    way: Option<Way>,
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
}

/// The samples of a flow in a channel, in the order in which they were handed over.
#[derive(Debug, Default)]
struct Under {
    channel: u16,
    samples: VecDeque<Entry>,
    /// They are not in the order of their numbers, since they came so from the channel before.
    shuffled: bool,
}

/// The samples of all flows.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    under: Vec<Vec<Under>>,
    flows: Vec<FlowSplit>,
}

impl Ledger {
    /// One for so many flows.
    pub fn new(flows: usize) -> Self {
        let under = std::iter::repeat_with(Vec::new).take(flows).collect();
        Self { under, flows: vec![FlowSplit::default(); flows] }
    }

    fn under(&mut self, channel: u16, flow: u16) -> Option<&mut Under> {
        self.under.get_mut(usize::from(flow))?.iter_mut().find(|u| u.channel == channel)
    }

    /// A sample goes into a channel.
    pub fn hand_over(&mut self, channel: u16, meta: &Meta, parts: &Parts) {
        if self.under(channel, meta.flow).is_none() {
            self.under[usize::from(meta.flow)].push(Under { channel, ..Under::default() });
        }
        let Some(under) = self.under(channel, meta.flow) else { return };
        under.shuffled |= under.samples.back().is_some_and(|last| is_before(meta.index, last.index));
        let more = if parts.is_plain() { None } else { Some(Box::new(More { parts: *parts, way: None })) };
        under.samples.push_back(Entry {
            index: meta.index,
            over: false,
            times: [parts.made, parts.since],
            more,
        });
    }

    /// A datagram with a part of a sample was received, and has not completed it.
    pub fn pass(&mut self, channel: u16, flow: u16, index: u32, way: &Way) {
        let Some(under) = self.under(channel, flow) else { return };
        if let Some(at) = under.find(index) {
            let parts = under.samples[at].parts();
            under.samples[at].more = Some(Box::new(More { parts, way: Some(*way) }));
        }
    }

    /// A sample comes out of a channel: where its time went until now goes into `parts`, if that is known. `way` is that of
    /// the datagram that has completed it, if that was now.
    pub fn take_over(
        &mut self,
        now: Time,
        channel: u16,
        meta: &Meta,
        way: impl FnOnce() -> Option<Way>,
        parts: &mut Parts,
    ) {
        let under = self.under(channel, meta.flow);
        let Some((under, entry)) = under.and_then(|u| u.find(meta.index).map(|at| (u, at))) else {
            return parts.forget(now);
        };
        let entry = &mut under.samples[entry];
        entry.over = true;
        *parts = entry.parts();
        if let Some(way) = way().or(entry.more.as_ref().and_then(|more| more.way)) {
            way.attribute(parts);
        }
        parts.spend(Part::Held, now);
        under.forget(meta.index);
    }

    /// A sample has come to its sink.
    pub fn has_come(&mut self, flow: u16, parts: &Parts, clock: Time) {
        self.flows[usize::from(flow)].add(parts, clock);
    }

    /// Where the time of each flow's samples went.
    pub fn finish(self) -> Vec<FlowSplit> {
        self.flows
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

/// Whether a sample was made before another; numbers begin again at 0.
fn is_before(index: u32, other: u32) -> bool {
    other.wrapping_sub(index).wrapping_sub(1) < u32::MAX / 2
}
