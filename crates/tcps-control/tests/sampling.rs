//! Samplers: what they let through of signals that are known.

mod common;

use common::{call, Given};
use proptest::prelude::*;
use serde_json::{json, Value};
use tcps_control::{hook, predictor};
use tcps_core::{
    hook::{Hook, Verdict},
    time::{Time, MS},
};

/// Numbers of the samples of a 1 kHz signal that go.
fn went<'a>(name: &str, params: Value, signal: impl IntoIterator<Item = &'a [f64]>) -> Vec<u32> {
    let mut sampler = make(name, params);
    (0u32..)
        .zip(signal)
        .filter(|&(i, x)| goes(sampler.as_mut(), i, x, Given::default()))
        .map(|s| s.0)
        .collect()
}

fn make(name: &str, params: Value) -> Box<dyn Hook> {
    hook(name, &params).unwrap_or_else(|error| panic!("{error}"))
}

fn goes<'a>(sampler: &mut dyn Hook, index: u32, x: &'a [f64], given: Given<'a>) -> bool {
    let at = index as Time * MS;
    let answer = call(sampler, Given { now_ns: at, origin_ns: at, index, x: Some(x), ..given });
    assert!(answer.y.is_empty() && answer.bytes.is_empty(), "a sampler changes nothing");
    answer.verdict == Verdict::Emit
}

const SAMPLERS: [&str; 5] = ["uniform", "weber", "deadband", "level_crossing", "network_deadband"];

#[test]
fn uniform_takes_every_nth_sample() {
    let signal = [[1.0]; 10];
    let all = signal.iter().map(|x| &x[..]);
    assert_eq!(went("uniform", json!({"every": 3}), all), [0, 3, 6, 9]);
}

/// [Hinterseer 2008: Weber sampler] A sample goes when it differs by 12 % of the last one that went, as a vector.
#[test]
fn weber_compares_with_the_last_sample_that_went() {
    let signal: Vec<[f64; 2]> = vec![
        [3.0, 4.0],   // the first goes
        [3.0, 4.59],  // 11.8 %
        [3.0, 4.601], // 12.02 %
        [3.0, 4.0],   // 11 % of 5.49: back, but not far enough
        [-3.0, 4.6],  // as long as the last one, but elsewhere
    ];
    assert_eq!(went("weber", Value::Null, signal.iter().map(|x| &x[..])), [0, 2, 4]);
}

/// [Hinterseer 2008: Weber sampler] A signal that grows by 1 % a sample goes every 12th time (1.01^12 = 1.127).
#[test]
fn weber_reduces_a_geometric_ramp_by_its_logarithm() {
    let signal: Vec<[f64; 1]> = (0..1200).map(|i| [libm::pow(1.01, f64::from(i))]).collect();
    let went = went("weber", Value::Null, signal.iter().map(|x| &x[..]));
    assert_eq!(went.len(), 100);
    assert!(went.iter().all(|i| i % 12 == 0));
}

#[test]
fn a_signal_that_rests_at_zero_is_sent_once() {
    for name in ["weber", "deadband", "level_crossing", "network_deadband"] {
        let signal = [[0.0, 0.0]; 100];
        assert_eq!(went(name, Value::Null, signal.iter().map(|x| &x[..])), [0], "{name}");
    }
}

/// [Hinterseer 2008: deadband] A ramp that the receiver's predictor continues is not sent, except every 100 ms as a sign of life.
#[test]
fn the_deadband_sends_what_the_predictor_does_not_know() {
    let signal: Vec<[f64; 1]> = (0..1000).map(|i| [1.0 + i as f64]).collect();
    let sent = |params| went("deadband", params, signal.iter().map(|x| &x[..]));
    assert!(sent(json!({"keep_alive_ns": 0})).len() > 50, "holding, 10 % a step");
    let linear = sent(json!({"predictor": "linear", "keep_alive_ns": 0}));
    assert!(linear.len() < 20, "{linear:?}");
    let still = vec![[5.0]; 1000];
    let alive = went("deadband", Value::Null, still.iter().map(|x| &x[..]));
    assert_eq!(alive, (0..10).map(|i| i * 100).collect::<Vec<_>>());
}

/// [Hinterseer 2008: deadband] 10 % of the prediction, and 0.01 where it is small.
#[test]
fn the_deadband_is_a_share_with_a_floor() {
    for (from, to, expected) in
        [(1.0, 1.099, false), (1.0, 1.101, true), (0.0, 0.0099, false), (0.0, 0.0101, true)]
    {
        let mut sampler = make("deadband", Value::Null);
        goes(sampler.as_mut(), 0, &[from], Given::default());
        assert_eq!(goes(sampler.as_mut(), 1, &[to], Given::default()), expected, "{from} to {to}");
    }
}

/// [model: level crossing] Levels stand at floor (1 + δ)^n, both signs.
#[test]
fn level_crossing_sends_at_a_geometric_grid() {
    let signal: Vec<[f64; 1]> = [0.5, 0.9, 1.05, 1.09, 1.11, 1.2, 1.22, -1.22, -0.5].map(|x| [x]).to_vec();
    let params = json!({"floor": 1.0, "delta": 0.1});
    assert_eq!(went("level_crossing", params, signal.iter().map(|x| &x[..])), [0, 2, 4, 6, 7, 8]);
}

/// [Gokhale 2016] δ = 5, 8, 12, 20 % for 1, 2, 3, 4 samples to a packet.
#[test]
fn the_network_deadband_widens_with_the_samples_in_a_packet() {
    let passes = |merging, change: f64| {
        let mut sampler = make("network_deadband", Value::Null);
        let given = || Given { merging, ..Given::default() };
        assert!(goes(sampler.as_mut(), 0, &[1.0], given()));
        goes(sampler.as_mut(), 1, &[1.0 + change], given())
    };
    for (merging, delta) in [(0, 0.05), (1, 0.05), (2, 0.08), (3, 0.12), (4, 0.20), (7, 0.20)] {
        assert!(!passes(merging, delta - 0.001), "{merging}");
        assert!(passes(merging, delta + 0.001), "{merging}");
    }
}

/// [Hinterseer 2008: deadband] [design: echo commands]: an echo command is never lost to a sampler; nor is a sample that cannot be judged.
#[test]
fn a_tagged_sample_always_goes_and_so_does_one_that_cannot_be_judged() {
    for name in SAMPLERS {
        let mut sampler = make(name, Value::Null);
        goes(sampler.as_mut(), 0, &[1.0], Given::default());
        assert!(!goes(sampler.as_mut(), 1, &[1.0], Given::default()), "{name}");
        assert!(goes(sampler.as_mut(), 3, &[1.0], Given { tagged: true, ..Given::default() }), "{name}");
        if name != "uniform" {
            assert!(goes(sampler.as_mut(), 5, &[f64::NAN], Given::default()), "{name}");
            goes(sampler.as_mut(), 6, &[1.0], Given::default());
            assert!(goes(sampler.as_mut(), 7, &[2.0], Given::default()), "{name} was blinded");
            assert!(!goes(sampler.as_mut(), 9, &[2.0], Given::default()), "{name}");
        }
    }
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (name, params) in [
        ("uniform", json!({"every": 0})),
        ("weber", json!({"delta": 0})),
        ("weber", json!({"delta": -1})),
        ("level_crossing", json!({"floor": 0})),
        ("deadband", json!({"predictor": "crystal ball"})),
        ("deadband", json!({"predictor": "linear", "prediction": {"over": 0}})),
        ("network_deadband", json!({"deltas": []})),
        ("network_deadband", json!({"deltas": [0.1, 0]})),
    ] {
        assert!(hook(name, &params).is_err(), "{name} {params}");
    }
}

proptest! {
    /// [Hinterseer 2008: deadband] A receiver with the same predictor stays within the deadband of the signal while nothing is lost.
    #[test]
    fn both_ends_of_the_deadband_predict_the_same(
        steps in proptest::collection::vec(-0.3..0.3f64, 1..300), linear: bool,
    ) {
        let name = if linear { "linear" } else { "zoh" };
        let mut sampler = make("deadband", json!({"predictor": name}));
        let mut receiver = predictor(name, &Value::Null).unwrap();
        let mut x = 0.5;
        for (i, step) in (0..).zip(steps) {
            x += step;
            let (at, mut shown) = (i as Time * MS, [x]);
            if goes(sampler.as_mut(), i, &[x], Given::default()) {
                receiver.update(at, Some(&[x]));
            } else {
                receiver.predict(at, &mut shown);
            }
            prop_assert!((x - shown[0]).abs() <= (0.1 * shown[0].abs()).max(0.01) + 1e-12);
        }
    }

    /// What a receiver that holds the last sample shows is never further off than the rule allows.
    #[test]
    fn a_receiver_that_holds_stays_within_the_deadband(
        steps in proptest::collection::vec((-0.3..0.3f64, -0.3..0.3f64), 1..300),
    ) {
        let (mut weber, mut levels) = (make("weber", Value::Null), make("level_crossing", Value::Null));
        let (mut x, mut held, mut crossed) = ([0.5, 0.5], [0.0; 2], [0.0; 2]);
        for (i, (a, b)) in (0..).zip(steps) {
            (x[0], x[1]) = (x[0] + a, x[1] + b);
            if goes(weber.as_mut(), i, &x, Given::default()) {
                held = x;
            }
            if goes(levels.as_mut(), i, &x, Given::default()) {
                crossed = x;
            }
            let off = libm::hypot(x[0] - held[0], x[1] - held[1]);
            prop_assert!(off <= 0.12 * (libm::hypot(held[0], held[1]) + 1e-5) + 1e-12);
            for (value, shown) in x.iter().zip(crossed) {
                prop_assert!((value - shown).abs() <= (0.1 * value.abs().max(shown.abs())).max(0.02));
            }
        }
    }
}
