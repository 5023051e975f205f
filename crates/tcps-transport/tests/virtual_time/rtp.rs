//! The `rtp` transport between two ends in virtual time.

use crate::{
    boxed::boxed,
    pair::{Boxed, Conditions, Pair},
    session::{content, meta},
};
use proptest::prelude::*;
use serde_json::{json, Value};
use std::collections::BTreeSet;
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    ids::NodeId,
    record::Kind,
    sample::{Echo, Meta, PointId},
    time::{NodeClock, Time, MS, SECOND, US},
};
use tcps_transport::{ChannelContext, Side};
use tcps_wire::{
    rtcp::{
        bye::Bye,
        ccfb,
        feedback::{emit_nack, Feedback, NACK, TRANSPORT},
        report::{Report, SenderInfo, RR, SR},
        Packets,
    },
    rtp::{is_rtcp, Packet, Repr},
};

fn context() -> ChannelContext {
    let mut ctx = ChannelContext::of(&[
        (1, Side::B, "kinematic"),
        (2, Side::A, "haptic"),
        (3, Side::B, "video"),
        (4, Side::B, "audio"),
    ]);
    ctx.flows[2].period_ns = 40 * MS;
    ctx.flows[3].period_ns = 20 * MS;
    ctx
}

fn pair(seed: u64, params: Value, forward: Conditions) -> Pair<Boxed, Boxed> {
    let back = Conditions { latency_ns: forward.latency_ns, ..Conditions::default() };
    let side = |side| boxed("rtp", &params, side, &context());
    Pair::new(seed, side(Side::A), side(Side::B), forward, back)
}

/// Sends samples of flow 1 at 1 kHz.
fn stream(pair: &mut Pair<Boxed, Boxed>, count: u32, size: usize) {
    for index in 0..count {
        let at = Time::from(index) * MS;
        pair.run_until(at);
        let origin_ns = pair.client.clock.read(at);
        pair.send(meta(1, index, origin_ns), &content(index, size));
    }
    pair.run_until(pair.time + SECOND);
}

fn got(pair: &Pair<Boxed, Boxed>) -> BTreeSet<u32> {
    pair.server.delivered.iter().map(|(d, _)| d.meta.index).collect()
}

fn latency(latency_ns: Time) -> Conditions {
    Conditions { latency_ns, ..Conditions::default() }
}

#[test]
fn samples_of_every_size_arrive_as_they_were_with_and_without_identity() {
    for identity in [true, false] {
        let mut pair = pair(1, json!({"identity": identity}), latency(MS));
        for (i, size) in (0u32..).zip([1, 64, 1124, 1125, 1200, 9_000, 60_000]) {
            let at = Time::from(i) * 40 * MS;
            pair.run_until(at);
            pair.send(meta(3, i, at), &content(i, size));
            pair.send(meta(4, 2 * i, at), &content(i, 160));
        }
        pair.run_until(SECOND);
        for flow in [3, 4] {
            let of = |f: u16| pair.server.delivered.iter().filter(move |(d, _)| d.meta.flow.0 == f);
            assert_eq!(of(flow).count(), 7, "flow {flow}");
            for (d, bytes) in of(flow) {
                let i = if flow == 4 { d.meta.index / 2 } else { d.meta.index };
                let size = if flow == 4 { 160 } else { [1, 64, 1124, 1125, 1200, 9_000, 60_000][i as usize] };
                assert!(bytes[..] == content(i, size), "flow {flow} sample {i}");
                let error = d.meta.origin_ns - Time::from(i) * 40 * MS;
                assert!(error.abs() <= if identity { 0 } else { 2 }, "{error} ns");
            }
        }
        assert_eq!(pair.server.endpoint.stats().malformed, 0);
    }
}

// [RFC 3550 §6.4.1] [RFC 3550 §6.2] [RFC 3550]
#[test]
fn reports_tell_round_trip_loss_and_jitter() {
    let mut pair = pair(3, json!({"extended": true}), Conditions { loss: 0.1, ..latency(20 * MS) });
    pair.client.clock = NodeClock { offset_ns: -3 * MS, drift_ppb: 20_000 };
    stream(&mut pair, 10_000, 64);
    let (sender, receiver) = (pair.client.endpoint.stats(), pair.server.endpoint.stats());
    let rtt = sender.rtt_ns.unwrap();
    assert!((rtt - 40 * MS).abs() < 50 * US, "{rtt} ns");
    assert!(receiver.rtt_ns.is_some_and(|t| (t - 40 * MS).abs() < 50 * US), "by DLRR: {receiver:?}");
    assert!((10..60).contains(&sender.reports), "{} reports in 11 s", sender.reports);
    let lost = pair.client.lost.iter().filter(|t| t.wire_bytes == 64 + 12 + 20 + 54).count() as u64;
    assert!(receiver.lost.abs_diff(lost) <= 1, "{} of {lost}: the last has no follower", receiver.lost);
    assert!(sender.peer_fraction_lost.is_some_and(|f| (5..60).contains(&f)), "{sender:?}");
    assert!(receiver.jitter_ns.unwrap() < 300 * US);
}

/// A receiver that were told of a sender for ever could not know that nothing is sent any more.
// [RFC 3550 §6.4] [RFC 3550 §6.3.8]
#[test]
fn a_side_that_has_sent_nothing_for_two_intervals_reports_as_a_receiver() {
    let mut endpoint = boxed("rtp", &Value::Null, Side::A, &context());
    let (mut buf, mut kinds) = (Vec::new(), [vec![], vec![], vec![], vec![]]);
    for ms in 0..20_000u32 {
        let now = 100 * SECOND + Time::from(ms) * MS;
        if endpoint.poll_timeout().is_some_and(|t| t <= now) {
            endpoint.handle_input(now, Input::Timeout);
        }
        if ms / 5000 % 2 == 0 {
            endpoint.handle_input(now, Input::Sample { meta: meta(1, ms, now), bytes: &[7; 64] });
        }
        while endpoint.poll_output(&mut buf).is_some() {
            // Reports come every half second or so: the first two seconds of each quarter may be those of the one before.
            if is_rtcp(&buf) && ms % 5000 >= 2000 {
                kinds[ms as usize / 5000].push(buf[1]);
            }
        }
    }
    for (quarter, kind) in kinds.iter().zip([SR, RR, SR, RR]) {
        assert!(quarter.len() > 2 && quarter.iter().all(|k| *k == kind), "{kinds:?}");
    }
}

#[test]
fn a_sample_that_needs_two_packets_and_cannot_say_so_is_refused() {
    let mut pair = pair(1, json!({"identity": false}), latency(MS));
    pair.send(meta(1, 0, 0), &content(0, 2000));
    pair.send(meta(3, 0, 0), &content(0, 2000));
    pair.run_until(SECOND);
    assert_eq!(pair.client.endpoint.stats().malformed, 1);
    assert_eq!(pair.server.delivered.iter().map(|(d, _)| d.meta.flow.0).collect::<Vec<_>>(), [3]);
}

// [Abdullah 2023]
#[test]
fn stop_and_wait_counts_a_sample_that_it_cannot_send_and_goes_on() {
    let mut pair = pair(1, json!({"mode": "stop_and_wait", "identity": false}), latency(MS));
    for (index, size) in [(0, 64), (1, 2000), (2, 64), (3, 64)] {
        pair.run_until(Time::from(index) * 10 * MS);
        pair.send(meta(1, index, pair.time), &content(index, size));
    }
    pair.run_until(SECOND);
    assert_eq!((pair.client.endpoint.stats().malformed, pair.server.delivered.len()), (1, 3));
}

// [RFC 3550 §A.1] [RFC 3550 §6.2.1]
#[test]
fn a_flow_whose_first_report_is_lost_loses_no_sample() {
    let ctx = ChannelContext::of(&[(1, Side::B, "kinematic")]);
    let mut strangers = ctx.clone();
    strangers.seed = 99;
    let none = Conditions::default();
    let client = boxed("rtp", &json!({}), Side::A, &strangers);
    let mut pair = Pair::new(1, client, boxed("rtp", &json!({}), Side::B, &ctx), none, none);
    stream(&mut pair, 5, 64);
    assert_eq!(got(&pair), (0..5).collect(), "an unknown source: the second packet brings the first with it");
}

// [RFC 3550 §6.1] [RFC 3550 §6.5.1] [RFC 3550 §6.6] [RFC 3611 §4.4] [RFC 3611 §4.5]
#[test]
fn every_report_is_a_compound_with_a_name() {
    let mut endpoint = boxed("rtp", &json!({"extended": true, "feedback_ns": 50 * MS}), Side::A, &context());
    let (mut buf, mut compounds) = (Vec::new(), 0);
    for index in 0..3000u32 {
        let now = Time::from(index) * MS;
        if endpoint.poll_timeout().is_some_and(|t| t <= now) {
            endpoint.handle_input(now, Input::Timeout);
        }
        endpoint.handle_input(now, Input::Sample { meta: meta(1, index, now), bytes: &[7; 64] });
        while endpoint.poll_output(&mut buf).is_some() {
            if is_rtcp(&buf) {
                let kinds: Vec<u8> = Packets::compound(&buf).unwrap().map(|p| p.kind).collect();
                assert!(
                    kinds.starts_with(&[200]) && kinds.contains(&202) && kinds.ends_with(&[207]),
                    "{kinds:?}"
                );
                compounds += 1;
            } else {
                Packet::new_checked(&buf[..]).unwrap();
            }
        }
    }
    assert!((4..12).contains(&compounds), "{compounds} in 3 s");
}

// [Polachan 2022: echoes]
#[test]
fn an_echo_command_rides_on_its_sample_and_copies_answer_once() {
    let echo = Some(Echo { target: PointId(0x8007), sequence: 1, reply_to: NodeId(4), injected_ns: -3 });
    for identity in [true, false] {
        let conditions = Conditions { duplication: 1.0, ..latency(MS) };
        let mut pair = pair(2, json!({"identity": identity}), conditions);
        for (index, size) in [(0, 64), (1, 9_000)] {
            pair.run_until(Time::from(index) * 40 * MS);
            pair.send(Meta { echo, ..meta(3, index, pair.time) }, &content(index, size));
        }
        pair.run_until(SECOND);
        let echoes: Vec<_> = pair.server.delivered.iter().map(|(d, _)| d.meta.echo).collect();
        assert_eq!(echoes, [echo, echo]);
        assert!(pair.server.endpoint.stats().duplicates >= 2);
    }
}

// [RFC 2198 §3] [RFC 2198]
#[test]
fn a_lost_packet_comes_with_a_later_one() {
    for (identity, distance) in [(true, 1), (false, 1), (true, 4)] {
        let params = json!({"redundancy": "rfc2198", "distance": distance, "identity": identity});
        let mut pair = pair(5, params, Conditions { loss: 0.05, ..latency(MS) });
        stream(&mut pair, 8000, 24);
        let lost: BTreeSet<u32> =
            pair.client.lost.iter().filter(|t| t.flow.0 == 1).map(|t| t.index).collect();
        assert!(lost.len() > 300, "the network is bad enough");
        let missing = lost.iter().filter(|i| lost.contains(&(**i + distance)) || **i + distance >= 8000);
        let expected: BTreeSet<u32> = missing.copied().collect();
        let all: BTreeSet<u32> = (0..8000).collect();
        assert_eq!(&all - &got(&pair), expected, "{identity} {distance}: only where both were lost");
        assert!(pair.server.delivered.iter().all(|(d, bytes)| bytes[..] == content(d.meta.index, 24)[..]
            && d.meta.origin_ns == Time::from(d.meta.index) * MS));
        assert_eq!(pair.server.endpoint.stats().recovered as usize, lost.len() - expected.len());
    }
}

// [RFC 5109 §9.1] [RFC 5109 §9.2] [RFC 8627 §6.3] [RFC 8627]
#[test]
fn parity_brings_back_what_it_can() {
    let left = |params: Value| {
        let mut pair = pair(6, params, Conditions { loss: 0.03, ..latency(MS) });
        stream(&mut pair, 20_000, 24);
        assert!(pair.server.delivered.iter().all(|(d, bytes)| bytes[..] == content(d.meta.index, 24)[..]));
        (20_000 - got(&pair).len(), pair.server.endpoint.stats().recovered)
    };
    // A row of 4 and its parity: a packet stays lost if one of the other four is lost too, 3 % * (1 - 0.97^4).
    for kind in ["ulpfec", "flexfec"] {
        let (missing, recovered) = left(json!({"redundancy": kind, "columns": 4}));
        let expected = 20_000.0 * 0.03 * (1.0 - libm::pow(0.97, 4.0));
        assert!((missing as f64 - expected).abs() < 25.0, "{kind}: {missing}, expected {expected:.0}");
        assert!(recovered > 450, "{kind}: {recovered}");
    }
    let (missing, _) = left(json!({"redundancy": "flexfec", "columns": 4, "rows": 4}));
    assert!(missing < 12, "rows and columns: {missing}");
}

// [RFC 8888 §3.1] [RFC 8888]
#[test]
fn congestion_feedback_is_understood() {
    let mut pair = pair(7, json!({"feedback_ns": 50 * MS}), Conditions { loss: 0.1, ..latency(MS) });
    pair.server.sends.loss = 0.1;
    stream(&mut pair, 2000, 64);
    let stats = pair.client.endpoint.stats();
    assert!((30..45).contains(&stats.reports), "{stats:?}: 40 and some, a tenth of them lost");
    assert_eq!(stats.malformed, 0);
    let told = stats.told.unwrap();
    let lost = pair.client.lost.iter().filter(|t| t.wire_bytes == 64 + 12 + 20 + 54).count() as u64;
    assert!((1900..=2000).contains(&told.packets), "{told:?}");
    assert!(
        told.lost.abs_diff(lost) < 30,
        "{told:?}, {lost} were lost: what a lost feedback told comes again"
    );
    let rows = pair.client.records.iter().filter(|r| r.kind == Kind::Told);
    assert_eq!(rows.clone().count() as u64, told.packets);
    assert_eq!(rows.filter(|r| r.detail == 0).count() as u64, told.lost);
}

// [RFC 8888 §3.1]
#[test]
fn packets_that_overtake_each_other_across_feedbacks_are_not_told_of_as_lost() {
    let network = Conditions { jitter_ns: 5 * MS, ..latency(MS) };
    let mut pair = pair(7, json!({"feedback_ns": 10 * MS}), network);
    stream(&mut pair, 2000, 64);
    let told = pair.client.endpoint.stats().told.unwrap();
    assert!((1990..=2000).contains(&told.packets), "{told:?}");
    assert_eq!(told.lost, 0);
    let rows = pair.client.records.iter().filter(|r| r.kind == Kind::Told);
    assert!(rows.filter(|r| r.detail == 0).count() > 0, "a later feedback corrects an earlier one");
}

/// [RFC 8888 §5] Two seconds in which nothing comes through, forth or back, bring the rate down to the least; then it grows.
#[test]
fn the_rate_falls_while_a_peer_is_silent() {
    for forward in [true, false] {
        let params = json!({"feedback_ns": 20 * MS, "congestion": "gcc", "bandwidth_bps": 4_000_000});
        let mut pair = pair(7, params, latency(10 * MS));
        let mut run = |from: u32, to: u32, loss: f64| {
            pair.client.sends.loss = if forward { loss } else { 0.0 };
            pair.server.sends.loss = if forward { 0.0 } else { loss };
            for index in from..to {
                pair.run_until(Time::from(index) * MS);
                pair.send(meta(1, index, pair.time), &content(index, 64));
            }
            pair.client.endpoint.stats().told.unwrap().allowed_bps.unwrap()
        };
        let before = run(0, 3000, 0.0);
        assert!(before > 1_000_000, "{before}");
        let silent = run(3000, 5000, 1.0);
        assert_eq!(silent, 100_000, "after {before}, forward: {forward}");
        let later = run(5000, 15_000, 0.0);
        assert!(later > 150_000, "{later}, forward: {forward}");
    }
}

// [RFC 8888 §3.1]
#[test]
fn feedback_from_hours_ahead_is_counted_and_silences_nobody() {
    let mut pair = pair(7, json!({"feedback_ns": 50 * MS}), latency(MS));
    stream(&mut pair, 1000, 64);
    let before = pair.client.endpoint.stats();
    let mut bytes = Vec::new();
    ccfb::Ccfb { sender: 9, streams: vec![], timestamp: 1 << 29 }.emit(&mut bytes);
    let received_ns = pair.time;
    pair.client.endpoint.handle_input(received_ns, Input::datagram(&bytes, received_ns));
    let after = pair.client.endpoint.stats();
    assert_eq!((after.reports, after.malformed), (before.reports, before.malformed + 1));
    pair.send(meta(1, 1000, received_ns), &content(1000, 64));
    pair.run_until(received_ns + SECOND);
    let told = pair.client.endpoint.stats().told.unwrap();
    assert_eq!((told.packets, told.lost), (1001, 0));
}

// [Abdullah 2023]
#[test]
fn stop_and_wait_sends_the_next_when_the_echo_is_back() {
    let ctx = || {
        let mut ctx = ChannelContext::of(&[(1, Side::B, "kinematic")]);
        ctx.flows[0].period_ns = 125 * US;
        ctx
    };
    let params = json!({"mode": "stop_and_wait", "motion_every": 40, "identity": false});
    let side = |side| boxed("rtp", &params, side, &ctx());
    let way = latency(9 * MS);
    let mut pair = Pair::new(1, side(Side::A), side(Side::B), way, way);
    for index in 0..40 {
        pair.run_until(Time::from(index) * 125 * US);
        let sample: Vec<u8> = [[1u8; 12].as_slice(), &[9; 4]].concat();
        pair.send(meta(1, index, pair.time), &sample);
    }
    pair.run_until(SECOND);
    let rows: Vec<_> = pair.client.records.iter().filter(|r| r.kind == Kind::Receive).collect();
    assert_eq!((pair.server.delivered.len(), rows.len()), (40, 40));
    assert!(rows.iter().all(|r| r.value == 18 * MS), "round trip of each");
    let data = pair.client.transmitted.iter().filter(|t| t.wire_bytes == 16 + 12 + 54).count();
    let echoes = pair.server.transmitted.iter().filter(|t| t.wire_bytes == 17 + 12 + 54).count();
    assert_eq!((data, echoes), (40, 40), "16 B and 12 B of RTP; the echo has one more");
    assert!(pair.server.delivered.iter().all(|(_, b)| b[..12] == [1; 12]), "motion of the first is held");
}

// [Abdullah 2023] [model: wire size]
#[test]
fn a_given_overhead_counts_the_byte_of_an_answer_too() {
    let mut pair = pair(1, json!({"mode": "stop_and_wait", "overhead_bytes": 40}), latency(MS));
    pair.send(meta(1, 0, 0), &[7; 16]);
    pair.run_until(20 * MS);
    let answers: Vec<u32> =
        pair.server.transmitted.iter().map(|t| t.wire_bytes).filter(|b| *b < 60).collect();
    assert_eq!(answers, [16 + 1 + 40]);
}

// [Abdullah 2023]
#[test]
fn stop_and_wait_sends_one_packet_of_a_sample_at_a_time() {
    let params = json!({"mode": "stop_and_wait"});
    let mut pair = pair(1, params, latency(9 * MS));
    pair.send(meta(3, 0, 0), &content(0, 3000));
    assert_eq!(pair.client.transmitted.iter().filter(|t| t.wire_bytes > 500).count(), 1);
    pair.run_until(SECOND);
    let [(delivery, bytes)] = &pair.server.delivered[..] else { panic!("{:?}", pair.server.delivered.len()) };
    assert_eq!(
        (delivery.received_ns, &bytes[..]),
        (45 * MS, &content(0, 3000)[..]),
        "two answers before the third part"
    );
    assert_eq!(pair.client.records.iter().filter(|r| r.kind == Kind::Receive).count(), 3);
}

// [Abdullah 2023]
#[test]
fn a_sample_that_is_never_answered_is_given_up_and_counted() {
    let params = json!({"mode": "stop_and_wait"});
    let mut pair = pair(1, params, Conditions { loss: 1.0, ..latency(9 * MS) });
    (0..3).for_each(|i| pair.send(meta(3, i, 0), &content(i, 3000)));
    pair.run_until(2500 * MS);
    assert_eq!(pair.client.endpoint.stats().unanswered, 2, "one a second");
}

// [Abdullah 2023]
#[test]
fn samples_that_wait_behind_one_without_an_answer_make_room_for_newer_ones() {
    let mut pair = pair(1, json!({"mode": "stop_and_wait"}), Conditions { loss: 1.0, ..latency(9 * MS) });
    (0..1 + 8192).for_each(|i| pair.send(meta(1, i, 0), &[7; 16]));
    assert_eq!(pair.client.endpoint.stats().refused, 0);
    (8193..8195).for_each(|i| pair.send(meta(1, i, 0), &[7; 16]));
    assert_eq!(pair.client.endpoint.stats().refused, 2);
    pair.client.sends.loss = 0.0;
    pair.run_until(1030 * MS);
    let next: Vec<u32> = pair.server.delivered.iter().map(|(d, _)| d.meta.index).collect();
    assert_eq!(
        next,
        [3, 4],
        "the oldest have gone, and the first, never answered, was given up after a second"
    );
}

// [RFC 4585 §6.2.1] [RFC 4588 §4] [RFC 4588]
#[test]
fn what_is_missing_is_asked_for_and_comes_in_a_stream_of_its_own() {
    let lossy = Conditions { loss: 0.1, ..latency(15 * MS) };
    let mut pair = pair(9, json!({"nack": 2}), lossy);
    stream(&mut pair, 3000, 24);
    let missing = 3000 - got(&pair).len();
    assert!(missing < 60, "{missing}: asked for twice, a hundredth of losses stay");
    let (sender, receiver) = (pair.client.endpoint.stats(), pair.server.endpoint.stats());
    assert!(sender.retransmits > 250 && receiver.recovered > 250, "{sender:?} {receiver:?}");
    assert!(receiver.lost > 250, "what came again does not hide that the network lost it: {receiver:?}");
    assert_eq!((sender.malformed, receiver.malformed), (0, 0));
    assert!(pair.server.delivered.iter().all(|(d, bytes)| bytes[..] == content(d.meta.index, 24)[..]));
    let late = pair.server.delivered.iter().filter(|(d, _)| d.received_ns - d.meta.origin_ns > 16 * MS);
    let least = late.map(|(d, _)| d.received_ns - d.meta.origin_ns).min().unwrap();
    assert!((45 * MS..48 * MS).contains(&least), "{least}: one and a half round trips");
}

/// [RFC 4585 §6.2.1] A datagram of some 50 bytes from anybody must not bring hundreds of packets.
#[test]
fn one_request_brings_64_packets_at_most() {
    let mut endpoint = boxed("rtp", &json!({"nack": 2}), Side::A, &context());
    let (mut buf, mut numbers, mut media) = (Vec::new(), Vec::new(), 0);
    for index in 0..100 {
        endpoint.handle_input(0, Input::Sample { meta: meta(1, index, 0), bytes: &content(index, 64) });
        while endpoint.poll_output(&mut buf).is_some() {
            if let (false, Ok(sent)) = (is_rtcp(&buf), Packet::new_checked(&buf[..])) {
                numbers.push(sent.sequence());
                media = sent.ssrc();
            }
        }
    }
    assert_eq!(numbers.len(), 100);
    let (mut information, mut request) = (Vec::new(), Vec::new());
    emit_nack(&numbers, &mut information);
    Feedback { kind: TRANSPORT, format: NACK, sender: 9, media, information: &information }
        .emit(&mut request);
    endpoint.handle_input(MS, Input::datagram(&request, MS));
    assert_eq!(endpoint.stats().retransmits, 64);
}

/// Otherwise a datagram that is refused, and counted so, would have had an effect.
// [RFC 3550 §A.2] [RFC 4585 §6.2.1]
#[test]
fn a_datagram_of_rtcp_is_taken_whole_or_refused() {
    let mut endpoint = boxed("rtp", &json!({"nack": 2}), Side::A, &context());
    endpoint.handle_input(0, Input::Sample { meta: meta(1, 0, 0), bytes: &content(0, 64) });
    let (mut buf, mut request) = (Vec::new(), Vec::new());
    while endpoint.poll_output(&mut buf).is_some() {
        if let (false, Ok(sent)) = (is_rtcp(&buf), Packet::new_checked(&buf[..])) {
            let mut information = Vec::new();
            emit_nack(&[sent.sequence()], &mut information);
            let (kind, format, sender, media) = (TRANSPORT, NACK, 9, sent.ssrc());
            Feedback { kind, format, sender, media, information: &information }.emit(&mut request);
        }
    }
    let mut take = |behind: &[u8]| {
        let datagram = [&request[..], behind].concat();
        endpoint.handle_input(MS, Input::datagram(&datagram, MS));
        let stats = endpoint.stats();
        (stats.malformed, stats.reports, stats.retransmits)
    };
    // Of each type one that ends before what it says is there: SR, RR, SDES, BYE, NACK, RFC 8888, PLI; XR without its source.
    let cut = [(0, 200), (2, 201), (2, 202), (2, 203), (NACK, 205), (ccfb::FORMAT, 205), (1, 206)];
    for (refused, (count, kind)) in (1..).zip(cut) {
        assert_eq!(take(&[0x80 | count, kind, 0, 1, 0, 0, 0, 9]), (refused, 0, 0), "{kind} {count}");
    }
    assert_eq!(take(&[0x80, 207, 0, 0]), (8, 0, 0), "207");
    assert_eq!(take(&[]), (8, 1, 1), "the request alone");
}

// [RFC 4585 §6.2.1]
#[test]
fn without_the_parameter_nothing_is_asked_for() {
    let mut pair = pair(9, json!({}), Conditions { loss: 0.1, ..latency(15 * MS) });
    stream(&mut pair, 1000, 24);
    assert_eq!(pair.client.endpoint.stats().retransmits, 0);
}

// [RFC 8888 §3.1]
#[test]
fn forged_packets_are_not_told_of() {
    let mut endpoint = boxed("rtp", &json!({"feedback_ns": 50 * MS}), Side::B, &context());
    let (mut buf, mut told) = (Vec::new(), 0);
    for i in 0..100u16 {
        let now = Time::from(i) * MS;
        let (sequence, ssrc) = (i.wrapping_mul(30_011), 0x5eed + u32::from(i));
        let mut bytes = Vec::new();
        let repr = Repr { marker: false, payload_type: 96, sequence, timestamp: 0, ssrc };
        repr.emit(&[], &[], &mut bytes);
        bytes.extend_from_slice(b"forged");
        endpoint.handle_input(now, Input::datagram(&bytes, now));
        endpoint.handle_input(now, Input::Timeout);
        while endpoint.poll_output(&mut buf).is_some() {
            told += usize::from(buf.get(..2) == Some(&[0x80 | ccfb::FORMAT, TRANSPORT]));
        }
    }
    assert_eq!(told, 0);
    assert_eq!(endpoint.stats().malformed, 99, "the last one waits for the next of its source");
}

// [RFC 3550 §A.1]
#[test]
fn packets_of_an_unknown_source_count_as_refused_until_two_are_in_sequence() {
    let mut endpoint = boxed("rtp", &json!({"identity": false}), Side::B, &context());
    let (mut buf, mut delivered) = (Vec::new(), Vec::new());
    let refused = [100u16, 105, 110, 111, 112].map(|sequence| {
        let mut bytes = Vec::new();
        let timestamp = 8 * u32::from(sequence);
        let repr = Repr { marker: false, payload_type: 98, sequence, timestamp, ssrc: 0x5eed };
        repr.emit(&[], &[], &mut bytes);
        bytes.push(sequence as u8);
        endpoint.handle_input(MS, Input::datagram(&bytes, MS));
        while let Some(output) = endpoint.poll_output(&mut buf) {
            if matches!(output, Output::Deliver(_)) {
                delivered.push(buf[0]);
            }
        }
        endpoint.stats().malformed
    });
    assert_eq!(refused, [0, 1, 2, 2, 2], "one waits for the next");
    assert_eq!(delivered, [110, 111, 112]);
}

/// No report of the peer has come before its packets made it known.
#[test]
fn a_report_of_another_source_is_counted_where_the_first_of_the_peer_was_lost() {
    let context = ChannelContext::of(&[(1, Side::B, "kinematic")]);
    let [mut peer, mut endpoint] = [Side::A, Side::B].map(|side| boxed("rtp", &Value::Null, side, &context));
    let mut bytes = Vec::new();
    for index in 0..50 {
        let now = Time::from(index) * MS;
        peer.handle_input(now, Input::Sample { meta: meta(1, index, now), bytes: &content(index, 64) });
        while let Some(output) = peer.poll_output(&mut bytes) {
            if matches!(output, Output::Transmit(_)) && !is_rtcp(&bytes) {
                endpoint.handle_input(now, Input::datagram(&bytes, now));
            }
        }
    }
    let before = endpoint.stats().malformed;
    for _ in 0..3 {
        bytes.clear();
        Report { ssrc: 0xbad0, sender: Some(SenderInfo::default()), blocks: vec![] }.emit(&mut bytes);
        endpoint.handle_input(50 * MS, Input::datagram(&bytes, 50 * MS));
    }
    assert_eq!(endpoint.stats().malformed - before, 3);
}

/// Packets and reports of sources that are not the peer's, between its own, and its farewell from somebody else.
// [RFC 3550 §A.1] [RFC 3550 §6.6]
#[test]
fn what_is_not_of_the_peers_source_is_counted() {
    let mut pair = pair(1, json!({}), latency(MS));
    let rtp = |ssrc: u32, sequence: u16| {
        let mut bytes = Vec::new();
        let repr = Repr { marker: false, payload_type: 96, sequence, timestamp: 0, ssrc };
        repr.emit(&[], &[], &mut bytes);
        [bytes, vec![7; 64]].concat()
    };
    let report = |ssrc: u32| Report { ssrc, sender: Some(SenderInfo::default()), blocks: vec![] };
    let bye = |ssrc: u32| {
        let mut bytes = Vec::new();
        Bye { ssrc: vec![ssrc], reason: b"" }.emit(&mut bytes);
        bytes
    };
    let mut own = 0;
    for round in 0..20u16 {
        let from = u32::from(round) * 50;
        for index in from..from + 50 {
            pair.send(meta(1, index, pair.time), &content(index, 64));
            pair.run_until(pair.time + MS);
            let bytes = pair.server.last_received.as_ref().unwrap();
            if !is_rtcp(bytes) {
                own = Packet::new_checked(&bytes[..]).unwrap().ssrc();
            }
        }
        let mut sender = Vec::new();
        report(0xdead).emit(&mut sender);
        let far = pair.server.last_received.clone().unwrap();
        let number = if is_rtcp(&far) { 0 } else { Packet::new_checked(&far[..]).unwrap().sequence() };
        // A number of the peer's source that is far from the others, a source of its own, a report, a farewell.
        for forged in [
            rtp(own, number.wrapping_add(40_000)),
            rtp(0xbad0 + u32::from(round), 7 * round),
            sender,
            bye(0xdead),
        ] {
            pair.server.endpoint.handle_input(pair.time, Input::datagram(&forged, pair.time));
        }
    }
    pair.send(meta(1, 1_000, pair.time), &content(1_000, 64));
    pair.run_until(pair.time + SECOND);
    assert_eq!(got(&pair), (0..=1_000).collect());
    assert_eq!(pair.server.endpoint.stats().malformed, 4 * 20 - 1, "one waits for the next of its source");
    assert_eq!(pair.client.endpoint.stats().malformed, 0);
}

#[test]
fn parameters_are_checked() {
    let refuse = |params: Value| match tcps_transport::endpoint("rtp", &params, Side::A, &context()) {
        Ok(_) => panic!("accepted"),
        Err(e) => e.to_string(),
    };
    let text = refuse(json!({"redundancy": "twice"}));
    assert!(
        text.contains(r#"redundancy is "twice"; allowed: "none", "rfc2198", "ulpfec", "flexfec""#),
        "{text}"
    );
    assert!(refuse(json!({"identity": 1})).contains("true or false"));
    let wide = json!({"redundancy": "flexfec", "columns": 48, "rows": 6});
    assert!(refuse(wide).contains("at most 256 packets in columns times rows"));
    assert!(refuse(json!({"report_ns": 5})).contains("a span of time from 10 ms to 60 s"));
    assert!(refuse(json!({"reorder_ns": 5})).contains("with nack"));
    assert!(refuse(json!({"congestion": "gcc"})).contains("gcc with feedback"));
    assert!(refuse(json!({"congestion": "scream", "feedback_ns": MS})).contains("none, gcc"));
    assert!(refuse(json!({"target_ns": 10 * MS})).contains("with congestion = gcc"));
    let waiting = json!({"mode": "stop_and_wait", "redundancy": "ulpfec"});
    assert!(refuse(waiting).contains("none or rfc2198"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn what_the_network_left_whole_arrives_exactly_once(
        seed: u64, loss in 0.0..0.2, duplication in 0.0..0.5, jitter_ns in 0i64..3 * MS,
        kind in prop_oneof![Just("none"), Just("rfc2198"), Just("ulpfec"), Just("flexfec")],
        sizes in proptest::collection::vec(prop_oneof![Just(64usize), 1..3000usize], 1..60),
    ) {
        let conditions = Conditions { latency_ns: MS, jitter_ns, loss, duplication };
        let mut pair = pair(seed, json!({"redundancy": kind}), conditions);
        for (index, size) in (0u32..).zip(&sizes) {
            pair.send(meta(1, index, pair.time), &content(index, *size));
            pair.run_until(pair.time + 10 * MS);
        }
        pair.run_until(pair.time + SECOND);
        let lost: BTreeSet<u32> = pair.client.lost.iter().map(|t| t.index).collect();
        let mut seen = BTreeSet::new();
        for (d, bytes) in &pair.server.delivered {
            prop_assert!(seen.insert(d.meta.index), "sample {} came twice", d.meta.index);
            prop_assert!(bytes[..] == content(d.meta.index, sizes[d.meta.index as usize])[..]);
        }
        let whole = (0..sizes.len() as u32).filter(|i| !lost.contains(i));
        // An unknown source is believed from its first packet, because both ends know the channel's seed.
        for index in whole {
            prop_assert!(seen.contains(&index), "sample {}", index);
        }
        prop_assert_eq!(pair.server.endpoint.stats().malformed, 0);
    }

    #[test]
    fn bytes_from_anybody_are_counted_and_survived(
        inputs in proptest::collection::vec((0u8..8, proptest::collection::vec(any::<u8>(), 0..90)), 1..60),
        kind in prop_oneof![Just("none"), Just("rfc2198"), Just("ulpfec"), Just("flexfec")],
    ) {
        let params = json!({"redundancy": kind, "extended": true, "feedback_ns": 50 * MS, "nack": 2});
        let mut endpoint = boxed("rtp", &params, Side::B, &context());
        let (mut buf, mut now) = (Vec::new(), 0);
        for (how, mut bytes) in inputs {
            now += Time::from(how) * 40 * MS;
            if let (Some(first), true) = (bytes.first_mut(), how > 0) {
                *first = *first & 0x3f | 0x80;
            }
            if let (Some(second), true) = (bytes.get_mut(1), how > 3) {
                *second = [96, 98, 124, 126, 127, 200, 205, 207][usize::from(*second % 8)];
            }
            endpoint.handle_input(now, Input::datagram(&bytes, now));
            endpoint.handle_input(now, Input::Timeout);
            while endpoint.poll_output(&mut buf).is_some() {}
        }
    }
}
