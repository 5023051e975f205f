//! States and what leads to them, tick by tick.

use super::{following, make, state, tick};
use crate::common::{call, Given};
use serde_json::{json, Value};
use tcps_core::{
    hook::{Hook, Notice, State},
    time::{Time, MS},
};

/// Through all states and back, tick by tick.
#[test]
fn states_follow_the_age_of_the_newest_command() {
    let mut hook = make(json!({"tell": true, "start": [0.1]}));
    assert!(tick(hook.as_mut(), 0, None, 0).is_none(), "nothing before the first command");
    let mut states = Vec::new();
    for ms in 1..=1_200i64 {
        let comes = ms <= 100 || ms > 900;
        let (_, state) = tick(hook.as_mut(), ms * MS, comes.then_some(0.1), ms as u32).unwrap();
        if states.last().is_none_or(|(_, s)| *s != state) {
            states.push((ms, state));
        }
    }
    // Last command at 100: degraded beyond 20 ms, hold at 50, stop at 500; good again for 50 ms from 901 on.
    let found: Vec<u8> = states.iter().map(|(_, s)| *s).collect();
    assert_eq!(found, [0, 1, 2, 3, 4, 0], "{states:?}");
    assert_eq!([states[1].0, states[2].0, states[3].0], [121, 150, 600]);
    assert!((945..=1_060).contains(&states[4].0), "{states:?}");
}

/// Coming back, the follower goes to where the command is now at half its speed until it is near; with `engage = "near"` it stays until
/// the operator has come to it.
#[test]
fn control_is_taken_up_again_without_a_jump() {
    for engage in ["auto", "near"] {
        let mut hook = make(json!({"tell": true, "engage": engage, "recover_ms": 20, "stop_ms": 100}));
        let mut at = |ms: i64, x: Option<f64>| tick(hook.as_mut(), ms * MS, x, ms as u32).unwrap();
        (1..100).for_each(|ms| _ = at(ms, Some(0.0)));
        (100..400).for_each(|ms| _ = at(ms, None));
        let mut before = 0.0;
        let mut moved = 0.0;
        for ms in 400..1_400 {
            let (y, _) = at(ms, Some(0.3));
            let most = if 0.3 - before > 0.01 { 0.5e-3 } else { 1e-3 };
            assert!((y - before).abs() <= most + 1e-12, "{ms}: {before} to {y}");
            (before, moved) = (y, y);
        }
        match engage {
            "auto" => assert!((moved - 0.3).abs() < 1e-9, "{moved}"),
            _ => {
                assert_eq!(moved, 0.0);
                (1_400..1_600).for_each(|ms| _ = at(ms, Some(0.005)));
                assert_eq!(at(1_600, Some(0.005)), (0.005, 0));
            }
        }
    }
}

/// Loss above its threshold degrades: half the speed, although each command is young.
#[test]
fn too_much_loss_slows_down() {
    let mut hook = make(json!({"tell": true, "loss": 0.3, "degraded_ms": 40}));
    let mut degraded = false;
    for ms in 1..=400i64 {
        let (_, state) =
            tick(hook.as_mut(), ms * MS, (ms == 1 || ms % 3 == 0).then_some(0.0), ms as u32).unwrap();
        degraded |= state == 1;
    }
    assert!(degraded);
}

/// Trusted at once are only commands that are good: lost ones do not have it change its state at each tick, and predicted ones
/// lead out of no hold.
#[test]
fn poor_commands_are_not_trusted_at_once() {
    let mut hook = following(json!({"loss": 0.3, "degraded_ms": 40, "recover_ms": 0}), 100);
    let mut states: Vec<u8> = (100..=400i64)
        .map(|ms| tick(hook.as_mut(), ms * MS, (ms % 3 == 0).then_some(0.0), ms as u32).unwrap().1)
        .collect();
    states.dedup();
    assert_eq!(states, [0, 1]);
    let mut hook = following(json!({"horizon_ms": 400, "recover_ms": 0}), 100);
    for ms in 100..400i64 {
        let given = Given {
            now_ns: ms * MS,
            origin_ns: 99 * MS,
            x: Some(&[0.0]),
            index: ms as u32,
            ..Given::default()
        };
        let told = call(hook.as_mut(), given).y[1];
        assert_eq!(told == 2.0, ms >= 149, "state {told} at {ms} ms");
    }
}

/// Commands that came within one tick are judged as one, and none of them is lost.
#[test]
fn commands_of_the_same_tick_are_not_lost() {
    let mut hook = make(json!({"tell": true, "loss": 0.3, "degraded_ms": 40, "start": [0.0]}));
    for ms in (3..=400i64).step_by(3) {
        for number in [ms - 2, ms - 1] {
            let (index, origin_ns) = (number as u32, number * MS);
            hook.notice(Notice::Superseded { index, origin_ns, overtaken: false }).unwrap();
        }
        (ms - 2..ms).for_each(|idle| _ = tick(hook.as_mut(), idle * MS, None, 0));
        tick(hook.as_mut(), ms * MS, Some(0.0), ms as u32);
        assert_eq!(state(hook.as_ref()), State::Normal, "{ms} ms");
    }
}

/// What led to a state is told with it, and whether limits keep the follower from its command.
#[test]
fn what_led_to_a_state_is_told_with_it() {
    use State::{Degraded, Hold, Normal, Recovering, SafeStop};
    let turns = |more: Value, schedule: &dyn Fn(i64) -> (i64, Option<f64>, u32)| {
        let mut hook = following(more, 100);
        let mut found = vec![(State::Normal, "")];
        for ms in 100..800 {
            let (at_ms, x, number) = schedule(ms);
            tick(hook.as_mut(), at_ms * MS, x, number);
            let told = hook.told().unwrap();
            if told.state != found[found.len() - 1].0 {
                found.push((told.state, told.cause));
            }
        }
        found.split_off(1)
    };
    let none = "no command arrived";
    assert_eq!(
        turns(json!({}), &|ms| (ms, None, 0)),
        [(Degraded, "commands are late"), (Hold, none), (SafeStop, none)]
    );
    let outside = "a command is outside the workspace";
    assert_eq!(
        turns(json!({"workspace": [[-1, 1]]}), &|ms| (ms, Some(9.0), ms as u32)),
        [(Degraded, outside), (Hold, outside), (SafeStop, outside)]
    );
    assert_eq!(
        turns(json!({}), &|ms| (ms + 100, Some(0.0), ms as u32)),
        [
            (Hold, "its loop stalled"),
            (Recovering, "commands are good again"),
            (Normal, "it has reached the command")
        ]
    );
    let every_third = |ms: i64| (ms, Some(0.0), 3 * ms as u32);
    assert_eq!(turns(json!({}), &every_third)[0], (Degraded, "commands are lost"));
    let swapped = |ms: i64| (ms, Some(0.0), (ms ^ 1) as u32);
    assert_eq!(turns(json!({}), &swapped)[0], (Degraded, "commands are out of order"));
    assert_eq!(
        turns(json!({"least_hz": 900, "loss": 1}), &|ms| (ms, (ms % 4 == 0).then_some(0.0), ms as u32))[0],
        (Degraded, "commands arrive too rarely")
    );
    let mut hook = following(json!({"speed": 0.1}), 100);
    tick(hook.as_mut(), 100 * MS, Some(0.005), 100);
    assert!(!hook.told().unwrap().limited, "near");
    tick(hook.as_mut(), 101 * MS, Some(1.0), 101);
    assert!(hook.told().unwrap().limited);
    let mut slow = following(json!({"speed": 1e-9, "near": 65536}), 100);
    tick(slow.as_mut(), 100 * MS, Some(65536.0), 100);
    assert!(!slow.told().unwrap().limited, "as far away as near is, to the last bit");
    hook.notice(Notice::Halt).unwrap();
    tick(hook.as_mut(), 102 * MS, Some(1.0), 102);
    let told = hook.told().unwrap();
    assert_eq!((told.state, told.limited), (Hold, false));
    assert_eq!(told.cause, "its robot or worker has died, or the run ends");
}

/// A constant delay beyond the limit by origin is never followed, whatever the age from arrival; the difference that the
/// clocks may have is taken off the limit.
#[test]
fn a_command_that_is_old_by_its_origin_is_refused() {
    let x = [0.0];
    let age = |hook: &mut dyn Hook, ms: i64, age: Time| {
        call(
            hook,
            Given {
                now_ns: ms * MS,
                origin_ns: ms * MS - age,
                index: ms as u32,
                x: Some(&x),
                ..Given::default()
            },
        );
        hook.complaint()
    };
    let mut hook = make(json!({}));
    for ms in 0..2_000 {
        let said = age(hook.as_mut(), ms, 3_000 * MS).unwrap();
        assert!(
            said.contains(
                "3000.0 ms old end to end, by clocks that agree within 50 ms (end_to_end_ms = 1000)"
            ),
            "{said}"
        );
        assert_eq!(state(hook.as_ref()), State::Hold);
    }
    for (old, fits) in [(950 * MS, true), (950 * MS + 1, false), (-50 * MS, true), (-50 * MS - 1, false)] {
        let mut hook = following(json!({}), 100);
        assert_eq!(age(hook.as_mut(), 100, old).is_none(), fits, "{old}");
    }
    let mut hook = make(json!({"end_to_end_ms": 4_000}));
    assert_eq!((0..100).find_map(|ms| age(hook.as_mut(), ms, 3_000 * MS)), None);
    assert_eq!(state(hook.as_ref()), State::Normal);
}

/// A loop that was away, or a clock that was put forward or back, is judged by the gap before the command that waits for it is.
#[test]
fn a_gap_is_judged_before_what_came_after_it() {
    let away = |gap: Time, clock: Time| {
        let mut hook = following(json!({}), 100);
        let now = 99 * MS + gap + clock;
        tick(hook.as_mut(), now, Some(0.0), 100);
        (hook.told().unwrap().state, hook.told().unwrap().age_ns, hook)
    };
    for (gap, clock, to) in [
        (2_500 * MS, 0, State::SafeStop),
        (60 * MS, 0, State::Hold),
        (MS, 3_000 * MS, State::SafeStop),
        (-3_000 * MS, 0, State::SafeStop),
        (-80 * MS, 0, State::Hold),
    ] {
        let (state, age, mut hook) = away(gap, clock);
        assert_eq!((state, age), (to, (gap + clock).abs()), "{gap} {clock}");
        // What comes after it is trusted once it has been good for long enough, and no sooner.
        let now = 99 * MS + gap + clock;
        let back = (1..200i64)
            .find(|ms| tick(hook.as_mut(), now + ms * MS, Some(0.0), 100 + *ms as u32).unwrap().1 == 4);
        assert!((49..=51).contains(&back.unwrap()), "{back:?}");
    }
    for gap in [MS, 3 * MS / 2, 2 * MS, 40 * MS] {
        let (state, age, _) = away(gap, 0);
        let judged = if gap > 3 * MS / 2 { gap } else { 0 };
        assert_eq!(
            (state, age),
            (if gap > 20 * MS { State::Degraded } else { State::Normal }, judged),
            "{gap}"
        );
    }
}

/// Each threshold at its edge: half a period before it, at the distance that counts as near, at the end of the time to recover; and
/// slowly is a share of the speed.
#[test]
fn edges_of_thresholds() {
    for (at_ns, held) in [(99 * MS + 49 * MS + MS / 2, 2), (99 * MS + 49 * MS + MS / 2 - 1, 1)] {
        let mut hook = following(json!({}), 100);
        (100..148).for_each(|ms| _ = tick(hook.as_mut(), ms * MS, None, 0));
        assert_eq!(tick(hook.as_mut(), at_ns, None, 0).unwrap().1, held);
    }
    for (near, state) in [(0.5, 0), (0.499, 4)] {
        let mut hook = make(json!({"tell": true, "near": near}));
        assert_eq!(tick(hook.as_mut(), 0, Some(0.5), 0).unwrap().1, state);
    }
    let mut hook = following(json!({"stop_ms": 100, "recover_ms": 10}), 100);
    (100..300).for_each(|ms| _ = tick(hook.as_mut(), ms * MS, None, 0));
    let back: Vec<u8> =
        (300..311).map(|ms| tick(hook.as_mut(), ms * MS, Some(0.0), ms as u32 - 200).unwrap().1).collect();
    assert_eq!(back, [3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 0]);
    let mut hook = make(json!({"tell": true, "speed": 4, "slowly": 0.25}));
    (0..2).for_each(|ms| _ = tick(hook.as_mut(), ms * MS, Some(9.0), ms as u32));
    assert!((tick(hook.as_mut(), 2 * MS, Some(9.0), 2).unwrap().0 - 2e-3).abs() < 1e-12);
    let mut hook = make(json!({"measured": [0]}));
    let at = |now_ns, other| Given {
        now_ns,
        origin_ns: now_ns,
        index: (now_ns / MS) as u32,
        x: Some(&[0.0]),
        other,
        ..Given::default()
    };
    assert!(call(hook.as_mut(), at(0, &[1.1e6])).y.is_empty());
    assert_eq!(call(hook.as_mut(), at(MS, &[1e6])).y.len(), 1);
}

/// What is degraded is normal again once commands have been good for long enough and the follower is near; it recovers if it is
/// not near yet.
#[test]
fn degraded_ends_when_commands_are_good_and_near() {
    use State::{Degraded, Normal, Recovering};
    for (goal, recover_ms, then) in [(0.0, 10, Normal), (0.0, 500, Degraded), (1.0, 10, Recovering)] {
        let mut hook = following(json!({"recover_ms": recover_ms}), 600);
        (600..630).for_each(|ms| _ = tick(hook.as_mut(), ms * MS, None, 0));
        assert_eq!(state(hook.as_ref()), State::Degraded);
        (630..800).for_each(|ms| _ = tick(hook.as_mut(), ms * MS, Some(goal), ms as u32));
        assert_eq!(state(hook.as_ref()), then, "{goal} {recover_ms}");
        assert_eq!(hook.told().unwrap().limited, then == Recovering);
    }
}

/// Commands that are late again on the way back: degraded, not recovering, until they have been good for long enough.
#[test]
fn late_commands_end_what_recovers() {
    let mut hook = following(json!({"recover_ms": 10}), 600);
    (630..700).for_each(|ms| _ = tick(hook.as_mut(), ms * MS, Some(1.0), ms as u32));
    assert_eq!(state(hook.as_ref()), State::Recovering);
    (700..730).for_each(|ms| _ = tick(hook.as_mut(), ms * MS, None, 0));
    let told = hook.told().unwrap();
    assert_eq!((told.state, told.cause), (State::Degraded, "commands are late"));
    (730..800).for_each(|ms| _ = tick(hook.as_mut(), ms * MS, Some(1.0), ms as u32));
    assert_eq!(state(hook.as_ref()), State::Recovering);
}

/// A hand that moves by more than `near` from tick to tick, but no faster than `slowly` times the speed: after a gap the state
/// is normal again as for one that rests. One that is faster is never reached, and both the state and its cause say so.
#[test]
fn a_hand_that_moves_is_near_once_the_follower_keeps_up() {
    let back = |gap: i64, speed: f64| {
        let mut hook = make(json!({"tell": true, "speed": speed}));
        // 100/s to and fro: 0.1 a tick, ten times `near`.
        let hand = |ms: i64| 0.5 + 0.1 * ((ms % 20) - 10).abs() as f64;
        (0..100).for_each(|ms| _ = tick(hook.as_mut(), ms * MS, Some(0.0), ms as u32));
        (100..100 + gap).for_each(|ms| _ = tick(hook.as_mut(), ms * MS, None, 0));
        assert_ne!(state(hook.as_ref()), State::Normal);
        let mut before = hook.told().unwrap().state;
        let mut causes = Vec::new();
        let normal = (100 + gap..1_000).find(|ms| {
            let (_, now) = tick(hook.as_mut(), ms * MS, Some(hand(*ms)), *ms as u32).unwrap();
            let told = hook.told().unwrap();
            if told.state != before {
                causes.push((told.state, told.cause));
            } else if before == State::Recovering {
                assert!(told.limited, "it recovers because it is not near");
            }
            before = told.state;
            now == 0
        });
        (normal.map(|ms| ms - 99 - gap), causes)
    };
    let (again, far) = ("commands are good again", "commands are good again, but far from the follower");
    let arrived = (State::Normal, "it has reached the command");
    let (after, causes) = back(30, 220.0);
    assert!(after.unwrap() <= 100, "{after:?}");
    assert_eq!(causes, [(State::Normal, again)]);
    let (after, causes) = back(60, 220.0);
    // Half a hold of the last 64 commands lost counts as bad until they are forgotten.
    assert!(after.unwrap() <= 64 + 50 + 10, "{after:?}");
    assert_eq!(causes, [(State::Recovering, again), arrived]);
    let (after, causes) = back(30, 1.0);
    assert_eq!((after, &causes[..]), (None, &[(State::Recovering, far)][..]));
}

/// What it works for has died: it holds, and no command brings it back.
#[test]
fn a_halt_is_for_good() {
    let mut hook = following(json!({}), 100);
    hook.notice(Notice::Halt).unwrap();
    for ms in 100..400i64 {
        assert_eq!(tick(hook.as_mut(), ms * MS, Some(0.004), ms as u32).unwrap(), (0.0, 2));
    }
}

/// A follower that was coming to rest when its loop was kept away stands, and does not go on after it.
#[test]
fn what_was_away_for_long_is_at_rest() {
    for (gap, moves) in [(49, true), (50, false)] {
        let mut hook = make(json!({"tell": true, "start": [0], "stop_ms": 5_000, "acceleration": 1}));
        (0..50).for_each(|ms| _ = tick(hook.as_mut(), ms * MS, Some(9.0), ms as u32));
        let before = (50..120).map(|ms| tick(hook.as_mut(), ms * MS, None, 0).unwrap()).last().unwrap();
        let (y, state) = tick(hook.as_mut(), (119 + gap) * MS, None, 0).unwrap();
        assert_eq!((y > before.0, state), (moves, 2), "{gap}");
    }
}
