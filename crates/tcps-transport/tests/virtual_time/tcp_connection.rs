//! How a TCP connection begins and ends, keeps to the peer's window, and survives segments of another connection.

use crate::tcp_wire::{all, settings, Seen, Wire, A, B, LATENCY_NS, SEGMENT};
use proptest::prelude::*;
use tcps_core::{
    seed::Stream,
    time::{Time, MS, SECOND},
};
use tcps_transport::tcp::{Congestion, Settings, Stack};
use tcps_wire::tcp::{Ends, Flags, Repr};

// [RFC 9293 §3.5] [RFC 7323 §2.2] [RFC 9293 §3.10.7.2] [RFC 9293 §3.10.7.3] [RFC 9293 §3.10.7.4]
#[test]
fn a_connection_is_made_by_three_segments_and_ended_by_four() {
    let mut wire = Wire::new(all);
    wire.run_until(100 * MS);
    wire.write(1);
    wire.ends[0].close(wire.now);
    wire.run_until(200 * MS);
    wire.ends[1].close(wire.now);
    wire.run_until(SECOND);
    let flags: Vec<_> = wire.seen.iter().map(|s| (s.at / MS, s.from_a, s.segment.flags.0)).collect();
    let (syn, ack, psh, fin) = (2, 16, 8, 1);
    assert_eq!(
        flags,
        [
            (0, true, syn),
            (15, false, syn | ack),
            (30, true, ack),
            (100, true, ack | psh | fin),
            (115, false, ack),
            (200, false, ack | psh | fin),
            (215, true, ack),
        ]
    );
    assert_eq!(wire.seen[0].segment.options.mss, Some(1460));
    assert_eq!(wire.seen[1].segment.options.scale, Some(5), "1 MB");
    wire.assert_whole(1);
    assert!(wire.ends[0].is_closed() && wire.ends[1].is_closed() && wire.ends[0].wake_ns().is_none());
}

// [RFC 9293 §3.5]
#[test]
fn two_sides_that_ask_at_once_have_one_connection() {
    let mut wire = Wire::new(all);
    wire.ends[1].connect(0);
    wire.run_until(100 * MS);
    assert!(wire.ends.iter().all(Stack::is_established));
    assert!(wire.seen.len() <= 6, "SYN, SYN with ACK, ACK: {}", wire.seen.len());
    wire.write(20);
    wire.run_until(SECOND);
    wire.assert_whole(20);
}

/// A byte less would cost a round trip: the last segment of the first flight would wait.
// [RFC 9293 §3.10.7.3]
#[test]
fn the_first_flight_fills_the_window_of_the_syn_to_its_last_byte() {
    let two = Settings { receive_buffer_bytes: 2 * SEGMENT as usize, ..settings(Congestion::Reno) };
    let mut wire = Wire::of(&two, 1, all);
    wire.run_until(100 * MS);
    wire.write(10);
    wire.run_until(100 * MS + LATENCY_NS - 1);
    assert_eq!(wire.data(0), [(100, 0), (100, 1)]);
}

/// A window of half a segment, which the peer reads at once: two shorter segments fill it each round trip.
// [RFC 9293 §3.8.6.2.1]
#[test]
fn a_window_smaller_than_a_segment_is_used_each_round_trip() {
    let small = Settings { receive_buffer_bytes: 4096, mtu_bytes: 9000, ..settings(Congestion::Reno) };
    let mut wire = Wire::of(&small, 1, all);
    wire.run_until(100 * MS);
    wire.write(28);
    wire.run_until(100 * MS + 12 * 2 * LATENCY_NS);
    wire.assert_whole(28);
    assert!(wire.seen.iter().filter(|s| s.from_a).all(|s| s.bytes <= 2048));
}

// [RFC 9293 §3.8.6.1]
#[test]
fn a_closed_window_is_asked_about_until_it_opens() {
    let small = Settings { receive_buffer_bytes: 20_000, ..settings(Congestion::Reno) };
    let mut wire = Wire::of(&small, 1, all);
    wire.reads = false;
    wire.run_until(100 * MS);
    wire.write(40);
    wire.run_until(10 * SECOND);
    let questions: Vec<_> = wire.seen.iter().filter(|s| s.from_a && s.bytes == 0 && s.at > SECOND).collect();
    assert!((3..8).contains(&questions.len()), "less and less often: {}", questions.len());
    let answer = wire.seen.iter().rev().find(|s| !s.from_a).unwrap();
    assert_eq!(answer.segment.window, 0);
    wire.reads = true;
    let got = &mut wire.got;
    wire.ends[1].read(|part| got.extend_from_slice(part));
    wire.run_until(20 * SECOND);
    wire.assert_whole(40);
    // First for the rest of a window, which is smaller than a segment, then for the next one.
    assert_eq!((wire.ends[0].retransmits(), wire.ends[0].window_waits()), (0, 2));
}

/// Data both ways; what A sends empty comes 3 ms late, behind data with newer stamps.
// [RFC 7323 §5.3]
#[test]
fn an_acknowledgement_that_data_overtakes_is_not_answered() {
    let mut wire = Wire::new(|seen, _| vec![if seen.from_a && seen.bytes == 0 { 3 * MS } else { 0 }]);
    wire.run_until(100 * MS);
    for _ in 0..200 {
        wire.write(1);
        assert_eq!(wire.ends[1].write(&[1; 3 * SEGMENT as usize]), 3 * SEGMENT as usize);
        wire.run_until(wire.now + 2 * MS);
    }
    wire.run_until(SECOND);
    let of_a = |s: &&Seen| s.from_a && s.segment.flags == Flags::ACK;
    assert!(wire.seen.iter().filter(of_a).filter(|s| s.bytes == 0).count() > 100);
    let answers = wire.seen.iter().filter(|s| !s.from_a && s.bytes == 0 && s.at > 100 * MS).count();
    assert!(answers < 100, "{answers} for 200 segments of data, most of which data acknowledges");
    wire.assert_whole(200);
}

/// Somebody sends old numbers again and again: an empty segment and one with content.
// [RFC 5961 §7]
#[test]
fn old_numbers_are_answered_rarely_unless_there_is_content() {
    let mut wire = Wire::new(all);
    wire.run_until(100 * MS);
    wire.write(20);
    wire.run_until(SECOND);
    let last = wire.seen.iter().rev().find(|s| s.from_a).unwrap().segment;
    let old = Repr { sequence: last.sequence.wrapping_sub(9_000), flags: Flags::ACK, ..last };
    for (content, answers) in [(&b""[..], 1), (b"hands", 10)] {
        let before = wire.seen.len();
        for _ in 0..10 {
            let mut packet = Vec::new();
            old.emit(&Ends { from: (A, 7), to: (B, 7) }, [content, &[]], &mut packet);
            assert!(wire.ends[1].receive(wire.now, &packet));
            wire.collect(1);
        }
        assert_eq!(wire.seen.len() - before, answers);
    }
}

// [RFC 9293 §3.10.7.4]
#[test]
fn an_acknowledgement_of_another_connection_is_reset_while_one_is_made() {
    let mut wire = Wire::new(|seen, _| if seen.from_a && seen.at > 0 { vec![] } else { vec![0] });
    wire.run_until(50 * MS);
    let ack = wire.seen.iter().rev().find(|s| s.from_a).unwrap().segment;
    let other = Repr { acknowledgement: ack.acknowledgement.wrapping_add(1000), ..ack };
    for (segment, is_good) in [(other, false), (ack, true)] {
        let mut packet = Vec::new();
        segment.emit(&Ends { from: (A, 7), to: (B, 7) }, [&[], &[]], &mut packet);
        assert_eq!(wire.ends[1].receive(wire.now, &packet), is_good);
        wire.collect(1);
    }
    let last = wire.seen.last().unwrap().segment;
    assert_eq!((last.flags, last.sequence), (Flags::RST, other.acknowledgement));
    assert!(wire.ends[1].is_established());
}

/// What acknowledges less than a window before what is acknowledged comes from the peer; anything older is a guess.
// [RFC 5961 §5.2]
#[test]
fn data_with_an_acknowledgement_older_than_a_window_is_refused() {
    let small = Settings { receive_buffer_bytes: 20_000, ..settings(Congestion::Reno) };
    for (older, bytes) in [(20_000, 5), (20_001, 0)] {
        let mut wire = Wire::of(&small, 1, all);
        wire.run_until(100 * MS);
        wire.write(40);
        wire.run_until(SECOND);
        let last = wire.seen.iter().rev().find(|s| !s.from_a).unwrap().segment;
        let acknowledgement = last.acknowledgement.wrapping_sub(older);
        let mut packet = Vec::new();
        let forged = Repr { acknowledgement, flags: Flags::ACK, ..last };
        forged.emit(&Ends { from: (B, 7), to: (A, 7) }, [b"hands", &[]], &mut packet);
        assert!(wire.ends[0].receive(wire.now, &packet));
        let mut got = 0;
        wire.ends[0].read(|part| got += part.len());
        assert_eq!(got, bytes);
    }
}

/// Stamps of 1 ms change their sign after 24.9 days.
// [RFC 7323 §5.5]
#[test]
fn a_connection_goes_on_after_a_month_of_silence() {
    for days in [20, 26, 40, 60] {
        let mut wire = Wire::new(all);
        wire.run_until(100 * MS);
        wire.write(20);
        wire.run_until(days * 24 * 3600 * SECOND);
        wire.write(20);
        wire.run_until(wire.now + SECOND);
        wire.assert_whole(40);
    }
}

/// Who does not know the next number must guess: within the window the peer is asked, so that a true end is not lost; elsewhere
/// nobody is told anything. Of 17 segments one is not acknowledged yet.
// [RFC 5961 §3.2]
#[test]
fn only_a_reset_with_the_next_number_ends_a_connection() {
    let (told, next, offered) = (1 + 16 * SEGMENT, 1 + 17 * SEGMENT, 1 + (1 << 20));
    for (position, answers, is_open) in
        [(told, 0, true), (next, 0, false), (next + 1, 1, true), (offered, 1, true), (offered + 1, 0, true)]
    {
        let mut wire = Wire::new(all);
        wire.reads = false;
        wire.run_until(100 * MS);
        wire.write(17);
        wire.run_until(150 * MS);
        let first = wire.seen[0].segment;
        let last = wire.seen.iter().rev().find(|s| !s.from_a).unwrap().segment;
        assert_eq!(u64::from(last.acknowledgement.wrapping_sub(first.sequence)), told);
        let sequence = first.sequence.wrapping_add(position as u32);
        let reset = Repr { sequence, flags: Flags::RST, ..Repr::default() };
        let (mut packet, before) = (Vec::new(), wire.seen.len());
        reset.emit(&Ends { from: (A, 7), to: (B, 7) }, [&[], &[]], &mut packet);
        assert_eq!(wire.ends[1].receive(wire.now, &packet), !is_open, "{position}");
        wire.collect(1);
        assert_eq!(
            (wire.seen.len() - before, wire.ends[1].is_established()),
            (answers, is_open),
            "{position}"
        );
    }
}

// [RFC 5961 §3.2] [RFC 5961 §5.2] [RFC 5961 §4.2] [RFC 5961 §7]
#[test]
fn forged_segments_are_answered_rarely_and_change_nothing() {
    let mut wire = Wire::new(all);
    wire.run_until(100 * MS);
    wire.write(20);
    wire.run_until(SECOND);
    let last = wire.seen.iter().rev().find(|s| s.from_a).unwrap().segment;
    let ends = Ends { from: (A, 7), to: (B, 7) };
    let before = wire.seen.len();
    for step in [5_000, 77_777, 400_000] {
        for flags in [Flags::RST, Flags::SYN, Flags::ACK] {
            let mut packet = Vec::new();
            let mut forged = Repr { sequence: last.sequence.wrapping_add(step), flags, ..last };
            if flags == Flags::ACK {
                forged.acknowledgement = last.acknowledgement.wrapping_add(step);
            }
            forged.emit(&ends, [&[], &[]], &mut packet);
            assert!(!wire.ends[1].receive(wire.now, &packet), "{flags:?} {step}");
            wire.collect(1);
        }
    }
    assert!(wire.seen.len() - before <= 1, "one answer in 500 ms");
    wire.write(5);
    wire.run_until(2 * SECOND);
    wire.assert_whole(25);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Whatever the network loses, repeats and reorders: all bytes, in order, once, and then the end.
    #[test]
    fn every_byte_arrives_once_and_in_order_and_the_connection_ends(
        seed: u64, loss in 0.0..0.3, copies in 0.0..0.3, jitter_ms in 0..40i64, segments in 1..120u64,
        control in prop_oneof![Just(Congestion::Reno), Just(Congestion::Cubic), Just(Congestion::None)],
        ecn: bool, no_delay: bool, receive_buffer_bytes in 5_000..200_000usize,
    ) {
        let mut chance = Stream::new(seed, "fate");
        let settings = Settings { ecn, no_delay, receive_buffer_bytes, ..settings(control) };
        let mut wire = Wire::of(&settings, seed, |_, _| {
            if chance.chance(loss) {
                return vec![];
            }
            let count = 1 + usize::from(chance.chance(copies));
            (0..count).map(|_| (chance.unit() * (jitter_ms * MS) as f64) as Time).collect()
        });
        wire.run_until(100 * SECOND);
        prop_assert!(wire.ends[0].is_established());
        wire.write(segments);
        let back = vec![7; (segments * SEGMENT) as usize];
        assert_eq!(wire.ends[1].write(&back), back.len());
        wire.ends[0].close(wire.now);
        wire.run_until(1_000 * SECOND);
        wire.ends[1].close(wire.now);
        wire.run_until(3_000 * SECOND);
        wire.assert_whole(segments);
        prop_assert!(wire.got_back == back);
        prop_assert!(wire.ends[0].is_closed() && wire.ends[0].wake_ns().is_none());
    }
}
