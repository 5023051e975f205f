//! TCP: the samples of a channel in one connection, both ways.
//!
//! ```text
//! sample ──► frame ──► queue (bounded) ──► [TLS] ──► stack ──► IP packets
//! IP packet ──► stack ──► bytes in order ──► [TLS] ──► frames ──► samples
//! ```
//! Side A asks for the connection when the run begins; samples wait until it stands. A lost segment holds up everything
//! behind it, in all flows of the channel. The stack behaves as that of Linux; docs/streams.md says how far.

mod ack;
mod acknowledged;
mod acks;
mod arrival;
mod buffer;
mod expiry;
mod leaving;
mod losses;
mod rack;
mod receiver;
mod recovery;
mod rto;
mod scoreboard;
mod sender;
mod sequence;
mod settings;
mod stack;
#[cfg(test)]
mod tests;
mod timer;

pub use settings::{Congestion, Settings};
pub use stack::{Stack, LINK_BYTES};

use crate::{
    backlog::Backlog,
    channel::{ChannelContext, ChannelFlow, Side},
    framing::Reader,
    outbox::Outbox,
    params::{Params, Transport, TransportError, MTU, ROOM, WITHIN},
    standing::{Mark, Standing, STALL_NS},
    tls::{Refused, TlsStream},
};
use tcps_core::{
    endpoint::{ConnectionStats, Delivery, Ecn, Endpoint, EndpointStats, Input, Output, Transmit},
    ids::FlowId,
    param::{Draws, Entry, Params as _},
    params,
    record::{DropReason, Kind, Record},
    sample::Meta,
    seed::Stream,
    time::{Time, SECOND},
};

/// Its name.
const NAME: &str = "tcp";
/// How long side A waits before it asks again for a connection that it has lost.
const RETRY_NS: Time = SECOND;

/// An endpoint of the `tcp` transport.
#[derive(Debug)]
pub struct Tcp {
    side: Side,
    stack: Stack,
    /// Between the stack and the samples, where the channel has it.
    tls: Option<TlsStream>,
    /// The flows that arrive here.
    inbound: Vec<FlowId>,
    /// The flow that packets are sent for.
    flow: FlowId,
    backlog: Backlog,
    reader: Reader,
    standing: Standing,
    /// When to ask for a connection, or to wait for one.
    open_ns: Option<Time>,
    outbox: Outbox,
    stats: EndpointStats,
}

params! {
    /// Of a connection.
    pub(crate) struct Given {
        congestion: String = Choice(&["cubic", "reno", "none"]), "cubic", ANY, "congestion control";
        no_delay: bool = Flag, "true", ANY, "whether small segments are sent at once (no Nagle algorithm)";
        send_buffer_bytes: usize = Bytes, "65536 B", 4096.0..=1e8, "bytes kept until acknowledged";
        receive_buffer_bytes: usize = Bytes, "65536 B", 4096.0..=1e8, "bytes kept until read";
        queue_bytes: usize = Bytes, "262144 B", ROOM, "bytes that wait before the send buffer; samples without room are refused and counted";
        mtu_bytes: usize = Bytes, "1200 B", MTU, "most bytes of an IP packet";
        ecn: bool = Flag, "false", ANY, "whether queues with `ecn = true` mark its packets instead of dropping them (RFC 3168)";
    }
}

/// In a scenario.
pub(crate) const ENTRY: Entry<Transport> = Entry {
    id: 10,
    name: NAME,
    doc: "one connection for all flows of the channel",
    params: &[Given::TABLE],
    draws: Draws::Yes,
    make: Transport {
        encapsulation_bytes: 8 + 20,
        security: WITHIN,
        sends_datagrams: false,
        ..Transport::of(|params, side, ctx| Ok(Box::new(Tcp::from_params(params, side, ctx)?)))
    },
};

impl Tcp {
    /// The endpoint at `side`.
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, TransportError> {
        let given: Given = params.read()?;
        let seed = Stream::new(ctx.seed, &format!("channels.{}.tcp.{side:?}", ctx.name)).bits();
        let leaving = |f: &&ChannelFlow| f.to != side;
        let tls = ctx.tls.map(|secret| TlsStream::new(secret, NAME, side, ctx)).transpose();
        Ok(Self {
            side,
            stack: Stack::new(&settings(&given), side, seed),
            tls: tls.map_err(|e| params.failed("security", "tls", &e))?,
            inbound: ctx.arriving_at(side).collect(),
            flow: ctx.flows.iter().find(leaving).or(ctx.flows.first()).map_or(FlowId(0), |f| f.flow),
            backlog: Backlog::new(given.queue_bytes),
            reader: Reader::default(),
            standing: Standing::default(),
            open_ns: Some(ctx.start_ns),
            outbox: Outbox::default(),
            stats: EndpointStats::default(),
        })
    }

    fn take(&mut self, meta: Meta, sample: &[u8]) {
        if !self.backlog.push(&meta, sample) {
            self.stats.refused += 1;
        }
    }

    fn receive(&mut self, now: Time, packet: &[u8], received_ns: Time, ecn: Ecn) {
        // The peer may ask before this side has been called for the first time.
        if self.side == Side::B && self.open_ns.take().is_some() {
            self.stack.listen(now);
        }
        if !self.stack.receive_inside(now, packet, ecn) {
            self.stats.malformed += 1;
            return;
        }
        let (reader, tls) = (&mut self.reader, &mut self.tls);
        let mut verified = Ok(());
        self.stack.read(|bytes| match tls {
            None => reader.push(bytes),
            Some(tls) if verified.is_ok() => verified = tls.receive(now, bytes, |plain| reader.push(plain)),
            Some(_) => {}
        });
        if !self.deliver(received_ns) {
            self.stats.malformed += 1;
            self.lose(now);
        } else if let Err(refused) = verified {
            self.refuse(now, packet.len(), refused);
        }
    }

    /// Hands over the samples that are complete; false: what comes next cannot be one.
    fn deliver(&mut self, received_ns: Time) -> bool {
        loop {
            match self.reader.next() {
                Ok(Some((meta, sample))) if self.inbound.contains(&meta.flow) => {
                    let delivery = Output::Deliver(Delivery { meta, received_ns });
                    self.outbox.push(delivery, |out| out.extend_from_slice(sample));
                }
                Ok(Some(_)) => self.stats.malformed += 1,
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Ends a connection whose bytes do not verify, the last of them in a packet of so many, or in one that did not come: an alert
    /// says so to the other side, ahead of RST.
    // [RFC 8446 §6.2]
    fn refuse(&mut self, now: Time, packet_bytes: usize, refused: Refused) {
        if let Some(tls) = &mut self.tls {
            tls.flush(|bytes| self.stack.write(bytes));
        }
        self.stack.poll(now);
        if refused == Refused::Here {
            let (detail, size) = (DropReason::Unverified as u8, packet_bytes as u32 + LINK_BYTES);
            self.rows([Record { detail, size, ..Record::new(now, Kind::Dropped) }]);
        }
        self.lose(now);
    }

    /// Gives the stack what it has room for.
    fn fill(&mut self, now: Time) {
        let Some(tls) = &mut self.tls else {
            while let Some(sample) = self.backlog.oldest() {
                if !self.backlog.drain_frame(|bytes| self.stack.write(bytes)) {
                    return;
                }
                let [_, written] = self.stack.reached();
                self.standing.sent(Mark::Reached(written as i64), sample);
            }
            return;
        };
        tls.begin(now);
        let mut frame = Vec::new();
        while tls.flush(|bytes| self.stack.write(bytes)) && tls.is_ready() {
            let Some(sample) = self.backlog.oldest() else { return };
            frame.clear();
            self.backlog.drain_frame(|part| {
                frame.extend_from_slice(part);
                part.len()
            });
            tls.seal(&frame);
            let [_, written] = self.stack.reached();
            let end = written as i64 + tls.waiting_bytes() as i64;
            self.standing.sent(Mark::Reached(end), sample);
        }
    }

    /// Opens the connection when it is time, fills it, and sends what it wants sent.
    fn run(&mut self, now: Time) {
        if self.gives_up_ns().is_some_and(|t| t <= now) {
            match self.tls.as_mut().and_then(TlsStream::give_up) {
                Some(refused) => self.refuse(now, 0, refused),
                None => self.lose(now),
            }
        }
        if self.open_ns.is_none() && (self.stack.is_closed() || self.stack.is_over()) {
            self.lose(now);
        }
        if self.open_ns.is_some_and(|t| t <= now || self.side == Side::B) {
            self.open_ns = None;
            match self.side {
                Side::A => self.stack.connect(now),
                Side::B => self.stack.listen(now),
            }
        }
        if self.stack.is_established() {
            if self.tls.as_ref().is_none_or(TlsStream::is_ready) {
                let row = self.standing.stands(now);
                self.rows(row);
            }
            self.fill(now);
            let [acknowledged, _] = self.stack.reached();
            let trip_ns = self.stack.sender.trips.smoothed_ns().unwrap_or(0);
            let row = self.standing.progress(now, acknowledged as i64, STALL_NS.max(2 * trip_ns));
            self.rows(row);
        }
        self.stack.poll(now);
        self.transmit();
    }

    /// When TLS gives up what has begun.
    fn gives_up_ns(&self) -> Option<Time> {
        self.tls.as_ref()?.gives_up_ns(self.stack.sender.trips.base_ns())
    }

    fn rows(&mut self, rows: impl IntoIterator<Item = Record>) {
        rows.into_iter().for_each(|row| self.outbox.push(Output::Record(row), |_| {}));
    }

    /// The connection is lost, and with it what was in flight: samples that were not yet whole.
    fn lose(&mut self, now: Time) {
        self.stats.incomplete += u64::from(self.reader.has_part());
        self.reader = Reader::default();
        let part = self.backlog.forget_part();
        let rows = self.standing.lose(now, part);
        self.rows(rows);
        if let Some(tls) = &mut self.tls {
            tls.forget();
        }
        self.stack.abort(now);
        self.open_ns = Some(now.saturating_add(RETRY_NS));
    }

    fn transmit(&mut self) {
        let (flow, index) = (self.flow, self.backlog.newest());
        let mut packet = Vec::new();
        while let Some(again) = self.stack.pop(&mut packet) {
            // [model: wire size]
            let wire_bytes = packet.len() as u32 + LINK_BYTES;
            let ecn = Ecn::of(packet.get(1).copied().unwrap_or_default());
            let output =
                Output::Transmit(Transmit { ecn, ..Transmit::new(wire_bytes, flow, index).again(again) });
            self.outbox.push(output, |out| out.extend_from_slice(&packet));
            packet.clear();
        }
    }
}

fn settings(given: &Given) -> Settings {
    Settings {
        congestion: match given.congestion.as_str() {
            "reno" => Congestion::Reno,
            "none" => Congestion::None,
            _ => Congestion::Cubic,
        },
        no_delay: given.no_delay,
        send_buffer_bytes: given.send_buffer_bytes,
        receive_buffer_bytes: given.receive_buffer_bytes,
        mtu_bytes: given.mtu_bytes,
        ecn: given.ecn,
    }
}

impl Endpoint for Tcp {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Sample { meta, bytes } => self.take(meta, bytes),
            Input::Datagram { bytes, received_ns, ecn } => self.receive(now, bytes, received_ns, ecn),
            Input::Timeout => {}
        }
        self.run(now);
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.outbox.pop(buf)
    }

    fn poll_timeout(&self) -> Option<Time> {
        [self.open_ns, self.stack.wake_ns(), self.gives_up_ns()].into_iter().flatten().min()
    }

    fn stats(&self) -> EndpointStats {
        let security = self.tls.as_ref().map(TlsStream::stats);
        let window_waits = self.stack.window_waits();
        let connections = Some(ConnectionStats { window_waits, ..self.standing.stats() });
        let (retransmits, duplicates) = (self.stack.retransmits(), self.stack.duplicates());
        EndpointStats { retransmits, duplicates, security, connections, ..self.stats }
    }
}
