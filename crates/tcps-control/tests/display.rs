//! The predictive display: live while feedback comes, the model's force while it does not, and no jump in between.

mod common;

use common::{call, Given};
use serde_json::json;
use tcps_control::hook;
use tcps_core::{
    hook::{Hook, State, Verdict},
    time::MS,
};

const WALL_M: f64 = 0.02;
const STIFF_N_M: f64 = 500.0;

fn at(ms: i64) -> f64 {
    let w = 2.0 * std::f64::consts::PI * 0.7;
    0.015 * (1.0 - libm::cos(w * ms as f64 * 1e-3))
}

fn force(x: f64) -> f64 {
    STIFF_N_M * (x - WALL_M).max(0.0)
}

/// A tick at `ms`: the follower's force and position of 20 ms ago if they come, the operator's position now.
fn tick(hook: &mut dyn Hook, ms: i64, comes: bool) -> Vec<f64> {
    let there = at(ms - 20);
    let (x, other) = ([force(there), there], [at(ms)]);
    let given = Given {
        now_ns: ms * MS,
        origin_ns: (ms - 20) * MS,
        x: comes.then_some(&x[..]),
        other: &other,
        index: ms as u32,
        ..Given::default()
    };
    call(hook, given).y
}

/// [model: predictors] After two contacts the model is known: through an outage of 0.7 s the force is that of the wall where the
/// operator is, marked as predicted; going over and back changes it by at most 0.05 N in a millisecond beside the wall's own.
#[test]
fn the_force_of_the_model_is_shown_while_nothing_comes() {
    let mut hook = hook("environment", &json!({})).unwrap();
    let (mut before, mut worst) = (0.0f64, 0.0f64);
    for ms in 20..6_000i64 {
        let out = (3_300..4_000).contains(&ms);
        let y = tick(hook.as_mut(), ms, !out);
        let predicted = (3_305..4_000).contains(&ms);
        assert_eq!(y.len(), 3);
        assert_eq!(y[2] == 1.0, predicted, "{ms}");
        assert_eq!(
            hook.told().unwrap().state,
            if predicted { State::Predicted } else { State::Live },
            "{ms}"
        );
        if (3_500..4_000).contains(&ms) {
            worst = worst.max((y[0] - force(at(ms))).abs());
            assert_eq!(y[1], at(ms), "where the operator is");
        }
        if ms > 4_200 {
            assert_eq!(y[..2], [force(at(ms - 20)), at(ms - 20)], "live again, as it came");
        }
        let own = STIFF_N_M * 0.015 * 2.0 * std::f64::consts::PI * 0.7 * 1e-3;
        assert!((y[0] - before).abs() <= 0.05 + own + 1e-9, "{ms}: {before} to {}", y[0]);
        before = y[0];
    }
    assert!(worst < 0.1, "{worst} N");
}

/// A force that pushes back is learned and shown with its own sign.
#[test]
fn a_reaction_keeps_its_sign() {
    let mut hook = hook("environment", &json!({"reaction": true})).unwrap();
    let mut last = Vec::new();
    for ms in 20..3_600i64 {
        let x = [-force(at(ms)), at(ms)];
        let given = Given {
            now_ns: ms * MS,
            origin_ns: ms * MS,
            x: (ms < 3_300).then_some(&x[..]),
            other: &[at(ms)],
            ..Given::default()
        };
        last = call(hook.as_mut(), given).y;
    }
    assert!(last[2] == 1.0 && force(at(3_599)) > 1.0, "predicted, in the wall");
    assert!((last[0] + force(at(3_599))).abs() < 0.1, "{} N, {} N", last[0], -force(at(3_599)));
}

/// A hand that nothing holds goes far into the wall: it feels no more than the most that it has felt.
#[test]
fn no_more_is_predicted_than_was_felt() {
    let mut hook = hook("environment", &json!({})).unwrap();
    let most = (20..3_300).map(|ms| tick(hook.as_mut(), ms, true)[0]).fold(0.0, f64::max);
    for ms in 3_300..3_800i64 {
        let given = Given { now_ns: ms * MS, other: &[0.2], ..Given::default() };
        let y = call(hook.as_mut(), given).y;
        assert!(y[0] <= most + 1e-9 && (ms < 3_700 || y[0] > 0.9 * most), "{ms}: {} N of {most} N", y[0]);
    }
}

/// A clock that is put back does not make what is stale look live, and one that is put forward leads to what is predicted.
#[test]
fn a_clock_step_makes_nothing_live() {
    for step_ns in [-3_000 * MS, 3_000 * MS] {
        let mut hook = hook("environment", &json!({})).unwrap();
        let mut mark = |now_ns, x: Option<&[f64]>| {
            call(hook.as_mut(), Given { now_ns, origin_ns: now_ns, x, ..Given::default() }).y[2]
        };
        (1..100).for_each(|ms| assert_eq!(mark(ms * MS, Some(&[1.0, 0.1])), 0.0));
        (100..120).for_each(|ms| _ = mark(ms * MS, None));
        (120..200).for_each(|ms| assert_eq!(mark(ms * MS + step_ns, None), 1.0, "{ms}, {step_ns}"));
        assert_eq!(mark(200 * MS + step_ns, Some(&[1.0, 0.1])), 0.0, "it has come");
    }
}

/// Without a model the last force fades; without feedback nothing is said; nonsense is refused.
#[test]
fn without_a_model_the_last_force_fades() {
    let mut hook = hook("environment", &json!({"most_n_ms": 10, "fade_ms": 50})).unwrap();
    let mut at = |ms: i64, x: Option<&[f64]>| {
        call(hook.as_mut(), Given { now_ns: ms * MS, origin_ns: ms * MS, x, ..Given::default() })
    };
    assert_eq!(at(0, None).verdict, Verdict::Nothing);
    assert_eq!(at(1, Some(&[2.0, 0.1])).y, [2.0, 0.1, 0.0]);
    assert!((at(31, None).y[0] - 1.0).abs() < 1e-9, "half of it after 5 + 25 ms");
    assert_eq!(at(100, None).y, [0.0, 0.1, 1.0]);
    for bad in [&[1.0][..], &[f64::NAN, 0.0], &[1.0, f64::INFINITY]] {
        assert!(matches!(at(101, Some(bad)).verdict, Verdict::Failed(_)), "{bad:?}");
    }
}

#[test]
fn axes_must_fit_together() {
    for params in
        [json!({"force": []}), json!({"force": [0, 1]}), json!({"stale_ms": 0}), json!({"form": "jelly"})]
    {
        assert!(hook("environment", &params).is_err(), "{params}");
    }
}
