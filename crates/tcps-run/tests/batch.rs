//! The batch engine against the loop written down plainly, its two ways against each other, and against published
//! figures of the loop.

use serde_json::{json, Value};
use tcps_run::batch::{responses, run, CellResult, Loss, Response, Spec};

fn spec(cells: Value, more: Value) -> Spec {
    let mut spec = json!({"seed": 1, "runs": 16, "duration_ms": 1200, "c": 2, "t0_ms": 200, "answers": "ticks",
                          "limits": {"overshoot": 20}, "keep": true, "cells": cells});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(spec).unwrap_or_else(|error| panic!("{error}"))
}

fn cell(there: f64, back: f64, ki: f64, more: Value) -> Value {
    let mut cell = json!({"period_ms": 1, "there_ms": there, "back_ms": back, "kp": 0.2, "ki_per_ms": ki});
    cell.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    cell
}

fn only(spec: &Spec) -> CellResult {
    run(spec).unwrap_or_else(|error| panic!("{error}")).remove(0)
}

/// h(n) = s(n) k(n - there), k(n) = Kp e(n) + I(n), e(n) = 1 - h(n - back): rise time and overshoot.
fn solved(there: usize, back: usize, ki: f64) -> (f64, f64) {
    let (mut h, mut k, mut integral) = (vec![1.0f64; 1200], vec![1.0; 1200], 1.0f64);
    for n in 0..1200 {
        let e = if n >= back { 1.0 - h[n - back] } else { 0.0 };
        integral = (integral + ki * e).clamp(-10.0, 10.0);
        k[n] = 0.2 * e + integral;
        h[n] = if n < 200 { 1.0 } else { 0.5 } * if n >= there { k[n - there] } else { 1.0 };
    }
    let rise = h[200..].iter().position(|h| *h >= 0.95 - 1e-12).map_or(f64::NAN, |n| n as f64);
    (rise, 200.0 * (h[200..].iter().copied().fold(1.0, f64::max) - 1.0))
}

/// [Polachan 2022: steps] Without loss both ways of the engine are the difference equations.
#[test]
fn without_loss_both_ways_solve_the_difference_equations() {
    for (there, back, ki) in [(1, 1, 0.568), (2, 3, 0.276), (5, 5, 0.146), (10, 10, 0.0758), (25, 25, 0.05)] {
        let (rise, overshoot) = solved(there, back, ki);
        for more in [json!({}), json!({"jitter": {"kind": "constant", "span_ns": 0}})] {
            let s = spec(json!([cell(there as f64, back as f64, ki, more)]), json!({"runs": 3}));
            for r in only(&s).runs {
                assert!((r.overshoot - overshoot).abs() < 1e-9, "{there}+{back}: {r:?}, {overshoot}");
                assert!(r.rise_ms == rise || (r.rise_ms.is_nan() && rise.is_nan()), "{r:?}, {rise}");
            }
        }
    }
}

/// [Polachan 2022: steps] All five figures agree between the way of 8 runs side by side and the way of single runs.
#[test]
fn both_ways_see_the_same_figures() {
    for (answers, phases) in [("ticks", false), ("commands", false), ("ticks", true)] {
        for loss in [json!(null), json!({"kind": "random", "p": 0.4})] {
            let make = |jitter: Value| {
                let more = json!({"loss": loss, "jitter": jitter, "phases": phases});
                let s = spec(json!([cell(4.5, 3.0, 0.15, more)]), json!({"runs": 1000, "answers": answers}));
                only(&s)
            };
            let (block, single) = (make(json!(null)), make(json!({"kind": "constant", "span_ns": 0})));
            for (a, b) in [
                (block.rise_ms, single.rise_ms),
                (block.overshoot, single.overshoot),
                (block.undershoot, single.undershoot),
                (block.settling_ms, single.settling_ms),
                (block.error, single.error),
            ] {
                let (mean, sd) =
                    (a.mean.unwrap() - b.mean.unwrap(), libm::hypot(a.sd.unwrap(), b.sd.unwrap()));
                let noise = 4.0 * sd / f64::from(a.n).sqrt();
                assert!(mean.abs() <= noise + 1e-9, "{answers}, {phases}, {loss}: {a:?}, {b:?}");
            }
        }
    }
}

/// [Polachan 2022: steps] Integral action alone: overshoot by g = Ki theta / 2, and unstable beyond pi / 2. The continuous loop
/// is approached with 400 ticks in the delay.
#[test]
fn integral_action_overshoots_as_theory_says() {
    let theta = 400.0;
    for (g, wanted) in [(0.368, 0.0), (0.5, 4.1), (0.6, 11.7), (0.7, 20.6), (1.0, 50.0), (1.5, 100.0)] {
        let more = json!({"kp": 0.0, "ki_per_ms": 2.0 * g / theta});
        let s =
            spec(json!([cell(theta / 2.0, theta / 2.0, 0.0, more)]), json!({"runs": 1, "duration_ms": 8000}));
        let found = only(&s).runs[0].overshoot;
        assert!((found - wanted).abs() < 0.6, "g = {g}: {found}, {wanted}");
    }
    let more = json!({"kp": 0.0, "ki_per_ms": 2.0 * 1.65 / theta});
    let wild =
        spec(json!([cell(theta / 2.0, theta / 2.0, 0.0, more)]), json!({"runs": 1, "duration_ms": 40000}));
    assert!(only(&wild).runs[0].settling_ms.is_nan());
}

/// A response that swings on has not settled where its run happens to end near the target, in both engines.
#[test]
fn a_response_that_is_passing_has_not_settled() {
    for jitter in [json!(null), json!({"kind": "constant", "span_ns": 0})] {
        for end in (4000..4800).step_by(5) {
            let more = json!({"kp": 0.0, "ki_per_ms": 3.0 / 200.0, "jitter": jitter});
            let s = spec(json!([cell(100.0, 100.0, 0.0, more)]), json!({"runs": 1, "duration_ms": end}));
            let found = only(&s).runs[0];
            assert!(found.settling_ms.is_nan(), "{jitter}, {end}: {found:?}");
        }
    }
}

/// The same bits on one thread and on three, in any order of cells, and with more cells around.
#[test]
fn results_depend_on_nothing_but_the_cell() {
    let cells: Vec<Value> = (0..12)
        .map(|i| cell(f64::from(i), 3.0, 0.1, json!({"loss": {"kind": "random", "p": 0.05 * f64::from(i)}})))
        .collect();
    let runs = |cells: &[Value], threads: u32| -> Vec<Vec<Response>> {
        let s = spec(json!(cells), json!({"threads": threads, "runs": 20}));
        run(&s).unwrap().into_iter().map(|c| c.runs).collect()
    };
    let one = runs(&cells, 1);
    assert_eq!(format!("{:?}", runs(&cells, 3)), format!("{one:?}"));
    assert_eq!(format!("{:?}", runs(&cells[7..8], 1)), format!("{:?}", &one[7..8]));
    let s = spec(json!([cells[7]]), json!({"runs": 11}));
    assert_eq!(format!("{:?}", responses(&s, &s.cells[0])), format!("{:?}", &one[7][..11]), "fewer runs");
}

/// Burst losses of the same share hurt more than single ones: the loop runs open for longer.
#[test]
fn bursts_are_worse_than_single_losses() {
    let overshoot = |loss: Value| {
        let s = spec(json!([cell(5.0, 5.0, 0.146, json!({"loss": loss}))]), json!({"runs": 2000}));
        only(&s).overshoot.mean.unwrap()
    };
    let single = overshoot(json!({"kind": "random", "p": 0.2}));
    let bursts =
        overshoot(json!({"kind": "gilbert-elliott", "p": 0.05, "r": 0.2, "loss_good": 0, "loss_bad": 1}));
    assert!(bursts > single + 3.0, "{bursts}, {single}");
}

/// Jitter delays: it raises the overshoot as a longer delay does; packets that overtake others show their older values.
#[test]
fn jitter_acts_as_delay() {
    let overshoot = |more: Value| {
        let s = spec(json!([cell(5.0, 5.0, 0.12, more)]), json!({"runs": 400}));
        only(&s).overshoot.mean.unwrap()
    };
    let jitter = json!({"kind": "exponential", "mean_ns": 3_000_000, "shift_ns": 0});
    let (none, ordered) = (overshoot(json!({})), overshoot(json!({"jitter": jitter})));
    let overtaking = overshoot(json!({"jitter": jitter, "reorder": true}));
    assert!(ordered > none + 5.0 && overtaking > none + 1.0, "{none}, {ordered}, {overtaking}");
    assert!((ordered - overtaking).abs() > 0.5, "{ordered}, {overtaking}");
}

/// The phase of the far side's ticks adds up to a period to the loop.
#[test]
fn ticks_of_their_own_phase_spread_the_rise_time() {
    let s = spec(json!([cell(5.0, 5.0, 0.09, json!({"phases": true}))]), json!({"runs": 200}));
    let rises: Vec<f64> = only(&s).runs.iter().map(|r| r.rise_ms).collect();
    let (least, most) =
        (rises.iter().copied().fold(f64::MAX, f64::min), rises.iter().copied().fold(0.0, f64::max));
    assert!(most - least > 0.5 && most - least < 8.0, "{least} to {most}");
    assert!(rises.iter().any(|r| r.fract() != 0.0));
}

/// What makes no sense is refused with its number, and a run without an answer has no rise time.
#[test]
fn nonsense_is_refused() {
    let refused = |cells: Value, more: Value, text: &str| {
        let error = run(&spec(cells, more)).expect_err("nonsense").to_string();
        assert!(error.contains(text), "{error}");
    };
    refused(json!([]), json!({"c": 1}), "c = 1");
    refused(json!([]), json!({"t0_ms": 5000}), "5000");
    refused(json!([cell(-1.0, 0.0, 0.1, json!({}))]), json!({}), "delay -1");
    refused(json!([cell(1.0, 1.0, 0.1, json!({"period_ms": 0}))]), json!({}), "a period of 0 ms");
    let loss = serde_json::from_value::<Loss>(json!({"kind": "random", "p": 1.5})).expect_err("nonsense");
    assert!(loss.to_string().starts_with("p: found 150 %; allowed: a share from 0 % to 100 %"), "{loss}");
    let dead = spec(json!([cell(1.0, 1.0, 0.1, json!({"loss": {"kind": "random", "p": 1.0}}))]), json!({}));
    let found = only(&dead);
    assert_eq!((found.good, found.rise_ms.n, found.overshoot.mean), (0, 0, Some(0.0)));
}
