//! A bottleneck of 1.5 Mbit/s with others' traffic as a fluid: what controllers that go by arrivals are tested on.

use std::collections::VecDeque;
use tcps_core::{
    rate::{Arrival, Feedback, RateController, Sent},
    time::{Time, MS},
};

const BUFFER_NS: f64 = 80e6;
const FEEDBACK_MS: Time = 20;

/// A sender, the queue that its packets meet, and feedback every 20 ms, 15 ms later.
pub(super) struct Fluid {
    pub(super) c: Box<dyn RateController>,
    pub(super) queue_ns: f64,
    pub(super) lost: u32,
    now_ms: Time,
    pending: u8,
    told: VecDeque<(Time, Arrival)>,
}

impl Fluid {
    pub(super) fn new(c: Box<dyn RateController>) -> Self {
        Self { c, queue_ns: 0.0, lost: 0, now_ms: 0, pending: 0, told: VecDeque::new() }
    }

    /// Fragments of the newest packet at every ms while others send `others_kbps`.
    pub(super) fn run(&mut self, ms: Time, others_kbps: f64) -> Vec<u8> {
        let mut ks = Vec::new();
        for _ in 0..ms {
            self.now_ms += 1;
            let now = self.now_ms * MS;
            while self.told.front().is_some_and(|(at, _)| *at <= now) {
                let Some((_, arrival)) = self.told.pop_front() else { break };
                self.c.feedback(now, &Feedback::Arrival(arrival));
            }
            self.pending += 1;
            let k = self.c.fragments(now);
            if self.pending >= k {
                self.packet(now);
            }
            ks.push(k);
            self.queue_ns = (self.queue_ns + (others_kbps / 1500.0 - 1.0) * 1e6).clamp(0.0, BUFFER_NS);
        }
        ks
    }

    fn packet(&mut self, now: Time) {
        let fragments = std::mem::take(&mut self.pending);
        let (payload_bytes, wire_bytes) = (70 * u32::from(fragments), 67 + 70 * u32::from(fragments));
        let own_ns = f64::from(wire_bytes) * 8e9 / 1.5e6;
        let comes = self.queue_ns + own_ns <= BUFFER_NS;
        let arrived_ns = now + 15 * MS + (self.queue_ns + own_ns) as Time;
        let told_ns = (arrived_ns / MS / FEEDBACK_MS + 1) * FEEDBACK_MS * MS + 15 * MS;
        self.lost += u32::from(!comes);
        self.queue_ns += if comes { own_ns } else { 0.0 };
        let arrival = Arrival {
            sent_ns: now,
            wire_bytes,
            arrived_ns: comes.then_some(arrived_ns / 976_562 * 976_562),
            round_trip_ns: if comes { arrived_ns - now + 15 * MS } else { 0 },
        };
        self.told.push_back((told_ns, arrival));
        let generated_ns = now - (Time::from(fragments) - 1) * MS;
        self.c.sent(now, &Sent { generated_ns, fragments, payload_bytes, wire_bytes });
    }
}
