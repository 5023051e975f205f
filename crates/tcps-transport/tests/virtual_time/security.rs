//! Security around a transport: what it lets through, what it stops, and how its handshake bears loss.

use crate::{
    pair::{Boxed, Conditions, Pair},
    session::{content, meta},
};
use proptest::prelude::*;
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output, SecurityStats, Transmit},
    ids::FlowId,
    param::Named,
    record::{DropReason, Kind, Record},
    seed::Stream,
    size::STACK_BYTES,
    time::{Time, MS, SECOND},
};
use tcps_transport::{
    endpoint,
    security::{self, Association, Opened, Secret},
    ChannelContext, Side,
};
use tcps_wire::rtp::Repr;

fn context() -> ChannelContext {
    ChannelContext::of(&[(1, Side::B, "kinematic"), (2, Side::A, "haptic")])
}

fn plain(side: Side) -> Boxed {
    bare("udp", side)
}

fn bare(transport: &str, side: Side) -> Boxed {
    Boxed(endpoint(transport, &Value::Null, side, &context()).unwrap())
}

/// What a method stands around.
fn transport(named: &Named) -> &'static str {
    if named.kind == "srtp" {
        "rtp"
    } else {
        "udp"
    }
}

fn secured(seed: u64, key: &str, named: &Named, side: Side) -> Boxed {
    let Boxed(inner) = bare(transport(named), side);
    let secret = Secret::seeded(seed, key, side);
    Boxed(security::secured(inner, named, side, &context(), secret).unwrap())
}

fn named(kind: &str, params: Value) -> Named {
    Named::new(kind, params)
}

fn pair(seed: u64, named: &Named, forward: Conditions, backward: Conditions) -> Pair<Boxed, Boxed> {
    let [a, b] = [Side::A, Side::B].map(|side| secured(seed, "channel", named, side));
    Pair::new(seed, a, b, forward, backward)
}

fn stats(end: &Boxed) -> SecurityStats {
    end.0.stats().security.expect("a secured endpoint")
}

const LATE: Conditions = Conditions { latency_ns: 10 * MS, jitter_ns: 0, loss: 0.0, duplication: 0.0 };

#[test]
fn samples_arrive_as_they_were_by_every_method_and_cost_24_bytes_each() {
    let ciphers = ["chacha20-poly1305", "aes-128-gcm", "aes-256-gcm"].map(|c| json!({"cipher": c}));
    let methods = ciphers.map(|c| named("aead", c)).into_iter().chain([named("hmac", Value::Null)]);
    for method in methods {
        let mut pair = pair(1, &method, LATE, LATE);
        for index in 0..100 {
            pair.send(meta(1, index, pair.time), &content(index, 64));
            pair.send_back(meta(2, index, pair.time), &content(index, 2_000));
            pair.run_until(pair.time + MS);
        }
        pair.run_until(SECOND);
        for (end, length) in [(&pair.server, 64), (&pair.client, 2_000)] {
            let got: Vec<_> = end.delivered.iter().map(|(d, b)| (d.meta.index, b.clone())).collect();
            assert_eq!(got, (0..100).map(|i| (i, content(i, length))).collect::<Vec<_>>(), "{method:?}");
            let expected = SecurityStats { sessions: 1, ..SecurityStats::default() };
            let SecurityStats { handshake_ns, .. } = stats(&end.endpoint);
            // A message of the handshake, or 24 bytes: of a sample, or a record that is empty.
            let added = |t: &Transmit| if t.wire_bytes == 68 + 54 { 68 } else { 24 };
            let added_bytes = end.transmitted.iter().map(added).sum();
            let expected = SecurityStats { handshake_ns, added_bytes, ..expected };
            assert_eq!(stats(&end.endpoint), expected, "{method:?}: nothing is refused");
        }
        let sizes: BTreeSet<_> = pair.client.transmitted.iter().map(|t| t.wire_bytes).collect();
        // Hello, an empty record, samples: 64 B, the header of udp, that of records and a tag.
        assert_eq!(sizes, [68, 24, 64 + 24 + 24].map(|n| n + 54).into());
        let handshakes = [&pair.client, &pair.server].map(|e| stats(&e.endpoint).handshake_ns);
        assert_eq!(handshakes, [Some(20 * MS), Some(20 * MS)], "a: hello, answer; b: from hello to record");
    }
}

/// Each RTP packet grows by its tag, each RTCP packet by tag and word; nothing else is sent but the handshake.
// [RFC 3711 §3.1] [RFC 3711 §3.4]
#[test]
fn rtp_goes_as_srtp_and_its_reports_as_srtcp() {
    let ciphers = [("aes-128-gcm", 16), ("aes-256-gcm", 16), ("aes-128-cm-hmac-sha1-80", 10)];
    let bare = Pair::new(1, bare("rtp", Side::A), bare("rtp", Side::B), LATE, LATE);
    let with = |cipher| pair(1, &named("srtp", json!({"cipher": cipher})), LATE, LATE);
    let sizes = |mut pair: Pair<Boxed, Boxed>| {
        for index in 0..2_000 {
            pair.send(meta(1, index, pair.time), &content(index, 64));
            pair.send_back(meta(2, index, pair.time), &content(index, 64));
            pair.run_until(pair.time + MS);
        }
        pair.run_until(3 * SECOND);
        for end in [&pair.client, &pair.server] {
            let got: Vec<_> = end.delivered.iter().map(|(d, b)| (d.meta.index, b.clone())).collect();
            assert_eq!(got, (0..2_000).map(|i| (i, content(i, 64))).collect::<Vec<_>>());
            let EndpointStats { reports, malformed, security, .. } = end.endpoint.0.stats();
            assert!(reports >= 3 && malformed == 0, "{reports} reports");
            if let Some(SecurityStats { handshake_ns, added_bytes, .. }) = security {
                let expected =
                    SecurityStats { sessions: 1, handshake_ns, added_bytes, ..SecurityStats::default() };
                assert_eq!(security, Some(expected), "nothing is refused");
            }
        }
        let sizes: BTreeSet<_> = pair.client.transmitted.iter().map(|t| t.wire_bytes).collect();
        sizes
    };
    let open = sizes(bare);
    let media = *open.iter().max().unwrap();
    for (cipher, tag) in ciphers {
        let found = sizes(with(cipher));
        // The hello and the record that confirms the session.
        let handshake = [68 + 54, 24 + 54];
        let own: BTreeSet<_> = found.iter().copied().filter(|size| !handshake.contains(size)).collect();
        let expected = open.iter().map(|size| size + tag + if *size == media { 0 } else { 4 });
        assert!(own.is_subset(&expected.collect()), "{cipher}: {found:?} of {open:?}");
        assert!(own.contains(&(media + tag)) && own.len() > 1, "{cipher}: {found:?}");
    }
}

/// What security costs is reported beside what was sent: RTP grows by its tag, RTCP by a word more.
// [RFC 3711 §3.1] [RFC 3711 §3.4]
#[test]
fn bytes_that_srtp_adds_to_each_packet_are_counted() {
    for (cipher, tag) in [("aes-128-gcm", 16), ("aes-256-gcm", 16), ("aes-128-cm-hmac-sha1-80", 10)] {
        let method = named("srtp", json!({"cipher": cipher}));
        let [mut a, mut b] = associations(1, &method, "channel");
        let (mut now, mut datagram) = (0, Vec::new());
        let carried = settle(&mut now, &mut a, &mut b).iter().map(|m| m.len() as u64).sum::<u64>();
        assert_eq!(a.stats().added_bytes + b.stats().added_bytes, carried, "{cipher}: the handshake");
        let report = [&[0x80, 201, 0, 1, 0, 0, 0, 7][..], &[9; 20]].concat();
        for (packet, more) in [(numbered(&method, 1), tag), (report, tag + 4)] {
            let before = a.stats().added_bytes;
            assert!(a.seal(now, &packet, &mut datagram));
            let added = a.stats().added_bytes - before;
            assert_eq!((added, datagram.len() - packet.len()), (more as u64, more), "{cipher}");
        }
    }
}

#[test]
fn a_transport_that_is_not_rtp_sends_nothing_by_srtp_and_counts_it() {
    let srtp = named("srtp", Value::Null);
    let end = |side| {
        let Boxed(inner) = plain(side);
        let secret = Secret::seeded(1, "channel", side);
        Boxed(security::secured(inner, &srtp, side, &context(), secret).unwrap())
    };
    let mut pair = Pair::new(1, end(Side::A), end(Side::B), LATE, LATE);
    (0..5).for_each(|index| pair.send(meta(1, index, 0), &[1; 64]));
    pair.run_until(SECOND);
    assert_eq!((pair.server.delivered.len(), stats(&pair.client.endpoint).unkeyed), (0, 5));
    assert_eq!(pair.client.records.iter().filter(|r| r.detail == DropReason::Unkeyed as u8).count(), 5);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for kind in ["aead", "srtp"] {
        let digest = |seed| {
            let mut pair = pair(seed, &named(kind, Value::Null), LATE, LATE);
            pair.send(meta(1, 0, 0), &[1; 64]);
            pair.run_until(SECOND);
            pair.digest()
        };
        assert_eq!((digest(1) == digest(1), digest(1) == digest(2)), (true, false));
    }
}

#[test]
fn the_newest_datagrams_wait_for_keys_and_older_ones_have_a_row() {
    let mut pair = pair(1, &named("aead", Value::Null), LATE, LATE);
    (0..100).for_each(|index| pair.send(meta(1, index, 0), &[1; 64]));
    pair.run_until(SECOND);
    let got: Vec<_> = pair.server.delivered.iter().map(|(d, _)| d.meta.index).collect();
    assert_eq!(got, (36..100).collect::<Vec<_>>());
    let rows = pair.client.records.iter().filter(|r| r.kind == Kind::Dropped);
    let rows: Vec<_> = rows.map(|r| (r.time_ns, r.flow.0, r.index, r.size, r.detail)).collect();
    let size = 64 + 24 + STACK_BYTES; // as the transport made it
    assert_eq!(rows, (0..36).map(|i| (0, 1, i, size, DropReason::Unkeyed as u8)).collect::<Vec<_>>());
    assert_eq!(stats(&pair.client.endpoint).unkeyed, 36);
}

/// By its row a reader of a capture finds the datagram again: the moment, the size on the wire, and why it was dropped.
#[test]
fn each_datagram_that_is_refused_has_a_row_with_its_moment_size_and_reason() {
    let mut pair = pair(1, &named("aead", Value::Null), LATE, LATE);
    pair.send(meta(1, 0, 0), &[1; 64]);
    pair.run_until(SECOND);
    let genuine = pair.server.last_received.clone().unwrap();
    let end = &mut pair.server.endpoint;
    let mut row = |bytes: &[u8]| {
        let mut buf = Vec::new();
        end.handle_input(SECOND, Input::datagram(bytes, SECOND));
        let Some(Output::Record(row)) = end.poll_output(&mut buf) else { panic!("no row") };
        while end.poll_output(&mut buf).is_some() {}
        row
    };
    let expected = |reason, size: usize| {
        let (size, detail) = (size as u32 + STACK_BYTES, reason as u8);
        Record { size, detail, ..Record::new(SECOND, Kind::Dropped) }
    };
    assert_eq!(row(&genuine), expected(DropReason::Replayed, genuine.len()));
    assert_eq!(row(&[7; 200]), expected(DropReason::Unverified, 200));
    assert_eq!(row(&[]), expected(DropReason::Unverified, 0));
}

/// A transport that says something of itself wherever it may.
struct Talkative;

impl Endpoint for Talkative {
    fn handle_input(&mut self, _: Time, _: Input<'_>) {}
    fn poll_output(&mut self, _: &mut Vec<u8>) -> Option<Output> {
        None
    }
    fn poll_timeout(&self) -> Option<Time> {
        Some(7)
    }
    fn merging(&self) -> u16 {
        3
    }
    fn allowance_bps(&self, flow: FlowId) -> Option<f64> {
        Some(f64::from(flow.0))
    }
    fn stats(&self) -> EndpointStats {
        EndpointStats { malformed: 5, ..EndpointStats::default() }
    }
    fn failure(&self) -> Option<String> {
        Some("what went wrong".into())
    }
}

/// A user's own transport that fails ends the run also where security stands around it, and a sampler follows its allowance.
#[test]
fn what_a_transport_says_of_itself_is_said_by_it_with_security_too() {
    let secret = Secret::seeded(1, "channel", Side::B);
    let end =
        security::secured(Box::new(Talkative), &named("aead", Value::Null), Side::B, &context(), secret)
            .unwrap();
    assert_eq!(end.failure().as_deref(), Some("what went wrong"));
    assert_eq!((end.poll_timeout(), end.merging(), end.allowance_bps(FlowId(2))), (Some(7), 3, Some(2.0)));
    assert_eq!((end.stats().malformed, end.stats().security), (5, Some(SecurityStats::default())));
    assert_eq!(secured(1, "channel", &named("aead", Value::Null), Side::B).0.failure(), None);
}

/// When both sides could send, of a handshake over a network with so much loss.
fn handshake_ns(seed: u64, rtt_ns: Time) -> Time {
    let way = Conditions { latency_ns: rtt_ns / 2, loss: 0.2, ..Conditions::default() };
    let mut pair = pair(seed, &named("aead", Value::Null), way, way);
    loop {
        pair.run_next();
        if [&pair.client, &pair.server].iter().all(|e| stats(&e.endpoint).sessions == 1) {
            return pair.time;
        }
    }
}

#[test]
fn a_handshake_with_loss_of_20_percent_is_complete_within_5_round_trips_in_99_percent() {
    let late = [5, 10, 20, 100, 400]
        .map(|rtt_ms| (0..2_000).filter(|seed| handshake_ns(*seed, rtt_ms * MS) > 5 * rtt_ms * MS).count());
    assert!(late.iter().all(|late| *late <= 20), "{late:?} of 2000 took longer");
}

#[test]
fn another_key_or_no_security_at_the_other_side_is_counted_at_both_and_delivers_nothing() {
    let aead = named("aead", Value::Null);
    let with = |client: Boxed, server: Boxed| {
        let mut pair = Pair::new(1, client, server, LATE, LATE);
        for index in 0..50 {
            pair.send(meta(1, index, pair.time), &[1; 64]);
            pair.send_back(meta(2, index, pair.time), &[1; 64]);
            pair.run_until(pair.time + MS);
        }
        assert!(pair.client.delivered.is_empty() && pair.server.delivered.is_empty());
        pair
    };
    let other = with(secured(1, "one", &aead, Side::A), secured(1, "two", &aead, Side::B));
    let (a, b) = (stats(&other.client.endpoint), stats(&other.server.endpoint));
    assert_eq!((a.sessions, b.sessions, a.refused_handshakes), (0, 0, 0));
    assert!(b.refused_handshakes > 0 && b.unverified == b.refused_handshakes);
    let method = with(secured(1, "c", &aead, Side::A), secured(1, "c", &named("hmac", Value::Null), Side::B));
    assert!(stats(&method.server.endpoint).refused_handshakes > 0);
    let mixed = with(plain(Side::A), secured(1, "c", &aead, Side::B));
    let SecurityStats { sessions, unsealed, .. } = stats(&mixed.server.endpoint);
    assert!(sessions == 0 && unsealed >= 40, "{unsealed}");
    assert_eq!(mixed.client.endpoint.0.stats().malformed, 1, "b asks for a hello, and sends nothing else");
    let mixed = with(secured(1, "c", &aead, Side::A), plain(Side::B));
    let SecurityStats { sessions, unsealed, .. } = stats(&mixed.client.endpoint);
    assert!(sessions == 0 && unsealed >= 40, "{unsealed}");
    assert!(mixed.server.endpoint.0.stats().malformed > 0, "hellos");
    let srtp = named("srtp", Value::Null);
    let Boxed(inner) = bare("rtp", Side::B);
    let secret = Secret::seeded(1, "c", Side::B);
    let sealed = Boxed(security::secured(inner, &srtp, Side::B, &context(), secret).unwrap());
    let SecurityStats { sessions, unsealed, .. } = stats(&with(bare("rtp", Side::A), sealed).server.endpoint);
    assert!(sessions == 0 && unsealed >= 40, "RTP in the clear: {unsealed}");
}

/// Either side begins anew, without its keys: after a second of silence they agree on others.
#[test]
fn a_side_that_begins_anew_is_understood_again() {
    let methods = [named("aead", Value::Null), named("srtp", Value::Null)];
    for (method, side) in methods.iter().flat_map(|method| [(method, Side::A), (method, Side::B)]) {
        let mut pair = pair(1, method, LATE, LATE);
        let go_on = |pair: &mut Pair<Boxed, Boxed>, from: u32| {
            for index in from..from + 3_000 {
                pair.send(meta(1, index, pair.time), &[1; 64]);
                pair.send_back(meta(2, index, pair.time), &[1; 64]);
                pair.run_until(pair.time + MS);
            }
        };
        go_on(&mut pair, 0);
        let Boxed(inner) = bare(transport(method), side);
        let secret = Secret { key: Secret::seeded(1, "channel", side).key, ..Secret::seeded(99, "", side) };
        let start = pair.time;
        let anew = Boxed(
            security::secured(inner, method, side, &ChannelContext { start_ns: start, ..context() }, secret)
                .unwrap(),
        );
        match side {
            Side::A => pair.client.endpoint = anew,
            Side::B => pair.server.endpoint = anew,
        }
        let before = [pair.client.delivered.len(), pair.server.delivered.len()];
        go_on(&mut pair, 3_000);
        for (end, before) in [&pair.client, &pair.server].into_iter().zip(before) {
            let (came, kind) = (end.delivered.len() - before, &method.kind);
            assert!(came > 1_800, "{kind}, {side:?}: {came}");
        }
    }
}

/// An attacker who has every datagram of a session, of another one, of another channel and of the other direction.
struct Attacker {
    chance: Stream,
    recorded: Vec<Vec<u8>>,
}

impl Attacker {
    fn forge(&mut self) -> Vec<u8> {
        let recorded = self.recorded.len() as u64;
        let mut datagram = self.recorded[self.chance.below(recorded) as usize].clone();
        match self.chance.below(6) {
            0 => {}
            1 => datagram.truncate(self.chance.below(datagram.len() as u64 + 1) as usize),
            2 => (0..1 + self.chance.below(40)).for_each(|_| datagram.push(self.chance.bits() as u8)),
            3 => {
                let other = &self.recorded[self.chance.below(recorded) as usize];
                let cut = self.chance.below(datagram.len().min(other.len()) as u64) as usize;
                datagram.truncate(cut);
                datagram.extend_from_slice(&other[cut..]);
            }
            4 if datagram.first().is_some_and(|first| first >> 6 == 2) && datagram.len() > 4 => {
                let sequence = self.chance.bits() as u16;
                datagram[2..4].copy_from_slice(&sequence.to_be_bytes());
            }
            4 => {
                // A header that fits, with a number and a key still to come.
                let number = self.chance.below(3_000) as u32;
                datagram.resize(datagram.len().max(32), 0);
                datagram[0] = 0xd1;
                datagram[1] = self.chance.bits() as u8;
                datagram[4..8].copy_from_slice(&number.to_be_bytes());
            }
            _ => {
                for _ in 0..1 + self.chance.below(3) {
                    let bit = self.chance.below(8 * datagram.len() as u64) as usize;
                    datagram[bit / 8] ^= 1 << (bit % 8);
                }
            }
        }
        datagram
    }
}

/// Carries messages between two associations until both have nothing to say; what was carried.
fn settle(now: &mut Time, a: &mut Association, b: &mut Association) -> Vec<Vec<u8>> {
    let (mut carried, mut message, mut payload) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..10 {
        *now += MS;
        for side in [&mut *a, &mut *b] {
            side.handle_timeout(*now);
        }
        while a.poll_message(&mut message) {
            b.open(*now, &message, &mut payload);
            carried.push(message.clone());
        }
        while b.poll_message(&mut message) {
            a.open(*now, &message, &mut payload);
            carried.push(message.clone());
        }
    }
    carried
}

/// A payload that the method can seal, with a number in it.
fn numbered(method: &Named, number: u32) -> Vec<u8> {
    let mut payload = Vec::new();
    if method.kind == "srtp" {
        let sequence = 60_000u16.wrapping_add(number as u16);
        Repr { marker: false, payload_type: 96, sequence, timestamp: number, ssrc: 7 }.emit(
            &[],
            &[],
            &mut payload,
        );
    }
    payload.extend(number.to_be_bytes());
    payload
}

fn associations(seed: u64, method: &Named, name: &str) -> [Association; 2] {
    [Side::A, Side::B].map(|side| {
        let key = Secret::seeded(1, "key", side).key;
        let secret = Secret { key, ..Secret::seeded(seed, name, side) };
        let mut made = security::association(method, name, side, secret).unwrap();
        if side == Side::A {
            made.want_keys(0);
        }
        made
    })
}

/// 10^6 forgeries and replays, between records that are lost, repeated and late, with keys that change: what is accepted is what the
/// other side sent, once.
fn attacked(method: &Named, forgeries: usize) {
    let mut recorded = Vec::new();
    // An earlier session and another channel, of the same key.
    for (seed, name) in [(2, "channel"), (1, "other")] {
        let [mut a, mut b] = associations(seed, method, name);
        recorded.extend(settle(&mut 0, &mut a, &mut b));
        for n in 0..200u32 {
            for side in [&mut a, &mut b] {
                let mut datagram = Vec::new();
                assert!(side.seal(20 * MS, &numbered(method, n), &mut datagram));
                recorded.push(datagram);
            }
        }
    }
    let [mut a, mut b] = associations(1, method, "channel");
    let mut now = 0;
    recorded.extend(settle(&mut now, &mut a, &mut b));
    let mut attacker = Attacker { chance: Stream::new(1, "attacker"), recorded };
    let mut network = Stream::new(1, "network");
    let (mut flight, mut accepted) = (Vec::<Vec<u8>>::new(), BTreeSet::new());
    // What the attacker holds back and brings later is no forgery, once.
    let mut genuine = BTreeMap::new();
    let (mut payload, mut datagram) = (Vec::new(), Vec::new());
    let (mut sent, mut forged) = (0u32, 0);
    while forged < forgeries {
        now += MS / 10;
        assert!(a.seal(now, &numbered(method, sent), &mut datagram));
        attacker.recorded.push(datagram.clone());
        genuine.insert(datagram.clone(), sent);
        if network.chance(0.8) {
            flight.push(datagram.clone());
        }
        assert!(b.seal(now, &numbered(method, sent), &mut datagram), "the other direction");
        attacker.recorded.push(datagram.clone());
        sent += 1;
        let mut brought: Vec<_> = (0..20).map(|_| attacker.forge()).collect();
        if flight.len() > 20 {
            brought.push(flight.swap_remove(network.below(20) as usize));
        }
        for bytes in brought {
            let number = genuine.get(&bytes).copied();
            forged += usize::from(number.is_none_or(|n| accepted.contains(&n)));
            if b.open(now, &bytes, &mut payload) == Opened::Payload {
                let number = number.expect("a forgery was accepted");
                assert_eq!(payload, numbered(method, number));
                assert!(accepted.insert(number), "a replay was accepted");
            }
        }
        while b.poll_message(&mut datagram) {}
        if attacker.recorded.len() > 4_000 {
            attacker.recorded.drain(1_000..2_000);
        }
    }
    assert!(accepted.len() as u32 > sent / 2, "genuine records came through: {} of {sent}", accepted.len());
    let changes = b.stats().key_changes > 20 || method.kind == "srtp";
    assert!(changes && b.stats().sessions == 1, "{:?}", b.stats());
}

#[test]
fn of_a_million_forgeries_and_replays_none_is_accepted() {
    let params = json!({"rekey_after_packets": 500});
    attacked(&named("aead", params.clone()), 700_000);
    attacked(&named("hmac", params), 300_000);
}

#[test]
fn of_a_million_forgeries_and_replays_of_srtp_none_is_accepted() {
    attacked(&named("srtp", Value::Null), 900_000);
    attacked(&named("srtp", json!({"cipher": "aes-128-cm-hmac-sha1-80"})), 100_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Whatever the network loses, repeats and reorders, and however often keys change: each sample at most once, as it was.
    #[test]
    fn each_sample_arrives_at_most_once_and_as_it_was(
        seed: u64, loss in 0.0..0.5f64, duplication in 0.0..1.0f64, jitter_ms in 0..30i64,
        packets in 64u32..120, kind in prop::sample::select(&["aead", "hmac", "srtp"][..]),
    ) {
        let way = Conditions { latency_ns: 5 * MS, jitter_ns: jitter_ms * MS, loss, duplication };
        let params = if kind == "srtp" { Value::Null } else { json!({"rekey_after_packets": packets}) };
        let mut pair = pair(seed, &named(kind, params), way, way);
        for index in 0..200 {
            pair.send(meta(1, index, pair.time), &content(index, 64));
            pair.send_back(meta(2, index, pair.time), &content(index, 30));
            pair.run_until(pair.time + MS);
        }
        pair.run_until(pair.time + SECOND);
        for (end, length) in [(&pair.server, 64), (&pair.client, 30)] {
            let got: BTreeSet<_> = end.delivered.iter().map(|(d, _)| d.meta.index).collect();
            prop_assert_eq!(got.len(), end.delivered.len(), "twice");
            prop_assert!(end.delivered.iter().all(|(d, bytes)| *bytes == content(d.meta.index, length)));
            prop_assert_eq!(end.endpoint.0.stats().malformed, 0);
        }
    }
}

#[test]
fn a_hello_that_was_answered_before_the_present_one_is_a_replay() {
    let named = named("aead", Value::Null);
    let [mut a, mut b] = [Side::A, Side::B].map(|side| {
        security::association(&named, "channel", side, Secret::seeded(1, "channel", side)).unwrap()
    });
    let (mut hellos, mut message, mut payload) = (Vec::new(), Vec::new(), Vec::new());
    a.want_keys(0);
    for begin in [0, 3 * SECOND] {
        a.open(begin, &[0xd4, 1, 0, 0], &mut payload); // a request for a new session, which anybody can make
        a.handle_timeout(begin);
        assert!(a.poll_message(&mut message));
        hellos.push(message.clone());
        while b.poll_message(&mut payload) {} // what it said of the session before
        assert_eq!(b.open(begin, &message, &mut payload), Opened::Own);
        assert!(b.poll_message(&mut message));
        assert_eq!(a.open(begin, &message, &mut payload), Opened::Own);
        while a.poll_message(&mut message) {
            b.open(begin, &message, &mut payload);
        }
    }
    assert_ne!(hellos[0], hellos[1]);
    let later = 3 * SECOND + 100 * MS;
    assert_eq!(b.open(later, &hellos[0], &mut payload), Opened::Refused(DropReason::Replayed));
    assert_eq!(b.open(later, &hellos[1], &mut payload), Opened::Own, "the present one may be late");
    assert_eq!(b.open(4 * SECOND, &hellos[1], &mut payload), Opened::Refused(DropReason::Replayed));
    let is_answer = |message: &[u8]| message[0] == 0xd3;
    while b.poll_message(&mut message) {
        assert!(!is_answer(&message), "its session stands: nothing is answered");
    }
}

/// Who heard the messages of a handshake sends them again, before and after its session stands.
#[test]
fn repeated_messages_of_a_handshake_are_counted_and_not_answered_each_time() {
    let named = named("aead", Value::Null);
    let [mut a, mut b] = associations(1, &named, "channel");
    let (mut hello, mut answer, mut message, mut payload) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    a.handle_timeout(0);
    assert!(a.poll_message(&mut hello));
    b.open(0, &hello, &mut payload);
    assert!(b.poll_message(&mut answer));
    let mut answers = 0;
    for n in 0..8_000 {
        b.open(n * MS / 4, &hello, &mut payload);
        answers += usize::from(b.poll_message(&mut message));
    }
    // As many as side a can ask for in 2 s.
    assert_eq!((answers, b.stats().replayed), (12, 8_000 - 12), "the session is not confirmed");
    let begin = 2 * SECOND;
    a.open(begin, &answer, &mut payload);
    assert!(a.has_keys() && a.poll_message(&mut message));
    assert_eq!(b.open(begin, &message, &mut payload), Opened::Own);
    assert!(b.poll_message(&mut message), "b confirms, too");
    let before = [&a, &b].map(|side| side.stats().replayed);
    for n in 0..4_000 {
        let now = begin + SECOND + n * MS / 4;
        assert_eq!(b.open(now, &hello, &mut payload), Opened::Refused(DropReason::Replayed));
        assert_eq!(a.open(now, &answer, &mut payload), Opened::Refused(DropReason::Replayed));
        assert!(!a.poll_message(&mut message) && !b.poll_message(&mut message), "nothing is answered");
    }
    let after = [&a, &b].map(|side| side.stats());
    assert_eq!([0, 1].map(|n| after[n].replayed - before[n]), [4_000; 2]);
    assert_eq!(after.map(|s| (s.unverified, s.refused_handshakes)), [(0, 0); 2]);
    answer[40] ^= 1;
    assert_eq!(a.open(5 * SECOND, &answer, &mut payload), Opened::Refused(DropReason::Unverified));
}

/// Copies that a side itself sends until it is answered are no replays, in whatever order they come.
#[test]
fn nobody_is_accused_of_a_replay_where_a_network_reorders_and_loses() {
    for seed in 0..300 {
        let way = Conditions { latency_ns: 20 * MS, jitter_ns: 100 * MS, loss: 0.3, duplication: 0.0 };
        let mut pair = pair(seed, &named("aead", Value::Null), way, way);
        pair.run_until(5 * SECOND);
        for end in [&pair.client, &pair.server] {
            let SecurityStats { sessions, replayed, unverified, .. } = stats(&end.endpoint);
            assert_eq!((sessions, replayed, unverified), (1, 0, 0), "seed {seed}");
        }
    }
}

/// A hello of a side that has been restarted since comes late, and takes the place of the new one, whose answer was lost.
#[test]
fn a_late_hello_of_a_former_process_holds_up_a_handshake_for_ten_seconds_at_most() {
    let named = named("aead", Value::Null);
    let side = |side, seed| {
        let random = Secret::seeded(seed, "channel", side).random;
        let secret = Secret { random, ..Secret::seeded(1, "channel", side) };
        security::association(&named, "channel", side, secret).unwrap()
    };
    let (mut former, mut a, mut b) = (side(Side::A, 1), side(Side::A, 2), side(Side::B, 1));
    let (mut held, mut message, mut payload) = (Vec::new(), Vec::new(), Vec::new());
    former.want_keys(0);
    former.handle_timeout(0);
    assert!(former.poll_message(&mut held));
    a.want_keys(0);
    let mut is_first = true;
    for now in (0..12 * SECOND).step_by((10 * MS) as usize) {
        a.handle_timeout(now);
        while a.poll_message(&mut message) {
            b.open(now, &message, &mut payload);
        }
        if std::mem::take(&mut is_first) {
            while b.poll_message(&mut message) {}
            b.open(now + 11 * MS, &held, &mut payload);
        }
        while b.poll_message(&mut message) {
            a.open(now, &message, &mut payload);
        }
    }
    assert_eq!((a.stats().sessions, b.stats().sessions), (1, 1));
}

#[test]
fn hellos_of_strangers_do_not_hold_out_the_genuine_one() {
    let named = named("aead", Value::Null);
    let side = |side, seed| {
        let secret = Secret {
            random: Secret::seeded(seed, "channel", side).random,
            ..Secret::seeded(1, "channel", side)
        };
        security::association(&named, "channel", side, secret).unwrap()
    };
    let (mut first, mut b) = (side(Side::A, 1), side(Side::B, 1));
    let (mut message, mut payload) = (Vec::new(), Vec::new());
    first.want_keys(0);
    first.handle_timeout(0);
    while first.poll_message(&mut message) {
        b.open(0, &message, &mut payload);
        while b.poll_message(&mut message) {
            first.open(0, &message, &mut payload);
        }
    }
    let mut restarted = side(Side::A, 2);
    let later = 3 * SECOND;
    restarted.want_keys(later);
    restarted.handle_timeout(later);
    assert!(restarted.poll_message(&mut message));
    let mut garbage = message.clone();
    for n in 0..1_000u32 {
        garbage[4..8].copy_from_slice(&n.to_be_bytes());
        assert_eq!(b.open(later, &garbage, &mut payload), Opened::Refused(DropReason::Unverified));
    }
    while b.poll_message(&mut payload) {} // it asked for a hello
    assert_eq!(b.open(later, &message, &mut payload), Opened::Own);
    assert!(b.poll_message(&mut message) && message[0] == 0xd3, "the genuine one is answered at once");
    let good = message.clone();
    for n in 0..1_000u32 {
        message[4..8].copy_from_slice(&n.to_be_bytes());
        assert_eq!(restarted.open(later, &message, &mut payload), Opened::Refused(DropReason::Unverified));
    }
    assert_eq!(restarted.open(later, &good, &mut payload), Opened::Own);
    assert!(restarted.has_keys(), "forged answers spoil nothing");
    for (side, stats) in [("a", restarted.stats()), ("b", b.stats())] {
        assert_eq!(
            (stats.refused_handshakes, stats.unverified),
            (1_000, 1_000),
            "{side} counts each forgery"
        );
    }
}

#[test]
fn keys_that_change_too_soon_for_reordering_are_refused() {
    let make = |packets: u32| {
        let named = named("aead", json!({"rekey_after_packets": packets}));
        security::association(&named, "channel", Side::A, Secret::seeded(1, "channel", Side::A)).err()
    };
    assert!(make(64).is_none());
    assert!(make(63).is_some_and(|fault| fault.to_string().contains("64")));
}

#[test]
fn records_of_the_former_session_do_not_hide_that_the_present_one_is_dead() {
    let named = named("aead", Value::Null);
    let [mut a, mut b] = [Side::A, Side::B].map(|side| {
        security::association(&named, "channel", side, Secret::seeded(1, "channel", side)).unwrap()
    });
    let (mut message, mut payload, request) = (Vec::new(), Vec::new(), [0xd4, 1, 0, 0]);
    a.want_keys(0);
    a.handle_timeout(0);
    while a.poll_message(&mut message) {
        b.open(0, &message, &mut payload);
        while b.poll_message(&mut message) {
            a.open(0, &message, &mut payload);
        }
    }
    let begin = 3 * SECOND;
    a.open(begin, &request, &mut payload);
    assert!(a.poll_message(&mut message));
    // Another one answers the new hello with the same key; b goes on in the first session.
    let mut other =
        security::association(&named, "channel", Side::B, Secret::seeded(1, "channel", Side::B)).unwrap();
    other.open(begin, &message, &mut payload);
    if other.poll_message(&mut message) {
        a.open(begin, &message, &mut payload);
    }
    let mut hello = false;
    for n in 1..=40 {
        let now = begin + n * 100 * MS;
        assert!(b.seal(now, b"force", &mut message));
        assert_eq!(a.open(now, &message, &mut payload), Opened::Payload);
        a.open(now, &request, &mut payload);
        while a.poll_message(&mut message) {
            hello |= message.len() == 68;
        }
    }
    assert!(hello, "side a looks for a new session");
}

#[test]
fn a_datagram_that_comes_again_is_a_replay_and_no_reason_for_a_new_session() {
    for kind in ["aead", "srtp"] {
        let method = named(kind, Value::Null);
        let [mut a, mut b] = associations(1, &method, "channel");
        let (mut now, mut message, mut payload) = (0, Vec::new(), Vec::new());
        settle(&mut now, &mut a, &mut b);
        assert!(a.seal(now, &numbered(&method, 1), &mut message));
        assert_eq!(b.open(now, &message, &mut payload), Opened::Payload);
        let later = now + 3 * SECOND;
        assert_eq!(b.open(later, &message, &mut payload), Opened::Refused(DropReason::Replayed), "{kind}");
        assert_eq!((b.stats().replayed, b.stats().unverified), (1, 0), "{kind}");
        assert!(!b.poll_message(&mut message), "{kind}: it asks for nothing");
    }
}

#[test]
fn a_record_of_the_present_session_does_not_end_the_search_for_a_new_one() {
    let [mut a, mut b] = associations(1, &named("aead", Value::Null), "channel");
    let (mut now, mut message, mut payload) = (0, Vec::new(), Vec::new());
    settle(&mut now, &mut a, &mut b);
    assert_eq!(a.poll_timeout(), None, "a verified record has ended the handshake");
    now += 3 * SECOND;
    a.open(now, &[0xd4, 1, 0, 0], &mut payload); // a request for a new session
    assert!(a.poll_message(&mut message) && message.len() == 68, "a hello, which is lost");
    assert!(b.seal(now, b"force", &mut message));
    assert_eq!(a.open(now, &message, &mut payload), Opened::Payload);
    let again = a.poll_timeout().expect("it asks again");
    a.handle_timeout(again);
    assert!(a.poll_message(&mut message) && message.len() == 68, "the hello again");
}

#[test]
fn a_method_that_seals_no_datagrams_is_refused_with_all_that_do() {
    let secret = Secret::seeded(1, "c", Side::A);
    let refused = security::association(&named("tls", Value::Null), "c", Side::A, secret).err().unwrap();
    assert_eq!(refused.allowed, r#""aead", "hmac", "srtp""#);
}

/// Documentation, schema and checks of a scenario come from the description.
#[test]
fn each_method_that_is_described_can_be_chosen_and_only_tls_is_inside_the_transport() {
    let described = security::described();
    let methods: Vec<_> = described
        .as_array()
        .unwrap()
        .iter()
        .map(|method| {
            let name = method["name"].as_str().unwrap();
            let Value::Object(defaults) = security::checked(&named(name, json!({}))).unwrap() else {
                panic!("no parameters")
            };
            let params = method["params"].as_array().unwrap();
            assert!(defaults.keys().all(|key| params.iter().any(|param| param["key"] == **key)), "{method}");
            (name, security::is_inside(&named(name, json!({}))))
        })
        .collect();
    assert_eq!(methods, [("aead", false), ("hmac", false), ("srtp", false), ("tls", true)]);
    assert!(!security::is_inside(&named("none", json!({}))));
    let refused = security::checked(&named("none", json!({}))).unwrap_err();
    assert_eq!(refused.allowed, "aead, hmac, srtp, tls");
}

/// RTP in the clear tells of a side without security only as long as nobody with the key has answered. Later it is a forgery.
#[test]
fn rtp_that_does_not_verify_is_unsealed_until_somebody_with_the_key_answers_and_then_only_unverified() {
    let srtp = named("srtp", Value::Null);
    let [mut a, mut b] = associations(1, &srtp, "channel");
    let (mut message, mut payload) = (Vec::new(), Vec::new());
    let refused = |side: &mut Association| {
        let opened = side.open(0, &numbered(&srtp, 1), &mut Vec::new());
        assert_eq!(opened, Opened::Refused(DropReason::Unverified));
        (side.stats().unverified, side.stats().unsealed)
    };
    assert_eq!([refused(&mut a), refused(&mut b)], [(1, 1); 2], "nobody has answered");
    while b.poll_message(&mut message) {} // it asks for a hello
    a.handle_timeout(0);
    assert!(a.poll_message(&mut message));
    assert_eq!(b.open(0, &message, &mut payload), Opened::Own);
    assert_eq!([refused(&mut a), refused(&mut b)], [(2, 2), (2, 1)], "b has heard the hello");
    assert!(b.poll_message(&mut message));
    assert_eq!(a.open(0, &message, &mut payload), Opened::Own);
    assert_eq!([refused(&mut a), refused(&mut b)], [(3, 2), (3, 1)], "a has the answer");
    assert!(a.poll_message(&mut message));
    assert_eq!(b.open(0, &message, &mut payload), Opened::Own);
    assert_eq!([refused(&mut a), refused(&mut b)], [(4, 2), (4, 1)], "the session stands");
    assert!(a.seal(0, &numbered(&srtp, 2), &mut message));
    assert_eq!(b.open(0, &message, &mut payload), Opened::Payload);
    assert_eq!((b.stats().unverified, b.stats().unsealed), (4, 1), "what verifies is neither");
}

/// Each hello is answered once at most: an answer that comes late is none of an attacker, one more than there were hellos is.
#[test]
fn as_many_answers_are_expected_as_hellos_were_said_and_one_more_is_a_replay() {
    let [mut a, mut b] = associations(1, &named("aead", Value::Null), "channel");
    let (mut answers, mut message, mut payload) = (Vec::new(), Vec::new(), Vec::new());
    let mut now = 0;
    for _ in 0..4 {
        now = a.poll_timeout().unwrap();
        a.handle_timeout(now);
        assert!(a.poll_message(&mut message));
        assert_eq!(b.open(now, &message, &mut payload), Opened::Own);
        assert!(b.poll_message(&mut message));
        answers.push(message.clone());
    }
    for (n, answer) in answers.iter().enumerate() {
        assert_eq!((a.open(now, answer, &mut payload), a.stats().replayed), (Opened::Own, 0), "answer {n}");
    }
    for n in 1..=2 {
        let again = a.open(now, &answers[0], &mut payload);
        assert_eq!((again, a.stats().replayed), (Opened::Refused(DropReason::Replayed), n));
    }
    assert_eq!((a.stats().sessions, a.stats().unverified), (1, 0));
}

/// Anybody can make a request for a new session, or what does not verify. A handshake that has begun goes on as if there were none.
#[test]
fn strangers_neither_speed_up_nor_renew_a_handshake_that_has_begun() {
    let request = [0xd4, 1, 0, 0];
    let aead = named("aead", Value::Null);
    let [mut a, mut b] = associations(1, &aead, "channel");
    let (mut hello, mut message, mut payload) = (Vec::new(), Vec::new(), Vec::new());
    a.handle_timeout(0);
    assert!(a.poll_message(&mut hello));
    let again = a.poll_timeout();
    assert_eq!(a.open(1, &request, &mut payload), Opened::Own);
    a.open(2, b"forged", &mut payload);
    assert_eq!((a.poll_timeout(), a.poll_message(&mut message)), (again, false), "before there are keys");
    let mut now = 0;
    settle(&mut now, &mut a, &mut b);
    a.want_keys(now);
    assert_eq!(a.poll_timeout(), None, "it has keys");

    now += 3 * SECOND;
    assert_eq!(a.open(now, &request, &mut payload), Opened::Own);
    assert!(a.poll_message(&mut hello) && hello.len() == 68, "silence: a new session");
    a.open(now + 2 * SECOND, &request, &mut payload);
    assert!(!a.poll_message(&mut message), "under keys");
    // Nobody answers: after ten seconds it begins anew.
    let mut said = BTreeMap::from([(hello, 0)]);
    while now < 14 * SECOND {
        now = a.poll_timeout().expect("it goes on");
        a.handle_timeout(now);
        assert!(a.poll_message(&mut message) && message.len() == 68);
        said.entry(message.clone()).or_insert(now);
    }
    let said: Vec<_> = said.into_values().filter(|at| *at > 0).collect();
    assert!(matches!(said[..], [at] if (13 * SECOND..=14 * SECOND).contains(&at)), "{said:?}");

    let secret = Secret::seeded(1, "channel", Side::A);
    let mut early = security::association(&aead, "channel", Side::A, secret).unwrap();
    early.open(0, b"forged", &mut payload);
    assert_eq!(
        (early.poll_timeout(), early.poll_message(&mut message)),
        (None, false),
        "its time is to come"
    );
    assert_eq!(early.open(5, &request, &mut payload), Opened::Own);
    assert_eq!(early.poll_timeout(), Some(5), "the other side is there already");
}

/// Nothing is known of the round trip yet: soon at first, later so that a side which is absent costs a message a second.
#[test]
fn a_hello_that_is_not_answered_is_said_again_after_twice_as_long_up_to_a_second() {
    let [mut a, _] = associations(1, &named("aead", Value::Null), "channel");
    let (mut last, mut message) = (0, Vec::new());
    let gaps: Vec<_> = (0..14)
        .map(|_| {
            let now = a.poll_timeout().unwrap();
            a.handle_timeout(now);
            assert!(a.poll_message(&mut message) && message.len() == 68);
            assert!(!a.poll_message(&mut message), "one at a time");
            (now - std::mem::replace(&mut last, now)) / (MS / 2)
        })
        .collect();
    assert_eq!(gaps, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2_000, 2_000], "half milliseconds");
}

#[test]
fn a_hello_is_the_same_until_ten_seconds_have_passed_and_then_another_one() {
    for (now, is_same) in [(10 * SECOND - 1, true), (10 * SECOND, false)] {
        let [mut a, _] = associations(1, &named("aead", Value::Null), "channel");
        let (mut hello, mut message) = (Vec::new(), Vec::new());
        a.handle_timeout(0);
        assert!(a.poll_message(&mut hello));
        a.handle_timeout(now);
        assert!(a.poll_message(&mut message));
        assert_eq!((hello.len(), message.len(), hello == message), (68, 68, is_same), "{now}");
    }
}

#[test]
fn a_session_in_which_something_verifies_is_not_given_up_whatever_strangers_say() {
    let [mut a, mut b] = associations(1, &named("aead", Value::Null), "channel");
    let (mut now, mut message, mut payload) = (0, Vec::new(), Vec::new());
    settle(&mut now, &mut a, &mut b);
    let mut carry = |now, from: &mut Association, to: &mut Association| {
        assert!(from.seal(now, b"sample", &mut message));
        assert_eq!(to.open(now, &message, &mut payload), Opened::Payload);
        to.open(now + SECOND - 1, b"forged", &mut payload);
        assert!(!to.poll_message(&mut message), "it looks for no other session");
    };
    for _ in 0..5 {
        now += SECOND;
        carry(now, &mut a, &mut b);
        carry(now, &mut b, &mut a);
    }
    for side in [&mut a, &mut b] {
        side.open(now + SECOND, b"forged", &mut payload);
        assert!(side.poll_message(&mut message), "after a second of silence it does");
    }
}

/// Nobody hears of it but the other side: what its own samples carry goes on to verify.
#[test]
fn after_an_outage_of_one_direction_that_nobody_can_follow_a_new_session_begins() {
    let often = json!({"rekey_after_packets": 64});
    for (method, lost) in [
        (named("aead", often.clone()), 64 * 20),
        (named("hmac", often), 64 * 300),
        (named("srtp", Value::Null), 150_000),
    ] {
        for deaf in [0, 1] {
            let mut sides = associations(1, &method, "channel");
            let (mut now, mut message, mut payload) = (0, Vec::new(), Vec::new());
            let [a, b] = &mut sides;
            settle(&mut now, a, b);
            let (mut opened, mut refused) = (0, 0);
            for n in 0..lost + 3_000 {
                now += MS;
                // The deaf side is heard all the time, and hears reports of RTP.
                let report: [u8; 8] = [0x80, 201, 0, 1, 0, 0, 0, 7];
                if n % 100 == 0 && method.kind == "srtp" {
                    assert!(sides[1 - deaf].seal(now, &report, &mut message));
                    assert_eq!(sides[deaf].open(now, &message, &mut payload), Opened::Payload);
                }
                assert!(sides[deaf].seal(now, &numbered(&method, n), &mut message));
                assert_eq!(sides[1 - deaf].open(now, &message, &mut payload), Opened::Payload);
                assert!(sides[1 - deaf].seal(now, &numbered(&method, n), &mut message));
                if n == 0 || n > lost {
                    match sides[deaf].open(now, &message, &mut payload) {
                        Opened::Payload => opened += 1,
                        _ => refused += 1,
                    }
                    let [a, b] = &mut sides;
                    settle(&mut now, a, b);
                }
            }
            assert_eq!((opened, refused), (2_999, 1), "{method:?}, side {deaf}");
            assert_eq!(sides.map(|side| side.stats().sessions), [2; 2]);
        }
    }
}

/// Bytes of security are shown at the flow beside which they are sent.
#[test]
fn a_handshake_counts_for_the_flow_that_leaves_its_side() {
    let mut pair = pair(1, &named("aead", Value::Null), LATE, LATE);
    pair.run_until(SECOND);
    let flows = [&pair.client, &pair.server]
        .map(|end| end.transmitted.iter().map(|t| t.flow.0).collect::<BTreeSet<_>>());
    assert_eq!(flows, [[1].into(), [2].into()]);
}
