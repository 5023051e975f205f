//! The `tcp` (also with TLS), `kernel-tcp` and `quic` transports: two ends, a network that loses, repeats, reorders and damages, and
//! anybody who sends what he likes.

use crate::script::Script;
use serde_json::{json, Value};
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    ids::FlowId,
    sample::Meta,
    time::Time,
};
use tcps_transport::{endpoint, udp::MAX_SAMPLE_BYTES, ChannelContext, Frames, Side, TlsSecret};

/// TCP, its endpoint.
pub fn tcp(data: &[u8]) {
    play("tcp", small(), None, data);
}

/// The same with TLS: whatever somebody does to the packets, what arrives is what was sent.
pub fn tls(data: &[u8]) {
    play("tcp", small(), Some(TlsSecret::Seeded), data);
}

fn small() -> Value {
    json!({"queue_bytes": 5_000, "send_buffer_bytes": 4_096, "receive_buffer_bytes": 4_096})
}

/// QUIC by quinn-proto; the first byte chooses the mode.
pub fn quic(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let mode = ["stream-per-flow", "stream-per-sample", "datagram"][usize::from(first % 3)];
    play("quic", json!({"mode": mode, "queue_bytes": 5_000}), None, rest);
}

/// The kernel's TCP: what a connection brings, in pieces as long as the first byte says, and each piece as if it were a
/// frame.
pub fn kernel_tcp(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let context = ChannelContext::of(&[(0, Side::B, "kinematic"), (1, Side::A, "haptic")]);
    let mut end = endpoint("kernel-tcp", &Value::Null, Side::B, &context).expect("no parameters");
    let mut frames = Frames::default();
    for piece in rest.chunks(usize::from(*first).max(1)) {
        frames.push(piece);
        loop {
            match frames.next_frame() {
                Ok(Some(frame)) => frame_arrives(&mut *end, frame),
                Ok(None) => break,
                // The connection is lost, and the next one begins anew.
                Err(_) => frames = Frames::default(),
            }
        }
        frame_arrives(&mut *end, piece);
    }
}

fn frame_arrives(end: &mut dyn Endpoint, frame: &[u8]) {
    let before = end.stats().malformed;
    end.handle_input(0, Input::datagram(frame, 0));
    let (mut buf, mut delivered) = (Vec::new(), 0);
    while let Some(output) = end.poll_output(&mut buf) {
        let Output::Deliver(d) = output else { panic!("{output:?}") };
        assert!(d.meta.flow.0 == 0 && buf.len() < frame.len());
        delivered += 1;
    }
    assert_eq!(delivered + end.stats().malformed - before, 1, "either a sample or damage");
}

struct Ends {
    ends: [Box<dyn Endpoint>; 2],
    /// Datagrams in flight, with the end that they go to.
    flight: Vec<(usize, Vec<u8>)>,
    /// Samples by the end that they come from, each as its number and its length.
    sent: [Vec<usize>; 2],
    now: Time,
    /// Whether somebody else has had his hands in it: then what arrives may be his.
    touched: bool,
    damaged: bool,
    /// Whether the ends prove what they send.
    proves: bool,
}

fn play(transport: &str, params: Value, tls: Option<TlsSecret>, data: &[u8]) {
    let flows = ChannelContext::of(&[(0, Side::B, "kinematic"), (1, Side::A, "haptic")]);
    let context = ChannelContext { tls, ..flows };
    let make = |side| endpoint(transport, &params, side, &context).expect("good parameters");
    let mut script = Script(data);
    let mut play = Ends {
        ends: [make(Side::A), make(Side::B)],
        flight: Vec::new(),
        sent: [Vec::new(), Vec::new()],
        now: 0,
        touched: false,
        damaged: false,
        proves: tls.is_some(),
    };
    while let Some(step) = script.next() {
        let end = usize::from(step >> 7);
        match step % 8 {
            0 => play.wait(script.number::<1>() as Time * 4_000_000),
            1 => play.wait(script.number::<4>() as Time * 1_000),
            2 => play.sample(end, script.number::<2>() as usize % 6_000),
            3 => play.lose(script.number::<1>() as usize),
            4 => play.damage(script.number::<1>() as usize, script.number::<2>() as usize),
            5 => {
                let n = script.number::<1>() as usize;
                play.touched = true;
                play.arrive(end, script.take(n));
            }
            6 => play.repeat(script.number::<1>() as usize),
            _ => play.pass(script.number::<1>() as usize),
        }
    }
}

impl Ends {
    fn wait(&mut self, span_ns: Time) {
        self.now += span_ns;
        for end in 0..2 {
            for _ in 0..4 {
                if self.ends[end].poll_timeout().is_some_and(|t| t <= self.now) {
                    self.ends[end].handle_input(self.now, Input::Timeout);
                    self.drain(end);
                }
            }
            let due = self.ends[end].poll_timeout();
            assert!(due.is_none_or(|t| t > self.now), "end {end} would be called again at once");
        }
    }

    fn sample(&mut self, end: usize, length: usize) {
        let index = self.sent[end].len() as u32;
        let meta = Meta { flow: FlowId(end as u16), index, origin_ns: 9, echo: None };
        let bytes = vec![index as u8; length];
        self.sent[end].push(length);
        self.ends[end].handle_input(self.now, Input::Sample { meta, bytes: &bytes });
        self.drain(end);
    }

    fn lose(&mut self, place: usize) {
        if !self.flight.is_empty() {
            let _ = self.flight.remove(place % self.flight.len());
        }
    }

    fn damage(&mut self, place: usize, bit: usize) {
        let n = self.flight.len().max(1);
        if let Some((_, bytes)) = self.flight.get_mut(place % n).filter(|(_, b)| !b.is_empty()) {
            let bit = bit % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            // Two changed bits can make up a checksum of TCP that is right.
            self.touched |= std::mem::replace(&mut self.damaged, true);
        }
    }

    fn repeat(&mut self, place: usize) {
        let n = self.flight.len().max(1);
        if let Some((to, bytes)) = self.flight.get(place % n).cloned() {
            self.arrive(to, &bytes);
        }
    }

    fn pass(&mut self, place: usize) {
        if !self.flight.is_empty() {
            let (to, bytes) = self.flight.remove(place % self.flight.len());
            self.arrive(to, &bytes);
        }
    }

    fn arrive(&mut self, end: usize, bytes: &[u8]) {
        self.ends[end].handle_input(self.now, Input::datagram(bytes, self.now));
        self.drain(end);
    }

    fn drain(&mut self, end: usize) {
        let mut buf = Vec::new();
        while let Some(output) = self.ends[end].poll_output(&mut buf) {
            match output {
                Output::Transmit(t) => {
                    assert!(t.wire_bytes as usize > buf.len());
                    if self.flight.len() < 256 {
                        self.flight.push((1 - end, buf.clone()));
                    }
                }
                Output::Deliver(d) => {
                    assert!(usize::from(d.meta.flow) == 1 - end && buf.len() <= MAX_SAMPLE_BYTES);
                    let sent = self.sent[1 - end].get(d.meta.index as usize);
                    let same = sent == Some(&buf.len()) && buf.iter().all(|b| *b == d.meta.index as u8);
                    assert!(
                        self.touched && !self.proves || same,
                        "sample {} is not what was sent",
                        d.meta.index
                    );
                }
                Output::Record(_) => {}
            }
        }
    }
}
