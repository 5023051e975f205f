//! What each does with queues and a known capacity: who goes first, what is merged, what is left out.

use super::*;
use tcps_core::record::{DropReason, Record};

/// [Al Osman 2007] What a full queue drops leaves a row.
#[test]
fn alphan_tells_what_its_queues_drop() {
    let mut pair = pair("alphan", json!({"rate_bps": 10_000}), RTT);
    (0..400).for_each(|index| pair.send(meta(1, index, 0), &force(index)));
    let dropped: Vec<_> = pair.client.records.iter().filter(|r| r.kind == Kind::Dropped).collect();
    assert_eq!(dropped.len(), 400 - 256 - 1, "256 wait, one has left");
    assert!(dropped.iter().all(|r| r.flow.0 == 1 && r.detail == DropReason::Overload as u8));
    assert!(dropped.iter().map(|r| r.index).eq(1..144), "the oldest give way");
}

/// [Al Osman 2007] ALPHAN: behind a frame of 20 kB at 4 Mbit/s a haptic sample waits for one datagram at most, with
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
        let haptic = pair.server.delivered.iter().filter(|(d, _)| d.meta.flow.0 == 1);
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

/// [Al Osman 2007] Force goes first, then sound, pictures and the rest; of fewer queues the last has all that is left.
#[test]
fn alphan_serves_its_queues_by_the_names_of_flows() {
    let context = ChannelContext::of(&[
        (1, Side::B, "haptic"),
        (2, Side::B, "video"),
        (4, Side::B, "audio"),
        (5, Side::B, "status"),
    ]);
    let order = |queues: u32| {
        let params = json!({"rate_bps": 1_000_000, "queues": queues});
        let side = |side| Boxed(endpoint("alphan", &params, side, &context).unwrap());
        let mut pair = Pair::new(7, side(Side::A), side(Side::B), RTT, RTT);
        // The first leaves at once, and the others wait behind it.
        for (index, flow) in (0..).zip([5, 5, 2, 4, 1]) {
            pair.send(meta(flow, index, 0), &[0; 100]);
        }
        pair.run_until(SECOND);
        pair.client.transmitted.iter().map(|t| t.flow.0).collect::<Vec<_>>()
    };
    assert_eq!(order(4), [5, 1, 4, 2, 5]);
    assert_eq!(order(3), [5, 1, 4, 5, 2]);
    assert_eq!(order(2), [5, 1, 5, 2, 4]);
    assert_eq!(order(1), [5, 5, 2, 4, 1]);
}

/// [Fujimoto 2005] Fixed merging: an eighth of the packets, up to 7 ms more delay, fewer bytes, and a lost packet
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

/// [Fujimoto 2005] The report counts packets by the samples that they are to hold: as many as the span has periods.
#[test]
fn merge_span_tells_how_many_samples_a_packet_holds() {
    for (span_ns, samples) in [(8 * MS, 8), (4 * MS, 4), (1_500_000, 1)] {
        let mut pair = pair("merge-span", json!({"span_ns": span_ns}), RTT);
        assert_eq!(pair.client.endpoint.0.merging(), 1, "none has left");
        for index in 0..8 {
            pair.run_until(Time::from(index) * MS);
            pair.send(meta(1, index, pair.time), &force(index));
        }
        assert_eq!(pair.client.endpoint.0.merging(), samples);
    }
}

/// [Cizmeci 2014] Where the capacity does not carry the pictures, those that wait longest without having begun give way.
#[test]
fn visual_haptic_multiplexing_tells_which_frames_it_drops() {
    let mut pair = pair("visual-haptic", json!({"capacity_bps": 500_000}), RTT);
    for index in 0..10 {
        pair.run_until(Time::from(index) * 10 * MS);
        pair.send(meta(2, index, pair.time), &[index as u8; 2000]);
    }
    pair.run_until(5 * SECOND);
    let rows: Vec<_> = pair.client.records.iter().filter(|r| r.kind == Kind::Dropped).collect();
    assert!(rows.iter().map(|r| r.index).eq(1..8), "{rows:?}: two may wait behind the one that has begun");
    let told = |r: &&Record| (r.flow.0, r.value, r.detail) == (2, 20 * MS, DropReason::Overload as u8);
    assert!(rows.iter().all(told), "{rows:?}: when the second after it came");
    let arrived: Vec<u32> = pair.server.delivered.iter().map(|(d, _)| d.meta.index).collect();
    assert_eq!(arrived, [0, 8, 9]);
}

/// [Cizmeci 2014] A slow line saves up for the smallest packet: 125 packets of 16 B and headers take 2 s at 50 kbit/s.
#[test]
fn visual_haptic_multiplexing_sends_pictures_over_a_slow_line() {
    let mut pair = pair("visual-haptic", json!({"capacity_bps": 50_000}), RTT);
    pair.send(meta(2, 0, 0), &[7; 2000]);
    pair.run_until(5 * SECOND);
    let bytes: u32 = pair.client.transmitted.iter().map(|t| t.wire_bytes).sum();
    let received: Vec<Time> = pair.server.delivered.iter().map(|(d, _)| d.received_ns).collect();
    assert_eq!((bytes, received), (12_500, vec![2 * SECOND + 15 * MS]));
}

/// [Cizmeci 2014] Pictures have what force leaves, and no more, also where a packet of force is larger than two slots.
#[test]
fn visual_haptic_multiplexing_keeps_to_the_capacity_of_a_slow_line() {
    for (capacity_bps, force_ms) in [(64_000, 20), (128_000, 10), (128_000, 7), (200_000, 5), (400_000, 3)] {
        let mut pair = pair("visual-haptic", json!({"capacity_bps": capacity_bps}), RTT);
        for ms in 0..10_000u32 {
            pair.run_until(Time::from(ms) * MS);
            if ms % 100 == 0 {
                pair.send(meta(2, ms / 100, pair.time), &[7; 2000]);
            }
            if ms % force_ms == 0 {
                pair.send(meta(1, ms / force_ms, pair.time), &force(ms));
            }
        }
        pair.run_until(10 * SECOND);
        let bits: u64 = pair.client.transmitted.iter().map(|t| 8 * u64::from(t.wire_bytes)).sum();
        let share = bits as f64 / (10.0 * capacity_bps as f64);
        assert!(
            (0.95..=1.0).contains(&share),
            "{share} of {capacity_bps} bit/s beside force each {force_ms} ms"
        );
    }
}

/// [Cizmeci 2014] Visual-haptic multiplexing at 1 Mbit/s: the bytes of any 10 ms stay within the capacity and two slots,
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
            assert!(newest.flow.0 == 1 && newest.index == index, "force has opened a packet");
        }
        let bytes: u64 = pair.client.transmitted.iter().map(|t| u64::from(t.wire_bytes)).sum();
        sent.push(bytes);
    }
    pair.run_until(3 * SECOND);
    let most = sent.windows(11).map(|w| w[10] - w[0]).max().unwrap();
    assert!(most <= 10 * 125 + 2 * 125, "{most} bytes in 10 ms");
    let got = |flow| pair.server.delivered.iter().filter(move |(d, _)| d.meta.flow.0 == flow);
    assert_eq!((got(1).count(), got(2).count()), (500, 50), "nothing is lost");
    assert!(got(1).all(|(d, _)| d.received_ns - d.meta.origin_ns == 15 * MS));
    let late: Vec<Time> = got(2).map(|(d, _)| (d.received_ns - d.meta.origin_ns) / MS - 15).collect();
    assert!(late.iter().all(|ms| (15..80).contains(ms)), "frames are split over slots: {late:?}");
    let mut plain = super::pair("udp", Value::Null, RTT);
    plain.send(meta(2, 0, 0), &vec![0; 2000]);
    let burst: u32 = plain.client.transmitted.iter().map(|t| t.wire_bytes).sum();
    assert!(burst > 2000, "a whole frame at once");
}

/// [Cizmeci 2014] What force leaves of the capacity is what an encoder may use: nine tenths of all of it in silence, of
/// 368 kbit/s beside 1000 packets of 79 B a second, and of all of it again when force is silent.
#[test]
fn visual_haptic_multiplexing_tells_what_is_left_for_pictures() {
    let params = json!({"capacity_bps": 1_000_000, "overhead_bytes": 67});
    let mut pair = pair("visual-haptic", params, RTT);
    let left_kbps = |pair: &Pair<Boxed, Boxed>| {
        let bps = pair.client.endpoint.0.allowance_bps(FlowId(2)).unwrap();
        (bps / 1e3).round()
    };
    assert_eq!((left_kbps(&pair), pair.client.endpoint.0.allowance_bps(FlowId(1))), (900.0, None));
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
    second(4000, true);
    pair.run_until(8 * SECOND);
    let after_silence = left_kbps(&pair);
    assert!(after_silence > 890.0, "{after_silence}: although no picture has come either");
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
    let frames = pair.server.delivered.iter().filter(|(d, _)| d.meta.flow.0 == 2).count();
    assert_eq!((frames, pair.server.endpoint.stats().incomplete), (40, 0));
}

/// [Gokhale 2013] HoIP serves sound and picture in the order in which they came: behind a frame of a picture a frame of
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
        let audio = pair.server.delivered.iter().find(|(d, _)| d.meta.flow.0 == 4).unwrap();
        (audio.0.received_ns - audio.0.meta.origin_ns) / MS
    };
    assert_eq!((audio_ms("no-merge"), audio_ms("hoip")), (17, 52));
}
