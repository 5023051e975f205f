//! The follower's supervisor over schedules of failure: never too fast, never on old commands, and back without a jump.

mod common;

use common::{call, Given};
use serde_json::{json, Value};
use tcps_control::hook;
use tcps_core::{
    hook::{Hook, Verdict},
    seed::Stream,
    time::{Time, MS},
};

fn make(params: Value) -> Box<dyn Hook> {
    hook("supervisor", &params).unwrap_or_else(|error| panic!("{error}"))
}

/// A tick with a command or without: values and state.
fn tick(hook: &mut dyn Hook, now_ns: Time, command: Option<f64>, number: u32) -> Option<(f64, u8)> {
    let x = command.map(|x| [x]);
    let given =
        Given { now_ns, origin_ns: now_ns, x: x.as_ref().map(|x| &x[..]), index: number, ..Given::default() };
    let answer = call(hook, given);
    (answer.verdict == Verdict::Emit).then(|| (answer.y[0], answer.y[1] as u8))
}

/// One random schedule of loss, outage, reordering, restart and clock steps: what is checked at each tick.
fn schedule(seed: u64, action: &str) {
    let mut draw = Stream::new(seed, action);
    let hold = 20 + draw.below(60) as i64;
    let mut hook =
        make(json!({"tell": true, "hold_ms": hold, "stop_ms": hold + 200, "action": action, "speed": 2}));
    let (loss, mut outage, mut clock, mut number, mut good) = (0.6 * draw.unit(), 0, 0, 0u32, None::<i64>);
    let (mut newest, mut before) = (None::<u32>, None::<f64>);
    for ms in 0..1_500i64 {
        number = if draw.chance(0.001) { 0 } else { number + 1 };
        if draw.chance(0.003) {
            outage = draw.below(400);
        }
        clock += if draw.chance(0.002) { (draw.uniform(-3e9, 3e9)) as Time } else { 0 };
        let sent = if draw.chance(0.05) { number.saturating_sub(draw.below(8) as u32) } else { number };
        let comes = outage == 0 && !draw.chance(loss);
        outage = outage.saturating_sub(1);
        let bad = draw.chance(0.01);
        let x = if bad { f64::NAN } else { libm::sin(ms as f64 * 0.01) * 1.5 };
        let Some((y, state)) = tick(hook.as_mut(), ms * MS + clock, comes.then_some(x), sent) else {
            continue;
        };
        let newer = newest.is_none_or(|n: u32| sent > n || n - sent > 2000);
        if comes && !bad && newer {
            (good, newest) = (Some(ms), Some(sent));
        }
        assert!(y.is_finite());
        if let Some(before) = before.filter(|_| action != "zero") {
            assert!((y - before).abs() <= 2.0 * 1e-3 + 1e-9, "seed {seed}, {ms} ms: {before} to {y}");
        }
        // From the last good command to hold: the threshold plus at most one period. A clock step may only hasten it.
        let age = ms - good.unwrap_or(ms);
        assert!(
            age <= hold + 1 || state == 2 || state == 3,
            "seed {seed}, {ms} ms: state {state}, age {age}"
        );
        assert!(age <= hold + 200 + 1 || state == 3, "seed {seed}, {ms} ms: state {state}, age {age}");
        before = Some(y);
    }
}

/// 1000 random schedules: the speed and the age limit are never broken, whatever is done without commands.
#[test]
fn a_thousand_schedules_of_failure() {
    for seed in 0..250 {
        for action in ["hold", "decelerate", "retreat", "zero"] {
            schedule(seed, action);
        }
    }
}

/// Through all states and back, tick by tick.
#[test]
fn states_follow_the_age_of_the_newest_command() {
    let mut hook = make(json!({"tell": true}));
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

#[test]
fn thresholds_that_do_not_rise_are_refused() {
    let Err(error) = hook("supervisor", &json!({"hold_ms": 10})) else { panic!("hold before degraded") };
    assert!(error.to_string().contains("they must rise"), "{error}");
    assert!(hook("supervisor", &json!({"action": "panic"})).is_err());
    assert!(hook("supervisor", &json!({"speed": 0})).is_err());
}
