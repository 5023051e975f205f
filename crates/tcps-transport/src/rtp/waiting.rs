//! Stop and wait: one packet at a time, the next when its echo is back (Abdullah 2023). A sample that needs several packets
//! has arrived when the last is answered; of one that is given up the rest is not sent.

use super::{
    out::{Out, Ready},
    outbound::Outbound,
    settings::Settings,
};
use std::collections::VecDeque;
use tcps_core::{
    endpoint::{Again, Output},
    ids::FlowId,
    record::{Kind, Record},
    sample::Meta,
    time::{Time, SECOND},
};
use tcps_wire::rtp::{Packet, Repr};

/// Samples that may wait; the oldest make room.
const MOST_WAITING: usize = 8192;
/// How long an answer is waited for.
const PATIENCE_NS: Time = SECOND;
/// The byte that an answer has behind the payload.
const ACKNOWLEDGED: u8 = 6;

/// The packets of a flow that wait for answers.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) flow: FlowId,
    /// The source of answers.
    pub(crate) answers: u32,
    queue: VecDeque<(Meta, Vec<u8>)>,
    /// The packets of the sample that is being sent.
    packets: VecDeque<Sealed>,
    open: Option<Open>,
}

/// A packet that waits for its turn.
#[derive(Debug)]
struct Sealed {
    index: u32,
    payload_bytes: usize,
    bytes: Vec<u8>,
    again: Again,
}

impl Sealed {
    fn ready(&self, flow: FlowId) -> Ready<'_> {
        let Self { index, payload_bytes, again, .. } = *self;
        Ready { bytes: &self.bytes, payload_bytes, flow, index, again }
    }
}

/// A packet that waits for its answer.
#[derive(Debug, Clone, Copy)]
struct Open {
    index: u32,
    sequence: u16,
    sent_ns: Time,
}

impl Waiting {
    pub(crate) fn new(flow: FlowId, answers: u32) -> Self {
        Self { flow, answers, queue: VecDeque::new(), packets: VecDeque::new(), open: None }
    }

    /// When the open packet is given up.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.open.map(|open| open.sent_ns + PATIENCE_NS)
    }

    /// A sample is to be sent: now, or when its turn comes.
    pub(crate) fn offer(
        &mut self,
        now: Time,
        meta: Meta,
        sample: &[u8],
        flow: &mut Outbound,
        settings: &Settings,
        out: &mut Out,
    ) {
        if self.queue.len() == MOST_WAITING {
            self.queue.pop_front();
            out.stats.refused += 1;
        }
        self.queue.push_back((meta, sample.to_vec()));
        self.next(now, flow, settings, out);
    }

    fn next(&mut self, now: Time, flow: &mut Outbound, settings: &Settings, out: &mut Out) {
        while self.open.is_none() {
            if let Some(packet) = self.packets.pop_front() {
                let sequence = Packet::new_checked(&packet.bytes).map_or(0, |p| p.sequence());
                self.open = Some(Open { index: packet.index, sequence, sent_ns: now });
                return out.transmit(packet.ready(self.flow));
            }
            let Some((meta, sample)) = self.queue.pop_front() else { return };
            let packets = &mut self.packets;
            let mut seal = |r: Ready<'_>| {
                let Ready { index, payload_bytes, bytes, again, .. } = r;
                packets.push_back(Sealed { index, payload_bytes, bytes: bytes.to_vec(), again });
            };
            if !flow.sample(now, meta, &sample, settings, &mut seal) {
                out.stats.malformed += 1;
            }
        }
    }

    /// Answers a packet with its payload and one byte more.
    // [Abdullah 2023]
    pub(crate) fn answer(&self, packet: &Packet<&[u8]>, out: &mut Out) {
        let mut bytes = Vec::with_capacity(64);
        Repr { ssrc: self.answers, ..Repr::parse(packet) }.emit(&[], &[], &mut bytes);
        bytes.extend_from_slice(packet.payload());
        bytes.push(ACKNOWLEDGED);
        let index = u32::from(packet.sequence());
        let (flow, payload_bytes) = (self.flow, packet.payload().len() + 1);
        out.transmit(Ready { bytes: &bytes, payload_bytes, flow, index, again: Again::Nothing });
    }

    /// An answer came: the row tells the round trip, and the next packet goes.
    pub(crate) fn answered(
        &mut self,
        now: Time,
        sequence: u16,
        bytes: usize,
        flow: &mut Outbound,
        settings: &Settings,
        out: &mut Out,
    ) {
        let Some(open) = self.open.filter(|open| open.sequence == sequence) else { return };
        let row = Record::new(now, Kind::Receive);
        let row = Record {
            flow: self.flow,
            index: open.index,
            size: bytes as u32,
            value: now - open.sent_ns,
            ..row
        };
        out.outbox.push(Output::Record(row), |_| {});
        self.open = None;
        self.next(now, flow, settings, out);
    }

    /// Gives up an answer that does not come, and with it the sample.
    pub(crate) fn expire(&mut self, now: Time, flow: &mut Outbound, settings: &Settings, out: &mut Out) {
        if self.deadline().is_some_and(|t| t <= now) {
            self.open = None;
            self.packets.clear();
            out.stats.unanswered += 1;
            self.next(now, flow, settings, out);
        }
    }
}
