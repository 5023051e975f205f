//! Clock synchronisation over bad networks in virtual time, where the truth is known.

use crate::pair::{Conditions, Pair};
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output},
    record::Kind,
    time::{NodeClock, Time, MS, SECOND, US},
};
use tcps_transport::clocksync::{Client, Server};

const PERIOD_NS: Time = SECOND / 8;
const CLOCK: NodeClock = NodeClock { offset_ns: 3 * MS, drift_ppb: 50_000 };

fn sync(seed: u64, forward: Conditions, backward: Conditions) -> Pair<Client, Server> {
    let mut pair = Pair::new(seed, Client::new(PERIOD_NS), Server::default(), forward, backward);
    pair.client.clock = CLOCK;
    pair.server.clock = NodeClock { offset_ns: -7 * MS, drift_ppb: -20_000 };
    pair
}

/// How far the reference is truly ahead of the client.
fn truth(pair: &Pair<Client, Server>) -> i64 {
    pair.server.clock.error(pair.time) - pair.client.clock.error(pair.time)
}

/// Error of the estimate now, and the bound that was printed with it.
fn error_and_bound(pair: &Pair<Client, Server>) -> (i64, i64) {
    let estimate = pair.client.endpoint.estimate().unwrap();
    let local_ns = pair.client.clock.read(pair.time);
    (pair.client.endpoint.to_reference(local_ns) - local_ns - truth(pair), estimate.bound_ns)
}

fn way(latency_ns: Time, jitter_ns: Time) -> Conditions {
    Conditions { latency_ns, jitter_ns, ..Default::default() }
}

/// Ways there and back: equal, unequal, with jitter on one and on both.
fn networks() -> Vec<(&'static str, Conditions, Conditions)> {
    vec![
        ("loopback", way(20 * US, 0), way(20 * US, 0)),
        ("lan", way(200 * US, 50 * US), way(200 * US, 50 * US)),
        ("dumbbell", way(15 * MS, 2 * MS), way(15 * MS, 2 * MS)),
        ("one way congested", way(5 * MS, 20 * MS), way(5 * MS, 100 * US)),
        ("unequal", way(25 * MS, MS), way(4 * MS, MS)),
    ]
}

#[test]
fn the_true_error_is_within_the_bound_at_every_moment() {
    for (name, forward, backward) in networks() {
        for seed in 0..5 {
            let mut pair = sync(seed, forward, backward);
            while pair.time < 90 * SECOND {
                let seen = pair.client.records.len();
                while pair.client.records.len() == seen {
                    pair.run_next();
                }
                let (error, bound) = error_and_bound(&pair);
                assert!(error.abs() <= bound, "{name} {seed} {}: {error} > {bound}", pair.time);
            }
        }
    }
}

// [Moon 1999] [Zhang 2002]
#[test]
fn after_60_s_the_drift_is_known_within_1_ppm() {
    for (name, forward, backward) in networks() {
        for seed in 0..5 {
            let mut pair = sync(seed, forward, backward);
            pair.run_until(60 * SECOND);
            let estimate = pair.client.endpoint.estimate().unwrap();
            let error_ppb = estimate.drift_ppb - DRIFT_PPB;
            assert!(error_ppb.abs() < 1000.0, "{name} {seed}: {error_ppb} ppb");
            assert!(estimate.exchanges >= 475, "{name}: {}", estimate.exchanges);
        }
    }
}

/// Drift of the client's clock against the reference, parts per billion.
const DRIFT_PPB: f64 = -70_000.0 / (1.0 + 50e-6);

// [Sen 1968]
#[test]
fn a_step_of_the_delay_is_not_taken_for_drift() {
    for (name, step_ns, there, back) in [
        ("longer there", 5 * MS, true, false),
        ("longer back", 5 * MS, false, true),
        ("longer both ways", 20 * MS, true, true),
        ("shorter there", -3 * MS, true, false),
    ] {
        for seed in 0..2 {
            let calm = way(10 * MS, 200 * US);
            let mut pair = sync(seed, calm, calm);
            pair.run_until(40 * SECOND);
            let moved = way(10 * MS + step_ns, 200 * US);
            pair.client.sends = if there { moved } else { calm };
            pair.server.sends = if back { moved } else { calm };
            for second in (42..110).step_by(2) {
                // Without the guard it runs up to 400 ppm while the step is in the window.
                pair.run_until(second * SECOND);
                let error_ppb = pair.client.endpoint.estimate().unwrap().drift_ppb - DRIFT_PPB;
                assert!(error_ppb.abs() < 15_000.0, "{name} {seed} at {second} s: {error_ppb} ppb");
            }
        }
    }
}

#[test]
fn the_bound_is_little_more_than_half_the_least_round_trip() {
    let limits = [(0, 25 * US), (1, 350 * US), (2, 18 * MS), (3, 8 * MS), (4, 25 * MS)];
    for (i, limit) in limits {
        let (name, forward, backward) = networks()[i];
        let least = (forward.latency_ns + backward.latency_ns) / 2;
        let mut pair = sync(1, forward, backward);
        pair.run_until(60 * SECOND);
        let bound = pair.client.endpoint.estimate().unwrap().bound_ns;
        assert!((least..limit).contains(&bound), "{name}: {bound}");
    }
}

#[test]
fn equal_ways_are_far_better_than_the_bound_and_unequal_ones_wrong_by_half_the_difference() {
    let mut pair = sync(1, way(15 * MS, 2 * MS), way(15 * MS, 2 * MS));
    pair.run_until(60 * SECOND);
    assert!(error_and_bound(&pair).0.abs() < 100 * US, "{:?}", error_and_bound(&pair));
    let mut pair = sync(1, way(25 * MS, 0), way(4 * MS, 0));
    pair.run_until(60 * SECOND);
    let error = error_and_bound(&pair).0;
    assert!((error - 21 * MS / 2).abs() < 10 * US, "{error}");
}

#[test]
fn loss_and_duplication_cost_exchanges_and_nothing_else() {
    let bad = Conditions { loss: 0.3, duplication: 0.3, ..way(10 * MS, 30 * MS) };
    let mut pair = sync(7, bad, bad);
    pair.run_until(60 * SECOND);
    let client = &pair.client;
    let rows = client.records.iter().filter(|r| r.kind == Kind::Sync).count();
    assert_eq!(client.endpoint.estimate().unwrap().exchanges as usize, rows);
    assert!((180..300).contains(&rows), "{rows} of 480 exchanges at 0.49");
    assert!(client.endpoint.stats().duplicates > 50);
    assert_eq!(client.endpoint.stats().malformed + pair.server.endpoint.stats().malformed, 0);
    let (error, bound) = error_and_bound(&pair);
    assert!(error.abs() <= bound && error.abs() < 5 * MS, "{error} {bound}");
}

// [RFC 5905 §8]
#[test]
fn only_answers_to_own_requests_count() {
    let (mut client, mut server, mut request, mut answer) =
        (Client::new(PERIOD_NS), Server::default(), Vec::new(), Vec::new());
    client.handle_input(0, Input::Timeout);
    assert!(matches!(client.poll_output(&mut request), Some(Output::Transmit(t)) if t.wire_bytes == 36 + 54));
    server.handle_input(10, Input::datagram(&request, 6));
    assert!(server.poll_output(&mut answer).is_some());
    for (at, what) in [(11, "sequence"), (19, "T1"), (5, "mode"), (28, "T3 before T2")] {
        let mut bytes = answer.clone();
        bytes[at] ^= 0x80;
        client.handle_input(20, Input::datagram(&bytes, 20));
        assert_eq!(client.estimate(), None, "{what}");
    }
    client.handle_input(20, Input::datagram(&request, 20));
    assert_eq!(client.stats(), EndpointStats { malformed: 5, ..Default::default() });
    for _ in 0..2 {
        client.handle_input(20, Input::datagram(&answer, 20));
    }
    assert_eq!(client.stats(), EndpointStats { malformed: 5, duplicates: 1, ..Default::default() });
    assert_eq!(client.estimate().map(|e| (e.offset_ns, e.exchanges)), Some((-2, 1)));
    server.handle_input(10, Input::datagram(&answer, 6));
    assert_eq!(server.stats().malformed, 1, "a server is not answered");
    let mut again = Vec::new();
    server.handle_input(30, Input::datagram(&request, 25));
    assert!(server.poll_output(&mut again).is_some());
    assert_eq!(again, answer, "to a request that the network doubled there is one answer");
    let mut other = answer.clone();
    other[35] ^= 1; // T3 a nanosecond later
    client.handle_input(31, Input::datagram(&other, 31));
    client.handle_input(31, Input::datagram(&again, 31));
    assert_eq!(client.stats(), EndpointStats { malformed: 6, duplicates: 2, ..Default::default() });
}

/// A client takes answers to its last 64 requests: more would only fill the memory of a server that strangers ask.
#[test]
fn a_server_gives_the_answers_to_its_last_64_requests_again() {
    let (mut client, mut server) = (Client::new(PERIOD_NS), Server::default());
    let requests: Vec<Vec<u8>> = (0..65)
        .map(|i| {
            let mut request = Vec::new();
            client.handle_input(i * PERIOD_NS, Input::Timeout);
            assert!(client.poll_output(&mut request).is_some());
            request
        })
        .collect();
    let mut answer = |now: Time, request: &[u8]| {
        let mut answer = Vec::new();
        server.handle_input(now, Input::datagram(request, now));
        assert!(server.poll_output(&mut answer).is_some());
        answer
    };
    let first: Vec<_> = requests[..64].iter().map(|request| answer(10, request)).collect();
    assert_eq!(answer(20, &requests[0]), first[0], "as it was");
    answer(30, &requests[64]);
    assert_eq!(answer(40, &requests[1]), first[1]);
    assert_ne!(answer(50, &requests[0]), first[0], "it has been forgotten");
}

#[test]
fn a_client_that_was_held_up_does_not_send_a_burst() {
    let mut client = Client::new(PERIOD_NS);
    let mut buf = Vec::new();
    let mut asked = 0;
    for now in [0, PERIOD_NS - 1, PERIOD_NS, 10 * PERIOD_NS, 10 * PERIOD_NS + 1, 11 * PERIOD_NS] {
        client.handle_input(now, Input::Timeout);
        asked += u32::from(client.poll_output(&mut buf).is_some());
    }
    assert_eq!((asked, client.poll_timeout()), (4, Some(12 * PERIOD_NS)));
}
