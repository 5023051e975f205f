//! A running endpoint asks for no memory, whatever its transport, but for those that are named here.

#![expect(unsafe_code, reason = "an allocator that counts")]

use serde_json::{json, Value};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    collections::{BTreeMap, VecDeque},
};
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    ids::FlowId,
    param::Named,
    sample::Meta,
    time::{Time, MS},
};
use tcps_transport::{
    endpoint, names,
    security::{self, Secret},
    ChannelContext, Side,
};

struct Counting;

thread_local! {
    /// Of this thread alone: the test harness has others.
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls for memory a packet, at most, of transports that ask for some.
const ASK: [(&str, f64); 9] = [
    ("gcc", 0.2),
    ("kernel-tcp", 1.0),
    ("parity", 4.2),
    ("quic", 6.1), // one of them to know which samples a lost connection held
    ("repeat", 0.5),
    ("rtp", 1.1),
    ("scream", 0.2),
    ("smoothed-sctp", 1.1),
    ("tcp", 2.0),
];

/// Two ends; flow 1 goes to b and flow 2 back, a sample each a millisecond, and packets take as long.
struct Pair {
    ends: [Box<dyn Endpoint>; 2],
    flight: VecDeque<(Time, usize, Vec<u8>)>,
    buffer: Vec<u8>,
    now: Time,
    index: u32,
    packets: u32,
    delivered: u32,
    /// Calls for memory by the ends.
    asked: usize,
}

impl Pair {
    fn new(name: &str) -> Self {
        let params = if name == "timetable-k" { json!({"at_ms": [0], "k": [2]}) } else { Value::Null };
        let ctx = ChannelContext::of(&[(1, Side::B, "haptic"), (2, Side::A, "kinematic")]);
        Self::of([Side::A, Side::B].map(|side| endpoint(name, &params, side, &ctx).unwrap()))
    }

    /// A transport with security around it.
    fn secured(transport: &str, kind: &str) -> Self {
        let ctx = ChannelContext::of(&[(1, Side::B, "haptic"), (2, Side::A, "kinematic")]);
        Self::of([Side::A, Side::B].map(|side| {
            let (inner, secret) =
                (endpoint(transport, &Value::Null, side, &ctx).unwrap(), Secret::seeded(1, "c", side));
            security::secured(inner, &Named::new(kind, Value::Null), side, &ctx, secret).unwrap()
        }))
    }

    fn of(ends: [Box<dyn Endpoint>; 2]) -> Self {
        let buffer = Vec::with_capacity(1 << 16);
        Self { ends, flight: VecDeque::new(), buffer, now: 0, index: 0, packets: 0, delivered: 0, asked: 0 }
    }

    fn counted<T>(asked: &mut usize, call: impl FnOnce() -> T) -> T {
        let before = CALLS.get();
        let result = call();
        *asked += CALLS.get() - before;
        result
    }

    fn tell(&mut self, end: usize, input: Input<'_>) {
        let Self { ends, buffer, asked, now, .. } = self;
        Self::counted(asked, || ends[end].handle_input(*now, input));
        while let Some(output) = Self::counted(asked, || ends[end].poll_output(buffer)) {
            match output {
                Output::Transmit(_) => {
                    self.packets += 1;
                    self.flight.push_back((*now + MS, 1 - end, buffer.clone()));
                }
                Output::Deliver(_) => self.delivered += 1,
                Output::Record(_) => {}
            }
        }
    }

    /// Calls for memory a packet, after the first seconds.
    fn calls(&mut self, name: &str) -> f64 {
        self.run(3000);
        (self.asked, self.packets, self.delivered) = (0, 0, 0);
        self.run(2000);
        assert!(self.delivered > 0 && self.packets > 0, "{name}: nothing came");
        self.asked as f64 / f64::from(self.packets)
    }

    fn run(&mut self, milliseconds: u32) {
        for _ in 0..milliseconds {
            for end in 0..2 {
                if self.ends[end].poll_timeout().is_some_and(|t| t <= self.now) {
                    self.tell(end, Input::Timeout);
                }
                let meta =
                    Meta { flow: FlowId(1 + end as u16), index: self.index, origin_ns: self.now, echo: None };
                let bytes = [self.index as u8; 24];
                self.tell(end, Input::Sample { meta, bytes: &bytes[..12 + 12 * end] });
            }
            self.index += 1;
            while self.flight.front().is_some_and(|f| f.0 <= self.now) {
                let Some((_, to, packet)) = self.flight.pop_front() else { break };
                self.tell(to, Input::datagram(&packet, self.now));
            }
            self.now += MS;
        }
    }
}

#[test]
fn a_packet_costs_no_memory_after_the_first_seconds() {
    let mut most: BTreeMap<_, _> = names().into_iter().map(|name| (name, 0.0)).collect();
    for (name, calls) in ASK {
        assert!(most.insert(name, calls).is_some(), "{name} is no transport");
    }
    let mut wrong = Vec::new();
    for (name, most) in most {
        let mut pair = Pair::new(name);
        let calls = pair.calls(name);
        if calls > most {
            wrong.push(format!("{name}: {} calls for {} packets", pair.asked, pair.packets));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for (transport, kind) in [("udp", "aead"), ("udp", "hmac"), ("rtp", "srtp")] {
        let most = ASK.iter().find(|(name, _)| *name == transport).map_or(0.0, |(_, calls)| *calls);
        let calls = Pair::secured(transport, kind).calls(kind);
        assert!(calls <= most, "{kind}: {calls} calls a packet");
    }
}

/// Sends one sample from `a` to `b`, delivering every part twice; how many samples came out.
fn pass(
    a: &mut dyn Endpoint,
    b: &mut dyn Endpoint,
    bufs: &mut [Vec<u8>; 2],
    index: u32,
    sample: &[u8],
) -> u32 {
    let [datagram, out] = bufs;
    let meta = Meta { flow: FlowId(1), index, origin_ns: 0, echo: None };
    let mut delivered = 0;
    a.handle_input(0, Input::Sample { meta, bytes: sample });
    while a.poll_output(datagram).is_some() {
        for _ in 0..2 {
            b.handle_input(0, Input::datagram(datagram, 0));
            while let Some(output) = b.poll_output(out) {
                delivered += u32::from(matches!(output, Output::Deliver(_)));
            }
        }
    }
    delivered
}

#[test]
fn samples_in_parts_and_duplicates_of_udp_cost_no_memory_either() {
    let ctx = ChannelContext::of(&[(1, Side::B, "kinematic")]);
    let make = |side| endpoint("udp", &Value::Null, side, &ctx).unwrap();
    let (mut a, mut b, mut bufs) = (make(Side::A), make(Side::B), [Vec::new(), Vec::new()]);
    let sample = vec![1u8; 20_000];
    let size = |index: u32| if index.is_multiple_of(10) { 20_000 } else { 64 };
    pass(a.as_mut(), b.as_mut(), &mut bufs, 0, &sample);
    let before = CALLS.get();
    let delivered: u32 =
        (1..2000).map(|i| pass(a.as_mut(), b.as_mut(), &mut bufs, i, &sample[..size(i)])).sum();
    let asked = CALLS.get() - before;
    assert_eq!((delivered, asked), (1999, 0));
}
