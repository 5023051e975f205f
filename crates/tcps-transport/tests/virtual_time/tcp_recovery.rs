//! Sequences of segments between two ends of a TCP connection: what is sent when, and why.

use proptest::prelude::*;
use std::collections::BTreeMap;
use tcps_core::{
    seed::Stream,
    time::{Time, MS, SECOND},
};
use tcps_transport::{
    tcp::{Congestion, Settings, Stack},
    Side,
};
use tcps_wire::tcp::{Ecn, Ends, Flags, Repr};

const A: [u8; 4] = [192, 0, 2, 1];
const B: [u8; 4] = [192, 0, 2, 2];
const LATENCY_NS: Time = 15 * MS;
const SEGMENT: u64 = 1448;

/// A packet that was sent.
#[derive(Debug, Clone)]
struct Seen {
    at: Time,
    from_a: bool,
    segment: Repr,
    bytes: u64,
}

type Fate<'a> = Box<dyn FnMut(&Seen, usize) -> Vec<Time> + 'a>;

/// Two ends, 15 ms apart, and a hand on the wire: it says for each packet after which delays it arrives.
struct Wire<'a> {
    ends: [Stack; 2],
    now: Time,
    mtu_bytes: usize,
    flight: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    seen: Vec<Seen>,
    fate: Fate<'a>,
    marks: bool,
    /// Bytes that A has written.
    written: u64,
    /// Bytes that B has read, and whether it reads; what A has read.
    got: Vec<u8>,
    reads: bool,
    got_back: Vec<u8>,
}

fn settings(congestion: Congestion) -> Settings {
    let buffer = 1 << 20;
    Settings {
        congestion,
        no_delay: true,
        send_buffer_bytes: buffer,
        receive_buffer_bytes: buffer,
        mtu_bytes: 1500,
        ecn: false,
    }
}

fn parse(from_a: bool, packet: &[u8]) -> (Repr, u64) {
    let (from, to) = if from_a { (A, B) } else { (B, A) };
    let (segment, content) = Repr::parse(packet, &Ends { from: (from, 7), to: (to, 7) }).unwrap();
    (segment, content.len() as u64)
}

impl<'a> Wire<'a> {
    fn of(settings: &Settings, seed: u64, fate: impl FnMut(&Seen, usize) -> Vec<Time> + 'a) -> Self {
        let mut ends = [Stack::new(settings, Side::A, seed), Stack::new(settings, Side::B, seed + 1)];
        ends[1].listen(0);
        ends[0].connect(0);
        let (flight, seen, got, fate) = (BTreeMap::new(), vec![], vec![], Box::new(fate));
        let mtu_bytes = settings.mtu_bytes;
        Self {
            ends,
            now: 0,
            mtu_bytes,
            flight,
            seen,
            fate,
            marks: false,
            written: 0,
            got,
            reads: true,
            got_back: vec![],
        }
    }

    fn new(fate: impl FnMut(&Seen, usize) -> Vec<Time> + 'a) -> Self {
        Self::of(&settings(Congestion::Reno), 1, fate)
    }

    fn collect(&mut self, end: usize) {
        let mut packet = Vec::new();
        while self.ends[end].pop(&mut packet) {
            assert!(packet.len() <= self.mtu_bytes, "{} bytes", packet.len());
            let (segment, bytes) = parse(end == 0, &packet);
            let seen = Seen { at: self.now, from_a: end == 0, segment, bytes };
            let number = self.seen.iter().filter(|s| s.from_a && s.bytes > 0).count();
            for delay_ns in (self.fate)(&seen, number) {
                let key = (self.now + LATENCY_NS + delay_ns, self.seen.len() as u64);
                self.flight.insert(key, (1 - end, packet.clone()));
            }
            self.seen.push(seen);
            packet.clear();
        }
    }

    fn run_until(&mut self, end: Time) {
        loop {
            for side in 0..2 {
                self.ends[side].poll(self.now);
                self.collect(side);
            }
            let wakes = self.ends.iter().filter_map(Stack::wake_ns);
            let next = self.flight.keys().map(|k| k.0).chain(wakes).min();
            let Some(next) = next.filter(|t| *t <= end) else { break };
            assert!(next > self.now || self.flight.keys().any(|k| k.0 <= next), "it makes headway");
            self.now = next.max(self.now);
            while let Some(entry) = self.flight.first_entry().filter(|e| e.key().0 <= self.now) {
                let (to, mut packet) = entry.remove();
                if self.marks && to == 1 {
                    mark(&mut packet);
                }
                assert!(self.ends[to].receive(self.now, &packet));
                self.collect(to);
                let got = if to == 1 { &mut self.got } else { &mut self.got_back };
                if to == 0 || self.reads {
                    self.ends[to].read(|part| got.extend_from_slice(part));
                }
            }
        }
        self.now = end;
    }

    fn write(&mut self, segments: u64) {
        let (start, end) = (self.written, self.written + segments * SEGMENT);
        let bytes: Vec<u8> = (start..end).map(|i| (i % 251) as u8).collect();
        assert_eq!(self.ends[0].write(&bytes), bytes.len());
        self.written = end;
    }

    /// Data of A as segment numbers, with their times in ms, from a moment on.
    fn data(&self, from: Time) -> Vec<(i64, u64)> {
        let first = self.seen[0].segment.sequence.wrapping_add(1);
        let all = self.seen.iter().filter(|s| s.from_a && s.bytes > 0 && s.at >= from);
        all.map(|s| (s.at / MS, u64::from(s.segment.sequence.wrapping_sub(first)) / SEGMENT)).collect()
    }

    /// The most segments of data that A sends in a round trip, from a moment on.
    fn most_in_a_round(&self, from: Time) -> usize {
        let data = self.data(from);
        let within = |start: i64| data.iter().filter(|d| (start..start + 30).contains(&d.0)).count();
        data.iter().map(|d| within(d.0)).max().unwrap_or(0)
    }

    fn assert_whole(&self, segments: u64) {
        let sent: Vec<u8> = (0..segments * SEGMENT).map(|i| (i % 251) as u8).collect();
        assert!(self.got == sent, "{} of {} bytes", self.got.len(), sent.len());
    }
}

/// Marks a packet that may be marked. [RFC 3168 §5]
fn mark(packet: &mut [u8]) {
    if packet[1] & 3 == 2 {
        packet[1] |= 3;
        packet[10..12].fill(0);
        let mut sum: u32 = packet[..20].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
}

fn all(_: &Seen, _: usize) -> Vec<Time> {
    vec![0]
}

/// Loses the first copies of those data segments, by number.
fn losing(numbers: &[usize]) -> impl FnMut(&Seen, usize) -> Vec<Time> + '_ {
    move |seen, number| {
        let is_lost = seen.from_a && seen.bytes > 0 && numbers.contains(&number);
        if is_lost {
            vec![]
        } else {
            vec![0]
        }
    }
}

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
    assert_eq!(wire.ends[0].retransmits(), 0);
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
