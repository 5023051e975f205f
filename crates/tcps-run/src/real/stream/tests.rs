//! What a stream does with a kernel that is there.

use super::*;
use serde_json::{json, Value};
use std::{
    net::Ipv4Addr,
    thread::sleep,
    time::{Duration, Instant},
};
use tcps_core::{endpoint::ConnectionStats, ids::ChannelId, record::Kind};
use tcps_transport::STALL_NS;
use tcps_wire::header::Repr;

const END_NS: Time = 100 * SECOND;

struct Pair {
    a: Stream,
    b: Stream,
    /// What the streams take for the time.
    now: Time,
    came: Vec<Vec<u8>>,
    rows: Vec<Record>,
}

fn stream(side: Side, params: &Value) -> Result<Stream, RunError> {
    let settings = Settings::new(params).expect("good parameters");
    Stream::prepare(ChannelId(3), side, Ipv4Addr::LOCALHOST.into(), settings, END_NS)
}

fn pair(params: &Value) -> Pair {
    let (mut a, mut b) = (stream(Side::A, params).unwrap(), stream(Side::B, params).unwrap());
    a.join(b.address());
    b.join(a.address());
    Pair { a, b, now: 0, came: Vec::new(), rows: Vec::new() }
}

impl Pair {
    /// Lets both sides do what they can until `done`, which must be within 20 s.
    fn until(&mut self, done: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        let mut frame = Vec::new();
        while !done(self) {
            assert!(begun.elapsed() < Duration::from_secs(20), "it does not come");
            for side in [&mut self.a, &mut self.b] {
                self.rows.extend(side.tend(self.now));
                side.work(self.now);
            }
            while self.b.next(self.now, &mut frame) {
                self.came.push(frame.clone());
            }
            sleep(Duration::from_micros(100));
        }
    }

    fn phases(&self) -> Vec<u8> {
        self.rows.iter().map(|row| row.detail).collect()
    }
}

fn frame(index: u32, bytes: usize) -> Vec<u8> {
    let repr = Repr {
        flow: FlowId(0),
        index,
        origin_ns: 0,
        length: bytes as u32,
        fragment: 0,
        fragments: 1,
        has_echo: false,
    };
    let mut frame = Vec::new();
    repr.emit(&mut frame);
    frame.resize(frame.len() + bytes, index as u8);
    frame
}

// [design: kernel's TCP]
#[test]
fn frames_come_whole_and_in_their_order_however_large() {
    let mut pair = pair(&json!({"queue_bytes": 50_000_000}));
    let sent: Vec<Vec<u8>> = (0..300).map(|i| frame(i, (i as usize * 7919) % 60_000)).collect();
    for (i, frame) in sent.iter().enumerate() {
        pair.a.send(0, frame, (FlowId(0), i as u32), 46);
    }
    pair.until(|p| p.came.len() == sent.len());
    assert!(pair.came == sent);
    assert_eq!(pair.phases(), [1; 2]);
    let mut stats = EndpointStats::default();
    pair.a.add_to(&mut stats);
    assert!(stats.refused == 0 && stats.rtt_ns.is_some());
}

#[test]
fn a_queue_without_a_connection_is_bounded() {
    let mut a = stream(Side::A, &json!({"queue_bytes": 1_000})).unwrap();
    (0..20).for_each(|i| a.send(0, &frame(i, 76), (FlowId(0), i), 0));
    let mut stats = EndpointStats::default();
    a.add_to(&mut stats);
    assert_eq!(stats.refused, 10, "ten frames of 100 bytes fill it");
}

#[test]
fn a_stream_that_cannot_be_read_is_lost_and_asked_for_again() {
    let mut pair = pair(&Value::Null);
    pair.until(|p| p.rows.len() == 2);
    pair.a.send(0, b"GET / HTTP/1.1\r\nHost: nobody\r\n\r\n", (FlowId(0), 0), 0);
    pair.until(|p| p.rows.len() == 4);
    let mut stats = EndpointStats::default();
    pair.b.add_to(&mut stats);
    assert_eq!((stats.malformed, pair.b.standing.stats().connections_lost), (1, 1));
    assert_eq!(pair.a.standing.stats().connections_lost, 1, "the other side learns of it");
    pair.now = RETRY_NS;
    pair.until(|p| p.rows.len() == 6);
    pair.a.send(pair.now, &frame(7, 20), (FlowId(0), 7), 0);
    pair.until(|p| !p.came.is_empty());
    assert_eq!(pair.came, [frame(7, 20)]);
    assert_eq!(pair.phases(), [1, 1, 0, 0, 1, 1]);
}

#[test]
fn only_the_peer_is_let_in_and_an_end_at_the_end_is_no_loss() {
    let mut pair = pair(&Value::Null);
    let stranger = TcpStream::connect(pair.b.address()).unwrap();
    pair.until(|p| p.b.standing.stats().strangers == 1);
    drop(stranger);
    pair.until(|p| p.rows.len() == 2);
    pair.now = END_NS;
    pair.a.line = LineState::Down(0);
    pair.until(|p| matches!(p.b.line, LineState::Down(_)));
    assert_eq!(pair.b.standing.stats().connections_lost, 0);
}

#[test]
fn a_congestion_control_that_the_kernel_does_not_have_is_refused() {
    let Err(error) = stream(Side::B, &json!({"congestion": "no-such"})) else { panic!("accepted") };
    let words = error.to_string();
    assert!(words.contains("congestion is \"no-such\"") && words.contains("modprobe tcp_no-such"), "{words}");
    assert!(words.contains("reno"), "{words}");
}

#[test]
fn a_silence_that_lasts_to_the_end_counts_as_a_stall() {
    let mut pair = pair(&Value::Null);
    pair.until(|p| p.rows.len() == 2);
    let silent = |silent_ns| TcpInfo { retransmits: 0, rtt_ns: MS, unacknowledged: 1, silent_ns };
    pair.a.look(5 * SECOND, silent(0));
    pair.a.look(5 * SECOND + STALL_NS - 1, silent(STALL_NS));
    assert_eq!((pair.a.standing.stats().stalls, pair.a.standing.stats().silent_at_end_ns), (0, 0));
    pair.a.look(8 * SECOND, silent(3 * SECOND));
    let standing = ConnectionStats {
        connections: 1,
        stalls: 1,
        longest_stall_ns: 3 * SECOND,
        silent_at_end_ns: 3 * SECOND,
        ..ConnectionStats::default()
    };
    assert_eq!(pair.a.standing.stats(), standing);
    pair.a.look(8 * SECOND, TcpInfo { unacknowledged: 0, ..silent(0) });
    assert_eq!(pair.a.standing.stats(), ConnectionStats { silent_at_end_ns: 0, ..standing }, "counted once");
}

#[test]
fn a_connection_that_never_stood_is_told_from_one_that_did() {
    let mut pair = pair(&Value::Null);
    let nobody = stream(Side::B, &Value::Null).unwrap().address();
    pair.a.join(nobody);
    pair.until(|p| matches!(p.a.line, LineState::Down(again) if again > 0));
    assert_eq!(pair.a.standing.stats(), ConnectionStats::default());
}

#[test]
fn what_came_before_a_reset_is_read_though_nothing_can_be_written() {
    let mut pair = pair(&Value::Null);
    pair.until(|p| p.rows.len() == 2);
    let sent: Vec<Vec<u8>> = (0..10).map(|i| frame(i, 4_000)).collect();
    for (i, frame) in sent.iter().enumerate() {
        pair.a.send(0, frame, (FlowId(0), i as u32), 0);
    }
    assert!(pair.a.backlog.is_empty(), "they are on their way");
    sleep(Duration::from_millis(50));
    // Closing resets.
    pair.a.line = LineState::Down(END_NS);
    sleep(Duration::from_millis(50));
    pair.b.send(0, &frame(0, 10), (FlowId(0), 0), 0);
    pair.until(|p| matches!(p.b.line, LineState::Down(_)));
    assert!(pair.came == sent, "{} of {}", pair.came.len(), sent.len());
    assert_eq!(pair.b.standing.stats().connections_lost, 1);
}

/// The receiver reads nothing, so that most of the samples stay in the sender's kernel; then it closes.
#[test]
fn the_samples_that_a_lost_connection_held_are_those_that_the_kernel_had_not_got_acknowledged() {
    let mut pair = pair(&json!({"receive_buffer_bytes": 4096, "queue_bytes": 1_000_000}));
    pair.until(|p| p.rows.len() == 2);
    for index in 0..2_000 {
        pair.a.send(0, &frame(index, 476), (FlowId(0), index), 0);
    }
    sleep(Duration::from_millis(100));
    let LineState::Up(line) = &pair.a.line else { panic!("it stands") };
    let held = held_bytes(line).unwrap();
    let acknowledged = (pair.a.written as u32 - held) / 500;
    let waiting = pair.a.backlog.oldest().map_or(2_000, |(_, index)| index);
    assert!(acknowledged > 2 && waiting > acknowledged + 2, "{acknowledged} {waiting}");
    pair.rows.clear();
    // Closing resets.
    pair.b.line = LineState::Down(END_NS);
    pair.until(|p| matches!(p.a.line, LineState::Down(_)));
    let rows: Vec<_> = pair.a.tend(0).collect();
    let lost: Vec<_> = rows.iter().filter(|row| row.kind == Kind::Dropped).map(|row| row.index).collect();
    let in_part = u32::from(pair.a.written % 500 > 0);
    assert_eq!(lost, (acknowledged..waiting + in_part).collect::<Vec<_>>());
    assert!(
        rows.iter().all(|row| row.point == 3) && pair.a.standing.stats().lost_in_flight == lost.len() as u64
    );
}
