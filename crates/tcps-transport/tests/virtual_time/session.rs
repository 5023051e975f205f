//! A telehaptic session between two ends: a kinematic and a haptic flow at 1 kHz.

use crate::pair::{Boxed, Pair};
use tcps_core::{
    endpoint::Endpoint,
    ids::FlowId,
    sample::Meta,
    time::{Time, MS, SECOND},
};

/// Bytes that tell samples and places in them apart.
pub fn content(index: u32, length: usize) -> Vec<u8> {
    (0..length).map(|i| (i as u32).wrapping_mul(31).wrapping_add(index * 7) as u8).collect()
}

pub fn meta(flow: u16, index: u32, origin_ns: Time) -> Meta {
    Meta { flow: FlowId(flow), index, origin_ns, echo: None }
}

/// Whether samples of these sizes, one every 10 ms, arrive once each, as they were and in order, if there is so much time.
pub fn arrive_in_order(mut pair: Pair<Boxed, Boxed>, sizes: &[usize], patience_ns: Time) -> bool {
    for (index, size) in (0..).zip(sizes) {
        pair.send(meta(1, index, pair.time), &content(index, *size));
        pair.run_until(pair.time + 10 * MS);
    }
    pair.run_until(pair.time + patience_ns);
    let got = pair.server.delivered.iter().map(|(d, bytes)| (d.meta.index, bytes.clone()));
    got.eq((0..).zip(sizes).map(|(index, size)| (index, content(index, *size))))
}

/// Flow 1 goes from client to server, flow 2 back.
pub struct Session {
    pub pair: Pair<Boxed, Boxed>,
    /// Samples sent in each direction.
    pub sent: u32,
}

impl Session {
    pub fn new(pair: Pair<Boxed, Boxed>) -> Self {
        Self { pair, sent: 0 }
    }

    /// Goes on for a span.
    pub fn run(&mut self, span_ns: Time) {
        let end = self.pair.time + span_ns;
        while self.pair.time < end {
            let now = self.pair.time;
            self.pair.send(meta(1, self.sent, now), &content(self.sent, 24));
            self.pair.send_back(meta(2, self.sent, now), &content(self.sent, 12));
            self.sent += 1;
            self.pair.run_until(now + MS);
        }
    }

    /// Samples that arrived in order, each as it was and once, there and back; panics at one that is not.
    pub fn delivered(&self) -> (u32, u32) {
        for (index, (d, bytes)) in (0..).zip(&self.pair.server.delivered) {
            assert!(d.meta.index == index && *bytes == content(index, 24), "there: {index}");
        }
        for (index, (d, bytes)) in (0..).zip(&self.pair.client.delivered) {
            assert!(d.meta.index == index && *bytes == content(index, 12), "back: {index}");
        }
        self.arrived()
    }

    /// Samples that arrived, there and back.
    pub fn arrived(&self) -> (u32, u32) {
        (self.pair.server.delivered.len() as u32, self.pair.client.delivered.len() as u32)
    }
}

/// Stalls that the client tells of where an answer takes `late_ns` more than the round trip of 300 ms. It is called 10 ms before.
pub fn stalls_at_a_late_answer(mut pair: Pair<Boxed, Boxed>, late_ns: Time) -> u64 {
    pair.run_until(SECOND);
    pair.server.sends.latency_ns += late_ns;
    pair.send(meta(1, 0, SECOND), &content(0, 24));
    pair.run_until(SECOND + 290 * MS + late_ns);
    pair.send(meta(1, 1, pair.time), &content(1, 24));
    pair.run_until(5 * SECOND);
    pair.client.endpoint.stats().connections.map_or(0, |c| c.stalls)
}
