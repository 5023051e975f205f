//! QUIC: the samples of a channel in streams or datagrams of one connection, by a real implementation (quinn-proto).
//!
//! ```text
//! sample ──► lane (queue) ──► stream per flow, or per sample ─┐
//!        └─► udp endpoint ──► datagram frames (RFC 9221) ─────┴─► connection ──► QUIC packets in UDP
//! ```
//! Side A asks for the connection when the run begins; samples wait until it stands. The cipher is a null cipher with a tag, or
//! that of TLS where the channel has it (`tls`). BBR is left out: quinn-proto takes its randoms from the machine, not from a seed.

mod clock;
mod counted;
mod lane;
mod null;
mod seen;
mod setup;
#[cfg(test)]
mod tests;

use crate::{
    channel::{ChannelContext, Side},
    framing::Reader,
    outbox::Outbox,
    params::{Params, Transport, TransportError, WITHIN},
    standing::{Mark, Standing, STALL_NS},
    tls::{patience_ns, Chance},
    udp::{Udp, STACK_BYTES},
};
use bytes::{Bytes, BytesMut};
use clock::QuicClock;
use counted::{Count, Counts};
use lane::Lane;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir,
    Endpoint as QuicEndpoint, EndpointEvent, Event, FrameStats, ReadError, StreamEvent, StreamId,
};
use seen::Seen;
use setup::{Given, Mode, Setup, IDLE_NS, NAME};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Instant,
};
use tcps_core::{
    endpoint::{Again, Delivery, Endpoint, EndpointStats, Input, Output, SecurityStats, Transmit},
    ids::FlowId,
    param::{Draws, Entry, Params as _},
    record::{DropReason, Kind, Record},
    sample::Meta,
    time::{Time, SECOND},
};
use tcps_wire::quic::has_unsealed_packet;

/// How long side A waits before it asks again for a connection that it has lost.
const RETRY_NS: Time = SECOND;
/// The most that QUIC adds to a datagram frame: headers of packet and frame, and the tag.
const DATAGRAM_OVERHEAD_BYTES: usize = 1 + 8 + 4 + 16 + 9;

/// In a scenario.
pub(crate) const ENTRY: Entry<Transport> = Entry {
    id: 12,
    name: NAME,
    doc: "one connection for all flows of the channel, in streams or datagrams",
    params: &[Given::TABLE],
    draws: Draws::Yes,
    make: Transport {
        security: WITHIN,
        sends_datagrams: false,
        ..Transport::of(|params, side, ctx| Ok(Box::new(Quic::from_params(params, side, ctx)?)))
    },
};

/// An endpoint of the `quic` transport.
pub struct Quic {
    side: Side,
    mode: Mode,
    endpoint: QuicEndpoint,
    client: Option<ClientConfig>,
    connection: Option<(ConnectionHandle, Box<Connection>)>,
    established: bool,
    clock: QuicClock,
    /// The flows that arrive here.
    inbound: Vec<FlowId>,
    lanes: Vec<Lane>,
    readers: BTreeMap<StreamId, Reader>,
    /// Cuts samples into datagrams and puts them together again.
    datagrams: Udp,
    /// The flow that packets are sent for, and the newest sample given to the connection.
    flow: FlowId,
    newest: u32,
    counts: Arc<Counts>,
    /// Where the randomness of TLS comes from.
    chance: Option<Chance>,
    /// What its security has counted, where it has TLS.
    security: Option<SecurityStats>,
    /// What it has let through.
    seen: Seen,
    begun_ns: Time,
    standing: Standing,
    open_ns: Option<Time>,
    wake_ns: Option<Time>,
    outbox: Outbox,
    stats: EndpointStats,
    /// Packets taken for lost on connections that are over.
    lost_before: u64,
    /// Packets of this connection that stand for one that was taken for lost: what was in that goes first.
    repeated: u64,
    buffer: Vec<u8>,
}

impl Quic {
    /// The endpoint at `side`.
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, TransportError> {
        let Setup { mode, queue_bytes, mtu_bytes, endpoint, client, counts, chance } =
            Setup::new(params, side, ctx)?;
        let leaving = || ctx.flows.iter().filter(|f| f.to != side);
        Ok(Self {
            side,
            mode,
            endpoint,
            client,
            connection: None,
            established: false,
            clock: QuicClock::new(),
            inbound: ctx.arriving_at(side).collect(),
            lanes: leaving().map(|f| Lane::new(f.flow, queue_bytes)).collect(),
            readers: BTreeMap::new(),
            datagrams: Udp::inside(usize::from(mtu_bytes) - DATAGRAM_OVERHEAD_BYTES, side, ctx),
            flow: leaving().chain(&ctx.flows).next().map_or(FlowId(0), |f| f.flow),
            newest: 0,
            counts,
            security: chance.as_ref().map(|_| SecurityStats::default()),
            chance,
            seen: Seen::default(),
            begun_ns: 0,
            standing: Standing::default(),
            open_ns: Some(ctx.start_ns),
            wake_ns: None,
            outbox: Outbox::default(),
            stats: EndpointStats::default(),
            lost_before: 0,
            repeated: 0,
            buffer: Vec::new(),
        })
    }

    fn take(&mut self, meta: Meta, sample: &[u8]) {
        let lane = self.lanes.iter_mut().find(|l| l.flow == meta.flow);
        if !lane.is_some_and(|l| l.backlog.push(&meta, sample)) {
            self.stats.refused += 1;
        }
    }

    fn receive(&mut self, now: Time, at: Instant, bytes: &[u8]) {
        // Both sides speak the same version and send no Retry: who does is not the peer, and quinn-proto ends a handshake at it.
        if has_unsealed_packet(bytes) {
            match &self.security {
                Some(_) => self.unverified(now, bytes),
                None => self.stats.malformed += 1,
            }
            return;
        }
        let mut answer = Vec::new();
        let data = BytesMut::from(bytes);
        match self.endpoint.handle(at, address(self.side.other()), None, None, data, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => match &mut self.connection {
                Some((own, connection)) if *own == handle => {
                    let before = connection.stats().frame_rx;
                    let [opened, refused] = [&self.counts.opened, &self.counts.refused].map(Count::get);
                    connection.handle_event(event);
                    let after = connection.stats().frame_rx;
                    let says_nothing = frames(&after) == frames(&before);
                    let is_damaged = self.counts.refused.get() > refused;
                    let has_opened = self.counts.opened.get() > opened;
                    match &self.security {
                        Some(_) if says_nothing && self.seen.has(bytes) => self.replayed(now, bytes),
                        Some(_) if is_damaged => self.unverified(now, bytes),
                        // Before the handshake is done, what comes too early is not read either.
                        Some(_) if says_nothing && self.established && has_opened => {
                            self.replayed(now, bytes)
                        }
                        Some(_) if has_opened => self.seen.note(bytes),
                        // It said nothing: damaged, or had before.
                        None if says_nothing && is_damaged => self.stats.malformed += 1,
                        _ => self.stats.duplicates += u64::from(says_nothing),
                    }
                }
                _ => self.refuse(now, bytes),
            },
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                match self.endpoint.accept(incoming, at, &mut answer, None) {
                    Ok((handle, connection)) => {
                        self.connection = Some((handle, Box::new(connection)));
                        self.begun_ns = now;
                    }
                    Err(_) => self.refuse(now, bytes),
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.endpoint.ignore(incoming);
                // The peer may have lost the connection, and ask for another one before this side knows.
                self.stats.malformed += 1;
            }
            // Strangers get no answer: both sides speak the same version, and a lost connection times out.
            Some(DatagramEvent::Response(_)) | None => self.refuse(now, bytes),
        }
    }

    /// Counts a datagram that is none of the connection's. If this is not the first one, it may be late, and nobody's fault.
    fn refuse(&mut self, now: Time, bytes: &[u8]) {
        match &self.security {
            Some(_) if self.seen.has(bytes) => self.replayed(now, bytes),
            Some(security) if self.established && security.sessions == 1 => self.unverified(now, bytes),
            _ => self.stats.malformed += 1,
        }
    }

    fn unverified(&mut self, now: Time, datagram: &[u8]) {
        self.security.iter_mut().for_each(|security| security.unverified += 1);
        self.drop_row(now, DropReason::Unverified, datagram);
    }

    fn replayed(&mut self, now: Time, datagram: &[u8]) {
        self.security.iter_mut().for_each(|security| security.replayed += 1);
        self.drop_row(now, DropReason::Replayed, datagram);
    }

    fn handle(&mut self, now: Time, input: Input<'_>) {
        let at = self.clock.instant(now);
        let mut received_at_ns = now;
        match input {
            Input::Sample { meta, bytes } => self.take(meta, bytes),
            Input::Datagram { bytes, received_ns, .. } => {
                received_at_ns = received_ns;
                self.receive(now, at, bytes);
            }
            Input::Timeout => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_timeout(at);
                }
                self.datagrams.handle_input(now, Input::Timeout);
            }
        }
        self.run(now, received_at_ns);
    }

    /// Asks for a connection when it is time, and does everything that the connection wants done.
    fn run(&mut self, now: Time, received_ns: Time) {
        let at = self.clock.instant(now);
        if self.gives_up_ns().is_some_and(|t| t <= now) {
            self.security.iter_mut().for_each(|security| security.expired_handshakes += 1);
            self.lose(now);
        }
        if self.open_ns.is_some_and(|t| t <= now || self.side == Side::B) {
            self.open_ns = None;
            self.begun_ns = now;
            self.open(at);
        }
        let mut busy = true;
        while busy {
            busy = self.events(now, received_ns);
            self.fill();
            busy |= self.send(at);
        }
        let counted =
            |(_, c): &(_, Box<Connection>)| (c.stats().frame_rx.acks as i64, c.rtt().as_nanos() as Time);
        let (acks, trip_ns) = self.connection.as_ref().map_or((0, 0), counted);
        let row = self.standing.progress(now, acks, STALL_NS.max(2 * trip_ns));
        self.rows(row);
        self.wake_ns = self.connection.as_mut().and_then(|(_, c)| c.poll_timeout()).map(|t| {
            // What was due has been done.
            self.clock.time_ns(t).max(now.saturating_add(1))
        });
    }

    /// When a handshake is given up: not before silence ends it, but who can read its first packets can make more of them.
    fn gives_up_ns(&self) -> Option<Time> {
        let (_, connection) = self.connection.as_ref().filter(|_| !self.established)?;
        let trip_ns = Time::try_from(connection.rtt().as_nanos()).unwrap_or(Time::MAX);
        Some(self.begun_ns.saturating_add(patience_ns(trip_ns).max(IDLE_NS)))
    }

    fn open(&mut self, at: Instant) {
        let Some(client) = self.client.clone() else { return };
        // The configuration has been checked when it was made.
        let asked = self.endpoint.connect(at, client, address(Side::B), "tcpsbed");
        self.connection = asked.ok().map(|(handle, connection)| (handle, Box::new(connection)));
    }

    /// Handles what the connection tells; true if it told something.
    fn events(&mut self, now: Time, received_ns: Time) -> bool {
        let mut busy = false;
        loop {
            let Some((handle, connection)) = &mut self.connection else { return busy };
            if let Some(event) = connection.poll_endpoint_events() {
                if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(answer);
                }
                busy = true;
                continue;
            }
            let Some(event) = connection.poll() else { break };
            busy = true;
            match event {
                Event::Connected => self.stand(now),
                Event::ConnectionLost { reason } => self.end(now, &reason),
                Event::Stream(StreamEvent::Opened { .. }) => self.accept(now, received_ns),
                Event::Stream(StreamEvent::Readable { id }) => self.read(id, now, received_ns),
                Event::DatagramReceived => self.read_datagrams(now, received_ns),
                Event::HandshakeDataReady | Event::Stream(_) | Event::DatagramsUnblocked => {}
            }
        }
        busy
    }

    fn accept(&mut self, now: Time, received_ns: Time) {
        while let Some((_, connection)) = &mut self.connection {
            let Some(id) = connection.streams().accept(Dir::Uni) else { return };
            self.readers.insert(id, Reader::default());
            self.read(id, now, received_ns);
        }
    }

    /// Takes what a stream has, in order.
    fn read(&mut self, id: StreamId, now: Time, received_ns: Time) {
        let (Some((_, connection)), Some(reader)) = (&mut self.connection, self.readers.get_mut(&id)) else {
            return;
        };
        let over = read_all(connection, id, reader);
        let readable = loop {
            match reader.next() {
                Ok(Some((meta, sample))) if self.inbound.contains(&meta.flow) => {
                    let delivery = Output::Deliver(Delivery { meta, received_ns });
                    self.outbox.push(delivery, |out| out.extend_from_slice(sample));
                }
                Ok(Some(_)) => self.stats.malformed += 1,
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        if !readable {
            self.stats.malformed += 1;
            self.close(now);
        } else if over {
            self.stats.incomplete += u64::from(reader.has_part());
            self.readers.remove(&id);
        }
    }

    fn read_datagrams(&mut self, now: Time, received_ns: Time) {
        while let Some((_, connection)) = &mut self.connection {
            let Some(bytes) = connection.datagrams().recv() else { return };
            self.datagrams.handle_input(now, Input::datagram(&bytes, received_ns));
        }
    }

    /// Gives samples to the connection, as many as it takes.
    fn fill(&mut self) {
        let Some((_, connection)) = self.connection.as_mut().filter(|_| self.established) else { return };
        for lane in &mut self.lanes {
            match self.mode {
                Mode::Datagram => {
                    let mut reader = Reader::default();
                    while lane.backlog.drain_frame(|b| {
                        reader.push(b);
                        b.len()
                    }) {}
                    while let Ok(Some((meta, bytes))) = reader.next() {
                        self.datagrams.handle_input(Time::MIN, Input::Sample { meta, bytes });
                        self.standing.sent_unmarked();
                    }
                }
                mode => lane.fill(connection, mode == Mode::StreamPerSample, |sample, last| {
                    self.standing.sent(Mark::Released(last), sample);
                }),
            }
            self.newest = if lane.flow == self.flow { lane.backlog.newest() } else { self.newest };
        }
        self.pass_on();
    }

    /// What the datagram side wants: datagrams into frames, samples and rows out.
    fn pass_on(&mut self) {
        while let Some(output) = self.datagrams.poll_output(&mut self.buffer) {
            let Output::Transmit(_) = output else {
                self.outbox.push(output, |out| out.extend_from_slice(&self.buffer));
                continue;
            };
            let Some((_, connection)) = &mut self.connection else { continue };
            let mut datagrams = connection.datagrams();
            // The oldest make room.
            let full = datagrams.send_buffer_space() < self.buffer.len();
            let sent = datagrams.send(Bytes::copy_from_slice(&self.buffer), true);
            self.stats.refused += u64::from(full || sent.is_err());
        }
    }

    /// Sends what the connection wants sent; true if there was something.
    fn send(&mut self, at: Instant) -> bool {
        let mut any = false;
        let mut packet = Vec::new();
        while let Some((_, connection)) = &mut self.connection {
            packet.clear();
            let streams = connection.stats().frame_tx.stream;
            if connection.poll_transmit(at, 1, &mut packet).is_none() {
                break;
            }
            any = true;
            let stats = connection.stats();
            let again = stats.frame_tx.stream > streams && stats.path.lost_packets > self.repeated;
            self.repeated += u64::from(again);
            self.transmit(&packet, if again { Again::All } else { Again::Nothing });
        }
        any
    }

    fn transmit(&mut self, packet: &[u8], again: Again) {
        // [model: wire size]
        let wire_bytes = packet.len() as u32 + STACK_BYTES;
        let transmit = Transmit::new(wire_bytes, self.flow, self.newest).again(again);
        self.outbox.push(Output::Transmit(transmit), |out| out.extend_from_slice(packet));
    }

    /// The connection stands.
    fn stand(&mut self, now: Time) {
        self.established = true;
        if let Some(security) = &mut self.security {
            security.sessions += 1;
            security.handshake_ns.get_or_insert(now - self.begun_ns);
        }
        let row = self.standing.stands(now);
        self.rows(row);
    }

    /// The connection has ended by itself.
    fn end(&mut self, now: Time, reason: &ConnectionError) {
        match (reason, &mut self.security) {
            (
                ConnectionError::ConnectionClosed(_) | ConnectionError::ApplicationClosed(_),
                Some(security),
            ) => {
                // Before the handshake is done, anybody on the path can make such a packet.
                let proven = self.established;
                let count = if proven { &mut security.alerts } else { &mut security.unproven_alerts };
                *count += 1;
            }
            (ConnectionError::TransportError(_), Some(security)) => security.refused_connections += 1,
            (ConnectionError::TimedOut, Some(security)) if !self.established => {
                security.expired_handshakes += 1;
            }
            _ => {}
        }
        // The other side is told why, where there is something to tell.
        let at = self.clock.instant(now);
        self.send(at);
        self.lose(now);
    }

    fn drop_row(&mut self, now: Time, reason: DropReason, datagram: &[u8]) {
        let (detail, size) = (reason as u8, datagram.len() as u32 + STACK_BYTES);
        self.rows([Record { detail, size, ..Record::new(now, Kind::Dropped) }]);
    }

    fn rows(&mut self, rows: impl IntoIterator<Item = Record>) {
        rows.into_iter().for_each(|row| self.outbox.push(Output::Record(row), |_| {}));
    }

    /// Gives the connection up: its streams cannot be read.
    fn close(&mut self, now: Time) {
        let at = self.clock.instant(now);
        if let Some((_, connection)) = &mut self.connection {
            connection.close(at, 1u32.into(), Bytes::new());
        }
        self.send(at);
        self.lose(now);
    }

    /// The connection is lost, and with it samples that were not yet whole.
    fn lose(&mut self, now: Time) {
        self.established = false;
        self.stats.incomplete += self.readers.values().filter(|r| r.has_part()).count() as u64;
        self.readers.clear();
        let parts: Vec<_> = self.lanes.iter_mut().filter_map(Lane::forget).collect();
        // While the connection still holds what is not acknowledged.
        let rows = self.standing.lose(now, parts);
        self.rows(rows);
        if let Some((handle, connection)) = self.connection.take() {
            self.lost_before += connection.stats().path.lost_packets;
            self.repeated = 0;
            self.endpoint.handle_event(handle, EndpointEvent::drained());
        }
        self.open_ns = Some(now.saturating_add(RETRY_NS));
    }
}

/// Reads a stream into its reader; true at its end.
fn read_all(connection: &mut Connection, id: StreamId, reader: &mut Reader) -> bool {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else { return true };
    let over = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => reader.push(&chunk.bytes),
            Ok(None) | Err(ReadError::Reset(_)) => break true,
            Err(ReadError::Blocked) => break false,
        }
    };
    // What this makes due is sent by the caller.
    let _ = chunks.finalize();
    over
}

/// Frames received so far.
fn frames(rx: &FrameStats) -> u64 {
    rx.acks
        + rx.ack_frequency
        + rx.crypto
        + rx.connection_close
        + rx.data_blocked
        + rx.datagram
        + u64::from(rx.handshake_done)
        + rx.immediate_ack
        + rx.max_data
        + rx.max_stream_data
        + rx.max_streams_bidi
        + rx.max_streams_uni
        + rx.new_connection_id
        + rx.new_token
        + rx.path_challenge
        + rx.path_response
        + rx.ping
        + rx.reset_stream
        + rx.retire_connection_id
        + rx.stream_data_blocked
        + rx.streams_blocked_bidi
        + rx.streams_blocked_uni
        + rx.stop_sending
        + rx.stream
}

fn address(side: Side) -> SocketAddr {
    let last = if side == Side::A { 1 } else { 2 };
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)), 7)
}

impl Endpoint for Quic {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        match self.chance.take() {
            Some(mut chance) => {
                chance.lend(|| self.handle(now, input));
                self.chance = Some(chance);
            }
            None => self.handle(now, input),
        }
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.outbox.pop(buf)
    }

    fn poll_timeout(&self) -> Option<Time> {
        [self.open_ns, self.wake_ns, self.datagrams.poll_timeout(), self.gives_up_ns()]
            .into_iter()
            .flatten()
            .min()
    }

    fn stats(&self) -> EndpointStats {
        let lost = self.connection.as_ref().map_or(0, |(_, c)| c.stats().path.lost_packets);
        let inner = self.datagrams.stats();
        EndpointStats {
            malformed: self.stats.malformed + inner.malformed,
            duplicates: self.stats.duplicates + inner.duplicates,
            incomplete: self.stats.incomplete + inner.incomplete,
            retransmits: self.lost_before + lost,
            connections: Some(self.standing.stats()),
            security: self.security.map(|counted| SecurityStats {
                refused_handshakes: self.counts.refused_handshakes.get(),
                added_bytes: self.counts.handshake_bytes.get(),
                key_changes: self.counts.key_changes.get(),
                ..counted
            }),
            ..self.stats
        }
    }
}

impl std::fmt::Debug for Quic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quic").field("side", &self.side).field("mode", &self.mode).finish_non_exhaustive()
    }
}
