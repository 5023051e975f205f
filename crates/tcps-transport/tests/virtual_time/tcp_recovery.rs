//! What a TCP connection sends again, when and why: losses, time-outs, copies, marks.

use crate::tcp_wire::{all, losing, settings, Seen, Wire, LATENCY_NS, SEGMENT};
use tcps_core::{
    seed::Stream,
    time::{MS, SECOND},
};
use tcps_transport::tcp::{Congestion, Settings};
use tcps_wire::tcp::{Ecn, Flags};

// [RFC 6928 §2] [RFC 5681 §3.1]
#[test]
fn ten_segments_go_out_at_first_and_twice_as_many_each_round_trip() {
    let mut wire = Wire::new(all);
    wire.run_until(100 * MS);
    wire.write(100);
    wire.run_until(SECOND);
    let data = wire.data(0);
    let sent_at = |ms| data.iter().filter(|d| d.0 == ms).count();
    assert_eq!([100, 130, 160].map(sent_at), [10, 20, 40]);
    wire.assert_whole(100);
}

// [RFC 8985 §6.2] [RFC 6937 §3]
#[test]
fn several_losses_in_a_window_are_repaired_in_one_round_trip() {
    let mut wire = Wire::new(losing(&[12, 15, 20]));
    wire.run_until(100 * MS);
    wire.write(60);
    wire.run_until(SECOND);
    let data = wire.data(0);
    for lost in [12, 15, 20] {
        let times: Vec<_> = data.iter().filter(|d| d.1 == lost).map(|d| d.0).collect();
        assert_eq!(times.len(), 2, "{lost}: {times:?}");
        assert!(times[1] - times[0] <= 31, "{lost} is repeated after a round trip: {times:?}");
    }
    assert_eq!(wire.ends[0].retransmits(), 3);
    wire.assert_whole(60);
}

/// Losses in both directions: full segments have blocks too, and so have those that were full without when they were lost.
// [RFC 9293 §3.7.1]
#[test]
fn segments_with_blocks_are_no_longer_than_the_path_allows() {
    let mut wire = Wire::new(losing(&[12, 15, 20, 41, 50]));
    wire.run_until(100 * MS);
    wire.write(60);
    let back: Vec<u8> = (0..60 * SEGMENT).map(|i| (i % 241) as u8).collect();
    assert_eq!(wire.ends[1].write(&back), back.len());
    wire.run_until(3 * SECOND);
    let with_blocks = |s: &&Seen| s.bytes > 0 && !s.segment.options.sack.as_slice().is_empty();
    assert!(wire.seen.iter().filter(with_blocks).count() > 10);
    wire.assert_whole(60);
    assert!(wire.got_back == back);
}

// [RFC 8985 §7] [RFC 8985 §7.2] [RFC 8985 §7.3]
#[test]
fn a_lost_tail_is_probed_after_two_round_trips() {
    let mut wire = Wire::new(losing(&[4]));
    wire.run_until(100 * MS);
    wire.write(5);
    wire.run_until(SECOND);
    let repeats: Vec<_> = wire.data(101 * MS);
    // Segments 0 to 3 are acknowledged at 130 ms; 4 alone is in flight: 2 * 30 ms, and 200 ms for a delayed answer.
    assert_eq!(repeats.len(), 1);
    assert_eq!(repeats[0].1, 4);
    assert!((130 + 200..=130 + 270).contains(&repeats[0].0), "{repeats:?}");
    wire.assert_whole(5);
    let mut wire = Wire::new(losing(&[3, 4]));
    wire.run_until(100 * MS);
    wire.write(5);
    wire.run_until(SECOND);
    let repeats = wire.data(101 * MS);
    // Two in flight: 2 * 30 + 8 ms after the last answer; the answer of the probe shows the other loss.
    assert_eq!(repeats[..2], [(198, 4), (228, 3)], "{repeats:?}");
    wire.assert_whole(5);
}

// [RFC 6298 §5] [RFC 5682 §3.1] [RFC 6298 §5.4] [RFC 8985 §6.3] [RFC 5682 §2.1]
#[test]
fn after_a_time_out_what_was_in_flight_is_sent_again() {
    // An outage of everything from A from 100 ms to 900 ms.
    let mut wire = Wire::new(|seen, _| {
        let is_out = seen.from_a && (100 * MS..900 * MS).contains(&seen.at);
        if is_out {
            vec![]
        } else {
            vec![0]
        }
    });
    wire.run_until(100 * MS);
    wire.write(10);
    wire.run_until(5 * SECOND);
    let repeats = wire.data(101 * MS);
    // A probe after 2 * 30 + 8 ms, the time-out 230 ms after the probe, and twice that again.
    assert_eq!(repeats[0], (168, 9));
    assert_eq!(repeats[1], (398, 0));
    assert_eq!(repeats[2], (858, 0));
    assert_eq!(repeats[3].1, 0);
    assert_eq!(repeats[3].0, 858 + 920);
    wire.assert_whole(10);
}

/// The round trip is 2.5 s: SYN is sent again, and the first segment as a probe after 1 s, but not for a time-out.
// [RFC 6298 §5.7]
#[test]
fn a_round_trip_longer_than_the_first_time_out_costs_no_time_out_of_data() {
    let mut wire = Wire::new(|_, _| vec![1250 * MS - LATENCY_NS]);
    wire.run_until(6 * SECOND);
    wire.write(1);
    wire.run_until(20 * SECOND);
    wire.assert_whole(1);
    assert_eq!(wire.data(0), [(6000, 0), (7000, 0)]);
}

// [RFC 5682 §3.1]
#[test]
fn a_time_out_by_a_pause_of_the_network_is_taken_back_and_little_sent_again() {
    let mut wire = Wire::new(|seen, _| {
        // Nothing is lost: what A sends from 160 to 900 ms arrives from then on.
        let is_held = seen.from_a && (160 * MS..900 * MS).contains(&seen.at);
        vec![if is_held { 900 * MS - seen.at } else { 0 }]
    });
    wire.run_until(100 * MS);
    wire.write(200);
    wire.run_until(3 * SECOND);
    wire.assert_whole(200);
    assert!(wire.ends[0].retransmits() <= 4, "{} were sent again", wire.ends[0].retransmits());
    let data = wire.data(900 * MS);
    let burst = data.iter().filter(|d| d.0 < 960).count();
    assert!(burst > 20, "the window is what it was: {burst}");
}

// [RFC 8985 §6.2] [RFC 2883 §4]
#[test]
fn reordering_within_a_quarter_of_a_round_trip_costs_nothing() {
    let mut wire = Wire::new(|seen, number| {
        let is_late = seen.from_a && seen.bytes > 0 && number % 10 == 3;
        vec![if is_late { 3 * MS } else { 0 }]
    });
    wire.run_until(100 * MS);
    wire.write(5);
    wire.run_until(200 * MS);
    for _ in 0..50 {
        wire.write(2);
        wire.run_until(wire.now + 2 * MS);
    }
    wire.run_until(SECOND);
    assert_eq!(wire.ends[0].retransmits(), 0);
    assert_eq!(wire.got.len() as u64, 105 * SEGMENT);
}

/// Reno's window is 10 behind a loss and grows by one each round trip. A later segment arrives twice.
// [RFC 3708 §3]
#[test]
fn a_copy_that_the_network_makes_takes_no_reduction_back() {
    let mut wire = Wire::new(|seen, number| match number {
        12 if seen.bytes > 0 => vec![],
        150 if seen.bytes > 0 => vec![0, MS],
        _ => vec![0],
    });
    wire.run_until(100 * MS);
    wire.write(700);
    wire.run_until(3 * SECOND);
    wire.assert_whole(700);
    assert_eq!(wire.ends[0].retransmits(), 1);
    assert!(wire.most_in_a_round(250 * MS) < 50, "{}", wire.most_in_a_round(250 * MS));
}

/// A recovery that did not end would keep the window at the threshold for ever, and repair a second loss without a reduction.
// [RFC 5681 §3.1] [RFC 6675 §5]
#[test]
fn after_a_recovery_the_window_grows_by_one_a_round_trip_and_the_next_loss_halves_it() {
    let mut wire = Wire::new(losing(&[12, 150]));
    wire.run_until(100 * MS);
    wire.write(700);
    wire.run_until(3 * SECOND);
    wire.assert_whole(700);
    let data = wire.data(0);
    let sent = |from: i64| data.iter().filter(|d| (from..from + 30).contains(&d.0)).count();
    assert_eq!(sent(430), 19, "in the round trip of the second loss");
    assert_eq!([491, 791, 1091].map(sent), [9, 19, 29], "each ten round trips later");
}

/// The network was down: all that was in flight is lost, and the window begins with one segment.
// [RFC 5681 §3.1] [RFC 5682 §3.1]
#[test]
fn a_time_out_is_not_taken_back_where_everything_was_lost() {
    let mut wire = Wire::new(|seen, _| {
        let is_out = seen.from_a && (100 * MS..900 * MS).contains(&seen.at);
        if is_out {
            vec![]
        } else {
            vec![0]
        }
    });
    wire.run_until(100 * MS);
    wire.write(60);
    wire.run_until(5 * SECOND);
    wire.assert_whole(60);
    let data = wire.data(0);
    let sent = |from: i64| data.iter().filter(|d| (from..from + 30).contains(&d.0)).count();
    let rounds = [1710, 1740, 1770, 1800, 1830, 1860].map(sent);
    assert_eq!(rounds, [1, 2, 2, 4, 5, 6], "a repeat, two that test it, and slow start up to half of ten");
}

// [RFC 3168 §6.1.1] [RFC 3168 §6.1.2] [RFC 3168 §6.1.3]
#[test]
fn a_mark_halves_the_window_and_nothing_is_sent_again() {
    let mut wire = Wire::of(&Settings { ecn: true, ..settings(Congestion::Reno) }, 1, all);
    wire.run_until(100 * MS);
    let handshake = [0, 1].map(|i| wire.seen[i].segment.flags);
    assert!(handshake[0].has(Flags(0xc2)) && handshake[1].has(Flags(0x52)));
    wire.write(300);
    wire.run_until(200 * MS);
    wire.marks = true;
    wire.run_until(206 * MS);
    wire.marks = false;
    wire.run_until(SECOND);
    assert_eq!(wire.ends[0].retransmits(), 0);
    let first_echo =
        wire.seen.iter().find(|s| !s.from_a && s.at > 100 * MS && s.segment.flags.has(Flags::ECE));
    let told = wire.seen.iter().find(|s| s.from_a && s.bytes > 0 && s.segment.flags.has(Flags::CWR)).unwrap();
    assert!(told.at >= first_echo.unwrap().at + LATENCY_NS);
    assert_eq!(told.segment.ecn, Ecn::Capable);
    let late = wire.seen.iter().filter(|s| !s.from_a && s.at > told.at + 2 * LATENCY_NS + MS);
    assert!(late.clone().count() > 10 && late.clone().all(|s| !s.segment.flags.has(Flags::ECE)));
    wire.assert_whole(300);
}

/// After a loss at a window of about 20, CUBIC is back there after 3 s. A pause is none of these, whatever its length.
// [RFC 9438 §4.2]
#[test]
fn cubic_does_not_grow_while_nothing_is_sent() {
    for pause_ns in [100 * MS, 30 * SECOND] {
        let mut wire = Wire::of(&settings(Congestion::Cubic), 1, losing(&[12]));
        wire.run_until(100 * MS);
        wire.write(100);
        wire.run_until(SECOND + pause_ns);
        wire.write(600);
        let begin = wire.now;
        wire.run_until(begin + 400 * MS);
        let most = wire.most_in_a_round(begin);
        assert!((12..40).contains(&most), "{most} after a pause of {pause_ns} ns");
        wire.run_until(begin + 5 * SECOND);
        wire.assert_whole(700);
    }
}

// [RFC 9293 §3.4]
#[test]
fn numbers_wrap_in_the_middle_of_losses() {
    let near = |seed: &u64| Stream::new(*seed, "tcp").bits() as u32 > u32::MAX - 60_000;
    let seed = (0..).find(near).unwrap();
    let mut wire =
        Wire::of(&settings(Congestion::Cubic), seed, losing(&[20, 30, 38, 39, 40, 41, 42, 44, 60]));
    wire.run_until(100 * MS);
    wire.write(100);
    wire.run_until(5 * SECOND);
    let numbers: Vec<_> = wire.seen.iter().filter(|s| s.from_a).map(|s| s.segment.sequence).collect();
    assert!(numbers[0] > u32::MAX - 60_000 && numbers.iter().any(|n| *n < 100_000), "they wrap");
    wire.assert_whole(100);
    assert_eq!(wire.ends[0].retransmits(), 9);
}
