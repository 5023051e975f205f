//! The transports "after ..." between two ends in virtual time, each against plain UDP under the same conditions.

use crate::pair::{Boxed, Conditions, Pair};
use proptest::prelude::*;
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output},
    record::{DropReason, Kind},
    sample::{Echo, Meta},
    seed::Stream,
    time::{Time, MS, SECOND},
};
use tcps_transport::{endpoint, ChannelContext, Side};

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

fn meta(flow: u16, index: u32, origin_ns: Time) -> Meta {
    Meta { flow, index, origin_ns, echo: None }
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

// [PROTOCOLS 6.1]
#[test]
fn echo_commands_arrive_on_their_samples_once() {
    for name in ALL {
        let echo = |index| Echo { target: 5, sequence: index, reply_to: 1, injected_ns: 3 };
        let mut pair = pair(name, fast(name), Conditions { duplication: 0.5, ..RTT });
        for index in 0..50 {
            pair.run_until(Time::from(index) * 10 * MS);
            let tagged = Meta { echo: Some(echo(index)), ..meta(1, index, pair.time) };
            pair.run_until(pair.time + 9 * MS);
            pair.send(tagged, &force(index));
            pair.send(Meta { flow: 2, ..tagged }, &[9; 3000]);
        }
        pair.run_until(5 * SECOND);
        for flow in [1, 2] {
            let of_flow = pair.server.delivered.iter().filter(|(d, _)| d.meta.flow == flow);
            let got: BTreeSet<u32> = of_flow.filter_map(|(d, _)| Some(d.meta.echo?.sequence)).collect();
            assert_eq!(got, (0..50).collect(), "{name}");
        }
        assert_eq!(pair.server.delivered.len(), 100, "{name}");
    }
}

/// [PROTOCOLS 3.12] Retransmission on request: plain UDP loses what the network loses; here nearly everything comes,
/// the lost samples between 1.5 and 2.5 round trips after they were made, at the price of the requests.
#[test]
fn nack_mends_losses_a_round_trip_later() {
    let lossy = Conditions { loss: 0.1, ..RTT };
    let (plain, nack) = (run("udp", Value::Null, lossy), run("nack", Value::Null, lossy));
    assert!(plain.lost() > 200, "{}", plain.lost());
    assert!(nack.lost() < 30, "{}", nack.lost());
    let late: Vec<Time> = nack.delays_ns.values().copied().filter(|d| *d > 20 * MS).collect();
    assert!(late.len() > 200 && late.iter().all(|d| (45 * MS..110 * MS).contains(d)), "{late:?}");
    assert!(!nack.pair.server.transmitted.is_empty() && plain.pair.server.transmitted.is_empty());
    assert!(nack.bytes > plain.bytes * 105 / 100);
}

/// [PROTOCOLS 3.12] A coarser copy: a lost sample is replaced two samples later, wrong by less than 0.4 %, for 11 B and
/// the sequence a packet more; nothing is asked for.
#[test]
fn a_coarse_copy_replaces_a_lost_sample() {
    let lossy = Conditions { loss: 0.1, ..RTT };
    let (plain, coarse) = (run("udp", Value::Null, lossy), run("coarse-copy", Value::Null, lossy));
    assert!(plain.lost() > 200 && coarse.lost() < 60, "{} {}", plain.lost(), coarse.lost());
    let mut restored = 0;
    for (delivery, bytes) in &coarse.pair.server.delivered {
        for (got, sent) in bytes.chunks(4).zip(force(delivery.meta.index).chunks(4)) {
            let value = |b: &[u8]| f32::from_be_bytes(b.try_into().unwrap());
            assert!((value(got) / value(sent) - 1.0).abs() < 0.004, "{got:?} for {sent:?}");
        }
        restored += usize::from(*bytes != force(delivery.meta.index));
    }
    assert!(restored > 200, "{restored}");
    assert!(coarse.pair.server.transmitted.is_empty());
    assert_eq!(coarse.bytes, plain.bytes + 3000 * 4 + 2998 * 11);
}

/// [PROTOCOLS 3.9] Smoothed SCTP: delay is evened out to the smallest plus 20 ms, and every tenth sample survives a loss
/// that plain UDP does not mend.
#[test]
fn smoothed_sctp_evens_out_the_delay_and_keeps_its_keys() {
    let rough = Conditions { loss: 0.1, jitter_ns: 3 * MS, ..RTT };
    let (plain, smooth) = (run("udp", Value::Null, rough), run("smoothed-sctp", Value::Null, rough));
    let spread = |run: &Run| {
        let mut all: Vec<Time> = run.delays_ns.values().copied().collect();
        all.sort_unstable();
        all[all.len() * 9 / 10] - all[all.len() / 10]
    };
    assert!(spread(&plain) > 5 * MS, "{}", spread(&plain));
    assert!(spread(&smooth) <= 2 * MS, "{}", spread(&smooth));
    let keys = |run: &Run| run.delays_ns.keys().filter(|i| *i % 10 == 0).count();
    assert!(keys(&plain) < 290, "{}", keys(&plain));
    assert!(keys(&smooth) >= 299, "{}", keys(&smooth));
    assert!(smooth.lost() > 150, "the others are not sent again: {}", smooth.lost());
}

/// [PROTOCOLS 3.10] IRTP: losses halve the rate, the newest sample replaces those that wait, crucial ones come.
#[test]
fn irtp_slows_down_at_losses_and_keeps_its_crucial_samples() {
    let clean = run("irtp", Value::Null, RTT);
    assert!(clean.given_up() < 10 && clean.lost() == 0, "{} {}", clean.given_up(), clean.lost());
    let lossy = Conditions { loss: 0.05, ..RTT };
    let (plain, irtp) = (run("udp", Value::Null, lossy), run("irtp", Value::Null, lossy));
    assert!(irtp.given_up() > 1000, "{}", irtp.given_up());
    assert!(irtp.bytes < plain.bytes * 3 / 4, "{} {}", irtp.bytes, plain.bytes);
    let crucial = irtp.delays_ns.keys().filter(|i| *i % 10 == 0).count();
    assert!(crucial >= 299, "{crucial}");
}

/// [PROTOCOLS 3.10] The network's copies of datagrams, and keys that were sent again, do not hide that others were lost.
#[test]
fn irtp_sees_losses_behind_copies() {
    let copied = Conditions { loss: 0.05, duplication: 1.0, ..RTT };
    let irtp = run("irtp", json!({"key_every": 2, "tries": 10}), copied);
    assert!(irtp.given_up() > 1000, "{}", irtp.given_up());
}

/// [PROTOCOLS 3.9] A key that is never acknowledged is given up, and counted.
#[test]
fn keys_that_are_given_up_are_counted() {
    for name in ["smoothed-sctp", "irtp"] {
        let silent = run(name, json!({"key_every": 10}), Conditions { loss: 1.0, ..RTT });
        let stats = silent.pair.client.endpoint.stats();
        assert!(stats.unanswered >= 270, "{name}, of 300, 30 of which still wait: {stats:?}");
    }
}

/// [PROTOCOLS 3.7] What a full queue drops leaves a row.
#[test]
fn alphan_tells_what_its_queues_drop() {
    let mut pair = pair("alphan", json!({"rate_bps": 10_000}), RTT);
    (0..400).for_each(|index| pair.send(meta(1, index, 0), &force(index)));
    let dropped: Vec<_> = pair.client.records.iter().filter(|r| r.kind == Kind::Dropped).collect();
    assert_eq!(dropped.len(), 400 - 256 - 1, "256 wait, one has left");
    assert!(dropped.iter().all(|r| r.flow == 1 && r.detail == DropReason::Overload as u8));
    assert!(dropped.iter().map(|r| r.index).eq(1..144), "the oldest give way");
}

/// [PROTOCOLS 3.7] ALPHAN: behind a frame of 20 kB at 4 Mbit/s a haptic sample waits for one datagram at most, with
/// one queue (as with plain UDP, whose datagrams stand in line) for the whole frame.
#[test]
fn alphan_lets_haptic_samples_pass_a_frame() {
    let longest = |queues: u32| {
        let mut pair = pair("alphan", json!({"rate_bps": 4_000_000, "queues": queues}), RTT);
        pair.send(meta(2, 0, 0), &vec![1; 20_000]);
        for index in 0..60u32 {
            pair.run_until(Time::from(index) * MS);
            pair.send(meta(1, index, pair.time), &force(index));
        }
        pair.run_until(SECOND);
        assert_eq!(pair.server.delivered.len(), 61);
        let haptic = pair.server.delivered.iter().filter(|(d, _)| d.meta.flow == 1);
        haptic.map(|(d, _)| d.received_ns - d.meta.origin_ns).max().unwrap() - 15 * MS
    };
    assert!(longest(4) <= 2_600_000, "{}", longest(4));
    assert!(longest(1) > 30 * MS, "{}", longest(1));
    let charged = |name, size: usize| {
        let mut pair = pair(name, Value::Null, RTT);
        pair.send(meta(1, 0, 0), &vec![0; size]);
        pair.client.transmitted[0].wire_bytes
    };
    assert_eq!((charged("alphan", 12), charged("udp", 12)), (12 + 16 + 54, 12 + 24 + 54));
}

/// [PROTOCOLS 3.12] Fixed merging: an eighth of the packets, up to 7 ms more delay, fewer bytes, and a lost packet
/// loses eight samples.
#[test]
fn merge_span_saves_bytes_and_costs_7_ms() {
    let plain = run("udp", json!({"overhead_bytes": 62}), RTT);
    let merged = run("merge-span", json!({"overhead_bytes": 62}), RTT);
    assert_eq!(merged.pair.client.transmitted.len(), 375);
    assert_eq!((plain.bytes, merged.bytes), (3000 * 74, 3000 * 12 + 375 * 62));
    assert_eq!(merged.lost(), 0);
    let delays: BTreeSet<Time> = merged.delays_ns.values().map(|d| d / MS).collect();
    assert_eq!(delays, (15..=22).collect());
    assert!(plain.delays_ns.values().all(|d| *d <= 16 * MS));
    let lossy = run("merge-span", Value::Null, Conditions { loss: 0.05, ..RTT });
    assert_eq!(lossy.lost() % 8, 0, "{}", lossy.lost());
    assert!(lossy.lost() > 0);
}

/// [PROTOCOLS 3.4] Visual-haptic multiplexing at 1 Mbit/s: the bytes of any 10 ms stay within the capacity and two slots,
/// and force leaves in the millisecond in which it is made; plain UDP puts the whole frame in front of it.
#[test]
fn visual_haptic_multiplexing_keeps_to_the_capacity() {
    let mut pair = pair("visual-haptic", json!({"capacity_bps": 1_000_000, "overhead_bytes": 67}), RTT);
    let mut sent = Vec::new();
    for index in 0..2000u32 {
        pair.run_until(Time::from(index) * MS);
        if index % 40 == 0 {
            pair.send(meta(2, index / 40, pair.time), &vec![index as u8; 2000]);
        }
        // Contact in every other 100 ms; a sampler has left out the rest.
        if index / 100 % 2 == 0 && index % 2 == 0 {
            pair.send(meta(1, index, pair.time), &force(index));
            let newest = pair.client.transmitted.last().unwrap();
            assert!(newest.flow == 1 && newest.index == index, "force has opened a packet");
        }
        let bytes: u64 = pair.client.transmitted.iter().map(|t| u64::from(t.wire_bytes)).sum();
        sent.push(bytes);
    }
    pair.run_until(3 * SECOND);
    let most = sent.windows(11).map(|w| w[10] - w[0]).max().unwrap();
    assert!(most <= 10 * 125 + 2 * 125, "{most} bytes in 10 ms");
    let got = |flow| pair.server.delivered.iter().filter(move |(d, _)| d.meta.flow == flow);
    assert_eq!((got(1).count(), got(2).count()), (500, 50), "nothing is lost");
    assert!(got(1).all(|(d, _)| d.received_ns - d.meta.origin_ns == 15 * MS));
    let late: Vec<Time> = got(2).map(|(d, _)| (d.received_ns - d.meta.origin_ns) / MS - 15).collect();
    assert!(late.iter().all(|ms| (15..80).contains(ms)), "frames are split over slots: {late:?}");
    let mut plain = crate::after::pair("udp", Value::Null, RTT);
    plain.send(meta(2, 0, 0), &vec![0; 2000]);
    let burst: u32 = plain.client.transmitted.iter().map(|t| t.wire_bytes).sum();
    assert!(burst > 2000, "a whole frame at once");
}

/// [PROTOCOLS 3.4] What force leaves of the capacity is what an encoder may use: nine tenths of all of it in silence, of
/// 368 kbit/s beside 1000 packets of 79 B a second, and of all of it again when force is silent.
#[test]
fn visual_haptic_multiplexing_tells_what_is_left_for_pictures() {
    let params = json!({"capacity_bps": 1_000_000, "overhead_bytes": 67});
    let mut pair = pair("visual-haptic", params, RTT);
    let left_kbps = |pair: &Pair<Boxed, Boxed>| {
        let bps = pair.client.endpoint.0.allowance_bps(2).unwrap();
        (bps / 1e3).round()
    };
    assert_eq!((left_kbps(&pair), pair.client.endpoint.0.allowance_bps(1)), (900.0, None));
    let mut second = |from: u32, force_too: bool| {
        for index in from..from + 2000 {
            pair.run_until(Time::from(index) * MS);
            if index % 40 == 0 {
                pair.send(meta(2, index / 40, pair.time), &[0; 200]);
            }
            if force_too {
                pair.send(meta(1, index, pair.time), &force(index));
            }
        }
        left_kbps(&pair)
    };
    let beside_force = second(0, true);
    assert!((beside_force - 0.9 * 368.0).abs() < 5.0, "{beside_force}");
    let alone = second(2000, false);
    assert!(alone > 890.0, "{alone}");
}

/// A network that delivers most datagrams twice spoils no frame: a first part that comes again is nothing new.
#[test]
fn repeated_parts_leave_frames_whole() {
    let twice = Conditions { duplication: 0.7, ..RTT };
    let mut pair = pair("visual-haptic", json!({"capacity_bps": 1_000_000}), twice);
    for index in 0..40u32 {
        pair.run_until(Time::from(index) * 80 * MS);
        pair.send(meta(2, index, pair.time), &vec![index as u8; 2000]);
    }
    pair.run_until(5 * SECOND);
    let frames = pair.server.delivered.iter().filter(|(d, _)| d.meta.flow == 2).count();
    assert_eq!((frames, pair.server.endpoint.stats().incomplete), (40, 0));
}

/// [PROTOCOLS 3.8] HoIP serves sound and picture in the order in which they came: behind a frame of a picture a frame of
/// sound waits 34 ms longer than with strict priority.
#[test]
fn hoip_lets_sound_wait_behind_the_picture() {
    let audio_ms = |name| {
        let mut pair = pair(name, Value::Null, RTT);
        pair.send(meta(2, 0, 0), &[1; 2000]);
        pair.send(meta(4, 0, 0), &[2; 160]);
        for index in 0..60u32 {
            pair.run_until(Time::from(index) * MS);
            pair.send(meta(1, index, pair.time), &force(index));
        }
        pair.run_until(SECOND);
        let audio = pair.server.delivered.iter().find(|(d, _)| d.meta.flow == 4).unwrap();
        (audio.0.received_ns - audio.0.meta.origin_ns) / MS
    };
    assert_eq!((audio_ms("no-merge"), audio_ms("hoip")), (17, 52));
}

/// [PROTOCOLS 3.12] Loss-triggered merging: where a tenth is lost for seconds, k grows to 4 and the packets of no merging
/// become fewer; contact, when it is made, leaves at once.
#[test]
fn loss_triggered_merging_sends_fewer_packets_where_much_is_lost() {
    let lossy = Conditions { loss: 0.1, ..RTT };
    let still = |name| {
        let mut pair = pair(name, Value::Null, lossy);
        for index in 0..6000u32 {
            pair.run_until(Time::from(index) * MS);
            let contact = index == 5502;
            pair.send(
                meta(1, index, pair.time),
                &[if contact { 2.0f32 } else { 1.0 }; 3].map(f32::to_be_bytes).concat(),
            );
            if contact && name == "loss-triggered" {
                let before = pair.client.transmitted.last().unwrap();
                assert!(before.index + 4 > index, "its packet has left");
            }
        }
        pair
    };
    let (plain, merged) = (still("no-merge"), still("loss-triggered"));
    let late = |pair: &Pair<Boxed, Boxed>| pair.client.transmitted.iter().filter(|t| t.index >= 5000).count();
    assert_eq!(late(&plain), 1000);
    assert!((250..255).contains(&late(&merged)), "{}", late(&merged));
    assert_eq!(merged.client.endpoint.0.merging(), 4);
    let clean = run("loss-triggered", Value::Null, RTT);
    assert!(clean.pair.client.transmitted.len() >= 3000, "nothing lost, nothing merged");
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
            let whole = match d.meta.flow {
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
                    to.handle_input(now, Input::Datagram { bytes: &bytes, received_ns: now });
                }
                receiver.handle_input(now, Input::Timeout);
                while let Some(output) = receiver.poll_output(&mut buf) {
                    if let Output::Deliver(d) = output {
                        prop_assert!(matches!(d.meta.flow, 1 | 2 | 4), "{name}: flow {}", d.meta.flow);
                    }
                }
                prop_assert!(receiver.poll_timeout().is_none_or(|t| t > now), "{name} would be called at once");
            }
        }
    }
}
