//! TCP of the machine's kernel: samples as frames of a stream whose connection the real driver holds.
//!
//! ```text
//! sample ──► frame ──► Transmit ─┐                               ┌─► whole frame ──► sample
//!                                └─► socket ══ kernel ══ socket ─┘      (tcps-run, real/stream.rs)
//! ```
//! A kernel's TCP has a clock and timers of its own, so it cannot be an endpoint. It carries this one as a network
//! carries datagrams: whole frames, in their order, none left out while the connection stands. [design: kernel's TCP]

use crate::{
    channel::{ChannelContext, Side},
    framing::{frame, parse, whole_frame},
    outbox::Outbox,
    params::{Params, Transport, TransportError, ROOM},
    udp::MAX_SAMPLE_BYTES,
};
use serde_json::Value;
use tcps_core::{
    endpoint::{Delivery, Endpoint, EndpointStats, Input, Output, Transmit},
    ids::FlowId,
    param::{Draws, Entry, Params as _},
    params,
    sample::Meta,
    size::LINK_BYTES,
    time::Time,
};
use tcps_wire::header::HEADER_BYTES;

/// Its name.
pub const NAME: &str = "kernel-tcp";
/// Accounted bytes of all headers of a sample that is alone in its segment: its own, those of TCP with time stamps, of
/// IPv4 and of the link. What the kernel really makes of it is its own affair. [model: wire size]
pub const OVERHEAD_BYTES: u32 = HEADER_BYTES as u32 + 32 + 20 + LINK_BYTES;
/// Longest name that the kernel gives a congestion control (TCP_CA_NAME_MAX, with its end).
const NAME_BYTES: usize = 15;

/// What is set at the sockets of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Congestion control by the kernel's name; absent: the kernel's own choice.
    pub congestion: Option<String>,
    /// Whether small segments go out at once.
    pub no_delay: bool,
    /// Bytes kept until acknowledged; absent: as many as the kernel finds right.
    pub send_buffer_bytes: Option<u32>,
    /// Bytes kept until read; absent: as many as the kernel finds right.
    pub receive_buffer_bytes: Option<u32>,
    /// Bytes that wait in front of the send buffer.
    pub queue_bytes: usize,
    /// How long sent bytes may stay unacknowledged before the connection is given up.
    pub give_up_ns: Time,
}

params! {
    /// Of a connection.
    pub(crate) struct Given {
        congestion: Option<String> = Text, ABSENT, ANY, "congestion control, by its name in the kernel; default that of the kernel";
        no_delay: bool = Flag, "true", ANY, "whether small segments are sent at once (no Nagle algorithm)";
        send_buffer_bytes: Option<u32> = Bytes, ABSENT, 4096.0..=1e8, "bytes kept until acknowledged; default that of the kernel";
        receive_buffer_bytes: Option<u32> = Bytes, ABSENT, 4096.0..=1e8, "bytes kept until read; default that of the kernel";
        queue_bytes: usize = Bytes, "262144 B", ROOM, "bytes that wait before the send buffer; samples without room are refused and counted";
        give_up_ns: Time = Ns, "10 s", 1e8..=3.6e12, "how long sent bytes may stay unacknowledged before the connection ends";
    }
}

/// In a scenario.
pub(crate) const ENTRY: Entry<Transport> = Entry {
    id: 11,
    name: NAME,
    doc: "the TCP of the machine's kernel",
    params: &[Given::TABLE],
    draws: Draws::No,
    make: Transport {
        security: &[],
        sends_datagrams: false,
        ..Transport::plain(|params, side, ctx| Ok(Box::new(KernelTcp::from_params(params, side, ctx)?)))
    },
};

impl Settings {
    /// Reads the parameters of a channel.
    pub fn new(params: &Value) -> Result<Self, TransportError> {
        Self::read(&Params::new(NAME, params).known(&ENTRY)?)
    }

    fn read(params: &Params<'_>) -> Result<Self, TransportError> {
        let Given { congestion, no_delay, send_buffer_bytes, receive_buffer_bytes, queue_bytes, give_up_ns } =
            params.read()?;
        let letter = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        let name = |text: &str| (1..=NAME_BYTES).contains(&text.len()) && text.bytes().all(letter);
        if congestion.as_deref().is_some_and(|text| !name(text)) {
            let allowed = "a name of the kernel such as \"cubic\", \"reno\" or \"bbr\"";
            return Err(params.refuse("congestion", allowed));
        }
        Ok(Self { congestion, no_delay, send_buffer_bytes, receive_buffer_bytes, queue_bytes, give_up_ns })
    }
}

/// An endpoint of the `kernel-tcp` transport.
#[derive(Debug)]
pub struct KernelTcp {
    /// The flows that arrive here.
    inbound: Vec<FlowId>,
    outbox: Outbox,
    stats: EndpointStats,
}

impl KernelTcp {
    /// The endpoint at `side`.
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, TransportError> {
        Settings::read(params)?;
        let (outbox, stats) = (Outbox::default(), EndpointStats::default());
        Ok(Self { inbound: ctx.arriving_at(side).collect(), outbox, stats })
    }

    fn take(&mut self, meta: Meta, sample: &[u8]) {
        if sample.len() > MAX_SAMPLE_BYTES {
            self.stats.refused += 1;
            return;
        }
        let wire_bytes = sample.len() as u32 + OVERHEAD_BYTES;
        let transmit = Transmit::new(wire_bytes, meta.flow, meta.index);
        self.outbox.push(Output::Transmit(transmit), |out| {
            frame(&meta, sample, |part| out.extend_from_slice(part));
        });
    }

    fn receive(&mut self, frame: &[u8], received_ns: Time) {
        match whole_frame(frame).and_then(|()| parse(frame)) {
            Ok((meta, sample)) if self.inbound.contains(&meta.flow) => {
                let delivery = Output::Deliver(Delivery { meta, received_ns });
                self.outbox.push(delivery, |out| out.extend_from_slice(sample));
            }
            _ => self.stats.malformed += 1,
        }
    }
}

impl Endpoint for KernelTcp {
    fn handle_input(&mut self, _now: Time, input: Input<'_>) {
        match input {
            Input::Sample { meta, bytes } => self.take(meta, bytes),
            Input::Datagram { bytes, received_ns, .. } => self.receive(bytes, received_ns),
            Input::Timeout => {}
        }
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.outbox.pop(buf)
    }

    fn stats(&self) -> EndpointStats {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tcps_core::time::SECOND;
    use tcps_core::{
        ids::NodeId,
        sample::{Echo, PointId},
    };

    fn end(side: Side) -> KernelTcp {
        let context = ChannelContext::of(&[(0, Side::B, "kinematic"), (1, Side::A, "haptic")]);
        KernelTcp::from_params(&Params::new(NAME, &Value::Null), side, &context).unwrap()
    }

    fn sent(end: &mut KernelTcp, meta: Meta, bytes: &[u8]) -> (Vec<u8>, Transmit) {
        end.handle_input(0, Input::Sample { meta, bytes });
        let mut frame = Vec::new();
        match end.poll_output(&mut frame) {
            Some(Output::Transmit(t)) => (frame, t),
            other => panic!("{other:?}"),
        }
    }

    // [Polachan 2022: echoes], [model: wire size]
    #[test]
    fn a_sample_goes_and_comes_with_its_echo_command() {
        let echo = Some(Echo { target: PointId(7), sequence: 3, reply_to: NodeId(2), injected_ns: -5 });
        let meta = Meta { flow: FlowId(0), index: 9, origin_ns: 4, echo };
        let (frame, transmit) = sent(&mut end(Side::A), meta, b"hand");
        assert_eq!(transmit, Transmit::new(4 + 24 + 78, FlowId(0), 9));
        let (mut b, mut sample) = (end(Side::B), Vec::new());
        b.handle_input(8, Input::datagram(&frame, 7));
        let delivery = Delivery { meta, received_ns: 7 };
        assert_eq!(b.poll_output(&mut sample), Some(Output::Deliver(delivery)));
        assert_eq!((sample.as_slice(), b.stats().malformed), (&b"hand"[..], 0));
    }

    #[test]
    fn what_is_not_a_frame_for_here_is_counted() {
        let meta = Meta { flow: FlowId(0), index: 0, origin_ns: 0, echo: None };
        let (frame, _) = sent(&mut end(Side::A), meta, b"hand");
        let mut b = end(Side::B);
        let longer = [frame.as_slice(), b"x"].concat();
        let mut other_flow = frame.clone();
        other_flow[3] = 1;
        let bad: [&[u8]; 5] = [b"", b"GET / HTTP/1.1\r\n", &frame[..frame.len() - 1], &longer, &other_flow];
        for (i, bytes) in bad.into_iter().enumerate() {
            b.handle_input(0, Input::datagram(bytes, 0));
            assert_eq!((b.poll_output(&mut Vec::new()), b.stats().malformed), (None, i as u64 + 1));
        }
    }

    #[test]
    fn parameters_are_those_of_a_socket() {
        let given = json!({"congestion": "bbr", "no_delay": false, "send_buffer_bytes": 16_384,
                           "give_up_ns": 2_000_000_000i64});
        let settings = Settings::new(&given).unwrap();
        assert_eq!((settings.congestion.as_deref(), settings.no_delay), (Some("bbr"), false));
        assert_eq!((settings.send_buffer_bytes, settings.receive_buffer_bytes), (Some(16_384), None));
        assert_eq!(settings.give_up_ns, 2 * SECOND);
        for (found, key) in
            [(json!("rm -rf"), "congestion"), (json!(""), "congestion"), (json!(1), "mtu_bytes")]
        {
            assert!(Settings::new(&json!({ (key): found })).unwrap_err().to_string().contains(key));
        }
    }
}
