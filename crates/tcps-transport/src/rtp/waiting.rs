//! Stop and wait: one packet at a time, the next when its echo is back (PROTOCOLS 5).

use super::{outbound::Outbound, settings::Settings, Out};
use std::collections::VecDeque;
use tcps_core::{
    endpoint::Output,
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
    pub(crate) flow: u16,
    /// The source of answers.
    pub(crate) answers: u32,
    queue: VecDeque<(Meta, Vec<u8>)>,
    open: Option<(Meta, Time)>,
}

impl Waiting {
    pub(crate) fn new(flow: u16, answers: u32) -> Self {
        Self { flow, answers, queue: VecDeque::new(), open: None }
    }

    /// When the open packet is given up.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.open.map(|(_, sent_ns)| sent_ns + PATIENCE_NS)
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
            out.stats.incomplete += 1;
        }
        self.queue.push_back((meta, sample.to_vec()));
        self.next(now, flow, settings, out);
    }

    fn next(&mut self, now: Time, flow: &mut Outbound, settings: &Settings, out: &mut Out) {
        if self.open.is_some() {
            return;
        }
        let Some((meta, sample)) = self.queue.pop_front() else { return };
        self.open = Some((meta, now));
        out.sample(now, flow, meta, &sample, settings);
    }

    /// Answers a packet with its payload and one byte more.
    // [PROTOCOLS 5]
    pub(crate) fn answer(&self, packet: &Packet<&[u8]>, out: &mut Out) {
        let mut bytes = Vec::with_capacity(64);
        Repr { ssrc: self.answers, ..Repr::parse(packet) }.emit(&[], &[], &mut bytes);
        bytes.extend_from_slice(packet.payload());
        bytes.push(ACKNOWLEDGED);
        let index = u32::from(packet.sequence());
        out.transmit(self.flow, index, packet.payload().len() + 1, &bytes);
    }

    /// An answer came: the row tells the round trip, and the next sample goes.
    pub(crate) fn answered(
        &mut self,
        now: Time,
        timestamp: u32,
        bytes: usize,
        flow: &mut Outbound,
        settings: &Settings,
        out: &mut Out,
    ) {
        let open = self.open.filter(|(meta, _)| flow.timestamp(meta.origin_ns) == timestamp);
        let Some((meta, sent_ns)) = open else { return };
        let row = Record::new(now, Kind::Receive);
        let row =
            Record { flow: self.flow, index: meta.index, size: bytes as u32, value: now - sent_ns, ..row };
        out.outbox.push(Output::Record(row), |_| {});
        self.open = None;
        self.next(now, flow, settings, out);
    }

    /// Gives up an answer that does not come.
    pub(crate) fn expire(&mut self, now: Time, flow: &mut Outbound, settings: &Settings, out: &mut Out) {
        if self.deadline().is_some_and(|t| t <= now) {
            self.open = None;
            self.next(now, flow, settings, out);
        }
    }
}
