//! Where it begins, and how it goes on after a restart.

use super::{following, make, resumed, state, tick};
use crate::common::{call, Given};
use serde_json::json;
use tcps_core::{
    hook::{Former, Hook, HookState, Notice, State},
    time::MS,
};

/// The follower begins where it is measured to be, and until that is known nothing is given out.
#[test]
fn the_first_command_is_limited_like_any_other() {
    let mut hook = make(json!({"measured": [1], "stop_ms": 200}));
    let at = |hook: &mut dyn Hook, ms: i64, other: &[f64]| {
        let (now_ns, x) = (ms * MS, [5.0]);
        let given =
            Given { now_ns, origin_ns: now_ns, index: ms as u32, x: Some(&x), other, ..Given::default() };
        call(hook, given).y
    };
    for ms in 0..200 {
        assert!(at(hook.as_mut(), ms, if ms % 2 == 0 { &[] } else { &[0.3, f64::NAN] }).is_empty());
        assert_eq!((state(hook.as_ref()), hook.complaint()), (State::Hold, None), "{ms}");
    }
    assert!(at(hook.as_mut(), 200, &[0.3]).is_empty());
    let said = hook.complaint().unwrap();
    assert!(said.contains("a command has 1 values, but none of the values that `measured` names"), "{said}");
    assert_eq!(at(hook.as_mut(), 201, &[9.0, 0.3]), [0.3 + 0.5e-3]);
    assert_eq!((state(hook.as_ref()), hook.complaint()), (State::Recovering, None));
    assert_eq!(at(hook.as_mut(), 202, &[9.0, 7.0]), [0.3 + 1e-3], "measured only to begin");
}

/// A position that is no number is none, and that is said.
#[test]
fn a_position_that_is_no_number_is_said() {
    let mut hook = make(json!({"measured": [0], "stop_ms": 60}));
    for ms in 0..=60i64 {
        let (now_ns, other) = (ms * MS, [f64::NAN]);
        let given = Given {
            now_ns,
            origin_ns: now_ns,
            index: ms as u32,
            x: Some(&[0.0]),
            other: &other,
            ..Given::default()
        };
        assert!(call(hook.as_mut(), given).y.is_empty());
    }
    let said = hook.complaint().unwrap();
    assert!(
        said.contains(
            "a command has 1 values, but the measured position of the follower is not finite, or beyond 10^6"
        ),
        "{said}"
    );
}

/// Without a measured position: at its start, which is 0 where it is not said.
#[test]
fn a_start_that_is_said_is_where_it_begins() {
    for (params, start) in [(json!({"tell": true}), 0.0), (json!({"tell": true, "start": [2.0]}), 2.0)] {
        let mut hook = make(params);
        assert!(tick(hook.as_mut(), 0, None, 0).is_none());
        let (y, state) = tick(hook.as_mut(), MS, Some(5.0), 1).unwrap();
        assert!((y - start - 0.5e-3).abs() < 1e-12 && state == 4, "{y}");
    }
    let mut hook = make(json!({"start": [2.0, 1.0]}));
    (0..502).for_each(|ms| assert!(tick(hook.as_mut(), ms * MS, Some(5.0), ms as u32).is_none()));
    assert!(hook.complaint().unwrap().contains("a command has 1 values, but 2 say"));
}

/// Who begins outside the workspace goes in, and back along that way only as far as its edge.
#[test]
fn the_way_back_ends_at_the_workspace() {
    let params = json!({"action": "retreat", "tell": true, "measured": [0], "workspace": [[0.2, 1]]});
    let mut hook = make(params);
    call(hook.as_mut(), Given { x: Some(&[0.6]), other: &[0.0], ..Given::default() });
    let mut at = |ms: i64, x| tick(hook.as_mut(), ms * MS, x, ms as u32).unwrap();
    let (inside, _) = (1..800).map(|ms| at(ms, Some(0.6))).last().unwrap();
    assert!((0.3..0.6).contains(&inside), "{inside}");
    let back: Vec<(f64, u8)> = (800..1_299).map(|ms| at(ms, None)).collect();
    assert!(back.iter().all(|(y, _)| *y >= 0.2), "{back:?}");
    assert_eq!(back[back.len() - 1], (0.2, 2), "and stays there");
}

/// After a restart of its component it stays where it was until commands have been good for long enough, and a robot that was
/// told so does not jump.
#[test]
fn a_restart_makes_no_step() {
    let mut hook = make(json!({"tell": true, "start": [0.0], "recover_ms": 10}));
    let told = HookState { state: State::Normal, age_ns: 0, origin_ns: None, cause: "", limited: false };
    hook.notice(Notice::Resumed(Former { now_ns: 0, values: &[0.1, 0.0], told })).unwrap();
    (0..10).for_each(|ms| assert_eq!(tick(hook.as_mut(), ms * MS, Some(0.2), ms as u32).unwrap(), (0.1, 2)));
    let (y, state) = tick(hook.as_mut(), 10 * MS, Some(0.2), 10).unwrap();
    assert!((y - 0.1005).abs() < 1e-12 && state == 4, "{y}, {state}");
    assert!(tick(hook.as_mut(), 11 * MS, Some(0.1), 11).unwrap().1 == 0);
    let x = [0.0, 0.0];
    call(
        hook.as_mut(),
        Given { now_ns: 12 * MS, origin_ns: 12 * MS, index: 12, x: Some(&x), ..Given::default() },
    );
    assert!(hook.complaint().unwrap().contains("a command of 2 values, of 1 before"));
}

/// The age goes on over a restart, and the time that the component was away is judged; a sample that was known before is no sign
/// of life after it. However short it was, it holds.
#[test]
fn an_age_goes_on_over_a_restart() {
    for (away, state) in [(10, 2), (55, 2), (600, 3)] {
        let former = following(json!({"start": [0.0]}), 100);
        let mut hook = make(json!({"tell": true, "action": "hold"}));
        hook.notice(resumed(former.as_ref(), 99 * MS, &[0.0, 0.0])).unwrap();
        let told = |hook: &dyn Hook| (hook.told().unwrap().state as u8, hook.told().unwrap().age_ns / MS);
        for ms in [99 + away, 100 + away, 101 + away, (101 + away).max(149)] {
            let x = [0.0];
            let given = Given {
                now_ns: ms * MS,
                origin_ns: 99 * MS,
                index: ms as u32,
                x: Some(&x),
                ..Given::default()
            };
            assert_eq!(call(hook.as_mut(), given).y[0], 0.0);
            assert_eq!(told(hook.as_ref()), (state, ms - 99), "{away}, {ms}");
        }
    }
}

/// A stop is a stop after a restart, and so is what control is taken up again by.
#[test]
fn a_stop_survives_a_restart() {
    let mut hook = make(json!({"tell": true, "engage": "near", "stop_ms": 100, "recover_ms": 20}));
    (0..100).for_each(|ms| _ = tick(hook.as_mut(), ms * MS, Some(0.0), ms as u32));
    let given = (100..300).map(|ms| tick(hook.as_mut(), ms * MS, None, 0).unwrap()).last().unwrap();
    for (at, engages) in [(0.3, false), (0.0, true)] {
        let mut anew = make(json!({"tell": true, "engage": "near", "stop_ms": 100, "recover_ms": 20}));
        anew.notice(resumed(hook.as_ref(), 299 * MS, &[given.0, 3.0])).unwrap();
        assert_eq!(tick(anew.as_mut(), 300 * MS, None, 0).unwrap(), (0.0, 3), "before any command");
        for ms in 301..500 {
            let (y, state) = tick(anew.as_mut(), ms * MS, Some(at), ms as u32).unwrap();
            assert!(y == 0.0 && (state == 3 || (engages && ms >= 320)), "{at}: {y}, {state} at {ms} ms");
        }
        assert_eq!(state(anew.as_ref()) == State::Normal, engages, "{at}");
    }
}

/// What never gave anything out begins as ever.
#[test]
fn what_had_not_begun_begins_after_a_restart() {
    let former = make(json!({"tell": true}));
    let mut hook = make(json!({"tell": true, "start": [0.2]}));
    hook.notice(resumed(former.as_ref(), 0, &[])).unwrap();
    assert!(tick(hook.as_mut(), 0, None, 0).is_none());
    assert_eq!(tick(hook.as_mut(), MS, Some(0.2), 1).unwrap(), (0.2, 0));
}
