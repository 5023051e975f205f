//! The simulated operator: `aim` by pictures and `grip` by force, before the default robot without a network between.

mod common;

use common::{call, Given};
use serde_json::{json, Value};
use std::collections::VecDeque;
use tcps_control::{hook, robot};
use tcps_core::{hook::Verdict, time::MS};

const CENTER: [f64; 2] = [0.0, 0.18];
const RADIUS_M: f64 = 0.03;

/// What the robot sensed in each of `seconds` * 1000 steps, with forces and pictures `late_ms` late each way.
fn trace(seconds: i64, late_ms: usize, seed: u64) -> Vec<[f64; 7]> {
    let mut aim = hook("aim", &json!({"seed": seed})).unwrap();
    let mut grip = hook("grip", &json!({"seed": seed})).unwrap();
    let mut arm = robot("arm", &json!({"command": "position"})).unwrap();
    let mut back: VecDeque<[f64; 7]> = VecDeque::new();
    let mut there: VecDeque<Vec<f64>> = VecDeque::new();
    let (mut picture, mut all) = (Vec::new(), Vec::new());
    for ms in 0..seconds * 1000 {
        let felt = (back.len() > late_ms).then(|| back.pop_front()).flatten();
        if let Some(sense) = felt.filter(|_| ms % 40 == 0) {
            picture = sense[3..6].to_vec();
        }
        let at =
            |x, other| Given { now_ns: ms * MS, origin_ns: ms * MS, x: Some(x), other, ..Given::default() };
        let wanted = call(aim.as_mut(), at(&[0.0], &picture)).y;
        let force: &[f64] = felt.as_ref().map_or(&[], |s| &s[..3]);
        there.push_back(call(grip.as_mut(), at(&wanted, force)).y);
        let command = if there.len() > late_ms { there.pop_front() } else { None };
        let mut sense = [0.0; 7];
        arm.step(ms * MS, command.as_deref().unwrap_or(&[]), &mut sense);
        back.push_back(sense);
        all.push(sense);
    }
    all
}

/// When the tip first touches and when it has gone round, in ms.
fn times(path: &[[f64; 7]]) -> (usize, Option<usize>) {
    let touched = path.iter().position(|s| s[6] > 0.5).expect("a contact");
    let (mut turned, mut last) = (0.0, 0.0);
    let closed = path.iter().enumerate().skip(touched).find(|(_, s)| {
        let angle = libm::atan2(s[5] - CENTER[1], s[4] - CENTER[0]);
        let step = angle - last;
        turned += step - std::f64::consts::TAU * libm::round(step / std::f64::consts::TAU);
        last = angle;
        turned > std::f64::consts::TAU - 0.1
    });
    (touched, closed.map(|(i, _)| i))
}

#[test]
fn it_presses_with_the_wanted_force_and_closes_the_circle() {
    let path = trace(20, 0, 1);
    let (touched, closed) = times(&path);
    let closed = closed.expect("a closed circle");
    assert!((500..4_000).contains(&touched) && (5_000..15_000).contains(&closed), "{touched} to {closed} ms");
    let work = &path[touched + 2_000..closed];
    let mean = |of: &dyn Fn(&[f64; 7]) -> f64| work.iter().map(of).sum::<f64>() / work.len() as f64;
    assert!((mean(&|s| -s[0]) - 1.0).abs() < 0.1, "{} N", mean(&|s| -s[0]));
    let off = |s: &[f64; 7]| libm::hypot(s[4] - CENTER[0], s[5] - CENTER[1]) - RADIUS_M;
    let error = mean(&|s| off(s) * off(s)).sqrt();
    assert!((2e-4..4e-3).contains(&error), "{error} m");
}

/// The loop is a real one: what comes back late makes it strike harder and take longer.
#[test]
fn delay_makes_it_slower_and_its_contact_harder() {
    let (near, far) = (trace(20, 0, 1), trace(20, 100, 1));
    let peak = |path: &[[f64; 7]]| path.iter().map(|s| -s[0]).fold(0.0, f64::max);
    assert!(peak(&far) > 1.1 * peak(&near), "{} and {} N", peak(&near), peak(&far));
    let last = |path: &[[f64; 7]]| times(path).1.expect("a closed circle");
    assert!(last(&far) > last(&near) + 300, "{} and {} ms", last(&near), last(&far));
}

#[test]
fn a_seed_names_the_operator() {
    let bits = |path: Vec<[f64; 7]>| path.iter().flatten().map(|v| v.to_bits()).collect::<Vec<_>>();
    assert!(bits(trace(2, 10, 1)) == bits(trace(2, 10, 1)));
    assert!(bits(trace(2, 10, 1)) != bits(trace(2, 10, 2)));
}

/// A hand at rest trembles at 9 Hz by its root mean square on each axis, and forgets its phase in 0.25 s.
#[test]
fn a_hand_at_rest_trembles_as_much_and_as_fast_as_it_is_told() {
    let mut grip = hook("grip", &json!({"press_m_s_n": 0, "tremor_m": 2e-4})).unwrap();
    let mut at = |ms: i64| {
        let given = Given { now_ns: ms * MS, origin_ns: ms * MS, x: Some(&[0.0; 3]), ..Given::default() };
        call(grip.as_mut(), given).y
    };
    let path: Vec<_> = (0..60_000).map(&mut at).collect();
    for axis in 0..3 {
        let product = |ms: usize| -> f64 {
            path.iter().zip(&path[ms..]).map(|(a, b)| a[axis] * b[axis]).sum::<f64>()
                / (path.len() - ms) as f64
        };
        let rms = libm::sqrt(product(0));
        assert!((rms / 2e-4 - 1.0).abs() < 0.1, "axis {axis}: {rms} m");
        for (ms, sign) in [(56, -1.0), (111, 1.0)] {
            let expected = sign * libm::exp(-(ms as f64) / 250.0); // half a period, and a whole one
            let found = product(ms) / product(0);
            assert!((found - expected).abs() < 0.1, "axis {axis} after {ms} ms: {found} of {expected}");
        }
    }
}

#[test]
fn a_latency_that_no_operator_has_is_refused() {
    for name in ["aim", "grip"] {
        assert!(hook(name, &json!({"latency_ms": 2_000})).is_ok(), "{name}");
        for latency_ms in [2_001.0, 1e300, -1.0] {
            assert!(hook(name, &json!({"latency_ms": latency_ms})).is_err(), "{name}: {latency_ms}");
        }
    }
}

#[test]
fn what_cannot_be_seen_or_felt_is_refused() {
    for (name, other) in
        [("aim", [f64::NAN, 0.0, 0.0]), ("aim", [1e3, 0.0, 0.0]), ("grip", [f64::INFINITY; 3])]
    {
        let mut made = hook(name, &Value::Null).unwrap();
        let given = Given { now_ns: MS, x: Some(&[0.0; 3]), other: &other, ..Given::default() };
        assert!(matches!(call(made.as_mut(), given).verdict, Verdict::Failed(_)), "{name}");
    }
}
