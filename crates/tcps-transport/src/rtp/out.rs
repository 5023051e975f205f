//! What an endpoint hands over, and what it counts on the way.

use super::{
    congestion::Congestion,
    inbound::Deliver,
    ledger::Left,
    motion::{hold_motion, Motion},
};
use crate::{outbox::Outbox, udp::STACK_BYTES};
use tcps_core::{
    endpoint::{Again, Delivery, EndpointStats, Output, Transmit},
    ids::FlowId,
    record::{Kind, Record},
    sample::Meta,
    time::Time,
};
use tcps_wire::{rtcp::ccfb::Ccfb, rtp::Packet};

/// A packet that is ready: its bytes, and how many of them are the sample's.
pub(crate) struct Ready<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) payload_bytes: usize,
    pub(crate) flow: FlowId,
    pub(crate) index: u32,
    /// What of it was sent before.
    pub(crate) again: Again,
}

/// What is to be handed over, and what is counted on the way.
#[derive(Debug, Default)]
pub(super) struct Out {
    pub(super) outbox: Outbox,
    pub(super) stats: EndpointStats,
    pub(super) overhead_bytes: Option<u32>,
    pub(super) now: Time,
    pub(super) motion_every: Option<u32>,
    /// The flow that RTCP of a side without own flows is accounted for.
    pub(super) fallback_flow: FlowId,
    pub(super) congestion: Option<Congestion>,
}

impl Out {
    // [model: wire size]
    pub(super) fn transmit(&mut self, ready: Ready<'_>) {
        let Ready { bytes, payload_bytes, flow, index, again } = ready;
        let wire_bytes = match self.overhead_bytes {
            Some(overhead_bytes) => payload_bytes as u32 + overhead_bytes,
            None => bytes.len() as u32 + STACK_BYTES,
        };
        if let (Some(congestion), Ok(packet)) = (&mut self.congestion, Packet::new_checked(bytes)) {
            let left = Left { flow, index, wire_bytes, sent_ns: self.now };
            congestion.sent(packet.ssrc(), packet.sequence(), left);
        }
        let output = Output::Transmit(Transmit::new(wire_bytes, flow, index).again(again));
        self.outbox.push(output, |out| out.extend_from_slice(bytes));
    }

    /// The peer has told of packets, at `at`. False: that is refused.
    pub(super) fn told(&mut self, at: Time, ccfb: &Ccfb) -> bool {
        let Self { congestion, outbox, .. } = self;
        let Some(congestion) = congestion else { return true };
        congestion.heard(at, ccfb, |row| outbox.push(Output::Record(row), |_| {}))
    }

    /// Looks for the silence of a peer that tells of packets.
    pub(super) fn silence(&mut self, now: Time) {
        let Self { congestion, outbox, .. } = self;
        if let Some(congestion) = congestion {
            congestion.timeout(now, |row| outbox.push(Output::Record(row), |_| {}));
        }
    }

    /// RTCP is accounted for whole.
    pub(super) fn control(&mut self, flow: FlowId, bytes: &[u8]) {
        let wire_bytes = bytes.len() as u32 + STACK_BYTES;
        let output = Output::Transmit(Transmit::new(wire_bytes, flow, 0));
        self.outbox.push(output, |out| out.extend_from_slice(bytes));
    }
}

impl Deliver for Out {
    fn deliver(&mut self, meta: Meta, received_ns: Time, bytes: &[u8], motion: &mut Motion) {
        let every = self.motion_every;
        self.outbox.push(Output::Deliver(Delivery { meta, received_ns }), |out| {
            let at = out.len();
            out.extend_from_slice(bytes);
            if let Some(every) = every {
                hold_motion(motion, meta.index, every, &mut out[at..]);
            }
        });
    }

    fn repeated(&mut self, flow: FlowId, index: u32, bytes: usize) {
        self.stats.duplicates += 1;
        let row = Record::new(self.now, Kind::Duplicate);
        self.outbox.push(Output::Record(Record { flow, index, size: bytes as u32, ..row }), |_| {});
    }

    fn recovered(&mut self) {
        self.stats.recovered += 1;
    }
}
