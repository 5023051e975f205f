//! The `tcp` transport between two ends in virtual time.

use crate::{
    pair::{Boxed, Conditions, Pair},
    session::{arrive_in_order, content, meta, stalls_at_a_late_answer, Session},
};
use proptest::prelude::*;
use serde_json::{json, Value};
use std::collections::BTreeSet;
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    ids::NodeId,
    record::{DropReason, Kind, Record},
    sample::{Echo, Meta, PointId},
    seed::Stream,
    time::{Time, MS, SECOND},
};
use tcps_transport::{endpoint, ChannelContext, Side, TlsSecret};

fn make(params: &Value, side: Side) -> Boxed {
    with_tls(params, None, side)
}

fn with_tls(params: &Value, tls: Option<TlsSecret>, side: Side) -> Boxed {
    let flows = ChannelContext::of(&[(1, Side::B, "kinematic"), (2, Side::A, "haptic")]);
    let context = ChannelContext { tls, ..flows };
    Boxed(endpoint("tcp", params, side, &context).unwrap())
}

fn tcp_pair(seed: u64, params: Value, both: Conditions) -> Pair<Boxed, Boxed> {
    Pair::new(seed, make(&params, Side::A), make(&params, Side::B), both, both)
}

fn way(latency_ns: Time, loss: f64) -> Conditions {
    Conditions { latency_ns, loss, ..Default::default() }
}

/// On sockets the first thing that a side hears may be that the other one asks.
#[test]
fn a_side_that_is_asked_before_it_was_called_answers() {
    let [mut a, mut b] = [Side::A, Side::B].map(|side| make(&Value::Null, side));
    let (mut asked, mut answer) = (Vec::new(), Vec::new());
    a.handle_input(0, Input::Timeout);
    assert!(matches!(a.poll_output(&mut asked), Some(Output::Transmit(_))));
    b.handle_input(MS, Input::datagram(&asked, MS));
    assert!(matches!(b.poll_output(&mut answer), Some(Output::Transmit(_))));
    a.handle_input(2 * MS, Input::datagram(&answer, 2 * MS));
    let [of_a, of_b] = [&a, &b].map(|side| side.stats());
    assert_eq!((of_a.malformed, of_b.malformed), (0, 0));
    assert_eq!(of_a.connections.map(|c| c.connections), Some(1));
}

// [RFC 9293 §3.5]
#[test]
fn samples_of_every_size_arrive_as_they_were_from_before_the_connection_stands() {
    let sizes = [0, 1, 64, 1115, 1116, 1117, 20_000, 200_000];
    let mut pair = tcp_pair(1, Value::Null, way(5 * MS, 0.0));
    for (index, size) in (0..).zip(sizes) {
        pair.send(meta(1, index, 5), &content(index, size));
    }
    pair.run_until(SECOND);
    let got: Vec<_> = pair.server.delivered.iter().map(|(d, b)| (d.meta.index, b.clone())).collect();
    let expected: Vec<_> = (0u32..).zip(sizes).map(|(i, n)| (i, content(i, n))).collect();
    assert!(got == expected);
    assert_eq!(pair.server.delivered[0].0.received_ns, 15 * MS, "SYN, SYN with ACK, data");
    assert_eq!(pair.client.endpoint.stats().retransmits, 0);
}

// [model: wire size] [RFC 9293 §3.7.1]
#[test]
fn accounts_are_charged_the_ip_packet_and_the_link_header() {
    let mut pair = tcp_pair(1, json!({"mtu_bytes": 600}), way(MS, 0.0));
    pair.run_until(100 * MS);
    pair.send(meta(1, 0, 0), &[0; 64]);
    pair.send(meta(1, 1, 0), &[0; 1000]);
    pair.run_until(SECOND);
    let charged: Vec<_> = pair.client.transmitted.iter().map(|t| (t.wire_bytes, t.flow.0, t.index)).collect();
    let segment = |bytes: u32| 20 + 20 + 12 + bytes + 26;
    assert_eq!(charged[2], (segment(24 + 64), 1, 0), "behind SYN and ACK");
    assert_eq!(charged[3..5], [(segment(548), 1, 1), (segment(24 + 1000 - 548), 1, 1)], "with time stamps");
}

// [Polachan 2022: echoes]
#[test]
fn an_echo_command_stays_on_its_sample() {
    let echo = Echo { target: PointId(0x8007), sequence: 1, reply_to: NodeId(4), injected_ns: -3 };
    let mut pair = tcp_pair(2, Value::Null, way(MS, 0.1));
    for index in 0..50 {
        let echo = (index % 7 == 0).then_some(Echo { sequence: index, ..echo });
        pair.send(Meta { echo, ..meta(1, index, 0) }, &content(index, 100));
    }
    pair.run_until(60 * SECOND);
    let echoes: Vec<_> = pair.server.delivered.iter().map(|(d, _)| d.meta.echo.map(|e| e.sequence)).collect();
    assert_eq!(echoes, (0..50).map(|i| (i % 7 == 0).then_some(i)).collect::<Vec<_>>());
}

// [RFC 9293 §3.8]
#[test]
fn a_lost_segment_holds_up_everything_behind_it() {
    let mut pair = tcp_pair(3, Value::Null, way(10 * MS, 0.0));
    pair.run_until(100 * MS);
    for index in 0..20 {
        pair.client.sends.loss = if index == 5 { 1.0 } else { 0.0 };
        pair.send(meta(1, index, pair.time), &content(index, 64));
        pair.run_until(pair.time + MS);
    }
    pair.run_until(SECOND);
    let delays: Vec<_> =
        pair.server.delivered.iter().map(|(d, _)| d.received_ns - d.meta.origin_ns).collect();
    assert_eq!(delays[..5], [10 * MS; 5]);
    assert!(delays[5] > 30 * MS, "three repeated acknowledgements and a way back: {}", delays[5]);
    let at = |i: usize| pair.server.delivered[i].0.received_ns;
    assert!((6..20).all(|i| at(i) >= at(5)) && at(6) == at(5), "what waited came with it");
    assert_eq!(pair.client.endpoint.stats().retransmits, 1);
}

#[test]
fn a_full_queue_refuses_samples_and_counts_them() {
    let params = json!({"queue_bytes": 10_000, "send_buffer_bytes": 4096});
    let mut pair = tcp_pair(4, params, way(10 * MS, 1.0));
    for index in 0..100 {
        pair.send(meta(1, index, 0), &[0; 176]);
    }
    assert_eq!(pair.client.endpoint.stats().refused, 50, "200 bytes each in the stream");
    (pair.client.sends.loss, pair.server.sends.loss) = (0.0, 0.0);
    pair.run_until(10 * SECOND);
    assert_eq!(pair.server.delivered.len(), 50);
}

#[test]
fn a_session_over_a_bad_network_loses_and_repeats_nothing() {
    let bad = Conditions { latency_ns: 5 * MS, jitter_ns: 2 * MS, loss: 0.01, duplication: 0.05 };
    let mut session = Session::new(tcp_pair(5, json!({"queue_bytes": 4_000_000}), bad));
    session.run(10 * SECOND);
    session.pair.run_until(60 * SECOND);
    let (there, back) = session.delivered();
    assert_eq!((there, back), (session.sent, session.sent), "each in order, once");
    let ends = [&session.pair.client.endpoint, &session.pair.server.endpoint];
    let repeated: u64 = ends.iter().map(|e| e.stats().retransmits).sum();
    assert!(repeated > 100, "the network is bad enough");
}

#[test]
fn the_same_seed_gives_the_same_bytes_at_the_same_moments() {
    let bad = Conditions { latency_ns: 5 * MS, jitter_ns: MS, loss: 0.02, duplication: 0.02 };
    for congestion in ["cubic", "reno", "none"] {
        let digest = |seed| {
            let mut session = Session::new(tcp_pair(seed, json!({"congestion": congestion}), bad));
            session.run(5 * SECOND);
            session.pair.digest()
        };
        assert_eq!(digest(1), digest(1), "{congestion}");
        assert_ne!(digest(1), digest(2), "{congestion}");
    }
}

/// On a long path every answer takes longer than a stall does on a short one.
#[test]
fn a_silence_is_a_stall_from_two_round_trips_on() {
    let stalls = |late_ns| stalls_at_a_late_answer(tcp_pair(1, Value::Null, way(150 * MS, 0.0)), late_ns);
    assert_eq!([20 * MS, 250 * MS, 350 * MS].map(stalls), [0, 0, 1]);
}

// [RFC 9293 §3.1]
#[test]
fn strange_packets_are_counted_and_survived() {
    let mut session = Session::new(tcp_pair(6, Value::Null, way(2 * MS, 0.0)));
    let mut chance = Stream::new(9, "strange");
    let mut strange = 0;
    for _ in 0..400 {
        session.run(10 * MS);
        let length = chance.below(120) as usize;
        let mut bytes: Vec<u8> = (0..length).map(|_| chance.bits() as u8).collect();
        if chance.chance(0.5) && length > 40 {
            bytes[..10].copy_from_slice(&[0x45, 0, 0, length as u8, 0, 0, 0x40, 0, 64, 6]);
        }
        for end in [&mut session.pair.client.endpoint, &mut session.pair.server.endpoint] {
            end.handle_input(session.pair.time, Input::datagram(&bytes, 0));
            strange += 1;
        }
    }
    session.pair.run_until(session.pair.time + SECOND);
    assert_eq!(session.delivered(), (session.sent, session.sent));
    let counted = |end: &Boxed| end.stats().malformed;
    let pair = &session.pair;
    assert_eq!(counted(&pair.client.endpoint) + counted(&pair.server.endpoint), strange);
}

/// Whatever comes where no connection is, or while one is asked for, is counted: as late where there was one before.
#[test]
fn segments_of_no_connection_are_refused_and_counted() {
    let mut session = Session::new(tcp_pair(8, Value::Null, way(2 * MS, 0.0)));
    session.run(SECOND);
    let client = &mut session.pair.client;
    let segment = client.last_received.clone().unwrap();
    let reset = forged(&segment, RST);
    client.endpoint.handle_input(SECOND, Input::datagram(&reset, SECOND));
    let before = client.endpoint.stats();
    for bytes in [&segment, &reset, &segment] {
        client.endpoint.handle_input(SECOND + MS, Input::datagram(bytes, SECOND + MS));
    }
    let after = client.endpoint.stats();
    assert_eq!((after.duplicates - before.duplicates, after.malformed), (3, 0), "closed");
    let to_server = session.pair.server.last_received.clone().unwrap();
    for (side, bytes) in [(Side::A, &segment), (Side::B, &to_server)] {
        let mut fresh = make(&Value::Null, side);
        fresh.handle_input(0, Input::Timeout);
        fresh.handle_input(MS, Input::datagram(bytes, MS));
        assert_eq!(fresh.stats().malformed, 1, "{side:?} asks, or listens");
    }
}

/// A reset or an end that fits (an attacker who sees the packets can make one) costs the connection, with TLS or without, and a
/// new one follows.
#[test]
fn a_connection_that_is_reset_or_ended_is_opened_again() {
    let both = [(RST, None), (RST, Some(TlsSecret::Seeded)), (FIN, None), (FIN, Some(TlsSecret::Seeded))];
    for (victim, (flag, tls)) in [Side::A, Side::B].into_iter().flat_map(|v| both.map(|b| (v, b))) {
        let [a, b] = [Side::A, Side::B].map(|side| with_tls(&Value::Null, tls, side));
        let both_ways = way(2 * MS, 0.0);
        let mut session = Session::new(Pair::new(7, a, b, both_ways, both_ways));
        session.run(SECOND);
        let end = if victim == Side::A { &mut session.pair.client } else { &mut session.pair.server };
        let forged = forged(end.last_received.as_deref().unwrap(), flag);
        end.endpoint.handle_input(SECOND, Input::datagram(&forged, SECOND));
        session.run(10 * SECOND);
        session.pair.run_until(session.pair.time + 5 * SECOND);
        let (there, back) = session.arrived();
        assert!(there > 9_000 && back > 9_000, "{victim:?}: {there} {back} of {}", session.sent);
        let pair = &session.pair;
        for (from, to, flow) in [(&pair.client, &pair.server, 1), (&pair.server, &pair.client, 2)] {
            let phases = from.records.iter().filter(|r| r.kind == Kind::Connection);
            let phases: Vec<_> = phases.map(|r| (r.detail, r.time_ns)).collect();
            let [(1, _), (0, lost_ns), (1, back_ns)] = phases[..] else { panic!("{victim:?}: {phases:?}") };
            assert!((SECOND..SECOND + 10 * MS).contains(&lost_ns), "{victim:?}: {phases:?}");
            assert!((SECOND..1_100 * MS).contains(&(back_ns - lost_ns)), "{victim:?}: {phases:?}");
            let stats = from.endpoint.stats().connections.unwrap();
            assert_eq!((stats.connections, stats.connections_lost), (2, 1));
            assert_eq!((stats.first_lost_ns, stats.down_since_ns), (Some(lost_ns), None));
            assert_eq!(stats.longest_down_ns, back_ns - lost_ns);
            // Each sample that is missing has a row; some came, whose acknowledgement was in flight.
            let dropped = lost_with_it(&from.records, flow);
            let came: BTreeSet<_> = to.delivered.iter().map(|(d, _)| d.meta.index).collect();
            let missing: BTreeSet<_> = (0..session.sent).filter(|n| !came.contains(n)).collect();
            assert!(missing.is_subset(&dropped), "{victim:?}: {missing:?} {dropped:?}");
            assert!(dropped.len() <= missing.len() + 8 && !dropped.is_empty(), "{missing:?} {dropped:?}");
            assert_eq!(stats.lost_in_flight, dropped.len() as u64);
        }
    }
}

/// Numbers of the samples of a flow that rows tell to have been lost with a connection.
fn lost_with_it(rows: &[Record], flow: u16) -> BTreeSet<u32> {
    let reason = (Kind::Dropped, DropReason::Connection as u8, flow);
    rows.iter().filter(|r| (r.kind, r.detail, r.flow.0) == reason).map(|r| r.index).collect()
}

/// A connection on which nothing comes through stands, is silent, and says so when it speaks again.
#[test]
fn a_silent_connection_is_told_from_one_that_is_lost() {
    let mut session = Session::new(tcp_pair(7, Value::Null, way(2 * MS, 0.0)));
    session.run(SECOND);
    let losses = |session: &mut Session, loss| {
        (session.pair.client.sends.loss, session.pair.server.sends.loss) = (loss, loss);
    };
    losses(&mut session, 1.0);
    session.run(2 * SECOND);
    let silent = session.pair.client.endpoint.stats().connections.unwrap();
    assert_eq!((silent.connections_lost, silent.stalls), (0, 1));
    assert!((1_900 * MS..=2_100 * MS).contains(&silent.silent_at_end_ns), "{silent:?}");
    losses(&mut session, 0.0);
    session.run(5 * SECOND);
    let after = session.pair.client.endpoint.stats().connections.unwrap();
    assert_eq!((after.connections_lost, after.stalls, after.silent_at_end_ns), (0, 1, 0));
    let of = session.pair.client.records.iter().filter(|r| r.kind == Kind::Connection);
    let [(1, _), (2, silent_ns)] = of.map(|r| (r.detail, r.value)).collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!(silent_ns, after.longest_stall_ns);
    assert!(silent_ns >= 2 * SECOND - 10 * MS);
}

const FIN: u8 = 1;
const RST: u8 = 4;

/// The packet that was received, as a reset or an end with the next number.
fn forged(packet: &[u8], flag: u8) -> Vec<u8> {
    let mut reset = packet[..40].to_vec();
    let content = packet.len() as u32 - 20 - u32::from(packet[32] >> 4) * 4;
    let next = u32::from_be_bytes([packet[24], packet[25], packet[26], packet[27]]).wrapping_add(content);
    reset[24..28].copy_from_slice(&next.to_be_bytes());
    reset[2..4].copy_from_slice(&40u16.to_be_bytes());
    reset[10..12].copy_from_slice(&[0, 0]);
    (reset[32], reset[33]) = (0x50, 0x10 | flag);
    reset[36..40].copy_from_slice(&[0; 4]);
    let ip = checksum(&[&reset[..20]]);
    reset[10..12].copy_from_slice(&ip);
    let tcp = checksum(&[&reset[12..20], &[0, 6, 0, 20], &reset[20..40]]);
    reset[36..38].copy_from_slice(&tcp);
    reset
}

/// The Internet checksum (RFC 1071).
fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let words = parts.iter().flat_map(|p| p.chunks(2));
    let mut sum: u32 = words.map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// Goodput without a bottleneck follows the loss: within a factor of two of the square-root law.
// [Mathis 1997]
#[test]
fn goodput_falls_with_the_square_root_of_the_loss() {
    for congestion in ["reno", "cubic"] {
        let mut last = f64::INFINITY;
        for loss in [0.0, 0.001, 0.01] {
            let params = json!({"congestion": congestion, "send_buffer_bytes": 131_072, "receive_buffer_bytes": 131_072});
            let mut pair = tcp_pair(8, params, way(15 * MS, 0.0));
            pair.client.sends.loss = loss;
            for index in 0..1_500 {
                pair.send(meta(1, index, 0), &[0; 49_976]);
                pair.run_until(index as Time * 10 * MS);
            }
            let bytes: usize = pair.server.delivered.iter().map(|(_, b)| b.len()).sum();
            let goodput_bps = bytes as f64 * 8.0 / 15.0;
            let law_bps = 1160.0 * 8.0 / 0.03 * (1.5 / loss).sqrt();
            println!(
                "{congestion} at loss {loss}: {:.2} Mbit/s, law {:.2}",
                goodput_bps / 1e6,
                law_bps / 1e6
            );
            assert!(goodput_bps < last);
            if loss > 0.0 {
                assert!((0.3..2.0).contains(&(goodput_bps / law_bps)), "{congestion} {loss} {goodput_bps}");
            }
            last = goodput_bps;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_sample_arrives_once_and_in_order(
        seed: u64, loss in 0.0..0.1, duplication in 0.0..0.3, jitter_ns in 0i64..3 * MS,
        sizes in proptest::collection::vec(prop_oneof![Just(64usize), 0..3000usize], 1..60),
    ) {
        let bad = Conditions { latency_ns: MS, jitter_ns, loss, duplication };
        prop_assert!(arrive_in_order(tcp_pair(seed, Value::Null, bad), &sizes, 600 * SECOND));
    }
}
