//! The telehaptic transports between two ends in virtual time.

use crate::{
    pair::{Boxed, Conditions, Pair},
    session::meta,
};
use proptest::prelude::*;
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output},
    ids::NodeId,
    record::{DropReason, Kind, Record},
    sample::{Echo, Meta, PointId},
    time::{NodeClock, Time, MS, SECOND, US},
};
use tcps_transport::{endpoint, names, ChannelContext, Side};

const KINEMATIC: u16 = 0;
const HAPTIC: u16 = 1;
const AUDIO: u16 = 2;
const VIDEO: u16 = 3;

fn context() -> ChannelContext {
    ChannelContext::of(&[
        (KINEMATIC, Side::A, "kinematic"),
        (HAPTIC, Side::B, "haptic"),
        (AUDIO, Side::B, "audio"),
        (VIDEO, Side::B, "video"),
    ])
}

fn side(name: &str, params: &Value, side: Side) -> Boxed {
    Boxed(endpoint(name, params, side, &context()).unwrap())
}

/// The client sends force, sound and picture.
fn pair(name: &str, params: &Value, seed: u64, forward: Conditions) -> Pair<Boxed, Boxed> {
    let back = Conditions { latency_ns: 15 * MS, ..Default::default() };
    Pair::new(seed, side(name, params, Side::A), side(name, params, Side::B), forward, back)
}

fn content(flow: u16, index: u32, length: usize) -> Vec<u8> {
    (0..length as u32).map(|i| (i * 31 + index * 7 + u32::from(flow)) as u8).collect()
}

/// Sends millisecond `i` of a session with the published streams.
fn tick(pair: &mut Pair<Boxed, Boxed>, i: u32, echo: Option<Echo>) {
    let now = pair.client.clock.read(pair.time);
    if i.is_multiple_of(20) {
        pair.send(meta(AUDIO, i / 20, now), &content(AUDIO, i / 20, 160));
    }
    if i.is_multiple_of(40) {
        pair.send(meta(VIDEO, i / 40, now), &content(VIDEO, i / 40, 2000));
    }
    pair.send(Meta { echo, ..meta(HAPTIC, i, now) }, &content(HAPTIC, i, 12));
}

fn session(pair: &mut Pair<Boxed, Boxed>, ticks: u32) {
    for i in 0..ticks {
        pair.run_until(Time::from(i) * MS);
        tick(pair, i, None);
    }
    pair.run_until(Time::from(ticks) * MS + 5 * SECOND);
}

/// Numbers and content of what arrived of a flow.
fn arrived(pair: &Pair<Boxed, Boxed>, flow: u16) -> Vec<(u32, Vec<u8>)> {
    let own = pair.server.delivered.iter().filter(|(d, _)| d.meta.flow.0 == flow);
    own.map(|(d, b)| (d.meta.index, b.clone())).collect()
}

// [Gokhale 2017: streams] [Gokhale 2017: packetizer] [Gokhale 2017: fixed merging]
#[test]
fn k_fragments_make_packets_of_the_published_sizes_and_all_of_it_arrives() {
    for (k, bytes) in [(1, 137), (2, 207), (3, 277), (4, 347)] {
        let still = Conditions { latency_ns: 15 * MS, ..Default::default() };
        let mut p = pair("fixed-k", &json!({"k": k}), 1, still);
        session(&mut p, 600);
        let sent: Vec<u32> = p.client.transmitted.iter().map(|t| t.wire_bytes).collect();
        assert_eq!(sent.len(), 600 / k);
        assert!(sent.iter().all(|b| *b == bytes), "{k}: {sent:?}");
        let all = |flow: u16, count: u32, size: usize| -> Vec<_> {
            (0..count).map(|i| (i, content(flow, i, size))).collect()
        };
        assert_eq!(arrived(&p, HAPTIC), all(HAPTIC, 600, 12));
        assert_eq!(arrived(&p, AUDIO), all(AUDIO, 30, 160));
        assert_eq!(arrived(&p, VIDEO), all(VIDEO, 15, 2000));
        let late = |i: u32| Time::from(k as u32 - 1 - i % k as u32) * MS;
        for (d, _) in p.server.delivered.iter().filter(|(d, _)| d.meta.flow.0 == HAPTIC) {
            assert_eq!(d.meta.origin_ns, Time::from(d.meta.index) * MS);
            assert_eq!(d.received_ns - d.meta.origin_ns, 15 * MS + late(d.meta.index));
        }
        assert_eq!(p.server.endpoint.stats(), EndpointStats::default());
    }
}

// [model: wire size] [Gokhale 2017: header]
#[test]
fn accounts_count_one_sub_header_or_all_or_the_given_overhead() {
    let largest = |params: Value| {
        let mut p = pair("fixed-k", &params, 1, Conditions::default());
        session(&mut p, 200);
        p.client.transmitted.iter().map(|t| t.wire_bytes).max()
    };
    assert_eq!(largest(json!({"k": 4})), Some(280 + 67));
    assert_eq!(largest(json!({"k": 4, "strict_two_subheaders": true})), Some(280 + 72));
    assert_eq!(largest(json!({"k": 4, "overhead_bytes": 40})), Some(320));
}

/// Rows are told apart by their flow: those of another one would be counted there.
#[test]
fn rows_of_merging_and_of_repeated_packets_are_of_the_haptic_flow() {
    let twice = Conditions { duplication: 1.0, latency_ns: MS, ..Default::default() };
    let mut p = pair("timetable-k", &json!({"at_ms": [0, 40], "k": [1, 4]}), 1, twice);
    session(&mut p, 80);
    let rows = |records: &[Record], kind: Kind| -> Vec<_> {
        let own = records.iter().filter(|r| r.kind == kind);
        own.map(|r| (r.flow.0, r.value, r.detail, r.size)).collect()
    };
    assert_eq!(rows(&p.client.records, Kind::Merging), [(HAPTIC, 1, 1, 0), (HAPTIC, 4, 4, 0)]);
    let repeated = rows(&p.server.records, Kind::Duplicate);
    assert_eq!((repeated.len(), p.server.endpoint.stats().duplicates), (40 + 10, 50));
    assert!(repeated.iter().all(|row| row.0 == HAPTIC && row.3 > 70), "{repeated:?}");
}

// [Polachan 2022: echoes]
#[test]
fn echo_commands_stay_on_their_samples_in_merged_packets_and_on_frames() {
    let (target, reply_to) = (PointId(0x8007), NodeId(4));
    let echo = |sequence| Some(Echo { target, sequence, reply_to, injected_ns: -3 });
    let mut p = pair("fixed-k", &json!({"k": 4}), 1, Conditions::default());
    p.send(Meta { echo: echo(100), ..meta(AUDIO, 0, 0) }, &content(AUDIO, 0, 160));
    p.send(Meta { echo: echo(101), ..meta(VIDEO, 0, 0) }, &content(VIDEO, 0, 100));
    for i in 0..8 {
        p.run_until(Time::from(i) * MS);
        let echo = (i % 3 == 1).then(|| echo(i)).flatten();
        p.send(Meta { echo, ..meta(HAPTIC, i, p.time) }, &content(HAPTIC, i, 12));
    }
    p.run_until(SECOND);
    let mut got: Vec<_> =
        p.server.delivered.iter().map(|(d, _)| (d.meta.flow.0, d.meta.index, d.meta.echo)).collect();
    got.retain(|g| g.2.is_some());
    got.sort_by_key(|g| (g.0, g.1));
    let expected = [(HAPTIC, 1, 1), (HAPTIC, 4, 4), (HAPTIC, 7, 7), (AUDIO, 0, 100), (VIDEO, 0, 101)];
    assert_eq!(got, expected.map(|(flow, index, n)| (flow, index, echo(n))));
    let tagged = p.client.transmitted.iter().map(|t| t.wire_bytes - 62 - 5).collect::<Vec<_>>();
    assert_eq!(tagged, [232 + 48 + 1 + 3 * 19, 28 + 48 + 1 + 2 * 19], "tags are accounted");
}

// [Gokhale 2017: multiplexer]
#[test]
fn video_that_does_not_fit_is_dropped_whole_and_told() {
    let mut p = pair("no-merge", &json!({"media_bytes": 40}), 1, Conditions::default());
    session(&mut p, 4000);
    let rows = p.client.records.iter().filter(|r| r.kind == Kind::Dropped);
    assert!(rows.clone().all(|r| (r.flow.0, r.detail) == (VIDEO, DropReason::Overload as u8)));
    assert!(rows.clone().all(|r| r.value == 80 * MS), "when the second after it came");
    let dropped: BTreeSet<u32> = rows.map(|r| r.index).collect();
    let there: BTreeSet<u32> = arrived(&p, VIDEO).iter().map(|(i, _)| *i).collect();
    assert!(dropped.len() > 20 && dropped.is_disjoint(&there));
    assert!(100 - dropped.len() - there.len() <= 3, "what is neither waits at the sender");
    assert_eq!(arrived(&p, AUDIO).len(), 200, "audio goes first");
    assert!(arrived(&p, VIDEO).iter().all(|(i, b)| *b == content(VIDEO, *i, 2000)));
}

/// What no packet can hold is counted, and nothing of it leaves.
#[test]
fn samples_that_fit_no_packet_are_refused_and_counted() {
    let mut p = pair("no-merge", &Value::Null, 1, Conditions::default());
    let mut refused = |flow: u16, bytes: usize| {
        let before = p.client.endpoint.stats().malformed;
        p.send(meta(flow, 0, p.time), &vec![0; bytes]);
        p.client.endpoint.stats().malformed - before
    };
    // A datagram of 1200 B, 58 of them for sound and picture.
    assert_eq!([refused(HAPTIC, 1200 - 58 + 1), refused(HAPTIC, 1200 - 58)], [1, 0]);
    assert_eq!([refused(AUDIO, 0), refused(AUDIO, 1)], [1, 0]);
    assert_eq!([refused(VIDEO, 16_000_001), refused(VIDEO, 16_000_000)], [1, 0]);
    assert_eq!([refused(KINEMATIC, 12), refused(9, 12)], [1, 1], "flows that do not leave here");
    assert_eq!(p.client.transmitted.len(), 1);
}

// [Gokhale 2017: notification]
#[test]
fn the_controller_hears_of_congestion_in_headers_of_the_way_back() {
    for (clock, settle) in [
        (NodeClock::default(), "generation"),
        (NodeClock { offset_ns: 3 * SECOND, drift_ppb: 50_000 }, "generation"),
        (NodeClock { offset_ns: -2 * SECOND, drift_ppb: -50_000 }, "round-trip"),
    ] {
        let mut p = pair("dpm-g", &json!({"settle": settle}), 1, Conditions::default());
        p.client.clock = clock;
        p.client.sends.latency_ns = 15 * MS;
        let mut ks = Vec::new();
        for i in 0..1200u32 {
            p.run_until(Time::from(i) * MS);
            // A queue that grows by 0.3 ms a ms for 30 ms, and is gone 200 ms later; and a little noise, without which
            // the average would fall for ever.
            p.client.sends.latency_ns = 15 * MS
                + Time::from(i * 7919 % 5) * 10 * US
                + match i {
                    0..=499 => 0,
                    500..=529 => Time::from(i - 499) * 300 * US,
                    530..=729 => 9 * MS,
                    _ => 0,
                };
            tick(&mut p, i, None);
            p.send_back(meta(KINEMATIC, i, p.server.clock.read(p.time)), &content(KINEMATIC, i, 24));
            ks.push(p.client.records.iter().rev().find(|r| r.kind == Kind::Merging).map_or(0, |r| r.value));
        }
        assert_eq!(ks[499], 1, "{clock:?}");
        let reaction = (500..).find(|i| ks[*i] == 4).unwrap_or(0);
        assert!((530..560).contains(&reaction), "{clock:?}: {reaction}");
        assert!(ks[560..729].iter().all(|k| *k == 4), "{clock:?}: a high queue is not a steady one");
        assert_eq!(ks[1199], 1, "{clock:?}");
    }
}

// [Gokhale 2017: reports]
#[test]
fn reports_travel_every_half_second_as_106_bytes() {
    let mut p =
        pair("rtcp-report", &Value::Null, 1, Conditions { latency_ns: 15 * MS, ..Default::default() });
    session(&mut p, 2600);
    let reports: Vec<u32> = p.server.transmitted.iter().map(|t| t.wire_bytes).filter(|b| *b == 106).collect();
    assert_eq!(reports.len(), 6, "0.515, 1.015 ... 2.515 s, and one for what came since");
    assert_eq!(p.client.endpoint.stats().malformed, 0);
}

#[test]
fn channels_that_it_is_not_for_are_refused() {
    let refused = |name: &str, flows: &[(u16, Side, &str)], period_ns: Time| {
        let mut context = ChannelContext::of(flows);
        context.flows.iter_mut().for_each(|f| f.period_ns = period_ns);
        endpoint(name, &Value::Null, Side::A, &context).err().map(|e| e.to_string()).unwrap_or_default()
    };
    let (there, back) = ((1, Side::B, "kinematic"), (2, Side::A, "haptic"));
    assert_eq!(refused("dpm-g", &[there, back], MS), "");
    assert!(refused("dpm-g", &[there], MS).contains("both directions"));
    assert_eq!(refused("fixed-k", &[there], MS), "");
    assert!(refused("fixed-k", &[there, (3, Side::B, "status")], MS).contains("one flow beside"));
    assert!(refused("fixed-k", &[(3, Side::B, "audio")], MS).contains("alone"));
    assert!(refused("no-merge", &[there], MS / 2).contains("2000 Hz"));
}

#[test]
fn parameters_of_each_name_are_checked() {
    let refused = |name: &str, params: Value| {
        endpoint(name, &params, Side::A, &context()).err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert!(refused("no-merge", json!({"k": 2})).contains("found \"k\", which is not a parameter"));
    assert!(refused("fixed-k", json!({"k": 8})).contains("from 1 to 7"));
    assert!(refused("dpm", json!({"trend": "none"})).contains(r#""strict", "slope", "ends", "ignored""#));
    assert!(refused("dpm", json!({"alpha": 0})).contains("from 0.001 to 1"));
    assert!(refused("dpm", json!({"repeats": 1})).contains("true or false"));
    let most = |mtu: u32, media: u32| refused("dpm", json!({"mtu_bytes": mtu, "media_bytes": media}));
    assert!(most(1200, 1001).contains("allowed: at most 1000 B, which the mtu leaves"));
    assert!(most(600, 401).contains("allowed: at most 400 B, which the mtu leaves"));
    assert_eq!([most(1200, 1000), most(600, 400)], ["", ""]);
    assert!(refused("timetable-k", json!({"at_ms": [0, 5], "k": [1]})).contains("as many"));
    assert_eq!(refused("timetable-k", json!({"at_ms": [0, 5], "k": [1, 4]})), "");
    assert!(names().contains(&"dpm-g"));
}

/// Packets of a short session with everything in it.
fn packets() -> Vec<Vec<u8>> {
    let (mut sender, mut buf, mut out) = (side("fixed-k", &json!({"k": 3}), Side::A), Vec::new(), Vec::new());
    for i in 0..240u32 {
        let now = Time::from(i) * MS;
        if i % 20 == 0 {
            sender.handle_input(now, Input::Sample { meta: meta(AUDIO, i / 20, now), bytes: &[1; 160] });
        }
        let (target, reply_to) = (PointId(1), NodeId(2));
        let echo = (i % 7 == 0).then_some(Echo { target, sequence: i, reply_to, injected_ns: 3 });
        sender.handle_input(
            now,
            Input::Sample { meta: Meta { echo, ..meta(HAPTIC, i, now) }, bytes: &[2; 12] },
        );
        while let Some(output) = sender.poll_output(&mut buf) {
            if matches!(output, Output::Transmit(_)) {
                out.push(buf.clone());
            }
        }
    }
    out
}

#[test]
fn hostile_datagrams_are_counted_and_the_session_goes_on() {
    let good = packets();
    let mut receiver = side("fixed-k", &json!({"k": 3}), Side::B);
    let mut buf = Vec::new();
    let mut take = |receiver: &mut Boxed, now: Time, bytes: &[u8]| {
        receiver.handle_input(now, Input::datagram(bytes, now));
        let mut delivered = 0;
        while let Some(output) = receiver.poll_output(&mut buf) {
            delivered += u32::from(matches!(output, Output::Deliver(_)));
        }
        delivered
    };
    assert!(take(&mut receiver, 0, &good[0]) >= 3);
    assert_eq!(take(&mut receiver, 0, &good[0]), 0, "replayed");
    assert_eq!(receiver.stats().duplicates, 1);
    let mut refused = 0;
    for n in 0..good[1].len() {
        let delivered = take(&mut receiver, 0, &good[1][..n]);
        refused += u64::from(delivered == 0);
    }
    assert!(refused as usize >= good[1].len() - 3, "{refused}: what is cut is not what it says");
    for year in [-1, 1] {
        let mut other = good[2].clone();
        let at_ms =
            u32::from_be_bytes(other[4..8].try_into().unwrap()).wrapping_add_signed(year * 31_557_600);
        other[4..8].copy_from_slice(&at_ms.to_be_bytes());
        take(&mut receiver, 0, &other);
    }
    let before = receiver.stats();
    let late: u32 = good.iter().skip(20).map(|p| take(&mut receiver, SECOND, p)).sum();
    assert!(late >= 3 * (good.len() as u32 - 21), "{late}: the session goes on");
    assert_eq!(receiver.stats().malformed, before.malformed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn what_the_network_left_whole_arrives_exactly_once(
        seed: u64, loss in 0.0..0.15, duplication in 0.0..0.3, jitter_ns in 0i64..2 * MS, k in 1u8..=7,
    ) {
        let conditions = Conditions { latency_ns: 2 * MS, jitter_ns, loss, duplication };
        let mut p = pair("fixed-k", &json!({"k": k}), seed, conditions);
        session(&mut p, 700);
        let lost: BTreeSet<u32> =
            p.client.lost.iter().flat_map(|t| t.index..t.index + u32::from(k)).collect();
        let mut seen = BTreeMap::new();
        for (index, bytes) in arrived(&p, HAPTIC) {
            prop_assert!(seen.insert(index, bytes).is_none(), "sample {} came twice", index);
        }
        for i in 0..700 - 700 % u32::from(k) {
            let expected = (!lost.contains(&i)).then(|| content(HAPTIC, i, 12));
            prop_assert_eq!(seen.remove(&i), expected, "sample {}", i);
        }
        for (flow, size) in [(AUDIO, 160), (VIDEO, 2000)] {
            let mut frames = BTreeSet::new();
            for (index, bytes) in arrived(&p, flow) {
                prop_assert!(frames.insert(index), "frame {} came twice", index);
                prop_assert_eq!(bytes, content(flow, index, size));
            }
        }
        prop_assert_eq!(p.server.endpoint.stats().malformed, 0);
    }
}
