//! Forward error correction between two ends in virtual time.

use crate::{
    boxed::boxed,
    pair::{Boxed, Conditions, Pair},
    session::meta,
};
use proptest::prelude::*;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use tcps_core::{
    endpoint::{Endpoint, Input},
    time::{Time, MS, SECOND},
};
use tcps_transport::{ChannelContext, Side};

fn pair(transport: &str, params: Value, forward: Conditions) -> Pair<Boxed, Boxed> {
    let ctx = ChannelContext::of(&[(1, Side::B, "scan")]);
    let side = |side| boxed(transport, &params, side, &ctx);
    Pair::new(4, side(Side::A), side(Side::B), forward, Conditions::default())
}

/// Sends `count` samples `period_ns` apart; share of them that did not arrive.
fn left(pair: &mut Pair<Boxed, Boxed>, count: u32, period_ns: Time) -> f64 {
    for index in 0..count {
        pair.run_until(Time::from(index) * period_ns);
        pair.send(meta(1, index, pair.time), &index.to_be_bytes().repeat(4 + index as usize % 3));
    }
    pair.run_until(pair.time + SECOND);
    for (d, bytes) in &pair.server.delivered {
        assert!(bytes[..] == d.meta.index.to_be_bytes().repeat(4 + d.meta.index as usize % 3)[..]);
    }
    1.0 - pair.server.delivered.len() as f64 / f64::from(count)
}

fn lossy(loss: f64) -> Conditions {
    Conditions { loss, latency_ns: MS, ..Conditions::default() }
}

// [Hudson 2001: repetition]
#[test]
fn n_copies_leave_the_loss_to_the_power_of_n_and_one() {
    for (copies, loss, count) in [(0, 0.1f64, 20_000), (1, 0.1, 40_000), (3, 0.3, 20_000)] {
        let mut p = pair("repeat", json!({"copies": copies, "spacing_ns": 15 * MS}), lossy(loss));
        let expected = libm::pow(loss, f64::from(copies + 1));
        let got = left(&mut p, count, 4 * MS);
        let sd = (expected / f64::from(count)).sqrt();
        assert!((got - expected).abs() < 4.0 * sd, "n = {copies}: {got}, expected {expected}");
        assert_eq!(p.client.transmitted.len(), count as usize * (copies as usize + 1));
    }
}

// [Hudson 2001: repetition]
#[test]
fn copies_are_spaced_and_older_messages_go_first() {
    let mut p = pair("repeat", json!({"copies": 3, "spacing_ns": 15 * MS}), Conditions::default());
    for index in 0..2 {
        p.run_until(Time::from(index) * 15 * MS);
        p.send(meta(1, index, 0), b"x");
    }
    p.run_until(SECOND);
    let order: Vec<u32> = p.client.transmitted.iter().map(|t| t.index).collect();
    assert_eq!(order, [0, 0, 1, 0, 1, 0, 1, 1], "at 0, 15, 30, 45 and 60 ms");
    assert_eq!(p.server.endpoint.stats().duplicates, 6);
}

// [Hudson 2001: repetition]
#[test]
fn parity_leaves_what_is_lost_with_too_many_others() {
    let binomial = |n: u32, k: u32, p: f64| {
        let choose = (0..k).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1));
        choose * libm::pow(p, k as f64) * libm::pow(1.0 - p, (n - k) as f64)
    };
    for (code, data, parity) in [("xor", 4, 1), ("reed_solomon", 4, 2), ("reed_solomon", 8, 3)] {
        let loss = 0.1;
        let params = json!({"code": code, "data": data, "parity": parity});
        let mut p = pair("parity", params, lossy(loss));
        let others = data + parity - 1;
        let expected = loss * (parity..=others).map(|k| binomial(others, k, loss)).sum::<f64>();
        let got = left(&mut p, 40_000, MS);
        // Losses of a block come together, two or three at a time.
        let sd = (2.5 * expected / 40_000.0).sqrt();
        assert!((got - expected).abs() < 4.0 * sd, "{code}({data}, {parity}): {got}, expected {expected}");
        assert!(p.server.endpoint.stats().recovered > 2000);
    }
}

// [Hudson 2001: repetition]
#[test]
fn a_slow_flow_gets_its_parity_when_the_window_ends() {
    let mut p = pair("parity", json!({"data": 8, "parity": 1, "window_ns": 8 * MS}), Conditions::default());
    for index in 0..3 {
        p.run_until(Time::from(index) * 3 * MS);
        p.send(meta(1, index, 0), b"sample");
    }
    assert_eq!(p.client.transmitted.len(), 3);
    p.run_until(8 * MS);
    assert_eq!(p.client.transmitted.len(), 4, "8 ms after the first");
    assert_eq!(p.client.endpoint.poll_timeout(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn samples_come_once_and_whole_over_any_network(
        loss in 0.0..0.4, duplication in 0.0..0.5, jitter_ns in 0i64..30 * MS,
        kind in prop_oneof![Just("repeat"), Just("parity")],
    ) {
        let mut p = pair(kind, json!({}), Conditions { latency_ns: MS, jitter_ns, loss, duplication });
        left(&mut p, 200, MS);
        let mut seen = BTreeMap::new();
        for (d, bytes) in &p.server.delivered {
            prop_assert!(seen.insert(d.meta.index, bytes).is_none(), "sample {} came twice", d.meta.index);
        }
        prop_assert_eq!(p.server.endpoint.stats().malformed, 0);
    }

    #[test]
    fn bytes_from_anybody_are_counted_and_survived(
        inputs in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 1..40), code in 0usize..2,
    ) {
        let ctx = ChannelContext::of(&[(1, Side::B, "scan")]);
        let code = ["xor", "reed_solomon"][code];
        let mut endpoint = boxed("parity", &json!({"code": code}), Side::B, &ctx);
        let mut buf = Vec::new();
        for mut bytes in inputs {
            if let [first, place, data, parity, b, ..] = &mut bytes[..] {
                (*first, *place, *data, *parity, *b) = (0xfe, *place % 48, *data % 5, *parity % 17, 0);
            }
            endpoint.handle_input(0, Input::datagram(&bytes, 0));
            while endpoint.poll_output(&mut buf).is_some() {}
        }
    }
}
