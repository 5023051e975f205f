//! The plain `udp` transport between two ends in virtual time.

use crate::{
    pair::{Boxed, Conditions, Pair},
    session::{content, meta},
};
use proptest::prelude::*;
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output},
    ids::NodeId,
    record::{Kind, Record},
    sample::{Echo, Meta, PointId},
    time::{Time, MS, SECOND},
};
use tcps_transport::{endpoint, ChannelContext, Side};

fn udp(params: &Value, side: Side) -> Boxed {
    let context =
        ChannelContext::of(&[(1, Side::B, "kinematic"), (2, Side::A, "haptic"), (3, Side::B, "further")]);
    Boxed(endpoint("udp", params, side, &context).unwrap())
}

fn udp_pair(seed: u64, params: Value, forward: Conditions) -> Pair<Boxed, Boxed> {
    Pair::new(seed, udp(&params, Side::A), udp(&params, Side::B), forward, Conditions::default())
}

#[test]
fn samples_of_every_size_around_the_mtu_arrive_as_they_were() {
    let sizes = [0, 1, 64, 1175, 1176, 1177, 2352, 2353, 20_000, 300_000];
    let mut pair = udp_pair(1, Value::Null, Conditions { latency_ns: MS, ..Default::default() });
    for (index, size) in sizes.into_iter().enumerate() {
        pair.send(meta(1, index as u32, 5), &content(index as u32, size));
    }
    pair.run_until(SECOND);
    let got: Vec<_> = pair.server.delivered.iter().map(|(d, bytes)| (d.meta.index, bytes.clone())).collect();
    let expected: Vec<_> = (0u32..).zip(sizes).map(|(i, n)| (i, content(i, n))).collect();
    assert!(got == expected);
    assert!(pair.server.delivered.iter().all(|(d, _)| d.received_ns == MS && d.meta.origin_ns == 5));
    assert_eq!(pair.server.endpoint.stats(), EndpointStats::default());
}

// [model: wire size]
#[test]
fn accounts_are_charged_what_is_sent_with_the_headers_below_or_the_given_overhead() {
    let charged = |params: Value, size: usize| {
        let mut pair = udp_pair(1, params, Conditions::default());
        pair.send(meta(1, 0, 0), &vec![0; size]);
        pair.client.transmitted.iter().map(|t| t.wire_bytes).collect::<Vec<_>>()
    };
    assert_eq!(charged(json!({}), 64), [64 + 24 + 8 + 20 + 26]);
    assert_eq!(
        charged(json!({"overhead_bytes": 66}), 71),
        [137],
        "the backward packet of Gokhale 2017: streams"
    );
    assert_eq!(charged(json!({}), 2353), [785 + 78, 785 + 78, 783 + 78], "three even parts");
    assert_eq!(charged(json!({"mtu_bytes": 300, "overhead_bytes": 0}), 277), [139, 138]);
}

// [Polachan 2022: echoes]
#[test]
fn an_echo_command_arrives_once_on_its_sample_whole_or_in_parts() {
    let echo = Echo { target: PointId(0x8007), sequence: 1, reply_to: NodeId(4), injected_ns: -3 };
    let conditions = Conditions { duplication: 1.0, jitter_ns: MS, ..Default::default() };
    let mut pair = udp_pair(2, Value::Null, conditions);
    for (index, size) in [64, 1156, 1157, 1176, 5000].into_iter().enumerate() {
        let tagged = Meta { echo: Some(echo), ..meta(1, index as u32, 0) };
        pair.send(tagged, &content(index as u32, size));
    }
    pair.send(meta(1, 5, 0), &content(5, 64));
    pair.run_until(SECOND);
    let mut echoes: Vec<_> = pair.server.delivered.iter().map(|(d, _)| (d.meta.index, d.meta.echo)).collect();
    echoes.sort_by_key(|e| e.0);
    let expected = (0..6).map(|i| (i, Some(echo).filter(|_| i < 5))).collect::<Vec<_>>();
    assert_eq!(echoes, expected);
}

#[test]
fn every_refused_datagram_is_counted_and_nothing_comes_of_it() {
    let mut sender = udp(&Value::Null, Side::A);
    let mut buf = Vec::new();
    let echo = Some(Echo { target: PointId(1), sequence: 2, reply_to: NodeId(3), injected_ns: 4 });
    sender.handle_input(0, Input::Sample { meta: Meta { echo, ..meta(1, 9, 7) }, bytes: b"ab" });
    sender.poll_output(&mut buf);
    let good = buf.clone();
    let changed = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    let mut bad: Vec<Vec<u8>> = (0..good.len()).map(|n| good[..n].to_vec()).collect();
    bad.push(changed(0, 2)); // version
    bad.push(changed(1, 3)); // flag
    bad.push(changed(1, 0)); // trailer not announced
    bad.push(changed(3, 2)); // a flow that goes the other way
    bad.push(changed(3, 77)); // no flow
    bad.push(changed(16, 0xff)); // 4 GB
    bad.push(changed(21, 1)); // fragment 1 of 1
    bad.push(changed(23, 0)); // no fragments
    bad.push(changed(26, 2)); // two commands announced
    bad.push(changed(27, 1)); // command for a second sample
    bad.push(changed(34, 1)); // node 65539
    let mut long = vec![0u8; 24 + 59_919];
    long[..24].copy_from_slice(&good[..24]);
    long[1] = 0;
    long[16..24].copy_from_slice(&[0x01, 0, 0, 0, 0, 0, 1, 0x18]); // 16.8 MB in 280 parts
    bad.push(long);

    let mut receiver = udp(&Value::Null, Side::B);
    for bytes in &bad {
        receiver.handle_input(0, Input::datagram(bytes, 0));
        assert_eq!(receiver.poll_output(&mut buf), None);
    }
    assert_eq!(receiver.stats(), EndpointStats { malformed: bad.len() as u64, ..Default::default() });
    receiver.handle_input(0, Input::datagram(&good, 0));
    assert!(matches!(receiver.poll_output(&mut buf), Some(Output::Deliver(_))), "the good one still arrives");
}

/// An analysis charges a copy to its flow and shows which sample it repeats.
#[test]
fn a_copy_is_told_with_its_flow_its_sample_and_the_bytes_of_the_datagram() {
    let mut pair = udp_pair(2, Value::Null, Conditions { duplication: 1.0, ..Default::default() });
    pair.send(meta(3, 7, 0), &content(7, 64));
    pair.send(meta(1, 9, 0), &content(9, 1200));
    pair.run_until(SECOND);
    let told = |r: &Record| (r.kind, r.flow.0, r.index, r.size);
    let mut rows: Vec<_> = pair.server.records.iter().map(told).collect();
    rows.sort_by_key(|row| row.1);
    let copy = |flow, index, bytes: u32| (Kind::Duplicate, flow, index, 24 + bytes);
    assert_eq!(rows, [copy(1, 9, 600), copy(1, 9, 600), copy(3, 7, 64)]);
    assert_eq!(pair.server.endpoint.stats().duplicates, 3);
}

#[test]
fn a_sample_whose_part_is_lost_is_given_up_and_counted() {
    let conditions = Conditions { loss: 0.2, ..Default::default() };
    let mut pair = udp_pair(3, Value::Null, conditions);
    for index in 0..100 {
        pair.send(meta(3, index, 0), &content(index, 5000));
        pair.run_until((index as Time + 1) * 33 * MS);
    }
    pair.run_until(30 * SECOND);
    let stats = pair.server.endpoint.stats();
    let lost: BTreeSet<u32> = pair.client.lost.iter().map(|t| t.index).collect();
    assert!(lost.len() > 30, "the network is bad enough");
    assert_eq!(pair.server.delivered.len(), 100 - lost.len());
    assert_eq!(stats.incomplete, lost.len() as u64, "at 0.2 no sample loses all five parts");
    assert_eq!(pair.server.endpoint.poll_timeout(), None, "nothing is left to wait for");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn what_the_network_left_whole_arrives_exactly_once(
        seed: u64, loss in 0.0..0.2, duplication in 0.0..0.5, jitter_ns in 0i64..3 * MS,
        sizes in proptest::collection::vec(prop_oneof![Just(64usize), 0..3000usize], 1..60),
    ) {
        let conditions = Conditions { latency_ns: MS, jitter_ns, loss, duplication };
        let mut pair = udp_pair(seed, Value::Null, conditions);
        for (index, size) in sizes.iter().enumerate() {
            pair.send(meta(1, index as u32, pair.time), &content(index as u32, *size));
            pair.run_until(pair.time + 10 * MS);
        }
        pair.run_until(pair.time + SECOND);
        let lost: BTreeSet<u32> = pair.client.lost.iter().map(|t| t.index).collect();
        let mut got = BTreeMap::new();
        for (d, bytes) in &pair.server.delivered {
            prop_assert!(got.insert(d.meta.index, bytes).is_none(), "sample {} came twice", d.meta.index);
        }
        for (index, size) in (0u32..).zip(&sizes) {
            let expected = (!lost.contains(&index)).then(|| content(index, *size));
            prop_assert_eq!(got.get(&index).map(|b| b.to_vec()), expected);
        }
        let stats = pair.server.endpoint.stats();
        let rows = pair.server.records.iter().filter(|r| r.kind == Kind::Duplicate).count() as u64;
        prop_assert_eq!((stats.malformed, stats.duplicates), (0, rows));
    }
}
