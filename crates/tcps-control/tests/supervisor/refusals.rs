//! What is refused: parameters, values and commands that make no sense.

use super::{following, make, tick};
use crate::common::{call, Given};
use serde_json::json;
use tcps_control::hook;
use tcps_core::{hook::Notice, time::MS};

#[test]
fn thresholds_that_do_not_rise_are_refused() {
    let Err(error) = hook("supervisor", &json!({"hold_ms": 10})) else { panic!("hold before degraded") };
    assert!(error.to_string().contains("times that rise"), "{error}");
    assert!(hook("supervisor", &json!({"action": "panic"})).is_err());
    assert!(hook("supervisor", &json!({"speed": 0})).is_err());
}

/// What makes no sense is refused, said with the reason, and leads to the safe side.
#[test]
fn absurd_values_are_refused_and_said() {
    for (x, workspace, said) in [
        (1e99, json!([]), "value 0 is 1e99, outside the workspace -1e6 to 1e6"),
        (f64::NAN, json!([]), "NaN"),
        (f64::INFINITY, json!([]), "inf"),
        (0.11, json!([[-0.1, 0.1]]), "outside the workspace -1e-1 to 1e-1"),
        (-0.11, json!([[-0.1, 0.1]]), "value 0 is -1.1e-1"),
    ] {
        let mut hook = following(json!({"workspace": workspace}), 100);
        for ms in 100..=149i64 {
            assert_eq!(
                tick(hook.as_mut(), ms * MS, Some(x), ms as u32).unwrap(),
                (0.0, if ms == 149 { 2 } else { 1 }),
                "{ms}"
            );
            let told = hook.complaint().unwrap();
            assert!(told.starts_with("refused: ") && told.contains(said), "{told}");
        }
        tick(hook.as_mut(), 150 * MS, None, 150);
        assert_eq!(hook.complaint(), None, "said once");
    }
    let mut hook = following(json!({"workspace": [[-0.1, 0.1]]}), 100);
    tick(hook.as_mut(), 100 * MS, Some(0.1), 100);
    assert_eq!(hook.complaint(), None, "the edge is inside");
}

#[test]
fn a_command_of_another_length_is_refused() {
    let mut hook = following(json!({}), 50);
    let x = [0.0, 0.0];
    call(
        hook.as_mut(),
        Given { now_ns: 50 * MS, origin_ns: 50 * MS, index: 50, x: Some(&x), ..Given::default() },
    );
    assert!(hook.complaint().unwrap().contains("a command of 2 values, of 1 before"));
    let mut hook = make(json!({"workspace": [[-1, 1], [0, 1], [0, 1]]}));
    call(hook.as_mut(), Given { x: Some(&x), ..Given::default() });
    assert!(hook.complaint().unwrap().contains("2 values, and the workspace has 3"));
    let mut hook = make(json!({"workspace": [[-1, 1]]}));
    let far = [0.5, -1.5];
    call(hook.as_mut(), Given { x: Some(&far), ..Given::default() });
    assert!(
        hook.complaint().unwrap().contains("value 1 is -1.5e0, outside the workspace -1e0 to 1e0"),
        "one pair is of all"
    );
    let mut hook = make(json!({"workspace": [[-1, 1], [0, 1]]}));
    let x = [0.5, -0.5];
    call(hook.as_mut(), Given { x: Some(&x), ..Given::default() });
    assert!(hook.complaint().unwrap().contains("value 1 is -5e-1, outside the workspace 0e0 to 1e0"));
}

/// The period is the hook's: a step is as far as the speed allows in it, and thresholds are met to the nearest tick.
#[test]
fn it_goes_by_the_period_of_its_hook() {
    for period in [MS, 10 * MS] {
        let mut hook = hook("supervisor", &json!({"tell": true, "start": [0], "action": "hold"})).unwrap();
        hook.notice(Notice::Period(Some(period))).unwrap();
        tick(hook.as_mut(), 0, Some(1.0), 0);
        let (y, _) = tick(hook.as_mut(), period, Some(1.0), 1).unwrap();
        assert!((y - 0.5e-9 * period as f64).abs() < 1e-12, "{y}");
        let (far, _) = tick(hook.as_mut(), 2 * period + 5 * MS, Some(1.0), 2).unwrap();
        assert!((far - y - 0.5e-9 * period as f64).abs() < 1e-12, "no farther than in one period: {far}");
    }
    let mut hook = hook("supervisor", &json!({})).unwrap();
    assert!(hook.notice(Notice::Period(None)).unwrap_err().contains("allowed: period = \"1 ms\""));
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    for (params, said) in [
        (json!({"period_ms": 1}), "period_ms: found an unknown key"),
        (json!({"measured": [0], "start": [0]}), "one of start and measured"),
        (json!({"workspace": [[1, -1]]}), "workspace: found [1.0, -1.0]; allowed: [least, most] of a value, within 1e6"),
        (json!({"workspace": [[0, 0]]}), "[least, most]"),
        (json!({"workspace": [[-1e7, 0]]}), "from -1000000 to 1000000"),
        (json!({"workspace": [[0, 1e7]]}), "from -1000000 to 1000000"),
        (json!({"workspace": [[0, 1]], "start": [2]}), "start: found value 0 is 2e0"),
        (json!({"workspace": [[1, 2]], "action": "zero"}), "zero where 0 is inside"),
        (json!({"workspace": [[-2, -1]], "action": "zero"}), "zero where 0 is inside"),
        (json!({"end_to_end_ms": 50}), "above clock_ms = 50"),
        (json!({"end_to_end_ms": -1}), "end_to_end_ms: found -1"),
        (json!({"clock_ms": -1}), "clock_ms: found -1"),
        (json!({"workspace": [[0.1, 1]]}), "workspace: found no place where the follower begins"),
        (json!({"workspace": [[-1, 1], [-2, -1]]}), "allowed: start or measured"),
        (json!({"start": []}), "start: found []; allowed: a number for each value of a command, such as [0]"),
        (json!({"measured": []}), "measured: found []"),
        (json!({"hold_ms": 600}), "hold_ms: found 600 beside degraded_ms = 20, stop_ms = 500; allowed: times that rise, such as degraded_ms = 20"),
    ] {
        let Err(error) = hook("supervisor", &params) else { panic!("{params} is taken") };
        assert!(error.to_string().contains(said), "{error}");
    }
    assert!(hook("supervisor", &json!({"workspace": [[0, 1e6]], "action": "zero"})).is_ok());
    assert!(hook("supervisor", &json!({"workspace": [[1, 2]], "start": [1]})).is_ok());
    assert!(hook("supervisor", &json!({"workspace": [[1, 2]], "measured": [0]})).is_ok());
    assert!(hook("supervisor", &json!({"workspace": [[-1e6, 0]], "action": "zero"})).is_ok());
}

/// Each number has a range, of which both ends are taken and what is beyond them refused; what JSON has no word for (inf, nan) is
/// refused before.
#[test]
fn absurd_parameters_are_refused() {
    let day = 86.4e6;
    for (key, least, most) in [
        ("end_to_end_ms", 50.001, day),
        ("recover_ms", 0.0, day),
        ("horizon_ms", 0.0, day),
        ("clock_ms", 0.0, 999.9),
        ("loss", 0.0, 1.0),
        ("reordered", 0.0, 1.0),
        ("least_hz", 0.0, 1e6),
        ("speed", 1e-9, 1e9),
        ("acceleration", 1e-9, 1e9),
        ("slowly", 1e-9, 1.0),
        ("ease", 1e-9, 1.0),
        ("near", 1e-9, 1e6),
        ("reach", 1e-9, 1e6),
        ("degraded_ms", 1e-3, 50.0),
        ("hold_ms", 20.0, 500.0),
        ("stop_ms", 50.0, day),
    ] {
        let made = |value: f64| hook("supervisor", &json!({ key: value }));
        for fits in [least, most] {
            made(fits).map(drop).unwrap_or_else(|error| panic!("{key} = {fits}: {error}"));
        }
        for absurd in [-1.0, least * 0.99 - 1e-12, most * 1.01, 1e300, -1e-300] {
            let Err(error) = made(absurd) else { panic!("{key} = {absurd} is taken") };
            let says = error.to_string();
            let named = [": found ", " = "].iter().any(|by| says.contains(&format!("{key}{by}")));
            assert!(named, "{says}");
        }
    }
}

/// A command without the value of the clutch, and one that is nothing but that, are refused with the reason; and so is what is
/// of changing width.
#[test]
fn commands_of_any_width_are_followed_or_refused() {
    let mut hook = make(json!({"engage": "clutch", "clutch": 1}));
    for (ms, width) in (0..300i64).zip([2, 1, 0, 3, 2, 32].into_iter().cycle()) {
        let x = vec![1.0; width];
        let given =
            Given { now_ns: ms * MS, origin_ns: ms * MS, index: ms as u32, x: Some(&x), ..Given::default() };
        assert!(call(hook.as_mut(), given).y.len() == 1, "{ms}");
        match (width, hook.complaint()) {
            (2, None) => {}
            (0 | 1, Some(said)) => assert!(said.contains("without that of the clutch"), "{said}"),
            (_, said) => assert!(said.unwrap().contains("values, of 1 before")),
        }
    }
}
