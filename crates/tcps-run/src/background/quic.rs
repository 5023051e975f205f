//! QUIC: an endpoint of the transport `quic` at each end, with a stream for requests and one for answers.
//!
//! ```text
//!  bytes ──► samples of up to 16 kB ──► stream ──► datagrams ──► samples ──► bytes
//! ```
//! A sample's header (24 B) rides in the stream with it, as frames of HTTP/3 have theirs.

use super::connection::Connection;
use serde_json::{json, Value};
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    ids::FlowId,
    sample::Meta,
    time::{Time, SECOND},
};
use tcps_plan::net::{CongestionSpec, UsersSpec};
use tcps_transport::{endpoint, udp::STACK_BYTES, ChannelContext, ChannelFlow, Outbox, Side, TransportError};

/// What requests and answers consist of: a sample's most bytes.
const FILLER: [u8; 16_384] = [0; 16_384];
/// UDP and IPv4, which the largest IP packet includes. [model: wire size]
const IP_UDP_BYTES: u32 = 8 + 20;
/// Silence after which the client gives a connection up, as QUIC's own idle time-out does. [RFC 9000 §10.1]
const SILENCE_NS: Time = 10 * SECOND;
/// Numbers of the flows.
const REQUESTS: FlowId = FlowId(0);
const ANSWERS: FlowId = FlowId(1);

/// A connection over QUIC.
pub(super) struct Quic {
    params: Value,
    name: String,
    seed: u64,
    opened: u32,
    ends: Option<Ends>,
}

/// Both ends of an open connection.
struct Ends {
    client: End,
    server: End,
    /// When the client has last heard anything, or asked for the connection.
    heard_ns: Time,
    /// What is to be sent is sent; nothing more happens.
    closing: bool,
}

/// One end.
struct End {
    endpoint: Box<dyn Endpoint>,
    /// The flow that leaves here, and the number of its next sample.
    flow: FlowId,
    index: u32,
    leaving: Outbox,
    come_bytes: u64,
    buffer: Vec<u8>,
}

impl Quic {
    /// The connection of a user; an error if QUIC has no such setting.
    pub(super) fn new(spec: &UsersSpec, name: &str, seed: u64) -> Result<Self, TransportError> {
        let congestion = match spec.congestion {
            CongestionSpec::Reno => "newreno",
            CongestionSpec::Cubic => "cubic",
            CongestionSpec::None => "none",
        };
        let mtu_bytes = spec.mtu_bytes.saturating_sub(IP_UDP_BYTES);
        let params =
            json!({"congestion": congestion, "mtu_bytes": mtu_bytes, "queue_bytes": spec.buffer_bytes});
        let quic = Self { params, name: name.into(), seed, opened: 0, ends: None };
        quic.fresh(0)?;
        Ok(quic)
    }

    /// Fresh ends, which have a name, and so random numbers, of their own.
    fn fresh(&self, now: Time) -> Result<Ends, TransportError> {
        let flow = |flow, to, name: &str| ChannelFlow { flow, to, name: name.into(), period_ns: 0 };
        let context = ChannelContext {
            name: format!("{}.{}", self.name, self.opened),
            seed: self.seed,
            start_ns: now,
            flows: vec![flow(REQUESTS, Side::B, "requests"), flow(ANSWERS, Side::A, "answers")],
            tls: None,
        };
        let end = |side, flow| -> Result<End, TransportError> {
            Ok(End {
                endpoint: endpoint("quic", &self.params, side, &context)?,
                flow,
                index: 0,
                leaving: Outbox::default(),
                come_bytes: 0,
                buffer: Vec::new(),
            })
        };
        let (client, server) = (end(Side::A, REQUESTS)?, end(Side::B, ANSWERS)?);
        Ok(Ends { client, server, heard_ns: now, closing: false })
    }

    fn open_ends(&mut self) -> Option<&mut Ends> {
        self.ends.as_mut().filter(|e| !e.closing)
    }
}

impl Ends {
    fn end(&mut self, is_client: bool) -> &mut End {
        match is_client {
            true => &mut self.client,
            false => &mut self.server,
        }
    }

    /// When the client has waited long enough for a packet.
    fn patience_ns(&self) -> Time {
        self.heard_ns.saturating_add(SILENCE_NS)
    }
}

impl End {
    /// Tells the endpoint something, and takes what it has to say.
    fn handle(&mut self, now: Time, input: Input<'_>) {
        self.endpoint.handle_input(now, input);
        while let Some(output) = self.endpoint.poll_output(&mut self.buffer) {
            match output {
                Output::Transmit(_) => self.leaving.push(output, |out| out.extend_from_slice(&self.buffer)),
                Output::Deliver(_) => self.come_bytes += self.buffer.len() as u64,
                Output::Record(_) => {}
            }
        }
    }

    /// Sends a sample of so many bytes; false if there is no room for it.
    fn send(&mut self, now: Time, bytes: usize) -> bool {
        // An endpoint takes what is due as done when it is told of anything else.
        self.poll(now);
        let refused = self.endpoint.stats().refused;
        let meta = Meta { flow: self.flow, index: self.index, origin_ns: now, echo: None };
        self.handle(now, Input::Sample { meta, bytes: &FILLER[..bytes] });
        let took = self.endpoint.stats().refused == refused;
        self.index = self.index.wrapping_add(u32::from(took));
        took
    }

    fn poll(&mut self, now: Time) {
        if self.endpoint.poll_timeout().is_some_and(|t| t <= now) {
            self.handle(now, Input::Timeout);
        }
    }
}

impl Connection for Quic {
    fn below_bytes(&self) -> u32 {
        STACK_BYTES
    }

    fn open(&mut self, now: Time) {
        self.opened = self.opened.wrapping_add(1);
        // The settings have been tried when the connection was made.
        self.ends = self.fresh(now).ok();
        self.poll(now);
    }

    fn close(&mut self, _now: Time) {
        self.ends.iter_mut().for_each(|e| e.closing = true);
    }

    fn forget(&mut self, _now: Time) {
        self.ends = None;
    }

    fn is_lost(&self, now: Time) -> bool {
        self.ends.as_ref().is_some_and(|e| !e.closing && e.patience_ns() <= now)
    }

    fn write(&mut self, now: Time, to_client: bool, left: u64) -> u64 {
        let Some(end) = self.open_ends().map(|e| e.end(!to_client)) else { return 0 };
        let mut wrote = 0;
        while wrote < left {
            let part = FILLER.len().min(usize::try_from(left - wrote).unwrap_or(FILLER.len()));
            if !end.send(now, part) {
                break;
            }
            wrote += part as u64;
        }
        wrote
    }

    fn read(&mut self, to_client: bool) -> u64 {
        self.ends.as_mut().map_or(0, |e| std::mem::take(&mut e.end(to_client).come_bytes))
    }

    fn receive(&mut self, now: Time, to_client: bool, packet: &[u8]) {
        let Some(ends) = self.open_ends() else { return };
        if to_client {
            ends.heard_ns = now;
        }
        ends.end(to_client).handle(now, Input::datagram(packet, now));
    }

    fn poll(&mut self, now: Time) {
        if let Some(ends) = self.open_ends() {
            ends.client.poll(now);
            ends.server.poll(now);
        }
    }

    fn wake_ns(&self) -> Option<Time> {
        let ends = self.ends.as_ref().filter(|e| !e.closing)?;
        let timers = [ends.client.endpoint.poll_timeout(), ends.server.endpoint.poll_timeout()];
        timers.into_iter().flatten().chain([ends.patience_ns()]).min()
    }

    fn pop(&mut self, out: &mut Vec<u8>) -> Option<bool> {
        let ends = self.ends.as_mut()?;
        for is_client in [true, false] {
            if ends.end(is_client).leaving.pop(out).is_some() {
                return Some(!is_client);
            }
        }
        if ends.closing {
            self.ends = None;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use tcps_core::time::MS;
    use tcps_plan::net::ConnectionSpec;

    fn spec(congestion: CongestionSpec, mtu_bytes: u32) -> UsersSpec {
        UsersSpec {
            users: 1,
            pages: None,
            connection_per_object: false,
            drive: None,
            transport: ConnectionSpec::Quic,
            congestion,
            mtu_bytes,
            buffer_bytes: 65_536,
        }
    }

    /// Runs a connection over a line of 5 ms until `end_ns`; what came to client and server, and the packets' lengths.
    fn carry(quic: &mut Quic, begin_ns: Time, end_ns: Time, mut to_write: u64) -> ([u64; 2], Vec<usize>) {
        let mut line: VecDeque<(Time, bool, Vec<u8>)> = VecDeque::new();
        let (mut come, mut lengths) = ([0, 0], Vec::new());
        let mut now = begin_ns;
        while now < end_ns {
            to_write -= quic.write(now, true, to_write);
            let mut packet = Vec::new();
            while let Some(to_client) = quic.pop(&mut packet) {
                lengths.push(packet.len());
                line.push_back((now + 5 * MS, to_client, std::mem::take(&mut packet)));
            }
            let next = line.front().map(|(at, ..)| *at).into_iter().chain(quic.wake_ns()).min();
            now = next.map_or(end_ns, |t| t.max(now));
            while line.front().is_some_and(|(at, ..)| *at <= now) {
                let (at, to_client, packet) = line.pop_front().unwrap();
                quic.receive(at, to_client, &packet);
            }
            quic.poll(now);
            come[0] += quic.read(true);
            come[1] += quic.read(false);
        }
        (come, lengths)
    }

    // [model: wire size]
    #[test]
    fn every_byte_comes_once_in_packets_no_larger_than_the_largest() {
        for (mtu_bytes, most) in [(1500, 1472), (1228, 1200)] {
            let mut quic = Quic::new(&spec(CongestionSpec::Cubic, mtu_bytes), "u", 1).unwrap();
            quic.open(0);
            quic.write(0, false, 350);
            let (come, lengths) = carry(&mut quic, 0, 5 * SECOND, 1_000_000);
            assert_eq!(come, [1_000_000, 350]);
            assert_eq!(lengths.iter().max(), Some(&most));
            assert_eq!(lengths[0], 1200, "the first packet of a connection is filled up [RFC 9000 §14.1]");
            assert!(lengths.len() > 1_000_000 / most, "{} packets", lengths.len());
            assert_eq!(quic.below_bytes(), 26 + 20 + 8);
        }
    }

    // [RFC 9000 §10.1]
    #[test]
    fn after_ten_seconds_of_silence_it_is_given_up_and_can_be_opened_again() {
        let mut quic = Quic::new(&spec(CongestionSpec::Reno, 1500), "u", 1).unwrap();
        quic.open(SECOND);
        assert!(!quic.is_lost(11 * SECOND - 1) && quic.is_lost(11 * SECOND));
        quic.open(11 * SECOND);
        let (come, _) = carry(&mut quic, 11 * SECOND, 41 * SECOND, 50_000);
        assert_eq!(come[0], 50_000);
        assert!(!quic.is_lost(41 * SECOND), "an idle connection is kept alive");
        quic.close(41 * SECOND);
        assert!(quic.wake_ns().is_none() && !quic.is_lost(99 * SECOND), "a closed one is not");
    }

    #[test]
    fn what_quic_does_not_have_is_refused_by_its_name() {
        let refusal = |congestion, mtu| Quic::new(&spec(congestion, mtu), "u", 1).err().unwrap().to_string();
        let none = refusal(CongestionSpec::None, 1500);
        assert_eq!(none, "transport quic: congestion is \"none\"; allowed: \"cubic\", \"newreno\"");
        assert!(refusal(CongestionSpec::Cubic, 1227).contains("mtu_bytes is 1199"));
    }
}
