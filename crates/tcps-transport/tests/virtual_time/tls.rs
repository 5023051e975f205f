//! TLS in the transports of streams: what it costs on the wire, what it bears, and what it lets through.

use crate::tcp_wire::settings;
use crate::{
    pair::{Boxed, Conditions, Pair},
    session::{arrive_in_order, content, meta, Session},
};
use rustls::{crypto::ring, quic, Side as TlsSide};
use serde_json::{json, Value};
use std::collections::VecDeque;
use tcps_core::{
    endpoint::{Ecn, Endpoint, Input, Output, SecurityStats},
    record::{DropReason, Kind, Record},
    time::{Time, MS, SECOND},
};
use tcps_transport::{
    endpoint,
    tcp::{Congestion, Stack},
    ChannelContext, Side, TlsSecret,
};

const TRANSPORTS: [&str; 2] = ["tcp", "quic"];
const SEEDED: Option<TlsSecret> = Some(TlsSecret::Seeded);
/// IP, TCP and its time stamps.
const HEADERS: usize = 20 + 20 + 12;

fn make(transport: &str, tls: Option<TlsSecret>, seed: u64, side: Side) -> Boxed {
    let context = ChannelContext::of(&[(1, Side::B, "kinematic"), (2, Side::A, "haptic")]);
    let context = ChannelContext { seed, tls, ..context };
    Boxed(endpoint(transport, &Value::Null, side, &context).unwrap())
}

fn pair(transport: &str, seed: u64, both: Conditions) -> Pair<Boxed, Boxed> {
    let [a, b] = [Side::A, Side::B].map(|side| make(transport, SEEDED, seed, side));
    Pair::new(seed, a, b, both, both)
}

fn way(latency_ns: Time, loss: f64) -> Conditions {
    Conditions { latency_ns, loss, ..Default::default() }
}

fn stats(end: &Boxed) -> SecurityStats {
    end.0.stats().security.expect("TLS counts")
}

// [RFC 8446 §2]
#[test]
fn samples_of_every_size_arrive_as_they_were_one_round_trip_after_that_of_tcp() {
    let sizes = [0, 1, 64, 1115, 16_360, 16_361, 20_000, 200_000];
    let mut pair = pair("tcp", 1, way(5 * MS, 0.0));
    for (index, size) in (0..).zip(sizes) {
        pair.send(meta(1, index, 5), &content(index, size));
        pair.send_back(meta(2, index, 5), &content(index, size));
    }
    pair.run_until(SECOND);
    for end in [&pair.client, &pair.server] {
        let got: Vec<_> = end.delivered.iter().map(|(d, b)| (d.meta.index, b.clone())).collect();
        assert!(got == (0u32..).zip(sizes).map(|(i, n)| (i, content(i, n))).collect::<Vec<_>>());
    }
    let first = [&pair.server, &pair.client].map(|end| end.delivered[0].0.received_ns);
    assert_eq!(first, [25 * MS, 30 * MS], "SYN, SYN with ACK, hello, hello, data, data");
    let handshakes = [&pair.client, &pair.server].map(|end| stats(&end.endpoint).handshake_ns);
    assert_eq!(handshakes, [Some(10 * MS); 2], "a: hello, hello; b: from hello to data");
}

// [RFC 8446 §5.1] [RFC 8446 §5.2]
#[test]
fn each_sample_is_one_record_and_costs_22_bytes() {
    let mut pair = pair("tcp", 1, way(MS, 0.0));
    pair.run_until(100 * MS);
    let (before, sent) = (pair.client.transmitted.len(), stats(&pair.client.endpoint).added_bytes);
    for index in 0..20 {
        pair.send(meta(1, index, pair.time), &content(index, 64));
        pair.run_until(pair.time + 10 * MS);
    }
    let sizes = pair.client.transmitted[before..].iter().map(|t| t.wire_bytes as usize);
    assert_eq!(sizes.collect::<Vec<_>>(), [HEADERS + 24 + 64 + 22 + 26; 20]);
    assert_eq!(stats(&pair.client.endpoint).added_bytes - sent, 20 * 22);
    let record = &pair.server.last_received.as_ref().unwrap()[HEADERS..];
    assert_eq!(record[..5], [23, 3, 3, 0, 24 + 64 + 17], "application data, and its length");
    assert!(!record.windows(8).any(|part| content(19, 64).starts_with(part)), "nothing of it can be read");
    let sent = stats(&pair.client.endpoint).added_bytes;
    pair.send(meta(1, 20, pair.time), &content(20, 17_000));
    assert_eq!(stats(&pair.client.endpoint).added_bytes - sent, 17 * 22, "a KiB fills a record");
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    for transport in TRANSPORTS {
        let digest = |seed| {
            let mut session = Session::new(pair(transport, seed, way(2 * MS, 0.01)));
            session.run(SECOND);
            session.pair.digest()
        };
        assert_eq!((digest(1) == digest(1), digest(1) == digest(2)), (true, false), "{transport}");
    }
}

#[test]
fn with_keys_of_sockets_no_two_runs_have_the_same_bytes_whatever_the_seed_is() {
    for transport in TRANSPORTS {
        let hello = |tls| {
            let mut pair = Pair::new(
                1,
                make(transport, Some(tls), 1, Side::A),
                make(transport, Some(tls), 1, Side::B),
                way(MS, 0.0),
                way(MS, 0.0),
            );
            pair.run_until(10 * MS);
            pair.digest()
        };
        let (shared, seeded) = (TlsSecret::Shared([7; 32]), TlsSecret::Seeded);
        assert_eq!((hello(shared) == hello(shared), hello(seeded) == hello(seeded)), (false, true));
        assert_eq!(format!("{shared:?}"), "Shared", "no message shows it");
    }
}

// [RFC 7250 §4]
#[test]
fn both_sides_prove_themselves_by_what_they_share_and_the_seed_decides_nothing() {
    let (one, two) = (TlsSecret::Shared([7; 32]), TlsSecret::Shared([8; 32]));
    for transport in TRANSPORTS {
        for (a, b, arrives) in [
            ((1, one), (2, one), 1),
            ((1, one), (1, two), 0),
            ((1, TlsSecret::Seeded), (1, one), 0),
            ((1, one), (1, TlsSecret::Seeded), 0),
            ((1, TlsSecret::Seeded), (1, TlsSecret::Seeded), 1),
            ((1, TlsSecret::Seeded), (2, TlsSecret::Seeded), 0),
        ] {
            let end = |(seed, tls), side| make(transport, Some(tls), seed, side);
            let (client, server) = (end(a, Side::A), end(b, Side::B));
            let mut pair = Pair::new(1, client, server, way(5 * MS, 0.0), way(5 * MS, 0.0));
            pair.send(meta(1, 0, 0), b"secret");
            pair.run_until(5 * SECOND);
            assert_eq!(pair.server.delivered.len(), arrives, "{transport}: {a:?} {b:?}");
            let [a, b] = [&pair.client, &pair.server].map(|end| stats(&end.endpoint));
            assert_eq!((a.sessions, b.sessions), (arrives as u64, arrives as u64));
            if arrives == 0 {
                assert!(a.refused_handshakes >= 1 && a.refused_connections >= 1, "{transport}: {a:?}");
                // It is told, but nothing proves by whom.
                assert!(b.unproven_alerts >= 1 && b.alerts == 0, "{transport}: {b:?}");
            }
        }
    }
}

#[test]
fn a_side_without_tls_gets_nothing_and_is_told_from_a_forger() {
    for (a, b) in [(SEEDED, None), (None, SEEDED)] {
        let (client, server) = (make("tcp", a, 1, Side::A), make("tcp", b, 1, Side::B));
        let mut pair = Pair::new(1, client, server, way(5 * MS, 0.0), way(5 * MS, 0.0));
        pair.send(meta(1, 0, 0), b"command");
        pair.send_back(meta(2, 0, 0), b"force");
        pair.run_until(3 * SECOND);
        assert!(pair.client.delivered.is_empty() && pair.server.delivered.is_empty());
        let (with, without) =
            if a.is_some() { (&pair.client, &pair.server) } else { (&pair.server, &pair.client) };
        assert_eq!(stats(&with.endpoint).sessions, 0);
        assert!(without.endpoint.0.stats().security.is_none());
        let counted = stats(&with.endpoint).unsealed + without.endpoint.0.stats().malformed;
        assert!(counted >= 1, "{a:?} {b:?}");
    }
}

#[test]
fn a_handshake_with_loss_of_20_percent_is_completed() {
    for transport in TRANSPORTS {
        for seed in 0..100 {
            let mut pair = pair(transport, seed, way(10 * MS, 0.2));
            pair.send(meta(1, 0, 0), b"first");
            pair.send_back(meta(2, 0, 0), b"first");
            pair.run_until(60 * SECOND);
            let arrived = [&pair.client, &pair.server].map(|end| end.delivered.len());
            assert_eq!(arrived, [1, 1], "{transport}, seed {seed}");
        }
    }
}

#[test]
fn every_sample_arrives_once_and_in_order_over_a_bad_network() {
    let bad = Conditions { latency_ns: MS, jitter_ns: 2 * MS, loss: 0.05, duplication: 0.1 };
    let sizes: Vec<_> = (0..60).map(|n| n * 53).collect();
    for seed in 0..8 {
        assert!(arrive_in_order(pair("tcp", seed, bad), &sizes, 30 * SECOND), "seed {seed}");
    }
}

/// Two ends and a wire without delay, on which somebody may change packets.
struct Wire {
    ends: [Boxed; 2],
    now: Time,
    delivered: [Vec<Vec<u8>>; 2],
    unverified_rows: [usize; 2],
    /// Sizes that these rows tell.
    unverified_bytes: Vec<u32>,
}

impl Wire {
    fn new() -> Self {
        let mut ends = [Side::A, Side::B].map(|side| make("tcp", SEEDED, 1, side));
        ends[1].handle_input(0, Input::Timeout); // it listens
        Self::between(ends)
    }

    fn between(ends: [Boxed; 2]) -> Self {
        let (delivered, unverified_bytes) = ([vec![], vec![]], vec![]);
        Self { ends, now: 0, delivered, unverified_rows: [0; 2], unverified_bytes }
    }

    /// Gives an input to an end, and everything that follows to both.
    fn input(&mut self, end: usize, input: Input<'_>, mut change: impl FnMut(usize, &mut Vec<u8>)) {
        self.ends[end].handle_input(self.now, input);
        let mut flight = VecDeque::new();
        loop {
            for from in 0..2 {
                let mut bytes = Vec::new();
                while let Some(output) = self.ends[from].poll_output(&mut bytes) {
                    match output {
                        Output::Transmit(_) => {
                            change(1 - from, &mut bytes);
                            flight.push_back((1 - from, bytes.clone()));
                        }
                        Output::Deliver(_) => self.delivered[from].push(bytes.clone()),
                        Output::Record(r) => {
                            if (r.kind, r.detail) == (Kind::Dropped, DropReason::Unverified as u8) {
                                self.unverified_rows[from] += 1;
                                self.unverified_bytes.push(r.size);
                            }
                        }
                    }
                }
            }
            let Some((to, bytes)) = flight.pop_front() else { return };
            self.ends[to].handle_input(self.now, Input::datagram(&bytes, self.now));
        }
    }

    fn sample(&mut self, index: u32, change: impl FnMut(usize, &mut Vec<u8>)) {
        let bytes = content(index, 64);
        self.input(0, Input::Sample { meta: meta(1, index, self.now), bytes: &bytes }, change);
    }

    fn wait(&mut self, span_ns: Time) {
        self.now += span_ns;
        for end in [0, 1] {
            self.input(end, Input::Timeout, |_, _| {});
        }
    }

    /// Handshakes, and one sample.
    fn begun() -> Self {
        let mut wire = Self::new();
        wire.wait(0);
        wire.sample(0, |_, _| {});
        assert_eq!(wire.delivered[1].len(), 1);
        wire
    }
}

/// A record that promises `length` bytes.
fn promise(bytes: &mut [u8], length: u16) {
    bytes[HEADERS + 3..HEADERS + 5].copy_from_slice(&length.to_be_bytes());
    mend(bytes);
}

// [RFC 8446 §5.2]
#[test]
fn a_forged_header_that_promises_more_than_a_record_ends_the_connection_at_once() {
    for (length, ends) in [(1042, true), (16_384, true), (16_641, true), (65_535, true), (1041, false)] {
        let mut wire = Wire::begun();
        let mut done = false;
        wire.sample(1, |to, bytes| {
            if to == 1 && bytes.len() > HEADERS + 100 && !std::mem::replace(&mut done, true) {
                promise(bytes, length);
            }
        });
        let [a, b] = [0, 1].map(|end| stats(&wire.ends[end]));
        assert_eq!((b.refused_connections, a.alerts), (u64::from(ends), u64::from(ends)), "{length}");
        assert_eq!((wire.unverified_rows, wire.delivered[1].len()), ([0, usize::from(ends)], 1), "{length}");
        // What it can hold up is one record.
        (2..12).for_each(|index| wire.sample(index, |_, _| {}));
        let [a, b] = [0, 1].map(|end| stats(&wire.ends[end]));
        assert_eq!((b.refused_connections, a.alerts, wire.delivered[1].len()), (1, 1, 1), "{length}");
        wire.wait(SECOND);
        wire.sample(12, |_, _| {});
        assert_eq!(wire.delivered[1].last(), Some(&content(12, 64)), "{length}");
    }
}

#[test]
fn a_record_that_stays_incomplete_ends_the_connection_and_an_outage_of_ten_seconds_does_not() {
    let mut wire = Wire::begun();
    let mut done = false;
    wire.sample(1, |to, bytes| {
        if to == 1 && bytes.len() > HEADERS + 100 && !std::mem::replace(&mut done, true) {
            promise(bytes, 1041);
        }
    });
    for second in 0..28 {
        let gone = u64::from(second > 25);
        let [a, b] = [0, 1].map(|end| stats(&wire.ends[end]));
        assert_eq!((b.refused_connections, a.alerts), (gone, gone), "after {second} s");
        wire.wait(SECOND);
    }
    assert_eq!(wire.unverified_rows, [0, 1]);

    let mut wire = Wire::begun();
    let (bytes, mut segments) = (content(1, 3000), 0);
    let damage = |to: usize, bytes: &mut Vec<u8>| bytes[36] ^= u8::from(to == 1);
    wire.input(0, Input::Sample { meta: meta(1, 1, wire.now), bytes: &bytes }, |to, bytes| {
        segments += usize::from(to == 1);
        if segments > 1 {
            damage(to, bytes);
        }
    });
    for _ in 0..100 {
        wire.now += 100 * MS;
        (0..2).for_each(|end| wire.input(end, Input::Timeout, damage));
    }
    assert_eq!(wire.delivered[1].len(), 1);
    for _ in 0..40 {
        wire.wait(100 * MS);
    }
    assert!(wire.delivered[1].last() == Some(&bytes), "the record was completed");
    assert_eq!(stats(&wire.ends[1]).sessions, 1);
}

/// Of a header that is cut, no rest comes: the other side is told, as where a record is.
#[test]
fn a_header_of_a_record_that_stays_incomplete_ends_the_connection_too() {
    for cut in 1..5 {
        let mut wire = Wire::begun();
        let mut done = false;
        let mut change = |to: usize, bytes: &mut Vec<u8>| {
            if to == 1 && std::mem::replace(&mut done, true) {
                bytes[36] ^= 1;
            } else if to == 1 {
                bytes.truncate(HEADERS + cut);
                let length = (bytes.len() as u16).to_be_bytes();
                bytes[2..4].copy_from_slice(&length);
                bytes[10..12].fill(0);
                let mut sum: u32 =
                    bytes[..20].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
                sum = (sum & 0xffff) + (sum >> 16);
                bytes[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
                mend(bytes);
            }
        };
        wire.sample(1, &mut change);
        for _ in 0..280 {
            wire.now += 100 * MS;
            (0..2).for_each(|end| wire.input(end, Input::Timeout, &mut change));
        }
        let [a, b] = [0, 1].map(|end| stats(&wire.ends[end]));
        assert_eq!((b.refused_connections, a.alerts), (1, 1), "{cut} B of a header");
    }
}

/// Changes a packet so that the checksum of TCP does not notice: adds to one word what it takes from another.
fn forge(bytes: &mut [u8], at: usize) -> bool {
    let (one, two) = (HEADERS + at, HEADERS + at + 2);
    if bytes.len() < two + 2 {
        return false;
    }
    let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let (Some(more), Some(less)) = (word(one).checked_add(1), word(two).checked_sub(1)) else { return false };
    bytes[one..one + 2].copy_from_slice(&more.to_be_bytes());
    bytes[two..two + 2].copy_from_slice(&less.to_be_bytes());
    true
}

// [RFC 8446 §5.2] [RFC 8446 §6.2]
#[test]
fn a_changed_byte_ends_the_connection_is_counted_at_both_sides_and_delivers_nothing() {
    let mut changed = 0;
    for at in (0..24 + 64 + 22).step_by(2) {
        let mut wire = Wire::begun();
        let mut done = false;
        wire.sample(1, |to, bytes| {
            done |= to == 1 && !done && bytes.len() > HEADERS + 100 && forge(bytes, at)
        });
        if !done {
            assert_eq!(wire.delivered[1].len(), 2);
            continue;
        }
        // What the record still waits for where its length grew.
        (0..8).for_each(|_| wire.sample(2, |_, _| {}));
        changed += 1;
        let [a, b] = [0, 1].map(|end| stats(&wire.ends[end]));
        assert_eq!(wire.delivered[1].len(), 1, "at {at}: nothing of it is delivered, nor of what follows");
        assert_eq!((b.refused_connections, b.refused_handshakes, b.unsealed), (1, 0, 0), "at {at}");
        assert_eq!((a.alerts, a.unproven_alerts, a.refused_connections, b.alerts), (1, 0, 0, 0), "at {at}");
        assert_eq!((wire.unverified_rows, wire.ends[1].0.stats().malformed), ([0, 1], 0));
        assert_eq!(wire.unverified_bytes, [HEADERS as u32 + 24 + 64 + 22 + 26], "at {at}: as on the wire");
        wire.wait(SECOND);
        wire.sample(3, |_, _| {});
        assert_eq!(wire.delivered[1].last(), Some(&content(3, 64)), "at {at}: the next connection works");
        assert_eq!(stats(&wire.ends[1]).sessions, 2);
    }
    assert!(changed > 40, "{changed}");
}

#[test]
fn a_changed_handshake_is_refused_and_the_next_one_succeeds() {
    let (mut refused, mut waited, mut unread) = (0, 0, 0);
    for (at, to) in (0..200).step_by(6).flat_map(|at| [(at, 0), (at, 1)]) {
        let mut wire = Wire::new();
        let mut done = false;
        wire.input(0, Input::Timeout, |towards, bytes| {
            done |= towards == to && !done && bytes.len() > HEADERS + 100 && forge(bytes, at);
        });
        if !done {
            continue;
        }
        let mut all = [0, 1].map(|end| stats(&wire.ends[end]));
        if all.iter().all(|s| s.sessions == 1) {
            unread += 1; // the version of a record says nothing [RFC 8446 §5.1]
            continue;
        }
        // A change may make a message longer: both sides wait for the rest, and give up.
        if all.iter().all(|s| s.refused_connections == 0) {
            waited += 1;
            for _ in 0..21 {
                wire.wait(SECOND);
            }
            all = [0, 1].map(|end| stats(&wire.ends[end]));
            assert!(all.iter().any(|s| s.expired_handshakes == 1), "{all:?}");
        }
        refused += 1;
        assert!(all.iter().all(|s| s.refused_connections + s.unproven_alerts <= 1), "{all:?}");
        for _ in 0..3 {
            wire.wait(SECOND);
        }
        wire.sample(1, |_, _| {});
        assert_eq!(wire.delivered, [vec![], vec![content(1, 64)]], "at {at} to {to}");
    }
    assert!(refused > 30 && waited > 0 && unread <= 2, "{refused} {waited} {unread}");
}

#[test]
fn a_handshake_message_that_is_longer_than_any_ends_the_connection() {
    let mut b = make("tcp", Some(TlsSecret::Shared([7; 32])), 1, Side::B).0;
    let mut a = Stack::new(&settings(Congestion::Cubic), Side::A, 1);
    let mut flood: Vec<u8> = Vec::new();
    for (number, part) in [&[1, 0, 255, 255][..], &[0; 65_535][..]].concat().chunks(16_000).enumerate() {
        let version = if number == 0 { 1 } else { 3 };
        flood.extend([22, 3, version, (part.len() >> 8) as u8, part.len() as u8]);
        flood.extend(part);
    }
    let (mut sent, mut now) = (0, 0);
    a.connect(now);
    b.handle_input(now, Input::Timeout);
    let mut packet = Vec::new();
    for _ in 0..2_000 {
        now += MS;
        sent += if a.is_established() { a.write(&flood[sent..]) } else { 0 };
        a.poll(now);
        packet.clear();
        while a.pop(&mut packet).is_some() {
            b.handle_input(now, Input::datagram(&packet, now));
            packet.clear();
        }
        b.handle_input(now, Input::Timeout);
        while let Some(output) = b.poll_output(&mut packet) {
            if let Output::Transmit(_) = output {
                a.receive_inside(now, &packet, Ecn::NotCapable);
            }
            packet.clear();
        }
    }
    let counted = b.stats().security.unwrap();
    assert_eq!(
        (counted.refused_connections, counted.sessions),
        (1, 0),
        "{counted:?}, {sent} of {} sent",
        flood.len()
    );
}

/// Who can read a packet can make an alert that fits: it ends a handshake, and is not taken for the peer's word.
// [RFC 8446 §6]
#[test]
fn an_alert_before_the_handshake_is_done_is_nobodys_word() {
    let mut wire = Wire::new();
    let mut done = false;
    wire.input(0, Input::Timeout, |to, bytes| {
        if to == 0 && !done && bytes.len() > HEADERS + 100 {
            done = true;
            for (at, new) in [21u8, 3, 3, 0, 2, 2, 48].into_iter().enumerate() {
                bytes[HEADERS + at] = new;
            }
            mend(bytes);
        }
    });
    assert!(done);
    let a = stats(&wire.ends[0]);
    assert_eq!((a.unproven_alerts, a.alerts, a.sessions), (1, 0, 0), "{a:?}");
}

/// Makes the checksum of a segment right again.
fn mend(bytes: &mut [u8]) {
    bytes[36..38].fill(0);
    let word = |w: &[u8]| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0));
    let pseudo: u32 = bytes[12..20].chunks(2).map(word).sum::<u32>() + 6 + bytes.len() as u32 - 20;
    let mut sum = pseudo + bytes[20..].chunks(2).map(word).sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    bytes[36..38].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// TLS does not cover the headers of TCP: one changed time stamp makes the receiver take what follows for old. The connection stands,
/// nothing comes through, and the sender says so.
#[test]
fn a_changed_time_stamp_freezes_a_connection_and_the_sender_says_so() {
    let mut wire = Wire::begun();
    let mut done = false;
    wire.sample(1, |to, bytes| {
        if to == 1 && !std::mem::replace(&mut done, true) {
            bytes[44] = bytes[44].wrapping_add(0x40);
            mend(bytes);
        }
    });
    assert!(done);
    wire.wait(50 * MS); // it is acknowledged
    let before = wire.delivered[1].len();
    for index in 2..5 {
        wire.wait(SECOND);
        wire.sample(index, |_, _| {});
    }
    assert_eq!(wire.delivered[1].len(), before, "nothing comes through");
    let stats = wire.ends[0].0.stats().connections.unwrap();
    assert_eq!((stats.connections_lost, stats.stalls), (0, 1), "{stats:?}");
    assert!(stats.silent_at_end_ns >= 2 * SECOND, "{stats:?}");
}

/// A handshake of `quic` of which side a's first packet is on its way.
struct Early {
    wire: Wire,
    hello: Vec<u8>,
    /// The numbers that name the connection: what side a sends to, and itself.
    ids: [Vec<u8>; 2],
}

impl Early {
    fn new() -> Self {
        let mut ends = [Side::A, Side::B].map(|side| make("quic", SEEDED, 1, side));
        ends.iter_mut().for_each(|end| end.handle_input(0, Input::Timeout));
        let mut hello = Vec::new();
        assert!(matches!(ends[0].poll_output(&mut hello), Some(Output::Transmit(_))));
        let to = 6 + usize::from(hello[5]);
        let ids = [&hello[6..to], &hello[to + 1..to + 1 + usize::from(hello[to])]].map(<[u8]>::to_vec);
        Self { wire: Wire::between(ends), hello, ids }
    }

    /// A header without a content, to an end.
    fn header(&self, to: usize, first: u8, version: u8) -> Vec<u8> {
        let (own, other) = (&self.ids[1 - to], &self.ids[to]);
        let ids = [&[own.len() as u8], &own[..], &[other.len() as u8], other].concat();
        [&[first, 0, 0, 0, version], &ids[..]].concat()
    }

    /// An Initial with these frames to an end, sealed by the keys that follow from the header of side a's first packet.
    // [RFC 9001 §5.2]
    fn initial(&self, to: usize, frames: &[u8]) -> Vec<u8> {
        let suite = ring::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13().unwrap();
        let side = if to == 1 { TlsSide::Client } else { TlsSide::Server };
        let keys = quic::Keys::initial(quic::Version::V1, suite, suite.quic.unwrap(), &self.ids[0], side);
        let mut payload = [frames, &[0; 40]].concat();
        let length = 0x4000 | (1 + payload.len() + 16) as u16;
        let number = 99;
        let mut header = [&self.header(to, 0xc0, 1)[..], &[0], &length.to_be_bytes(), &[number]].concat();
        let tag = keys.local.packet.encrypt_in_place(number.into(), &header, &mut payload).unwrap();
        payload.extend_from_slice(tag.as_ref());
        let (first, rest) = header.split_first_mut().unwrap();
        keys.local
            .header
            .encrypt_in_place(&payload[3..19], first, rest.last_chunk_mut::<1>().unwrap())
            .unwrap();
        [header, payload].concat()
    }

    /// Brings a datagram to an end before side b's first one reaches side a; its answers are lost if `holds_back`.
    fn forged(mut self, to: usize, datagram: &[u8], holds_back: bool) -> Wire {
        let hello = std::mem::take(&mut self.hello);
        if to == 1 {
            self.wire.ends[1].handle_input(0, Input::datagram(&hello, 0));
        }
        self.wire.ends[to].handle_input(0, Input::datagram(datagram, 0));
        if holds_back {
            while self.wire.ends[to].poll_output(&mut Vec::new()).is_some() {}
        }
        self.wire.input(1, if to == 1 { Input::Timeout } else { Input::datagram(&hello, 0) }, |_, _| {});
        self.wire
    }
}

/// Nobody's keys seal such a packet, so neither side ever takes one, also behind others in a datagram.
// [RFC 9000 §17.2.1] [RFC 9000 §17.2.5]
#[test]
fn packets_without_a_seal_end_no_handshake_of_quic() {
    for (to, coalesced) in [(0, false), (1, false), (0, true), (1, true)] {
        for (first, version, content) in [(0xca, 0, vec![0x6b, 0x33, 0x43, 0xcf]), (0xf7, 1, vec![7; 60])] {
            let early = Early::new();
            let mut forged = if coalesced { early.initial(to, &[1]) } else { Vec::new() };
            forged.extend(early.header(to, first, version));
            forged.extend(content);
            let mut wire = early.forged(to, &forged, false);
            wire.sample(0, |_, _| {});
            let all = [0, 1].map(|end| stats(&wire.ends[end]));
            let place = format!("{first:x} to {to}, coalesced: {coalesced}: {all:?}");
            assert_eq!((wire.delivered[1].len(), all.map(|s| s.sessions)), (1, [1, 1]), "{place}");
            assert_eq!((all[to].unverified, wire.unverified_rows[to]), (1, 1), "{place}");
            assert_eq!(all[1 - to].unverified, 0, "{place}");
        }
    }
}

/// Who reads the first packet of a connection has the keys of an Initial. That ends the handshake, is nobody's word, and the next
/// handshake succeeds.
// [RFC 9001 §5.2] [RFC 9000 §21.2]
#[test]
fn a_forged_initial_ends_one_handshake_of_quic_and_is_counted_as_nobodys_word() {
    let (close, by_application, stream) = ([0x1c, 0, 0, 0], [0x1d, 0, 0, 0], [0x08, 0, 0, 0]);
    for to in [0, 1] {
        for (frames, is_close) in [(close, true), (by_application, true), (stream, false)] {
            let early = Early::new();
            let forged = early.initial(to, &frames);
            let mut wire = early.forged(to, &forged, true);
            let counted = stats(&wire.ends[to]);
            let found = (counted.unproven_alerts, counted.refused_connections, counted.alerts);
            assert_eq!(found, (u64::from(is_close), u64::from(!is_close), 0), "to {to}: {counted:?}");
            (0..40).for_each(|_| wire.wait(500 * MS));
            wire.sample(0, |_, _| {});
            let all = [0, 1].map(|end| stats(&wire.ends[end]));
            assert_eq!((wire.delivered[1].len(), all.map(|s| s.sessions)), (1, [1, 1]), "to {to}: {all:?}");
        }
    }
}

// [RFC 9001 §5.5] [RFC 9000 §13.2.1]
#[test]
fn a_changed_and_a_repeated_packet_of_quic_are_counted_as_what_they_are() {
    let mut session = Session::new(pair("quic", 6, way(2 * MS, 0.0)));
    session.run(SECOND);
    let (mut changed, mut repeated) = (0, 0);
    for round in 0..100 {
        session.run(5 * MS);
        let server = &mut session.pair.server;
        let mut bytes = server.last_received.clone().unwrap();
        if round % 2 == 0 {
            // The number of the connection, or behind it.
            bytes[if round % 4 == 0 { 3 } else { 20 }] ^= 1;
            changed += 1;
        } else {
            repeated += 1;
        }
        server.endpoint.handle_input(session.pair.time, Input::datagram(&bytes, 0));
    }
    session.pair.run_until(session.pair.time + SECOND);
    assert_eq!(session.delivered(), (session.sent, session.sent));
    let (server, counted) = (&session.pair.server, stats(&session.pair.server.endpoint));
    assert_eq!((counted.unverified, counted.replayed), (changed, repeated), "{counted:?}");
    assert_eq!((counted.sessions, counted.refused_connections, counted.alerts), (1, 0, 0));
    assert!(counted.handshake_ns.unwrap() >= 4 * MS && counted.added_bytes > 300, "{counted:?}");
    assert_eq!((server.endpoint.stats().malformed, server.endpoint.stats().duplicates), (0, 0));
    let rows = |reason: DropReason| {
        let of = |r: &&Record| (r.kind, r.detail) == (Kind::Dropped, reason as u8);
        server.records.iter().filter(of).count() as u64
    };
    assert_eq!((rows(DropReason::Unverified), rows(DropReason::Replayed)), (changed, repeated));
}

/// quinn-proto reads the numbers of old packets wrong.
#[test]
fn a_packet_of_quic_that_is_repeated_late_is_known_again() {
    let mut session = Session::new(pair("quic", 6, way(2 * MS, 0.0)));
    session.run(SECOND);
    let mut old = Vec::new();
    for _ in 0..5 {
        session.run(5 * MS);
        old.push(session.pair.server.last_received.clone().unwrap());
    }
    session.run(5 * SECOND);
    for bytes in &old {
        session.pair.server.endpoint.handle_input(session.pair.time, Input::datagram(bytes, 0));
    }
    let counted = stats(&session.pair.server.endpoint);
    assert_eq!((counted.unverified, counted.replayed), (0, 5), "{counted:?}");
}

/// A packet of the handshake overtakes the one that brings its keys, twice: what cannot be read yet may be anybody's, and a copy of
/// it is no replay.
// [RFC 9001 §5.7]
#[test]
fn a_packet_of_quic_that_comes_before_its_keys_is_not_known_again() {
    let mut early = Early::new();
    let sealed = [&early.header(0, 0xe0, 1)[..], &[0x40, 60], &[7; 60]].concat();
    early.wire.ends[0].handle_input(0, Input::datagram(&sealed, 0));
    let mut wire = early.forged(0, &sealed, false);
    wire.sample(0, |_, _| {});
    let (counted, all) = (stats(&wire.ends[0]), wire.ends[0].stats());
    assert_eq!((counted.sessions, counted.replayed, counted.unverified), (1, 0, 0), "{counted:?}");
    assert_eq!((all.duplicates, all.malformed, wire.delivered[1].len()), (2, 0, 1));
}

/// A report compares handshakes: waiting for the run to begin, or for the peer to ask, is no part of one.
#[test]
fn a_handshake_takes_as_long_as_from_its_first_packet_at_either_side() {
    for transport in TRANSPORTS {
        let flows = ChannelContext::of(&[(1, Side::B, "kinematic"), (2, Side::A, "haptic")]);
        let context = ChannelContext { start_ns: SECOND, tls: SEEDED, ..flows };
        let a = Boxed(endpoint(transport, &Value::Null, Side::A, &context).unwrap());
        let b = make(transport, SEEDED, 1, Side::B);
        let mut pair = Pair::new(1, a, b, way(5 * MS, 0.0), way(5 * MS, 0.0));
        pair.run_until(2 * SECOND);
        let handshakes = [&pair.client, &pair.server].map(|end| stats(&end.endpoint).handshake_ns);
        assert_eq!(handshakes, [Some(10 * MS); 2], "{transport}");
    }
}

/// A side that has lost its connection asks the other one, which does not know yet: nobody forges anything.
#[test]
fn nothing_is_called_forged_when_one_direction_of_an_honest_network_is_down() {
    let mut session = Session::new(pair("quic", 6, way(2 * MS, 0.0)));
    session.run(5 * SECOND);
    let late = session.pair.server.last_received.clone().unwrap();
    session.pair.server.sends.loss = 1.0;
    session.run(11_500 * MS);
    session.pair.server.sends.loss = 0.0;
    session.run(20 * SECOND);
    let before = session.pair.server.endpoint.stats();
    assert!(before.malformed > 0, "{before:?}");
    session.pair.server.endpoint.handle_input(session.pair.time, Input::datagram(&late, 0));
    assert_eq!(session.pair.server.endpoint.stats().malformed, before.malformed);
    for (end, replayed) in [(&session.pair.client, 0), (&session.pair.server, 1)] {
        let counted = stats(&end.endpoint);
        assert_eq!((counted.sessions, counted.unverified, counted.replayed), (2, 0, replayed), "{counted:?}");
    }
}

#[test]
fn a_handshake_that_the_network_interrupts_is_given_up_and_nobody_is_accused() {
    for transport in TRANSPORTS {
        let mut pair = pair(transport, 1, way(5 * MS, 0.0));
        pair.run_until(if transport == "tcp" { 12 * MS } else { MS });
        (pair.client.sends.loss, pair.server.sends.loss) = (1.0, 1.0);
        pair.run_until(30 * SECOND);
        (pair.client.sends.loss, pair.server.sends.loss) = (0.0, 0.0);
        pair.run_until(90 * SECOND);
        for end in [&pair.client, &pair.server] {
            let counted = stats(&end.endpoint);
            assert_eq!((counted.sessions, counted.refused_connections), (1, 0), "{transport}: {counted:?}");
            assert!(counted.expired_handshakes >= 1, "{transport}: {counted:?}");
        }
    }
}

/// Handshakes that are given up, of so many on a line.
fn given_up(transport: &str, count: u64, both: Conditions) -> u64 {
    let expired = |seed| {
        let mut pair = pair(transport, seed, both);
        pair.send(meta(1, 0, 0), b"first");
        pair.run_until(30 * SECOND);
        u64::from([&pair.client, &pair.server].iter().any(|end| stats(&end.endpoint).expired_handshakes > 0))
    };
    (0..count).map(expired).sum()
}

#[test]
fn with_30_percent_of_loss_nearly_no_handshake_is_given_up() {
    for transport in TRANSPORTS {
        let found = given_up(transport, 40, way(10 * MS, 0.3));
        assert!(found <= 2, "{transport}: {found} of 40");
    }
}

#[test]
fn with_a_round_trip_of_600_ms_no_handshake_is_given_up() {
    for transport in TRANSPORTS {
        assert_eq!(given_up(transport, 1, way(300 * MS, 0.0)), 0, "{transport}");
        assert_eq!(given_up(transport, 10, way(300 * MS, 0.1)), 0, "{transport}");
    }
}

/// The network goes down in it, or somebody begins it again and again and reads no answer.
#[test]
fn a_handshake_that_stands_still_is_given_up_after_seconds() {
    for (transport, at, loss, end_s) in [("tcp", 12 * MS, 1.0, 11), ("quic", 0, 0.0, 17)] {
        let mut pair = pair(transport, 1, way(5 * MS, 0.0));
        pair.run_until(at);
        (pair.client.sends.loss, pair.server.sends.loss) = (loss, 1.0);
        pair.run_until(9 * SECOND);
        assert_eq!(stats(&pair.server.endpoint).expired_handshakes, 0, "{transport}");
        pair.run_until(end_s * SECOND);
        assert_eq!(stats(&pair.server.endpoint).expired_handshakes, 1, "{transport}");
    }
}

#[test]
fn a_connection_is_opened_when_the_run_begins_whatever_the_clock_shows() {
    for (transport, offset_ns) in TRANSPORTS.into_iter().flat_map(|t| [(t, -20 * SECOND), (t, 20 * SECOND)]) {
        let flows = ChannelContext::of(&[(1, Side::B, "kinematic"), (2, Side::A, "haptic")]);
        let context = ChannelContext { start_ns: offset_ns, tls: SEEDED, ..flows };
        let a = Boxed(endpoint(transport, &Value::Null, Side::A, &context).unwrap());
        let b = make(transport, SEEDED, 1, Side::B);
        let mut pair = Pair::new(1, a, b, way(5 * MS, 0.0), way(5 * MS, 0.0));
        pair.client.clock.offset_ns = offset_ns;
        pair.send(meta(1, 0, 0), b"command");
        pair.run_until(100 * MS);
        assert_eq!(pair.server.delivered.len(), 1, "{transport}, {offset_ns}");
    }
}

/// Behind gaps bytes wait in a ring, and come out of it in two parts: what is behind the forged record is not looked at. Records of a
/// KiB arrive so: the first four behind a gap, more behind a second one, and the forged one in it last.
#[test]
fn a_forged_record_is_counted_once_whatever_has_come_behind_it() {
    for behind in 3..20 {
        let mut wire = Wire::begun();
        // The window grows, so that all of them are sent at once.
        let long = content(1, 60_000);
        wire.input(0, Input::Sample { meta: meta(1, 1, 0), bytes: &long }, |_, _| {});
        let mut packets = Vec::new();
        for index in 2..8 + behind {
            let (bytes, mut packet) = (content(index, 900), Vec::new());
            wire.ends[0].handle_input(0, Input::Sample { meta: meta(1, index, 0), bytes: &bytes });
            while let Some(output) = wire.ends[0].poll_output(&mut packet) {
                if matches!(output, Output::Transmit(_)) {
                    packets.push(packet.clone());
                }
            }
        }
        assert_eq!(packets.len(), 6 + behind as usize);
        assert!((100..140).step_by(4).any(|at| forge(&mut packets[5], at)));
        let (last, early) = (packets.len(), 8);
        let order = (1..5).chain(6..early).chain([0]).chain(early..last).chain([5]);
        for at in order {
            wire.ends[1].handle_input(0, Input::datagram(&packets[at], 0));
        }
        let counted = stats(&wire.ends[1]);
        assert_eq!((counted.refused_connections, counted.alerts), (1, 0), "{behind}: {counted:?}");
    }
}

#[test]
fn a_full_send_buffer_holds_back_records_and_loses_none() {
    let params = json!({"queue_bytes": 100_000_000, "send_buffer_bytes": 4096, "receive_buffer_bytes": 4096});
    let context = ChannelContext { tls: SEEDED, ..ChannelContext::of(&[(1, Side::B, "video")]) };
    let [a, b] = [Side::A, Side::B].map(|side| Boxed(endpoint("tcp", &params, side, &context).unwrap()));
    let mut pair = Pair::new(1, a, b, way(MS, 0.0), way(MS, 0.0));
    for index in 0..50 {
        pair.send(meta(1, index, 0), &content(index, 30_000));
    }
    pair.run_until(30 * SECOND);
    let got: Vec<_> = pair.server.delivered.iter().map(|(_, bytes)| bytes.clone()).collect();
    assert!(got == (0..50).map(|i| content(i, 30_000)).collect::<Vec<_>>(), "{}", got.len());
}
