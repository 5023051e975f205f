//! The `quic` transport between two ends in virtual time.

use crate::{
    pair::{Boxed, Conditions, Pair},
    session::{arrive_in_order, content, meta, stalls_at_a_late_answer, Session},
};
use proptest::prelude::*;
use serde_json::{json, Value};
use std::collections::BTreeSet;
use tcps_core::{
    endpoint::{Again, Endpoint, Input},
    ids::NodeId,
    record::{DropReason, Kind, Record},
    sample::{Echo, Meta, PointId},
    seed::Stream,
    time::{Time, MS, SECOND},
};
use tcps_transport::{endpoint, ChannelContext, Side, TlsSecret};

const MODES: [&str; 3] = ["stream-per-flow", "stream-per-sample", "datagram"];

fn quic_pair(seed: u64, params: Value, both: Conditions) -> Pair<Boxed, Boxed> {
    with_tls(None, seed, params, both)
}

fn with_tls(tls: Option<TlsSecret>, seed: u64, params: Value, both: Conditions) -> Pair<Boxed, Boxed> {
    let flows = [(1, Side::B, "kinematic"), (2, Side::A, "haptic"), (3, Side::B, "video")];
    let context = ChannelContext { seed, tls, ..ChannelContext::of(&flows) };
    let make = |side| Boxed(endpoint("quic", &params, side, &context).unwrap());
    Pair::new(seed, make(Side::A), make(Side::B), both, both)
}

fn way(latency_ns: Time, loss: f64) -> Conditions {
    Conditions { latency_ns, loss, ..Default::default() }
}

#[test]
fn samples_of_every_size_arrive_as_they_were_in_every_mode_and_with_either_cipher() {
    let sizes = [0, 1, 64, 1100, 1117, 1177, 20_000, 200_000];
    for (mode, tls) in MODES.iter().flat_map(|m| [(m, None), (m, Some(TlsSecret::Seeded))]) {
        let mut pair = with_tls(tls, 1, json!({"mode": mode}), way(5 * MS, 0.0));
        for (index, size) in (0..).zip(sizes) {
            pair.send(meta(1, index, 5), &content(index, size));
        }
        pair.run_until(2 * SECOND);
        let mut got: Vec<_> = pair.server.delivered.iter().map(|(d, b)| (d.meta.index, b.clone())).collect();
        got.sort_by_key(|g| g.0);
        let expected: Vec<_> = (0u32..).zip(sizes).map(|(i, n)| (i, content(i, n))).collect();
        assert!(got == expected, "{mode} {tls:?}: {} of {}", got.len(), expected.len());
        assert_eq!(pair.server.delivered[0].0.received_ns, 15 * MS, "{mode} {tls:?}: hello, hello, data");
    }
}

// [RFC 9002 §7.2]
#[test]
fn datagrams_of_every_allowed_size_fit_the_first_window() {
    for (mtu, tls) in
        [1200, 12_001, 65_507].into_iter().flat_map(|m| [(m, None), (m, Some(TlsSecret::Seeded))])
    {
        let mut pair = with_tls(tls, 1, json!({"mtu_bytes": mtu}), way(5 * MS, 0.0));
        pair.send(meta(1, 0, 0), &content(0, 100));
        pair.run_until(SECOND);
        assert_eq!(pair.server.delivered.len(), 1, "mtu {mtu}, {tls:?}");
    }
}

// [model: wire size]
#[test]
fn accounts_are_charged_the_packet_and_the_headers_below() {
    let mut pair = quic_pair(1, Value::Null, way(MS, 0.0));
    pair.run_until(SECOND);
    let before = pair.client.transmitted.len();
    pair.send(meta(1, 7, 0), &[0; 64]);
    let charged: Vec<_> =
        pair.client.transmitted[before..].iter().map(|t| (t.wire_bytes, t.flow.0, t.index)).collect();
    let [(bytes, 1, 7)] = charged[..] else { panic!("{charged:?}") };
    let least = 24 + 64 + 1 + 8 + 1 + 16 + 3 + 8 + 20 + 26;
    assert!((least..least + 10).contains(&bytes), "{bytes} for a sample, its frame, packet number and tag");
}

// [Polachan 2022: echoes]
#[test]
fn an_echo_command_stays_on_its_sample() {
    let echo = Echo { target: PointId(0x8007), sequence: 1, reply_to: NodeId(4), injected_ns: -3 };
    for mode in MODES {
        let mut pair = quic_pair(2, json!({"mode": mode}), way(MS, 0.0));
        for index in 0..50 {
            let echo = (index % 7 == 0).then_some(Echo { sequence: index, ..echo });
            pair.send(Meta { echo, ..meta(1, index, 0) }, &content(index, 100));
        }
        pair.run_until(5 * SECOND);
        let mut echoes: Vec<_> = pair
            .server
            .delivered
            .iter()
            .map(|(d, _)| (d.meta.index, d.meta.echo.map(|e| e.sequence)))
            .collect();
        echoes.sort_unstable();
        assert_eq!(echoes, (0..50).map(|i| (i, (i % 7 == 0).then_some(i))).collect::<Vec<_>>(), "{mode}");
    }
}

/// What one lost packet holds up: the flow that it belonged to, nothing but its sample, or nothing at all.
// [RFC 9000 §2] [RFC 9221 §5]
#[test]
fn a_lost_packet_holds_up_a_flow_a_sample_or_nothing() {
    let late = |mode: &str| {
        let mut pair = quic_pair(3, json!({"mode": mode}), way(10 * MS, 0.0));
        pair.run_until(100 * MS);
        for index in 0..20 {
            pair.client.sends.loss = if index == 5 { 1.0 } else { 0.0 };
            pair.send(meta(1, index, pair.time), &content(index, 64));
            pair.client.sends.loss = 0.0;
            pair.send(meta(3, index, pair.time), &content(index, 64));
            pair.run_until(pair.time + MS);
        }
        pair.run_until(SECOND);
        let late = |flow| {
            let of = pair.server.delivered.iter().filter(|(d, _)| d.meta.flow.0 == flow);
            of.filter(|(d, _)| d.received_ns - d.meta.origin_ns > 10 * MS).count()
        };
        let arrived = pair.server.delivered.len();
        (late(1), late(3), arrived)
    };
    let (kinematic, video, arrived) = late("stream-per-flow");
    assert!(kinematic > 10 && video == 0 && arrived == 40, "{kinematic} {video} {arrived}");
    assert_eq!(late("stream-per-sample"), (1, 0, 40));
    assert_eq!(late("datagram"), (0, 0, 39));
}

// [RFC 9000 §13.3]
#[test]
fn the_packet_that_repeats_a_lost_one_says_so_and_no_other_does() {
    let mut pair = quic_pair(3, Value::Null, way(10 * MS, 0.0));
    pair.run_until(100 * MS);
    for index in 0..20 {
        pair.client.sends.loss = if index == 5 { 1.0 } else { 0.0 };
        pair.send(meta(1, index, pair.time), &content(index, 64));
        pair.client.sends.loss = 0.0;
        pair.run_until(pair.time + MS);
    }
    pair.run_until(SECOND);
    assert_eq!(pair.server.delivered.len(), 20);
    let again: Vec<_> = pair.client.transmitted.iter().filter(|t| t.again != Again::Nothing).collect();
    let [repeat] = again[..] else { panic!("{again:?}") };
    assert!(repeat.again == Again::All && repeat.index > 5, "{repeat:?}");
    assert!(repeat.wire_bytes >= pair.client.lost[0].wire_bytes, "{repeat:?} for {:?}", pair.client.lost);
}

#[test]
fn a_session_over_a_bad_network_loses_and_repeats_nothing_in_streams() {
    let bad = Conditions { latency_ns: 5 * MS, jitter_ns: 2 * MS, loss: 0.01, duplication: 0.05 };
    for congestion in ["cubic", "newreno"] {
        let params = json!({"congestion": congestion, "queue_bytes": 4_000_000});
        let mut session = Session::new(quic_pair(5, params, bad));
        session.run(10 * SECOND);
        session.pair.run_until(60 * SECOND);
        assert_eq!(session.delivered(), (session.sent, session.sent), "each in order, once");
        let ends = [&session.pair.client.endpoint, &session.pair.server.endpoint];
        assert!(ends.iter().all(|e| e.stats().retransmits > 50 && e.stats().malformed == 0));
    }
}

#[test]
fn samples_in_streams_of_their_own_arrive_once_and_datagrams_at_most_once() {
    let bad = Conditions { latency_ns: 5 * MS, jitter_ns: 2 * MS, loss: 0.02, duplication: 0.05 };
    for (mode, least) in [("stream-per-sample", 1.0), ("datagram", 0.9)] {
        let mut session = Session::new(quic_pair(5, json!({"mode": mode}), bad));
        session.run(5 * SECOND);
        session.pair.run_until(30 * SECOND);
        for delivered in [&session.pair.server.delivered, &session.pair.client.delivered] {
            let indices: BTreeSet<u32> = delivered.iter().map(|(d, _)| d.meta.index).collect();
            assert_eq!(indices.len(), delivered.len(), "{mode}: none twice");
            let share = indices.len() as f64 / f64::from(session.sent);
            assert!(share >= least, "{mode}: {share}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_at_the_same_moments() {
    let bad = Conditions { latency_ns: 5 * MS, jitter_ns: MS, loss: 0.02, duplication: 0.02 };
    for (mode, congestion) in MODES.iter().flat_map(|m| [(m, "cubic"), (m, "newreno")]) {
        let digest = |seed| {
            let params = json!({"mode": mode, "congestion": congestion});
            let mut session = Session::new(quic_pair(seed, params, bad));
            session.run(3 * SECOND);
            session.pair.digest()
        };
        assert_eq!(digest(1), digest(1), "{mode} {congestion}");
        assert_ne!(digest(1), digest(2), "{mode} {congestion}");
    }
}

#[test]
fn strange_and_damaged_packets_are_counted_and_survived() {
    let mut session = Session::new(quic_pair(6, Value::Null, way(2 * MS, 0.0)));
    let mut chance = Stream::new(9, "strange");
    let (mut strange, mut damaged) = (0, 0);
    session.run(SECOND);
    for round in 0..600 {
        session.run(5 * MS);
        let bytes: Vec<u8> = if round % 2 == 0 {
            strange += 1;
            // No long header of this version, which could be a first packet.
            (0..chance.below(120)).map(|i| chance.bits() as u8 & if i == 0 { 0x7f } else { 0xff }).collect()
        } else {
            damaged += 1;
            let mut bytes = session.pair.server.last_received.clone().unwrap();
            let at = 9 + chance.below(bytes.len() as u64 - 9) as usize;
            bytes[at] ^= 1 << chance.below(8);
            bytes
        };
        session.pair.server.endpoint.handle_input(session.pair.time, Input::datagram(&bytes, 0));
    }
    session.pair.run_until(session.pair.time + SECOND);
    assert_eq!(session.delivered(), (session.sent, session.sent));
    assert_eq!(session.pair.server.endpoint.stats().malformed, strange + damaged);
}

#[test]
fn samples_of_a_flow_that_the_receiver_does_not_expect_are_counted_and_not_delivered() {
    let make = |side, to| {
        let context = ChannelContext::of(&[(1, Side::B, "kinematic"), (2, to, "haptic")]);
        Boxed(endpoint("quic", &Value::Null, side, &context).unwrap())
    };
    let both = way(MS, 0.0);
    let mut pair = Pair::new(1, make(Side::A, Side::B), make(Side::B, Side::A), both, both);
    for flow in [2, 1] {
        pair.send(meta(flow, 0, 0), &content(0, 64));
    }
    pair.run_until(SECOND);
    let got: Vec<_> = pair.server.delivered.iter().map(|(d, _)| d.meta.flow.0).collect();
    assert_eq!((got, pair.server.endpoint.stats().malformed), (vec![1], 1));
}

#[test]
fn a_connection_that_times_out_is_opened_again() {
    let mut session = Session::new(quic_pair(7, json!({"queue_bytes": 10_000_000}), way(2 * MS, 0.0)));
    session.run(SECOND);
    (session.pair.client.sends.loss, session.pair.server.sends.loss) = (1.0, 1.0);
    session.run(15 * SECOND);
    (session.pair.client.sends.loss, session.pair.server.sends.loss) = (0.0, 0.0);
    session.run(10 * SECOND);
    session.pair.run_until(session.pair.time + 5 * SECOND);
    let (there, back) = session.arrived();
    assert!(there > 9_000 && back > 9_000, "{there} {back} of {}", session.sent);
    let pair = &session.pair;
    for (from, to, flow) in [(&pair.client, &pair.server, 1), (&pair.server, &pair.client, 2)] {
        let stats = from.endpoint.stats().connections.unwrap();
        assert_eq!((stats.connections, stats.connections_lost, stats.down_since_ns), (2, 1, None));
        assert!(stats.first_lost_ns.is_some_and(|t| (10 * SECOND..12 * SECOND).contains(&t)), "{stats:?}");
        let dropped = lost_with_it(&from.records, flow);
        let came: BTreeSet<_> = to.delivered.iter().map(|(d, _)| d.meta.index).collect();
        let missing: BTreeSet<_> = (0..session.sent).filter(|n| !came.contains(n)).collect();
        assert!(missing.is_subset(&dropped) && dropped.len() <= missing.len() + 40, "{}", dropped.len());
        assert!(missing.len() > 9_000, "what was sent in ten seconds of silence is lost with it");
        assert_eq!(stats.lost_in_flight, dropped.len() as u64);
    }
    let last = |d: &[(tcps_core::endpoint::Delivery, Vec<u8>)]| d.last().map(|(d, _)| d.meta.index + 1);
    assert_eq!(last(&session.pair.server.delivered), Some(session.sent));
    assert_eq!(last(&session.pair.client.delivered), Some(session.sent));
}

/// With a full window, most samples that the connection took were never sent.
#[test]
fn a_lost_connection_tells_each_sample_that_its_buffer_still_had() {
    for mode in ["stream-per-flow", "stream-per-sample"] {
        let params = json!({"mode": mode, "queue_bytes": 10_000_000});
        let mut session = Session::new(quic_pair(7, params, way(100 * MS, 0.1)));
        session.run(5 * SECOND);
        (session.pair.client.sends.loss, session.pair.server.sends.loss) = (1.0, 1.0);
        session.run(15 * SECOND);
        (session.pair.client.sends.loss, session.pair.server.sends.loss) = (0.0, 0.0);
        session.pair.run_until(session.pair.time + 60 * SECOND);
        let pair = &session.pair;
        for (from, to, flow) in [(&pair.client, &pair.server, 1), (&pair.server, &pair.client, 2)] {
            let stats = from.endpoint.stats().connections.unwrap();
            assert_eq!((stats.connections, stats.connections_lost), (2, 1), "{mode}");
            let dropped = lost_with_it(&from.records, flow);
            let came: BTreeSet<_> = to.delivered.iter().map(|(d, _)| d.meta.index).collect();
            let missing: BTreeSet<_> = (0..session.sent).filter(|n| !came.contains(n)).collect();
            assert!(missing.len() > 1_000, "{mode}: {} missing", missing.len());
            let untold = missing.difference(&dropped).count();
            assert_eq!(untold, 0, "{mode}: of {} missing", missing.len());
            let arrived = dropped.difference(&missing).count();
            assert!(
                arrived < 200,
                "{mode}: {arrived} arrived of {} whose acknowledgement was lost",
                dropped.len()
            );
            assert_eq!(stats.lost_in_flight, dropped.len() as u64, "{mode}");
        }
    }
}

/// On a long path every answer takes longer than a stall does on a short one.
#[test]
fn a_silence_is_a_stall_from_two_round_trips_on() {
    let stalls = |late_ns| stalls_at_a_late_answer(quic_pair(1, Value::Null, way(150 * MS, 0.0)), late_ns);
    assert_eq!([20 * MS, 250 * MS, 350 * MS].map(stalls), [0, 0, 1]);
}

#[test]
fn a_silence_is_counted_in_every_mode() {
    for mode in MODES {
        let mut session = Session::new(quic_pair(7, json!({"mode": mode}), way(2 * MS, 0.0)));
        session.run(SECOND);
        (session.pair.client.sends.loss, session.pair.server.sends.loss) = (1.0, 1.0);
        session.run(7 * SECOND);
        let silent = session.pair.client.endpoint.stats().connections.unwrap();
        assert_eq!((silent.connections_lost, silent.stalls, silent.lost_in_flight), (0, 1, 0), "{mode}");
        assert!((6_950..=7_000).contains(&(silent.silent_at_end_ns / MS)), "{mode}: {silent:?}");
    }
}

/// Numbers of the samples of a flow that rows tell to have been lost with a connection.
fn lost_with_it(rows: &[Record], flow: u16) -> BTreeSet<u32> {
    let reason = (Kind::Dropped, DropReason::Connection as u8, flow);
    rows.iter().filter(|r| (r.kind, r.detail, r.flow.0) == reason).map(|r| r.index).collect()
}

#[test]
fn the_first_packets_may_be_lost() {
    for seed in 0..20 {
        let mut pair = quic_pair(seed, Value::Null, way(5 * MS, 0.4));
        pair.send(meta(1, 0, 0), b"first");
        pair.run_until(60 * SECOND);
        assert_eq!(pair.server.delivered.len(), 1, "seed {seed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_sample_in_a_stream_arrives_once_and_in_order(
        seed: u64, loss in 0.0..0.1, duplication in 0.0..0.3, jitter_ns in 0i64..3 * MS,
        sizes in proptest::collection::vec(prop_oneof![Just(64usize), 0..3000usize], 1..60),
    ) {
        let bad = Conditions { latency_ns: MS, jitter_ns, loss, duplication };
        prop_assert!(arrive_in_order(quic_pair(seed, Value::Null, bad), &sizes, 20 * SECOND));
    }
}
