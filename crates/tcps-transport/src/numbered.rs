//! Numbered datagrams, both ways: the common part of the transports that send again or report.
//!
//! ```text
//! sample ──► cut to the MTU ──► prefix with a sequence │ header │ payload [│ echo trailer]     ──► keep a copy?
//! datagram ──► data: sequence, part of a sample        ack │ report │ request: to the sender's rule
//! ```

use crate::{
    channel::{ChannelContext, Side},
    inbox::{Inbox, Taken},
    outbox::Outbox,
    params::{Mtu, Overhead, Params, TransportError},
    udp::{deliver, repeated, MAX_SAMPLE_BYTES, STACK_BYTES},
};
use tcps_core::{
    endpoint::{Again, EndpointStats, Output, Transmit},
    ids::FlowId,
    record::{Kind, Record},
    sample::Meta,
    time::Time,
};
use tcps_wire::{
    echo,
    header::{self, HEADER_BYTES},
    stream::{Packet, Repr, PREFIX_BYTES},
    Error,
};

/// The state that such a transport needs whatever its rules are.
#[derive(Debug)]
pub(crate) struct Numbered {
    overhead_bytes: Option<u32>,
    mtu_bytes: usize,
    /// The flow that datagrams without a sample are sent for.
    voice: FlowId,
    next: u16,
    scratch: Vec<u8>,
    /// The sample that the datagram of the last `receive` completed.
    pub(crate) sample: Vec<u8>,
    pub(crate) inbox: Inbox,
    pub(crate) outbox: Outbox,
    pub(crate) stats: EndpointStats,
}

/// What a datagram brought.
#[derive(Debug)]
pub(crate) enum Heard {
    /// Data with this class and sequence, and whether a sample is complete with it (`Numbered::sample`).
    Data { class: u8, sequence: u16, whole: Option<Meta> },
    /// An acknowledgement.
    Ack { sequence: u16 },
    /// A report.
    Report { newest: u16, had: u32 },
    /// A request for so many datagrams; the sequences are in the datagram.
    Request { count: u8 },
}

impl Numbered {
    /// `extra_bytes` of a datagram are kept free for what a transport adds to it.
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
        extra_bytes: usize,
    ) -> Result<Self, TransportError> {
        let own = ctx.flows.iter().find(|f| f.to != side).or(ctx.flows.first());
        let (Mtu { mtu_bytes }, Overhead { overhead_bytes }) = (params.read()?, params.read()?);
        Ok(Self {
            overhead_bytes,
            mtu_bytes: mtu_bytes as usize - extra_bytes,
            voice: own.map_or(FlowId(0), |f| f.flow),
            next: 0,
            scratch: Vec::new(),
            sample: Vec::new(),
            inbox: Inbox::new(side, ctx),
            outbox: Outbox::default(),
            stats: EndpointStats::default(),
        })
    }

    /// Sends a sample; `kept` sees each datagram. `extra` stands between prefix and header: what it has was sent before.
    pub(crate) fn send(
        &mut self,
        meta: &Meta,
        sample: &[u8],
        class: u8,
        extra: &[u8],
        mut kept: impl FnMut(u16, &Transmit, &[u8]),
    ) {
        if sample.len() > MAX_SAMPLE_BYTES {
            self.stats.malformed += 1;
            return;
        }
        let trailer = if meta.echo.is_some() { echo::trailer_bytes(1) } else { 0 };
        let room = self.mtu_bytes - PREFIX_BYTES - HEADER_BYTES - trailer;
        for part in parts(meta, sample.len(), room) {
            let sequence = self.next;
            self.next = self.next.wrapping_add(1);
            self.scratch.clear();
            Repr::Data { class, sequence }.emit(&mut self.scratch);
            self.scratch.extend_from_slice(extra);
            emit_part(&part, meta, sample, &mut self.scratch);
            // [model: wire size]
            let wire_bytes = match self.overhead_bytes {
                Some(overhead_bytes) => (part.payload_bytes() + extra.len()) as u32 + overhead_bytes,
                None => self.scratch.len() as u32 + STACK_BYTES,
            };
            let again = if extra.is_empty() { Again::Nothing } else { Again::Older };
            let transmit = Transmit::new(wire_bytes, part.flow, part.index).again(again);
            kept(sequence, &transmit, &self.scratch);
            let bytes = &self.scratch;
            self.outbox.push(Output::Transmit(transmit), |out| out.extend_from_slice(bytes));
        }
    }

    /// Sends a kept datagram again.
    pub(crate) fn send_again(&mut self, transmit: Transmit, bytes: &[u8]) {
        let transmit = Output::Transmit(transmit.again(Again::All));
        self.outbox.push(transmit, |out| out.extend_from_slice(bytes));
    }

    /// Sends a datagram without a sample; a request with its sequences.
    pub(crate) fn say(&mut self, repr: Repr, sequences: &[u16]) {
        self.scratch.clear();
        repr.emit(&mut self.scratch);
        sequences.iter().for_each(|s| self.scratch.extend_from_slice(&s.to_be_bytes()));
        let wire_bytes = self.scratch.len() as u32 + STACK_BYTES;
        let bytes = &self.scratch;
        let transmit = Transmit::new(wire_bytes, self.voice, 0);
        self.outbox.push(Output::Transmit(transmit), |out| out.extend_from_slice(bytes));
    }

    /// Hands the sample of the last `receive` to the local side.
    pub(crate) fn deliver(&mut self, meta: Meta, received_ns: Time) {
        deliver(&mut self.outbox, meta, received_ns, &self.sample);
    }

    /// Notes that a sample was given up on purpose.
    pub(crate) fn given_up(&mut self, now: Time, kind: Kind, meta: &Meta) {
        let row = Record { flow: meta.flow, index: meta.index, ..Record::new(now, kind) };
        self.outbox.push(Output::Record(row), |_| {});
    }

    /// Reads a datagram; `extra_bytes` tells how much stands between prefix and header of data of a class.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        bytes: &[u8],
        extra_bytes: impl Fn(u8) -> usize,
    ) -> Result<Heard, Error> {
        let packet = Packet::new_checked(bytes)?;
        Ok(match Repr::parse(&packet)? {
            Repr::Data { class, sequence } => {
                let body = bytes.get(PREFIX_BYTES + extra_bytes(class)..).ok_or(Error::Truncated)?;
                Heard::Data { class, sequence, whole: self.take(now, body, bytes.len())? }
            }
            Repr::Ack { sequence } => Heard::Ack { sequence },
            Repr::Report { newest, had } => Heard::Report { newest, had },
            Repr::Request { count } => Heard::Request { count },
        })
    }

    /// Takes a part with its header; the sample if it is complete.
    fn take(&mut self, now: Time, body: &[u8], size: usize) -> Result<Option<Meta>, Error> {
        let part = header::Repr::parse(&header::Packet::new_checked(body)?)?;
        let at = HEADER_BYTES + part.payload_bytes();
        let (payload, trailer) = (body.get(HEADER_BYTES..at).unwrap_or(&[]), body.get(at..).unwrap_or(&[]));
        match self.inbox.take(now, &part, payload, trailer)? {
            Taken::Kept => {}
            Taken::Repeated => repeated(now, &part, size, &mut self.outbox, &mut self.stats),
            Taken::Whole(meta, sample) => {
                self.sample.clear();
                self.sample.extend_from_slice(sample);
                return Ok(Some(meta));
            }
        }
        Ok(None)
    }

    /// Gives up samples that wait for their parts in vain.
    pub(crate) fn expire(&mut self, now: Time) {
        self.inbox.expire(now);
    }

    /// Counters with what the inbox has counted.
    pub(crate) fn stats(&self) -> EndpointStats {
        EndpointStats { incomplete: self.inbox.incomplete(), ..self.stats }
    }
}

/// The parts of a sample that fit into `room` bytes each, cut evenly; an echo command rides on the last.
pub(crate) fn parts(meta: &Meta, length: usize, room: usize) -> impl Iterator<Item = header::Repr> {
    let fragments = length.div_ceil(room).max(1) as u16;
    let (Meta { flow, index, origin_ns, .. }, tagged) = (*meta, meta.echo.is_some());
    (0..fragments).map(move |fragment| header::Repr {
        flow,
        index,
        origin_ns,
        length: length as u32,
        fragment,
        fragments,
        has_echo: tagged && fragment + 1 == fragments,
    })
}

/// Appends header, payload and echo trailer of a part.
fn emit_part(part: &header::Repr, meta: &Meta, sample: &[u8], out: &mut Vec<u8>) {
    part.emit(out);
    emit_content(part, meta, sample, out);
}

/// Appends payload and echo trailer of a part.
pub(crate) fn emit_content(part: &header::Repr, meta: &Meta, sample: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(sample.get(part.offset()..part.offset() + part.payload_bytes()).unwrap_or(&[]));
    if let Some(echo) = meta.echo.filter(|_| part.has_echo) {
        echo::emit_count(1, out);
        echo::Repr { sample: 0, echo }.emit(out);
    }
}
