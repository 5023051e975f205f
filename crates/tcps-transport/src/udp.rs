//! Plain UDP: a sample is a datagram, or as many as the MTU asks for; nothing is sent again.
//!
//! ```text
//! sample ──► cut evenly to the MTU ──► header │ payload [│ echo trailer on the last]
//! datagram ──► form right? flow ours? ──► had? ──► fragments together ──► sample
//! ```
//! Late samples are delivered, repeated ones are not. A tagged sample keeps its echo command; copies answer
//! once.

use crate::{
    channel::{ChannelContext, Side},
    had::Had,
    outbox::Outbox,
    params::{Mtu, Overhead, Params, Transport, TransportError},
    reassembly::{Outcome, Reassembly, PATIENCE_NS},
};
use tcps_core::{
    endpoint::{Delivery, Endpoint, EndpointStats, Input, Output, Transmit},
    ids::FlowId,
    param::{Draws, Entry, Params as _},
    record::{Kind, Record},
    sample::{Echo, Meta},
    time::Time,
};
use tcps_wire::{
    echo,
    header::{Packet, Repr, HEADER_BYTES},
    Error,
};

/// The largest sample; longer ones are refused at both sides, so that nobody can make a receiver reserve
/// more.
pub const MAX_SAMPLE_BYTES: usize = 16_000_000;
pub use tcps_core::size::STACK_BYTES;

/// An endpoint of the plain `udp` transport.
#[derive(Debug)]
pub struct Udp {
    overhead_bytes: Option<u32>,
    mtu_bytes: usize,
    inbound: Vec<Inbound>,
    outbox: Outbox,
    wake_ns: Option<Time>,
    stats: EndpointStats,
}

/// A flow that arrives here.
#[derive(Debug)]
struct Inbound {
    flow: FlowId,
    had: Had,
    parts: Reassembly,
}

/// In a scenario.
pub(crate) const ENTRY: Entry<Transport> = Entry {
    id: 1,
    name: "udp",
    doc: "a sample is one datagram, or several if it is long; no retransmission",
    params: &[Mtu::TABLE, Overhead::TABLE],
    draws: Draws::No,
    make: Transport::plain(|params, side, ctx| Ok(Box::new(Udp::from_params(params, side, ctx)?))),
};

impl Udp {
    /// The endpoint at `side`. `overhead_bytes` is what accounts are charged for each packet beside its part
    /// of the sample; without it they are charged what is really sent, and the headers below it. `mtu_bytes`
    /// bounds a datagram (without UDP and IP headers).
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, TransportError> {
        let (Mtu { mtu_bytes }, Overhead { overhead_bytes }) = (params.read()?, params.read()?);
        Ok(Self { overhead_bytes, ..Self::inside(mtu_bytes as usize, side, ctx) })
    }

    /// One whose datagrams of at most `mtu_bytes` travel inside another transport.
    pub(crate) fn inside(mtu_bytes: usize, side: Side, ctx: &ChannelContext) -> Self {
        let inbound = |flow| Inbound { flow, had: Had::new(), parts: Reassembly::new() };
        Self {
            overhead_bytes: None,
            mtu_bytes,
            inbound: ctx.arriving_at(side).map(inbound).collect(),
            outbox: Outbox::default(),
            wake_ns: None,
            stats: EndpointStats::default(),
        }
    }

    fn send(&mut self, meta: Meta, sample: &[u8]) {
        if sample.len() > MAX_SAMPLE_BYTES {
            self.stats.malformed += 1;
            return;
        }
        let trailer = if meta.echo.is_some() { echo::trailer_bytes(1) } else { 0 };
        let room = self.mtu_bytes - HEADER_BYTES - trailer;
        let fragments = if sample.len() <= room { 1 } else { sample.len().div_ceil(room) as u16 };
        for fragment in 0..fragments {
            let repr = Repr {
                flow: meta.flow,
                index: meta.index,
                origin_ns: meta.origin_ns,
                length: sample.len() as u32,
                fragment,
                fragments,
                has_echo: meta.echo.is_some() && fragment + 1 == fragments,
            };
            self.transmit(&repr, sample, meta.echo.filter(|_| repr.has_echo));
        }
    }

    fn transmit(&mut self, repr: &Repr, sample: &[u8], echo: Option<Echo>) {
        let payload = &sample[repr.offset()..repr.offset() + repr.payload_bytes()];
        let trailer = if echo.is_some() { echo::trailer_bytes(1) } else { 0 };
        // [model: wire size]
        let wire_bytes = match self.overhead_bytes {
            Some(overhead_bytes) => payload.len() as u32 + overhead_bytes,
            None => (HEADER_BYTES + payload.len() + trailer) as u32 + STACK_BYTES,
        };
        let output = Output::Transmit(Transmit::new(wire_bytes, repr.flow, repr.index));
        self.outbox.push(output, |out| {
            repr.emit(out);
            out.extend_from_slice(payload);
            if let Some(echo) = echo {
                echo::emit_count(1, out);
                echo::Repr { sample: 0, echo }.emit(out);
            }
        });
    }

    fn receive(&mut self, now: Time, bytes: &[u8], received_ns: Time) -> Result<(), Error> {
        let packet = Packet::new_checked(bytes)?;
        let repr = Repr::parse(&packet)?;
        if repr.length as usize > MAX_SAMPLE_BYTES {
            return Err(Error::TooLong);
        }
        let echo = if repr.has_echo { Some(tag(packet.trailer())?) } else { None };
        let Self { inbound, outbox, stats, .. } = self;
        let inbound = inbound.iter_mut().find(|i| i.flow == repr.flow).ok_or(Error::Unknown)?;
        if !inbound.had.is_new(repr.index, repr.origin_ns) {
            repeated(now, &repr, bytes.len(), outbox, stats);
            return Ok(());
        }
        if repr.fragments == 1 {
            inbound.had.mark(repr.index, repr.origin_ns);
            let meta = Meta { flow: repr.flow, index: repr.index, origin_ns: repr.origin_ns, echo };
            deliver(outbox, meta, received_ns, packet.payload());
            return Ok(());
        }
        match inbound.parts.add(now, &repr, packet.payload(), echo)? {
            Outcome::Kept | Outcome::TooLate => {}
            Outcome::Repeated => repeated(now, &repr, bytes.len(), outbox, stats),
            Outcome::Complete(meta, sample) => {
                inbound.had.mark(repr.index, repr.origin_ns);
                deliver(outbox, meta, received_ns, sample);
            }
        }
        self.set_wake(now);
        Ok(())
    }

    /// The wake-up may come too early, never too late: it looks again then.
    fn set_wake(&mut self, now: Time) {
        if self.inbound.iter().all(|i| i.parts.oldest_ns().is_none()) {
            self.wake_ns = None;
        } else if self.wake_ns.is_none() {
            self.wake_ns = Some(now + PATIENCE_NS);
        }
    }
}

/// The one command that a datagram with one sample may carry.
// [Polachan 2022: echoes]
pub(crate) fn tag(trailer: &[u8]) -> Result<Echo, Error> {
    let packet = echo::Packet::new_checked(trailer)?;
    let tag = echo::Repr::parse(&packet, 0)?;
    if packet.count() != 1 || tag.sample != 0 {
        return Err(Error::Contradiction);
    }
    Ok(tag.echo)
}

pub(crate) fn deliver(outbox: &mut Outbox, meta: Meta, received_ns: Time, sample: &[u8]) {
    outbox.push(Output::Deliver(Delivery { meta, received_ns }), |out| out.extend_from_slice(sample));
}

pub(crate) fn repeated(now: Time, repr: &Repr, bytes: usize, outbox: &mut Outbox, stats: &mut EndpointStats) {
    stats.duplicates += 1;
    let row = Record::new(now, Kind::Duplicate);
    let row = Record { flow: repr.flow, index: repr.index, size: bytes as u32, ..row };
    outbox.push(Output::Record(row), |_| {});
}

impl Endpoint for Udp {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Sample { meta, bytes } => self.send(meta, bytes),
            Input::Datagram { bytes, received_ns, .. } => {
                if self.receive(now, bytes, received_ns).is_err() {
                    self.stats.malformed += 1;
                }
            }
            Input::Timeout => {
                self.wake_ns = self.inbound.iter_mut().filter_map(|i| i.parts.expire(now)).min();
            }
        }
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.outbox.pop(buf)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.wake_ns
    }

    fn stats(&self) -> EndpointStats {
        let incomplete = self.inbound.iter().map(|i| i.parts.incomplete()).sum();
        EndpointStats { incomplete, ..self.stats }
    }
}
