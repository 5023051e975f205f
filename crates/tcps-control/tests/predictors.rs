//! Predictors against closed forms and an independent fit, and what they do with gaps and bad samples.

use serde_json::{json, Value};
use tcps_control::{predictor, predictor_names};
use tcps_core::{
    model::Predictor,
    seed::Stream,
    time::{Time, MS},
};

fn make(name: &str, params: Value) -> Box<dyn Predictor> {
    predictor(name, &params).unwrap_or_else(|error| panic!("{error}"))
}

fn guess(predictor: &dyn Predictor, at: Time) -> f64 {
    let mut out = [f64::NAN];
    assert!(predictor.predict(at, &mut out));
    out[0]
}

/// Samples of `signal` (time in s) every millisecond up to `ms`.
fn feed(predictor: &mut dyn Predictor, ms: i64, signal: impl Fn(f64) -> f64) {
    (0..=ms).for_each(|t| predictor.update(t * MS, Some(&[signal(t as f64 * 1e-3)])));
}

/// Before the first sample there is nothing to go by; after it every predictor gives a constant signal back.
#[test]
fn a_constant_stays_what_it_is() {
    for name in predictor_names() {
        let mut p = make(name, Value::Null);
        assert!(!p.predict(0, &mut [0.0]), "{name}");
        feed(p.as_mut(), 400, |_| 0.3);
        for ahead in [0, 5, 50] {
            let y = guess(p.as_ref(), (400 + ahead) * MS);
            assert!((y - 0.3).abs() < 1e-9, "{name}: {y} after {ahead} ms");
        }
    }
}

/// [model: predictors] Zero-order hold: x(t + h) = x(t).
#[test]
fn zoh_holds() {
    let mut zoh = make("zoh", Value::Null);
    feed(zoh.as_mut(), 10, |s| s);
    assert_eq!(guess(zoh.as_ref(), 900 * MS), 0.01);
}

/// [model: predictors] First order goes on for 50 ms and then fades to 80 ms ahead.
#[test]
fn linear_goes_on_and_fades() {
    let mut linear = make("linear", Value::Null);
    feed(linear.as_mut(), 10, |s| 2.0 * s);
    assert!((guess(linear.as_ref(), 60 * MS) - 0.12).abs() < 1e-12);
    assert!((guess(linear.as_ref(), 10_000 * MS) - 2.0 * 0.09).abs() < 1e-9);
}

/// [model: predictors] A sine obeys a recursion of second order, which least squares find: 50 ms ahead it is still right.
#[test]
fn ar_learns_a_sine() {
    let sine = |s: f64| libm::sin(2.0 * std::f64::consts::PI * 5.0 * s);
    let mut ar = make("ar", json!({"order": 2}));
    feed(ar.as_mut(), 2_000, sine);
    for ahead in [5, 20, 50] {
        let (y, truth) = (guess(ar.as_ref(), (2_000 + ahead) * MS), sine(2.0 + ahead as f64 * 1e-3));
        assert!((y - truth).abs() < 0.01, "{ahead} ms: {y}, {truth}");
    }
    let between = guess(ar.as_ref(), 2_005 * MS + MS / 2);
    let ends = [guess(ar.as_ref(), 2_005 * MS), guess(ar.as_ref(), 2_006 * MS)];
    assert!((between - (ends[0] + ends[1]) / 2.0).abs() < 1e-12);
}

/// [model: predictors] A missing sample is bridged by the guess and teaches nothing: with half of all samples missing a sine
/// that has been learned is still followed.
#[test]
fn ar_bridges_gaps_with_its_own_guess() {
    let sine = |s: f64| libm::sin(2.0 * std::f64::consts::PI * 2.0 * s);
    for announced in [true, false] {
        let (mut ar, mut loss) = (make("ar", json!({"order": 2})), Stream::new(1, "gaps"));
        feed(ar.as_mut(), 2_000, sine);
        for t in 2_001..4_000i64 {
            let lost = loss.chance(0.5);
            let x = [sine(t as f64 * 1e-3)];
            if announced || !lost {
                ar.update(t * MS, if lost { None } else { Some(&x) });
            }
            let y = guess(ar.as_ref(), t * MS);
            assert!((y - x[0]).abs() < 0.02, "{t} ms: {y}, {}", x[0]);
        }
    }
}

/// [model: predictors] Whatever it has learned, an autoregression stays bounded: a burst that grows is not continued for ever.
#[test]
fn ar_does_not_run_away() {
    let mut ar = make("ar", json!({"order": 3}));
    feed(ar.as_mut(), 300, |s| libm::exp(20.0 * s));
    let last = libm::exp(6.0);
    let y = guess(ar.as_ref(), 1_300 * MS);
    assert!(y.abs() < 100.0 * last, "{y}");
}

/// [model: predictors] Without process noise the filter of constant velocity is a line fitted by least squares, which is
/// computed here the other way, over all samples at once.
#[test]
fn kalman_without_process_noise_is_a_least_squares_line() {
    let mut noise = Stream::new(5, "measurement");
    let samples: Vec<(f64, f64)> =
        (0..200).map(|t| (t as f64 * 1e-3, 0.2 + 0.7 * t as f64 * 1e-3 + 1e-3 * noise.normal())).collect();
    let mut kalman = make("kalman_velocity", json!({"process": 1e-18, "sd": 1e-3}));
    for (s, x) in &samples {
        kalman.update((s * 1e9) as Time, Some(&[*x]));
    }
    let n = samples.len() as f64;
    let (ms, mx) =
        (samples.iter().map(|p| p.0).sum::<f64>() / n, samples.iter().map(|p| p.1).sum::<f64>() / n);
    let slope = samples.iter().map(|(s, x)| (s - ms) * (x - mx)).sum::<f64>()
        / samples.iter().map(|(s, _)| (s - ms) * (s - ms)).sum::<f64>();
    let line = mx + slope * (0.249 - ms);
    let y = guess(kalman.as_ref(), 249 * MS);
    assert!((y - line).abs() < 1e-5, "{y}, {line}");
}

/// [model: predictors] Constant velocity continues a ramp, constant acceleration a parabola, at any spacing of samples.
#[test]
fn kalman_continues_what_its_model_says() {
    type Case = (&'static str, fn(f64) -> f64);
    let cases: [Case; 2] =
        [("kalman_velocity", |s| 0.1 + 0.5 * s), ("kalman_acceleration", |s| 0.1 + 2.0 * s * s)];
    for (name, signal) in cases {
        let (mut p, mut spacing, mut t) = (make(name, Value::Null), Stream::new(2, "spacing"), 0);
        for _ in 0..1_000 {
            t += (spacing.uniform(0.2, 3.0) * 1e6) as Time;
            p.update(t, Some(&[signal(t as f64 * 1e-9)]));
        }
        let truth = signal((t + 50 * MS) as f64 * 1e-9);
        let y = guess(p.as_ref(), t + 50 * MS);
        assert!((y - truth).abs() < 2e-3 * truth.abs(), "{name}: {y}, {truth}");
    }
}

/// [model: predictors] The operator's model against its differential equations in steps of 1 us: what is guessed ahead of a
/// hand that was pushed solves them.
#[test]
fn the_operator_comes_to_rest_as_its_equations_say() {
    let (tau, rest) = (0.05, 0.5);
    let path = |until: f64| {
        let (mut x, mut v, mut a) = (0.1, 0.2, 3.0);
        let steps = (until * 1e6) as usize;
        for _ in 0..steps {
            (x, v, a) = (x + 1e-6 * v, v + 1e-6 * (a - v / rest), a - 1e-6 * a / tau);
        }
        x
    };
    let mut operator = make("operator", json!({"sd": 1e-9, "tau_ms": 50, "rest_ms": 500}));
    let mut truth = vec![path(0.0)];
    (1..=40).for_each(|ms| truth.push(path(ms as f64 * 1e-3)));
    truth.iter().enumerate().for_each(|(ms, x)| operator.update(ms as Time * MS, Some(&[*x])));
    for ahead in [10, 50, 200] {
        let (y, truth) = (guess(operator.as_ref(), (40 + ahead) * MS), path((40 + ahead) as f64 * 1e-3));
        assert!((y - truth).abs() < 1e-4, "{ahead} ms: {y}, {truth}");
    }
}

/// Old samples, repeated ones, numbers that are none, other dimensions, long gaps: guesses stay finite and nothing
/// stops.
#[test]
fn bad_samples_do_no_harm() {
    for name in predictor_names() {
        let (mut p, mut draw, mut t): (_, _, Time) = (make(name, Value::Null), Stream::new(9, name), 0);
        for _ in 0..5_000 {
            t += match draw.below(20) {
                0 => -5 * MS,
                1 => 0,
                2 => 10_000 * MS,
                _ => MS,
            };
            let mut x = vec![draw.normal(); 1 + draw.below(20) as usize / 19];
            match draw.below(20) {
                0 => x[0] = f64::NAN,
                1 => x[0] = f64::INFINITY,
                2 => x.clear(),
                _ => {}
            }
            p.update(t, (draw.below(10) > 0).then_some(x.as_slice()));
            let mut out = [0.0; 3];
            p.predict(t + draw.below(100) as Time * MS, &mut out);
            assert!(out.iter().all(|y| y.is_finite()), "{name}: {out:?}");
        }
    }
}
