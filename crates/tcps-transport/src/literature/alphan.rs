//! Transport `alphan`: its own header, and a queue for each priority at the sender (after Al Osman 2007).
//!
//! ```text
//! sample ──► cut to the MTU ──► queue of its flow's priority ──► highest first, at `rate_bps` ──► header │ payload
//! ```
//! Priority 0 goes first: kinematic and haptic flows; then sound, pictures, and the rest. Without a rate everything leaves
//! at once, and only the header tells it from `udp`. Nothing is sent again.

use crate::{
    channel::{ChannelContext, Side},
    inbox::{Inbox, Taken},
    numbered::{emit_content, parts},
    outbox::Outbox,
    params::{Mtu, Overhead, Params, Transport, TransportError},
    udp::{deliver, repeated, MAX_SAMPLE_BYTES, STACK_BYTES},
};
use std::collections::VecDeque;
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output, Transmit},
    ids::FlowId,
    param::{Draws, Entry, Params as _},
    params,
    record::{DropReason, Kind, Record},
    sample::Meta,
    time::Time,
};
use tcps_wire::{
    alphan::{Packet, Repr, FRAGMENT_BYTES, HEADER_BYTES},
    echo, Error,
};

/// Datagrams that a queue holds; the oldest of a full queue gives way.
const MOST_QUEUED: usize = 256;

params! {
    /// Of its queues.
    pub(crate) struct Given {
        queues: usize = Count, "4", 1.0..=8.0, "number of priorities";
        rate_bps: Option<f64> = Bps, ABSENT, 1e3..=4_294_967_295.0, "rate at which queues are served; default no limit";
    }
}

/// In a scenario.
pub(crate) const ENTRY: Entry<Transport> = Entry {
    id: 2,
    name: "alphan",
    doc: "its own header, and a queue for each priority at the sender (after Al Osman 2007)",
    params: &[Mtu::TABLE, Overhead::TABLE, Given::TABLE],
    draws: Draws::No,
    make: Transport::of(|params, side, ctx| Ok(Box::new(Alphan::from_params(params, side, ctx)?))),
};

/// An endpoint of the transport.
#[derive(Debug)]
pub(crate) struct Alphan {
    overhead_bytes: Option<u32>,
    mtu_bytes: usize,
    rate_bps: Option<u32>,
    priorities: Vec<(FlowId, u8)>,
    queues: Vec<VecDeque<Queued>>,
    spare: Vec<Vec<u8>>,
    /// Until then the line is taken by what was sent.
    free_ns: Time,
    inbox: Inbox,
    outbox: Outbox,
    stats: EndpointStats,
}

/// A datagram that waits for its turn.
#[derive(Debug)]
struct Queued {
    transmit: Transmit,
    origin_ns: Time,
    bytes: Vec<u8>,
}

impl Alphan {
    /// `queues`: how many priorities are told apart; `rate_bps`: the rate at which they are served.
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, TransportError> {
        let Given { queues, rate_bps } = params.read()?;
        let (Mtu { mtu_bytes }, Overhead { overhead_bytes }) = (params.read()?, params.read()?);
        let priority = |name: &str| priority_of(name).min(queues as u8 - 1);
        Ok(Self {
            overhead_bytes,
            mtu_bytes: mtu_bytes as usize,
            rate_bps: rate_bps.map(|bps| bps as u32),
            priorities: ctx.flows.iter().map(|f| (f.flow, priority(&f.name))).collect(),
            queues: (0..queues).map(|_| VecDeque::new()).collect(),
            spare: Vec::new(),
            free_ns: Time::MIN,
            inbox: Inbox::new(side, ctx),
            outbox: Outbox::default(),
            stats: EndpointStats::default(),
        })
    }

    fn send(&mut self, now: Time, meta: &Meta, sample: &[u8]) {
        if sample.len() > MAX_SAMPLE_BYTES {
            self.stats.malformed += 1;
            return;
        }
        let priority = self.priorities.iter().find(|p| p.0 == meta.flow).map_or(0, |p| p.1);
        let trailer = if meta.echo.is_some() { echo::trailer_bytes(1) } else { 0 };
        for part in parts(meta, sample.len(), self.mtu_bytes - HEADER_BYTES - FRAGMENT_BYTES - trailer) {
            let mut bytes = self.spare.pop().unwrap_or_default();
            bytes.clear();
            Repr { part, priority }.emit(&mut bytes);
            emit_content(&part, meta, sample, &mut bytes);
            // [model: wire size]
            let wire_bytes = match self.overhead_bytes {
                Some(overhead_bytes) => part.payload_bytes() as u32 + overhead_bytes,
                None => bytes.len() as u32 + STACK_BYTES,
            };
            let transmit = Transmit::new(wire_bytes, part.flow, part.index);
            let queue = &mut self.queues[usize::from(priority)];
            let oldest = if queue.len() == MOST_QUEUED { queue.pop_front() } else { None };
            queue.push_back(Queued { transmit, origin_ns: meta.origin_ns, bytes });
            if let Some(oldest) = oldest {
                self.overloaded(now, oldest);
            }
        }
    }

    /// A datagram had to make room for a newer one.
    fn overloaded(&mut self, now: Time, dropped: Queued) {
        let Transmit { flow, index, .. } = dropped.transmit;
        let (value, detail) = (now.saturating_sub(dropped.origin_ns), DropReason::Overload as u8);
        let row = Record { flow, index, value, detail, ..Record::new(now, Kind::Dropped) };
        self.outbox.push(Output::Record(row), |_| {});
        self.spare.push(dropped.bytes);
    }

    /// Lets datagrams go as far as the rate allows.
    // [Al Osman 2007] priority queues at the sender, highest first
    fn serve(&mut self, now: Time) {
        while self.free_ns <= now {
            let Some(Queued { transmit, bytes, .. }) = self.queues.iter_mut().find_map(VecDeque::pop_front)
            else {
                return;
            };
            self.outbox.push(Output::Transmit(transmit), |out| out.extend_from_slice(&bytes));
            self.spare.push(bytes);
            if let Some(rate_bps) = self.rate_bps {
                let took = i64::from(transmit.wire_bytes) * 8_000_000_000 / i64::from(rate_bps);
                self.free_ns = now + took;
            }
        }
    }

    fn receive(&mut self, now: Time, bytes: &[u8], received_ns: Time) -> Result<(), Error> {
        let packet = Packet::new_checked(bytes)?;
        let Repr { part, .. } = Repr::parse(&packet, now)?;
        match self.inbox.take(now, &part, packet.payload(), packet.trailer())? {
            Taken::Kept => {}
            Taken::Repeated => repeated(now, &part, bytes.len(), &mut self.outbox, &mut self.stats),
            Taken::Whole(meta, sample) => deliver(&mut self.outbox, meta, received_ns, sample),
        }
        Ok(())
    }
}

/// A flow's priority by its name.
fn priority_of(name: &str) -> u8 {
    match name {
        "kinematic" | "haptic" => 0,
        "audio" => 1,
        "video" => 2,
        _ => 3,
    }
}

impl Endpoint for Alphan {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Sample { meta, bytes } => self.send(now, &meta, bytes),
            Input::Datagram { bytes, received_ns, .. } => {
                if self.receive(now, bytes, received_ns).is_err() {
                    self.stats.malformed += 1;
                }
            }
            Input::Timeout => self.inbox.expire(now),
        }
        self.serve(now);
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.outbox.pop(buf)
    }

    fn poll_timeout(&self) -> Option<Time> {
        let queued = self.queues.iter().any(|q| !q.is_empty());
        queued.then_some(self.free_ns).into_iter().chain(self.inbox.poll_timeout()).min()
    }

    fn stats(&self) -> EndpointStats {
        EndpointStats { incomplete: self.inbox.incomplete(), ..self.stats }
    }
}
