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
    ids::{ChannelId, FlowId, NodeId},
    sample::{is_before, Meta},
    split::{FlowSplit, Part, Parts},
    time::Time,
};
use tcps_plan::Plan;
use tcps_wire::telehaptic;

/// Samples that may wait for their datagram; of more the oldest is forgotten.
const MOST_WAITING: usize = 1 << 10;

/// The legs of a node's loop.
#[derive(Debug, Default)]
pub(super) struct Legs {
    all: Vec<Leg>,
    media: Vec<Medium>,
}

/// Frames of sound or picture that leave in the packets of a telehaptic channel, which are sent for its haptic samples.
#[derive(Debug)]
struct Medium {
    channel: ChannelId,
    flow: FlowId,
    video: bool,
    /// The frame that has begun, and how many bytes of it have yet to be sent.
    open: Option<(u32, usize)>,
}

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
    /// Those of a node.
    pub fn new(plan: &Plan, node: NodeId) -> Self {
        let channels = ChannelId::each(&plan.channels)
            .filter(|(_, c)| [c.a, c.b].contains(&node) && tcps_transport::is_telehaptic(&c.transport));
        let media = channels.flat_map(|(channel, _)| {
            plan.flows_of(channel, node).filter(|(.., leaves)| *leaves).filter_map(move |(flow, f, _)| {
                f.medium().map(|medium| Medium { channel, flow, video: medium == 1, open: None })
            })
        });
        Self { all: Vec::new(), media: media.collect() }
    }

    fn at(&mut self, flow: FlowId, channel: ChannelId) -> &mut Leg {
        let at = self.all.iter().position(|l| (l.flow, l.channel) == (flow, channel)).unwrap_or_else(|| {
            let (waiting, sent, split) = (VecDeque::new(), None, FlowSplit::default());
            self.all.push(Leg { flow, channel, waiting, sent, split });
            self.all.len() - 1
        });
        &mut self.all[at]
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
    pub fn transmit(&mut self, now: Time, channel: ChannelId, datagram: &Transmit, bytes: &[u8]) {
        self.transmit_media(now, channel, bytes);
        let found = self.all.iter_mut().find(|l| (l.flow, l.channel) == (datagram.flow, channel));
        let Some(leg) = found else { return };
        let is_newer = leg.sent.is_none_or(|(last, _)| is_before(last, datagram.index));
        if datagram.again == Again::All || !is_newer {
            return;
        }
        leg.leave(now, |index, _| is_before(index, datagram.index));
        leg.sent = Some((datagram.index, now));
    }

    /// A packet of a telehaptic channel is sent: frames whose last byte is in it have left.
    fn transmit_media(&mut self, now: Time, channel: ChannelId, bytes: &[u8]) {
        let Self { all, media } = self;
        let mut media = media.iter_mut().filter(|m| m.channel == channel).peekable();
        let packet = media.peek().and_then(|_| telehaptic::Packet::new_checked(bytes).ok());
        let Some(packet) = packet else { return };
        for medium in media {
            let Some(leg) = all.iter_mut().find(|l| (l.flow, l.channel) == (medium.flow, channel)) else {
                continue;
            };
            medium.transmit(&packet, |index| leg.leave_alone(now, index));
        }
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
        self.all.into_iter().map(end).collect()
    }
}

impl Medium {
    /// Tells of frames that are complete with this packet.
    fn transmit(&mut self, packet: &telehaptic::Packet<&[u8]>, mut complete: impl FnMut(u32)) {
        let video = self.video;
        let bytes = if video { packet.video() } else { packet.audio() }.len();
        let starts = packet.trailer().into_iter().flat_map(|t| (0..).map_while(move |i| t.frame(i)));
        let mut at = 0;
        for start in starts.filter(|s| s.video == video) {
            let start_at = usize::from(start.at);
            self.take(start_at.saturating_sub(at), &mut complete);
            (self.open, at) = (Some((start.index, start.length as usize)), start_at);
        }
        self.take(bytes.saturating_sub(at), &mut complete);
    }

    fn take(&mut self, bytes: usize, complete: &mut impl FnMut(u32)) {
        if let Some((index, left)) = &mut self.open {
            *left = left.saturating_sub(bytes);
            if *left == 0 {
                complete(*index);
                self.open = None;
            }
        }
    }
}

impl Leg {
    /// One sample is sent; those before it were dropped.
    fn leave_alone(&mut self, now: Time, index: u32) {
        while self.waiting.front().is_some_and(|w| is_before(w.0, index)) {
            self.waiting.pop_front();
        }
        if self.waiting.front().is_some_and(|w| w.0 == index) {
            let Some((_, mut parts)) = self.waiting.pop_front() else { return };
            parts.spend(Part::Merging, now.max(parts.since));
            self.split.add(&parts, 0);
        }
    }

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
    use tcps_wire::telehaptic::{
        trailer::{self, FrameStart},
        Repr, SubHeader,
    };

    fn merging(samples: &[(u32, Time)], datagrams: &[(Time, u32, Again)]) -> (u64, Time) {
        let mut legs = Legs::default();
        let mut datagrams = datagrams.iter().peekable();
        for &(index, at) in samples {
            while let Some((now, first, again)) = datagrams.next_if(|d| d.0 < at) {
                legs.transmit(*now, ChannelId(3), &Transmit::new(100, FlowId(1), *first).again(*again), &[]);
            }
            let meta = Meta { flow: FlowId(1), index, origin_ns: 0, echo: None };
            legs.hand_over(ChannelId(3), &meta, &Parts::new(at));
        }
        for (now, first, again) in datagrams {
            legs.transmit(*now, ChannelId(3), &Transmit::new(100, FlowId(1), *first).again(*again), &[]);
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

    #[test]
    fn a_frame_waits_until_the_packet_with_its_last_byte() {
        let channel = ChannelId(3);
        let medium = |flow: u16, video| Medium { channel, flow: FlowId(flow), video, open: None };
        let mut legs = Legs { all: Vec::new(), media: vec![medium(1, false), medium(2, true)] };
        let hand = |legs: &mut Legs, flow: u16, index: u32, at: Time| {
            let meta = Meta { flow: FlowId(flow), index, origin_ns: 0, echo: None };
            legs.hand_over(channel, &meta, &Parts::new(at));
        };
        // Sound of 100 bytes, a frame that is dropped, and one of 5; a picture of 70 bytes.
        [(1, 6, 0), (1, 7, 1), (1, 8, 2), (2, 4, 3)].iter().for_each(|&(f, i, at)| hand(&mut legs, f, i, at));
        let start = |video, at, index, length| FrameStart { video, at, index, length, origin_ns: 0 };
        let packets: [(Time, u16, u16, &[FrameStart]); 3] = [
            (10, 60, 0, &[start(false, 0, 6, 100)]),
            (20, 45, 30, &[start(false, 40, 8, 5), start(true, 0, 4, 70)]),
            (30, 0, 40, &[]),
        ];
        for (now, audio, video, starts) in packets {
            let sub = |bytes| (bytes > 0).then_some(SubHeader { frame: 0, bytes, part: 0 });
            let head = Repr {
                fragments: 1,
                repeated: false,
                delay_us: None,
                timestamp_ms: 0,
                audio: sub(audio),
                video: sub(video),
                has_trailer: true,
            };
            let mut packet = Vec::new();
            head.emit(&mut packet);
            packet.extend(std::iter::repeat_n(0, 12 + usize::from(audio + video)));
            trailer::emit(&[], &[], starts, &mut packet);
            legs.transmit(now, channel, &Transmit::new(100, FlowId(0), 0), &packet);
        }
        let merging = |split: &FlowSplit| (split.samples, split.parts[Part::Merging as usize].sum);
        let found: Vec<_> = legs.finish().iter().map(|(_, _, split)| merging(split)).collect();
        assert_eq!(found, [(2, 20 + 18), (1, 27)]);
    }
}
