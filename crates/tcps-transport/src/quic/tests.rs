//! Streams that a peer fills with other bytes than those of samples for this side.

use super::*;
use crate::{channel::TlsSecret, framing::frame};
use serde_json::Value;
use tcps_core::time::MS;

/// A and B of a channel with a flow to each side, connected.
fn connected() -> [Quic; 2] {
    connected_by(None)
}

fn connected_by(tls: Option<TlsSecret>) -> [Quic; 2] {
    let context = ChannelContext::of(&[(1, Side::B, "kinematic"), (2, Side::A, "haptic")]);
    let context = ChannelContext { tls, ..context };
    let params = Params::new(NAME, &Value::Null);
    let [mut a, mut b] = [Side::A, Side::B].map(|side| Quic::from_params(&params, side, &context).unwrap());
    a.handle_input(0, Input::Timeout);
    for _ in 0..10 {
        carry(0, &mut a, &mut b);
        carry(0, &mut b, &mut a);
    }
    assert!(a.established && b.established);
    [a, b]
}

/// Brings what an end wants to send to the other; samples that it delivered.
fn carry(now: Time, from: &mut Quic, to: &mut Quic) -> usize {
    let (mut delivered, mut buf) = (0, Vec::new());
    while let Some(output) = from.poll_output(&mut buf) {
        match output {
            Output::Transmit(_) => to.handle_input(now, Input::datagram(&buf, now)),
            Output::Deliver(_) => delivered += 1,
            Output::Record(_) => {}
        }
    }
    delivered
}

fn sample(flow: u16) -> Vec<u8> {
    let meta = Meta { flow: FlowId(flow), index: 0, origin_ns: 0, echo: None };
    let mut bytes = Vec::new();
    frame(&meta, &[7; 40], |part| bytes.extend_from_slice(part));
    bytes
}

/// B, and how many samples it delivered, after A has sent these bytes on a stream of their own, and perhaps ended it.
fn received(bytes: &[u8], ended: bool) -> (Quic, usize) {
    let [mut a, mut b] = connected();
    let (_, connection) = a.connection.as_mut().unwrap();
    let id = connection.streams().open(Dir::Uni).unwrap();
    assert_eq!(connection.send_stream(id).write(bytes), Ok(bytes.len()));
    if ended {
        connection.send_stream(id).finish().unwrap();
    }
    a.handle_input(MS, Input::Timeout);
    carry(MS, &mut a, &mut b);
    let delivered = carry(MS, &mut b, &mut a);
    (b, delivered)
}

#[test]
fn a_stream_of_whole_samples_leaves_nothing_behind() {
    let (b, delivered) = received(&sample(1).repeat(3), true);
    assert_eq!((delivered, b.stats.malformed, b.stats.incomplete), (3, 0, 0));
    assert!(b.established && b.readers.is_empty());
}

#[test]
fn a_stream_that_cannot_be_read_is_counted_once_and_ends_the_connection() {
    let (b, delivered) = received(&[0xff; 100], false);
    assert_eq!((delivered, b.stats.malformed, b.stats.incomplete), (0, 1, 1));
    assert!(b.connection.is_none() && !b.established);
}

#[test]
fn a_sample_of_a_flow_from_this_side_is_counted_and_those_behind_it_arrive() {
    let (b, delivered) = received(&[sample(2), sample(2), sample(1)].concat(), false);
    assert_eq!((delivered, b.stats.malformed), (1, 2));
    assert!(b.established);
}

#[test]
fn what_ends_within_a_sample_is_incomplete_by_its_end_or_by_that_of_the_connection() {
    let part = &sample(1)[..50];
    let (b, _) = received(part, true);
    assert_eq!((b.stats.incomplete, b.readers.len()), (1, 0));
    let (mut b, _) = received(part, false);
    assert_eq!((b.stats.incomplete, b.readers.len()), (0, 1));
    b.close(2 * MS);
    assert_eq!((b.stats.incomplete, b.readers.len()), (1, 0));
}

/// A datagram that brings nothing new is a copy, and counted as one: whatever kind of frame it has, it is none.
#[test]
fn each_frame_of_any_kind_is_seen() {
    type Change = fn(&mut FrameStats);
    let kinds: [Change; 24] = [
        |rx| rx.acks += 1,
        |rx| rx.ack_frequency += 1,
        |rx| rx.crypto += 1,
        |rx| rx.connection_close += 1,
        |rx| rx.data_blocked += 1,
        |rx| rx.datagram += 1,
        |rx| rx.handshake_done += 1,
        |rx| rx.immediate_ack += 1,
        |rx| rx.max_data += 1,
        |rx| rx.max_stream_data += 1,
        |rx| rx.max_streams_bidi += 1,
        |rx| rx.max_streams_uni += 1,
        |rx| rx.new_connection_id += 1,
        |rx| rx.new_token += 1,
        |rx| rx.path_challenge += 1,
        |rx| rx.path_response += 1,
        |rx| rx.ping += 1,
        |rx| rx.reset_stream += 1,
        |rx| rx.retire_connection_id += 1,
        |rx| rx.stream_data_blocked += 1,
        |rx| rx.streams_blocked_bidi += 1,
        |rx| rx.streams_blocked_uni += 1,
        |rx| rx.stop_sending += 1,
        |rx| rx.stream += 1,
    ];
    let mut rx = FrameStats::default();
    for round in 0..2 {
        for (kind, change) in kinds.iter().enumerate() {
            let before = frames(&rx);
            change(&mut rx);
            assert_eq!(frames(&rx), before + 1, "kind {kind} in round {round}");
        }
    }
    assert_eq!(format!("{rx:?}").matches(": 2").count(), kinds.len(), "all kinds that there are");
}

// [RFC 9001 §6]
#[test]
fn a_change_of_keys_counts_for_both_directions_and_the_first_keys_are_none() {
    let [mut a, mut b] = connected_by(Some(TlsSecret::Seeded));
    let changes = |ends: [&Quic; 2]| ends.map(|end| end.stats().security.unwrap().key_changes);
    assert_eq!(changes([&a, &b]), [0, 0]);
    a.connection.as_mut().unwrap().1.force_key_update();
    let meta = Meta { flow: FlowId(1), index: 0, origin_ns: MS, echo: None };
    a.handle_input(MS, Input::Sample { meta, bytes: &[7; 40] });
    carry(MS, &mut a, &mut b);
    assert_eq!((carry(MS, &mut b, &mut a), changes([&a, &b])), (1, [2, 2]));
}
