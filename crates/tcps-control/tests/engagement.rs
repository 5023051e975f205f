//! The supervisor beside other code: predicted commands, an emergency agent, a clutch, and thresholds that do not flutter.

mod common;

use common::{call, Given};
use std::sync::{
    atomic::{AtomicU32, Ordering},
    Arc,
};

use serde_json::{json, Value};
use tcps_control::{hook, supervised};
use tcps_core::{
    hook::{Former, Hook, HookIn, HookOut, HookState, Notice, State, Verdict},
    time::{Time, MS},
};

fn make(params: Value) -> Box<dyn Hook> {
    let mut hook = hook("supervisor", &params).unwrap_or_else(|error| panic!("{error}"));
    hook.notice(Notice::Period(Some(MS))).unwrap();
    hook
}

/// A tick at `ms`, with a command of this number and origin: the values given out.
fn tick(hook: &mut dyn Hook, ms: i64, command: Option<(&[f64], Time)>) -> Vec<f64> {
    let (x, origin) = command.map_or((None, 0), |(x, origin)| (Some(x), origin));
    let given = Given { now_ns: ms * MS, origin_ns: origin * MS, x, index: ms as u32, ..Given::default() };
    call(hook, given).y
}

fn state(hook: &dyn Hook) -> State {
    hook.told().expect("a supervisor tells").state
}

/// A predictor goes on with new values of an old sample: they are followed up to the horizon and are no sign of life.
#[test]
fn predicted_commands_are_stopped_by_their_horizon() {
    let mut hook = make(json!({"hold_ms": 60, "horizon_ms": 30, "action": "hold"}));
    let mut at = Vec::new();
    for ms in 0..200i64 {
        let origin = ms.min(100); // the last real sample is that of 100 ms
        let x = [ms as f64 * 1e-4];
        at.push(tick(hook.as_mut(), ms, Some((&x, origin)))[0]);
        match ms {
            0..=100 => assert_eq!(state(hook.as_ref()), State::Normal, "{ms}"),
            160.. => assert!(matches!(state(hook.as_ref()), State::Hold), "{ms}"),
            _ => {}
        }
    }
    assert!((at[129] - 129e-4).abs() < 1e-9, "followed within the horizon: {}", at[129]);
    assert!((at[199] - 130e-4).abs() < 1e-9, "no farther than the last one within it: {}", at[199]);
    let told = hook.told().unwrap();
    assert_eq!(told.age_ns, 99 * MS);
}

/// A command that was 2 s on its way, where the scenario allows it, is no sender that has started again, however far behind its
/// number is; and one of an older sample under a newer number leads to the safe side in time.
#[test]
fn late_commands_are_no_sign_of_life() {
    let late = |number: fn(i64) -> i64| {
        let mut hook = make(json!({"end_to_end_ms": 5_000, "action": "hold", "horizon_ms": 0}));
        (0..3_000).for_each(|ms| _ = tick(hook.as_mut(), ms, Some((&[0.0], ms))));
        for ms in 3_000..3_700i64 {
            let (now_ns, origin_ns) = (ms * MS, (ms - 2_100) * MS);
            let given =
                Given { now_ns, origin_ns, x: Some(&[0.3]), index: number(ms) as u32, ..Given::default() };
            assert_eq!(call(hook.as_mut(), given).y, [0.0], "{ms}");
        }
        assert_eq!(state(hook.as_ref()), State::SafeStop);
        hook
    };
    late(|ms| ms - 2_100);
    let mut hook = late(|ms| ms);
    (3_700..3_800).for_each(|ms| _ = tick(hook.as_mut(), ms, Some((&[0.0], ms))));
    assert_eq!(state(hook.as_ref()), State::Normal);
    (3_800..4_000).for_each(|ms| {
        let given = Given {
            now_ns: ms * MS,
            origin_ns: ms * MS,
            x: Some(&[0.0]),
            index: ms as u32 - 3_800,
            ..Given::default()
        };
        call(hook.as_mut(), given);
    });
    assert_eq!(state(hook.as_ref()), State::Normal, "a sender that has started again has newer samples");
}

/// Both clocks are put back: by them samples are older than before, and count after the gap has been judged.
#[test]
fn clocks_that_are_put_back_together_cost_a_gap() {
    let mut hook = make(json!({}));
    (5_000..5_100).for_each(|ms| _ = tick(hook.as_mut(), ms, Some((&[0.0], ms))));
    for (number, ms) in (2_100..2_200i64).enumerate() {
        let (now_ns, index) = (ms * MS, 5_100 + number as u32);
        call(hook.as_mut(), Given { now_ns, origin_ns: now_ns, x: Some(&[0.0]), index, ..Given::default() });
        assert_eq!(state(hook.as_ref()) == State::SafeStop, ms < 2_149, "{ms}");
    }
    assert_eq!(state(hook.as_ref()), State::Normal);
}

/// Where the follower is to go, and what it was told.
struct Guide {
    goal: Vec<f64>,
    fails: bool,
    asked: Arc<AtomicU32>,
}

impl Hook for Guide {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        self.asked.fetch_add(1, Ordering::Relaxed);
        assert!(input.present == 1 && input.x().len() == 1, "it is told where the follower is");
        if self.fails {
            return Verdict::Failed("no idea".into());
        }
        output.set(&self.goal);
        Verdict::Emit
    }
}

fn led(goal: &[f64], fails: bool, more: Value) -> (Box<dyn Hook>, Arc<AtomicU32>) {
    let mut params = json!({"action": "agent", "agent": {}, "speed": 1, "hold_ms": 20, "recover_ms": 20,
        "stop_ms": 2_000});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let asked = Arc::new(AtomicU32::new(0));
    let agent = Box::new(Guide { goal: goal.to_vec(), fails, asked: asked.clone() });
    (supervised(&params, agent).unwrap_or_else(|error| panic!("{error}")), asked)
}

/// The agent leads slowly and within its reach while commands are missing, and hands back without a jump.
#[test]
fn an_agent_carries_on_within_limits_and_hands_back() {
    for way in [1.0, -1.0] {
        let (mut hook, asked) = led(&[5.0 * way], false, json!({"reach": 0.2}));
        let (mut before, mut farthest, mut holds) = (0.0f64, 0.0f64, 0);
        for ms in 0..1_500i64 {
            let comes = !(100..900).contains(&ms);
            holds += u32::from(ms > 0 && state(hook.as_ref()) == State::Hold);
            let y = way * tick(hook.as_mut(), ms, comes.then_some((&[0.0], ms)))[0];
            let most = if before.abs() > 0.01 { 0.5e-3 } else { 1e-3 };
            assert!((y - before).abs() <= most + 1e-12, "half the speed unless near, {ms}: {before} to {y}");
            (before, farthest) = (y, farthest.max(y));
            if ms == 800 {
                assert_eq!(state(hook.as_ref()), State::Hold);
            }
        }
        assert!((farthest - 0.2).abs() < 1e-9, "up to its reach: {farthest}");
        assert!(before.abs() < 1e-9 && state(hook.as_ref()) == State::Normal, "{before}");
        assert_eq!(asked.load(Ordering::Relaxed), holds, "in hold alone");
    }
}

/// Leads up, and after 300 calls down.
struct Turning(u32);

impl Hook for Turning {
    fn call(&mut self, _: &HookIn, output: &mut HookOut) -> Verdict {
        self.0 += 1;
        output.set(&[if self.0 <= 300 { 5.0 } else { -5.0 }]);
        Verdict::Emit
    }
}

/// A follower that was outside the workspace when the agent took over is not led out of it again.
#[test]
fn an_agent_leads_into_the_workspace_and_not_out_of_it() {
    let params = json!({"action": "agent", "agent": {}, "measured": [0], "workspace": [[0.1, 1]],
        "hold_ms": 20, "stop_ms": 2_000});
    let mut hook = supervised(&params, Box::new(Turning(0))).unwrap_or_else(|error| panic!("{error}"));
    call(hook.as_mut(), Given { x: Some(&[0.6]), other: &[0.0], ..Given::default() });
    (1..100).for_each(|ms| _ = tick(hook.as_mut(), ms, Some((&[0.6], ms))));
    let led: Vec<f64> = (100..1_500).map(|ms| tick(hook.as_mut(), ms, None)[0]).collect();
    let inside = led.iter().position(|y| *y > 0.15).expect("it is led in");
    assert!(led[0] < 0.1 && led[inside..].iter().all(|y| *y >= 0.1), "{led:?}");
    assert_eq!(led[led.len() - 1], 0.1, "down to its edge");
}

/// What is no place to go to lets the follower stay.
#[test]
fn an_agent_that_says_nonsense_leads_nowhere() {
    for goal in [&[f64::NAN][..], &[f64::INFINITY], &[5.0, 5.0], &[]] {
        let (mut hook, _) = led(goal, false, json!({}));
        (0..100).for_each(|ms| _ = tick(hook.as_mut(), ms, Some((&[0.0], ms))));
        (100..300).for_each(|ms| assert_eq!(tick(hook.as_mut(), ms, None), [0.0], "{goal:?}"));
    }
}

/// An agent that fails is told of once, and the follower comes to rest.
#[test]
fn an_agent_that_fails_leads_to_rest() {
    let (mut hook, _) = led(&[5.0], true, json!({}));
    let mut failures = 0;
    for ms in 0..400i64 {
        let x = [ms.min(100) as f64 * 1e-4];
        let comes = ms <= 100;
        let given = Given {
            now_ns: ms * MS,
            origin_ns: ms * MS,
            index: ms as u32,
            x: comes.then_some(&x[..]),
            ..Given::default()
        };
        match call(hook.as_mut(), given).verdict {
            Verdict::Failed(why) => {
                assert!(why.contains("agent") && why.contains("no idea"), "{why}");
                failures += 1;
            }
            verdict => assert_eq!(verdict, Verdict::Emit),
        }
    }
    assert_eq!(failures, 1);
    let rest = [tick(hook.as_mut(), 400, None)[0], tick(hook.as_mut(), 401, None)[0]];
    assert_eq!(rest[0], rest[1]);
    assert!((rest[0] - 100e-4).abs() < 0.01, "{rest:?}");
}

/// A built-in hook as an agent: `pose` with an offset alone is a place to go to.
#[test]
fn a_built_in_hook_is_an_agent() {
    let agent =
        json!({"kind": "builtin", "name": "pose", "params": {"pick": [0], "scale": [0], "offset": [0.05]}});
    let mut hook = make(json!({"action": "agent", "agent": agent, "hold_ms": 20}));
    (0..50).for_each(|ms| _ = tick(hook.as_mut(), ms, Some((&[0.0], ms))));
    (50..400).for_each(|ms| _ = tick(hook.as_mut(), ms, None));
    assert!((tick(hook.as_mut(), 400, None)[0] - 0.05).abs() < 1e-9);
}

/// After a stop, the clutch must be let go of and closed again; its value is no motion.
#[test]
fn a_clutch_must_be_closed_again_after_a_stop() {
    let mut hook =
        make(json!({"engage": "clutch", "clutch": 1, "stop_ms": 100, "recover_ms": 10, "near": 0.001}));
    let mut at = |ms: i64, command: Option<[f64; 2]>| {
        let y = tick(hook.as_mut(), ms, command.as_ref().map(|x| (&x[..], ms)));
        (y, hook.told().unwrap().state)
    };
    (0..50).for_each(|ms| assert_eq!(at(ms, Some([0.0, 1.0])).0.len(), 1, "the clutch is not given out"));
    (50..300).for_each(|ms| _ = at(ms, None));
    (300..400)
        .for_each(|ms| assert_eq!(at(ms, Some([0.1, 1.0])).1, State::SafeStop, "held since before the stop"));
    (400..500).for_each(|ms| assert_eq!(at(ms, Some([0.1, 0.0])).1, State::SafeStop, "let go of"));
    (500..1_000).for_each(|ms| _ = at(ms, Some([0.1, 1.0])));
    let (y, state) = at(1_000, Some([0.1, 1.0]));
    assert!(state == State::Normal && (y[0] - 0.1).abs() < 1e-9, "{y:?}, {state:?}");
}

/// The clutch counts from the stop on: one that was let go of and closed before it must be so again.
#[test]
fn what_the_clutch_did_before_a_stop_does_not_count() {
    let mut hook = make(json!({"engage": "clutch", "clutch": 1, "stop_ms": 100, "recover_ms": 10}));
    for ms in 0..600i64 {
        let held = if (20..30).contains(&ms) { 0.0 } else { 1.0 };
        let comes = !(50..300).contains(&ms);
        tick(hook.as_mut(), ms, comes.then_some((&[0.0, held][..], ms)));
        if ms > 200 {
            assert_eq!(state(hook.as_ref()), State::SafeStop, "{ms}");
        }
    }
}

/// A restart of the component is no way around the clutch: what was closed before it must be let go of and closed again, also where
/// the follower had come to no stop before the component died, but would have while it was dead.
#[test]
fn a_restart_is_no_way_around_the_clutch() {
    let params = json!({"engage": "clutch", "clutch": 1, "stop_ms": 100, "recover_ms": 10});
    for (stops, away) in [(300, 1), (0, 100)] {
        let mut hook = make(params.clone());
        (0..50).for_each(|ms| _ = tick(hook.as_mut(), ms, Some((&[0.0, 1.0], ms))));
        (50..50 + stops).for_each(|ms| _ = tick(hook.as_mut(), ms, None));
        let told = hook.told().unwrap();
        let mut hook = make(params.clone());
        hook.notice(Notice::Resumed(Former { now_ns: (49 + stops) * MS, values: &[0.0], told })).unwrap();
        let from = 49 + stops + away;
        for ms in from..from + 400 {
            let held = f64::from(u8::from(!(from + 100..from + 200).contains(&ms)));
            let at = tick(hook.as_mut(), ms, Some((&[0.1, held], ms)))[0];
            let stands = ms < from + 200;
            assert_eq!(
                (state(hook.as_ref()) == State::SafeStop, at == 0.0),
                (stands, stands),
                "{stops}, {ms}"
            );
        }
        assert_eq!(state(hook.as_ref()), State::Normal);
    }
}

/// Until a command says that the clutch is closed, nothing is known of it after a restart: the follower stays, and no agent leads it.
#[test]
fn after_a_restart_the_clutch_counts_as_open() {
    let (mut hook, asked) = led(&[5.0], false, json!({"engage": "clutch", "clutch": 1}));
    let told =
        HookState { state: State::Hold, age_ns: 30 * MS, origin_ns: Some(0), cause: "", limited: false };
    hook.notice(Notice::Resumed(Former { now_ns: 30 * MS, values: &[0.1], told })).unwrap();
    (31..80).for_each(|ms| assert_eq!(tick(hook.as_mut(), ms, None), [0.1]));
    (80..200).for_each(|ms| assert_eq!(tick(hook.as_mut(), ms, Some((&[0.0, 0.0], ms))), [0.1]));
    let end = (200..900).map(|ms| tick(hook.as_mut(), ms, Some((&[0.0, 1.0], ms)))[0]).last();
    assert_eq!((end, asked.load(Ordering::Relaxed)), (Some(0.0), 0));
}

/// Without a clutch the agent leads on after a restart, from where the follower is then.
#[test]
fn an_agent_leads_on_after_a_restart() {
    let (mut hook, _) = led(&[5.0], false, json!({"reach": 0.05}));
    let told =
        HookState { state: State::Hold, age_ns: 30 * MS, origin_ns: Some(0), cause: "", limited: false };
    hook.notice(Notice::Resumed(Former { now_ns: 30 * MS, values: &[0.1], told })).unwrap();
    let end = (31..400).map(|ms| tick(hook.as_mut(), ms, None)[0]).last().unwrap();
    assert!((end - 0.15).abs() < 1e-9, "{end}");
}

/// A hold is at once where it is to be, also for a follower that was let go of and is slow to come to rest.
#[test]
fn hold_stops_what_an_open_clutch_has_not_stopped_yet() {
    for (action, moves) in [("hold", false), ("decelerate", true)] {
        let params = json!({"engage": "clutch", "clutch": 1, "action": action, "acceleration": 1});
        let mut hook = make(params);
        (0..100).for_each(|ms| _ = tick(hook.as_mut(), ms, Some((&[1.0, 1.0], ms))));
        tick(hook.as_mut(), 100, Some((&[1.0, 0.0], 100)));
        let rest: Vec<f64> = (101..160).map(|ms| tick(hook.as_mut(), ms, None)[0]).collect();
        assert!(rest[40] > rest[30], "it takes its time");
        assert_eq!((state(hook.as_ref()), rest[58] > rest[55]), (State::Hold, moves), "{action}");
    }
}

/// Before the first command that the clutch is closed for, nothing is given out.
#[test]
fn an_open_clutch_begins_nothing() {
    let mut hook = make(json!({"engage": "clutch", "clutch": 1, "start": [0.0]}));
    (0..50).for_each(|ms| assert!(tick(hook.as_mut(), ms, Some((&[0.3, 0.0], ms))).is_empty()));
    assert!(!tick(hook.as_mut(), 50, Some((&[0.3, 1.0], 50))).is_empty());
}

/// The operator lets go on the way to a goal 1 m off: from 0.5 m/s the follower is at rest after v / a = 50 ms and v^2 / 2a = 12.5 mm,
/// and goes nowhere until the clutch is closed again. So it is in each state, and whatever the hand does meanwhile.
#[test]
fn an_open_clutch_stops_the_follower_within_its_deceleration() {
    for action in ["hold", "decelerate", "retreat"] {
        let mut hook = make(
            json!({"engage": "clutch", "clutch": 1, "action": action, "acceleration": 10, "stop_ms": 300}),
        );
        let mut at = |ms: i64, command: Option<[f64; 2]>| {
            tick(hook.as_mut(), ms, command.as_ref().map(|x| (&x[..], ms)))[0]
        };
        let left = (0..=100).map(|ms| at(ms, Some([1.0, 1.0]))).last().unwrap();
        assert!((left - 0.05).abs() < 1e-9, "it is on its way: {left}");
        let (mut before, mut speed) = (left, 0.5);
        for ms in 101..1_000i64 {
            // The hand goes far off; then its commands make no sense; then none come, up to a safe stop and back.
            let hand = [-9.0, f64::NAN][usize::from((300..900).contains(&ms))];
            let now = at(ms, (!(400..800).contains(&ms)).then_some([hand, 0.0]));
            let slower = (now - before) * 1e3;
            assert!((-1e-9..=speed + 1e-9).contains(&slower), "{action}, {ms} ms: {speed} to {slower}");
            assert!(speed - slower <= 10.0 * 1e-3 + 1e-9, "{action}, {ms} ms: {speed} to {slower}");
            assert!(ms <= 151 || slower == 0.0, "{action}, {ms} ms: at rest: {slower}");
            (before, speed) = (now, slower);
        }
        assert!((before - left - 0.0125).abs() <= 0.5e-3, "{action}: {}", before - left);
        let there = (1_000..3_200).map(|ms| at(ms, Some([1.0, 1.0]))).last().unwrap();
        assert!((there - 1.0).abs() < 1e-9, "{action}: closed again, it goes on: {there}");
    }
}

/// Values that are speeds or forces are no place to stay at: with `zero`, an open clutch gives zeros.
#[test]
fn an_open_clutch_takes_speeds_and_forces_to_zero() {
    let mut hook = make(json!({"engage": "clutch", "clutch": 1, "action": "zero"}));
    (0..200).for_each(|ms| _ = tick(hook.as_mut(), ms, Some((&[0.05, 1.0], ms))));
    assert_eq!(tick(hook.as_mut(), 200, Some((&[0.05, 0.0], 200))), [0.0]);
}

/// A command that is refused lets go all the same.
#[test]
fn letting_go_counts_in_a_command_that_is_refused() {
    let mut hook =
        make(json!({"engage": "clutch", "clutch": 1, "workspace": [[-1, 1]], "acceleration": 500}));
    (0..100).for_each(|ms| _ = tick(hook.as_mut(), ms, Some((&[1.0, 1.0], ms))));
    let left = tick(hook.as_mut(), 100, Some((&[7.0, 0.0], 100)));
    assert_eq!(tick(hook.as_mut(), 101, Some((&[7.0, 0.0], 101))), left, "at rest after a tick");
    // Out of order it is older than what is known, and says nothing.
    (102..300).for_each(|ms| _ = tick(hook.as_mut(), ms, Some((&[1.0, 1.0], ms))));
    let before = tick(hook.as_mut(), 300, Some((&[1.0, 1.0], 300)))[0];
    let x = [1.0, 0.0];
    let late = Given { now_ns: 301 * MS, origin_ns: 299 * MS, index: 299, x: Some(&x), ..Given::default() };
    assert!(call(hook.as_mut(), late).y[0] > before);
}

/// An agent does not lead a follower that the operator has let go of.
#[test]
fn an_open_clutch_keeps_the_agent_out() {
    let (mut hook, asked) = led(&[5.0], false, json!({"engage": "clutch", "clutch": 1}));
    (0..50).for_each(|ms| _ = tick(hook.as_mut(), ms, Some((&[0.0, 1.0], ms))));
    tick(hook.as_mut(), 50, Some((&[0.0, 0.0], 50)));
    (51..150).for_each(|ms| assert_eq!(tick(hook.as_mut(), ms, None), [0.0], "{ms}"));
    assert_eq!((state(hook.as_ref()), asked.load(Ordering::Relaxed)), (State::Hold, 0));
}

/// Commands at the edge of a threshold: with `ease` the state changes once, and not at every command.
#[test]
fn thresholds_do_not_flutter() {
    let changes = |ease: f64| {
        let mut hook =
            make(json!({"degraded_ms": 20, "recover_ms": 15, "ease": ease, "near": 10, "loss": 1}));
        let (mut former, mut changes) = (State::Normal, 0);
        for ms in 0..4_000i64 {
            // 19 and 22 ms apart, in turns.
            let x = [0, 19].contains(&(ms % 41)).then_some(&[0.0][..]);
            let index = ((ms + 22) / 41 + ms / 41) as u32; // none is lost
            call(hook.as_mut(), Given { now_ns: ms * MS, origin_ns: ms * MS, x, index, ..Given::default() });
            changes += u32::from(state(hook.as_ref()) != former);
            former = state(hook.as_ref());
        }
        changes
    };
    assert_eq!(changes(0.8), 1);
    assert!(changes(1.0) > 100, "{}", changes(1.0));
}

#[test]
fn what_belongs_together_is_asked_for_together() {
    for (params, said) in [
        (json!({"action": "agent"}), "agent: found no agent; allowed: action = \"agent\" and an agent"),
        (json!({"engage": "clutch"}), "clutch is missing; allowed: engage = \"clutch\" and clutch"),
        (json!({"clutch": 1}), "clutch: found 1; allowed: engage = \"clutch\" and clutch"),
        (
            json!({"action": "agent", "agent": {"kind": "python", "name": "x"}}),
            "built-in code, where no run makes it",
        ),
        (json!({"action": "agent", "agent": {"kind": "builtin", "name": "zho"}}), "allowed: aim, ar, arm3"),
        (json!({"ease": 0}), "ease: found 0; allowed: a number from 0.000000001 to 1"),
        (json!({"reach": -1}), "reach: found -1; allowed"),
    ] {
        let Err(error) = hook("supervisor", &params) else { panic!("{params} is taken") };
        assert!(error.to_string().contains(said), "{error}");
    }
}
