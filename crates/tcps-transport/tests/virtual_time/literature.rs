//! The transports "after ..." between two ends in virtual time, each against plain UDP under the same conditions.

mod losses;
mod queues;

use crate::{
    pair::{Boxed, Conditions, Pair},
    session::meta,
};
use proptest::prelude::*;
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output},
    ids::{FlowId, NodeId},
    record::Kind,
    sample::{Echo, Meta, PointId},
    seed::Stream,
    time::{Time, MS, SECOND},
};
use tcps_transport::{endpoint, ChannelContext, Side};
use tcps_wire::echo;

const ALL: [&str; 7] =
    ["alphan", "coarse-copy", "irtp", "merge-span", "nack", "smoothed-sctp", "visual-haptic"];
const RTT: Conditions = Conditions { latency_ns: 15 * MS, jitter_ns: 0, loss: 0.0, duplication: 0.0 };

fn make(name: &str, params: &Value, side: Side) -> Boxed {
    let context = ChannelContext::of(&[
        (1, Side::B, "haptic"),
        (2, Side::B, "video"),
        (3, Side::A, "kinematic"),
        (4, Side::B, "audio"),
    ]);
    Boxed(endpoint(name, params, side, &context).unwrap())
}

fn pair(name: &str, params: Value, forward: Conditions) -> Pair<Boxed, Boxed> {
    let backward = Conditions { loss: 0.0, jitter_ns: 0, duplication: 0.0, ..forward };
    Pair::new(7, make(name, &params, Side::A), make(name, &params, Side::B), forward, backward)
}

/// Parameters for frames larger than any real one.
fn fast(name: &str) -> Value {
    if name == "visual-haptic" {
        json!({"capacity_bps": 50_000_000})
    } else {
        Value::Null
    }
}

/// A force of three 4-byte values that differs from sample to sample.
fn force(index: u32) -> Vec<u8> {
    let wave = |axis: u32| 2.0 + triangle(index + 40 * axis);
    (0..3).flat_map(|axis| wave(axis).to_be_bytes()).collect()
}

/// Between 0 and 1, period 200.
fn triangle(index: u32) -> f32 {
    ((index % 200) as f32 - 100.0).abs() / 100.0
}

/// A second of haptic samples at 1 kHz and what came of them: index to delay, and bytes on the way out.
struct Run {
    pair: Pair<Boxed, Boxed>,
    delays_ns: BTreeMap<u32, Time>,
    bytes: u64,
}

fn run(name: &str, params: Value, forward: Conditions) -> Run {
    let mut pair = pair(name, params, forward);
    let mut delays_ns = BTreeMap::new();
    let mut seen = 0;
    for index in 0..3000u32 {
        let at = Time::from(index) * MS;
        pair.run_until(at);
        pair.send(meta(1, index, at), &force(index));
        note(&pair, &mut seen, &mut delays_ns);
    }
    for _ in 0..3000 {
        pair.run_until(pair.time + MS / 10);
        note(&pair, &mut seen, &mut delays_ns);
    }
    let bytes = pair.client.transmitted.iter().map(|t| u64::from(t.wire_bytes)).sum();
    Run { pair, delays_ns, bytes }
}

/// Delays are those of the hand-over, to the 0.1 or 1 ms at which it is looked at.
fn note(pair: &Pair<Boxed, Boxed>, seen: &mut usize, delays_ns: &mut BTreeMap<u32, Time>) {
    for (delivery, _) in &pair.server.delivered[*seen..] {
        let delay_ns = pair.time - delivery.meta.origin_ns;
        assert!(delays_ns.insert(delivery.meta.index, delay_ns).is_none(), "a sample came twice");
    }
    *seen = pair.server.delivered.len();
}

impl Run {
    fn lost(&self) -> usize {
        3000 - self.delays_ns.len() - self.given_up()
    }

    fn given_up(&self) -> usize {
        let rows = self.pair.client.records.iter().chain(&self.pair.server.records);
        rows.filter(|r| matches!(r.kind, Kind::Suppressed | Kind::Superseded)).count()
    }
}

#[test]
fn a_sample_is_cut_where_prefix_header_and_payload_exceed_the_mtu() {
    let datagrams = |size: usize| {
        let mut pair = pair("nack", json!({"mtu_bytes": 600}), RTT);
        pair.send(meta(2, 0, 0), &vec![0; size]);
        pair.client.transmitted.len()
    };
    assert_eq!((datagrams(600 - 4 - 24), datagrams(600 - 4 - 24 + 1)), (1, 2));
}

// [model: wire size]
#[test]
fn a_given_overhead_stands_for_all_but_the_sample_and_its_coarse_copy() {
    let charged = |name| {
        let mut pair = pair(name, json!({"overhead_bytes": 62}), RTT);
        (0..3).for_each(|index| pair.send(meta(1, index, 0), &force(index)));
        pair.client.transmitted.iter().map(|t| t.wire_bytes).collect::<Vec<_>>()
    };
    assert_eq!(charged("nack"), [12 + 62; 3]);
    assert_eq!(charged("coarse-copy"), [12 + 62, 12 + 62, 12 + 11 + 62]);
}

/// The same with the header of ALPHAN, 16 B and 8 B more of a part, and the echo command behind the last part.
// [Al Osman 2007]
#[test]
fn alphan_cuts_a_sample_so_that_no_datagram_exceeds_the_mtu() {
    let echo = Some(Echo { target: PointId(5), sequence: 1, reply_to: NodeId(1), injected_ns: 3 });
    let trailer = echo::trailer_bytes(1);
    for (echo, room) in [(None, 600 - 16 - 8), (echo, 600 - 16 - 8 - trailer)] {
        for (size, count) in [(room, 1), (room + 1, 2), (2 * room, 2), (2 * room + 1, 3)] {
            let mut pair = pair("alphan", json!({"mtu_bytes": 600}), RTT);
            pair.send(Meta { echo, ..meta(2, 0, 0) }, &vec![0; size]);
            let sizes: Vec<u32> = pair.client.transmitted.iter().map(|t| t.wire_bytes - 54).collect();
            assert!(sizes.len() == count && sizes.iter().all(|b| *b <= 600), "{size}: {sizes:?}");
        }
    }
}

/// A receiver takes no longer ones, so that nobody can make it reserve more.
#[test]
fn a_sample_that_no_receiver_takes_is_refused_and_counted() {
    for name in ALL {
        let mut pair = pair(name, fast(name), RTT);
        let longest = vec![0; 16_000_001];
        pair.send(meta(2, 0, 0), &longest);
        let refused = pair.client.endpoint.stats().malformed;
        assert_eq!((refused, pair.client.transmitted.len()), (1, 0), "{name}");
        pair.send(meta(2, 1, 0), &longest[1..]);
        assert_eq!(pair.client.endpoint.stats().malformed, 1, "{name}: 16 MB are allowed");
    }
}

#[test]
fn samples_of_every_size_arrive_as_they_were() {
    for name in ALL {
        let mut pair = pair(name, fast(name), RTT);
        let sizes = [2400usize, 1, 12, 64, 1100, 1200, 2352, 20_000, 200_000];
        let content = |i: u32, n: usize| (0..n).map(|b| (b as u32 * 31 + i * 7) as u8).collect::<Vec<u8>>();
        for (index, size) in (0u32..).zip(sizes) {
            pair.run_until(Time::from(index) * 100 * MS);
            pair.send(meta(2, index, pair.time), &content(index, size));
        }
        pair.run_until(10 * SECOND);
        let got: Vec<_> = pair.server.delivered.iter().map(|(d, b)| (d.meta.index, b.clone())).collect();
        let expected: Vec<_> = (0u32..).zip(sizes).map(|(i, n)| (i, content(i, n))).collect();
        assert!(got == expected, "{name}: {:?}", got.iter().map(|g| (g.0, g.1.len())).collect::<Vec<_>>());
        let origins = pair.server.delivered.iter().map(|(d, _)| d.meta.origin_ns);
        assert!(origins.eq((0..9).map(|i| i * 100 * MS)), "{name}");
        assert_eq!(pair.server.endpoint.stats(), EndpointStats::default(), "{name}");
    }
}

// [Polachan 2022: echoes]
#[test]
fn echo_commands_arrive_on_their_samples_once() {
    for name in ALL {
        let echo = |index| Echo { target: PointId(5), sequence: index, reply_to: NodeId(1), injected_ns: 3 };
        let mut pair = pair(name, fast(name), Conditions { duplication: 0.5, ..RTT });
        for index in 0..50 {
            pair.run_until(Time::from(index) * 10 * MS);
            let tagged = Meta { echo: Some(echo(index)), ..meta(1, index, pair.time) };
            pair.run_until(pair.time + 9 * MS);
            pair.send(tagged, &force(index));
            pair.send(Meta { flow: FlowId(2), ..tagged }, &[9; 3000]);
        }
        pair.run_until(5 * SECOND);
        for flow in [1, 2] {
            let of_flow = pair.server.delivered.iter().filter(|(d, _)| d.meta.flow.0 == flow);
            let got: BTreeSet<u32> = of_flow.filter_map(|(d, _)| Some(d.meta.echo?.sequence)).collect();
            assert_eq!(got, (0..50).collect(), "{name}");
        }
        assert_eq!(pair.server.delivered.len(), 100, "{name}");
    }
}

#[test]
fn a_network_that_does_everything_wrong_leaves_every_sample_as_it_was() {
    for name in ALL {
        let bad = Conditions { latency_ns: MS, jitter_ns: 8 * MS, loss: 0.2, duplication: 0.3 };
        let mut pair = pair(name, Value::Null, bad);
        for index in 0..2000u32 {
            pair.run_until(Time::from(index) * MS);
            pair.send(meta(1, index, pair.time), &force(index));
            if index % 40 == 0 {
                pair.send(meta(2, index, pair.time), &[index as u8; 2000]);
            }
        }
        pair.run_until(20 * SECOND);
        let mut had = BTreeSet::new();
        for (d, bytes) in &pair.server.delivered {
            assert!(had.insert((d.meta.flow, d.meta.index)), "{name}: {} came twice", d.meta.index);
            let whole = match d.meta.flow.0 {
                1 => *bytes == force(d.meta.index),
                _ => *bytes == [d.meta.index as u8; 2000],
            };
            assert!(whole || name == "coarse-copy", "{name}");
        }
        let stats = pair.server.endpoint.stats();
        let rows = pair.server.records.iter().filter(|r| r.kind == Kind::Duplicate).count() as u64;
        assert_eq!((stats.malformed, stats.duplicates), (0, rows), "{name}");
        assert_eq!(pair.server.endpoint.poll_timeout(), None, "{name}: nothing is left to wait for");
        assert_eq!(pair.client.endpoint.poll_timeout(), None, "{name}: nothing is left to wait for");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Datagrams of a sender with some bytes changed, cut or added, and bytes from anybody: refused and counted, or a
    /// sample of a flow that comes here.
    #[test]
    fn nobody_can_make_an_endpoint_panic(
        seed: u64, changes in proptest::collection::vec((0usize..80, any::<u8>(), 0usize..90), 1..60),
    ) {
        for name in ALL {
            let mut receiver = make(name, &Value::Null, Side::B);
            let mut sender = make(name, &Value::Null, Side::A);
            let (mut buf, mut now, mut chance) = (Vec::new(), 0, Stream::new(seed, name));
            for (index, &(at, value, length)) in (0u32..).zip(&changes) {
                now += chance.below(30_000_000) as Time;
                sender.handle_input(now, Input::Sample { meta: meta(1, index, now), bytes: &force(index) });
                sender.handle_input(now, Input::Timeout);
                while sender.poll_output(&mut buf).is_some() {
                    let mut bytes = buf.clone();
                    if chance.chance(0.7) {
                        if let Some(b) = bytes.get_mut(at) {
                            *b ^= value;
                        }
                        bytes.resize(if chance.chance(0.3) { length } else { bytes.len() }, value);
                    }
                    let to = if chance.chance(0.9) { &mut receiver } else { &mut sender };
                    to.handle_input(now, Input::datagram(&bytes, now));
                }
                receiver.handle_input(now, Input::Timeout);
                while let Some(output) = receiver.poll_output(&mut buf) {
                    if let Output::Deliver(d) = output {
                        prop_assert!(matches!(d.meta.flow.0, 1 | 2 | 4), "{name}: flow {}", d.meta.flow);
                    }
                }
                prop_assert!(receiver.poll_timeout().is_none_or(|t| t > now), "{name} would be called at once");
            }
        }
    }
}
