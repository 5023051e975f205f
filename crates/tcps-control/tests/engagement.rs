//! The supervisor beside other code: predicted commands, an emergency agent, a clutch, and thresholds that do not flutter.

mod common;

use common::{call, Given};
use serde_json::{json, Value};
use tcps_control::{hook, supervised};
use tcps_core::{
    hook::{Hook, HookIn, HookOut, State, Verdict},
    time::{Time, MS},
};

fn make(params: Value) -> Box<dyn Hook> {
    hook("supervisor", &params).unwrap_or_else(|error| panic!("{error}"))
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

/// Where the follower is to go, and what it was told.
struct Guide {
    goal: f64,
    fails: bool,
    asked: u32,
}

impl Hook for Guide {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        self.asked += 1;
        assert!(input.present == 1 && input.x().len() == 1, "it is told where the follower is");
        if self.fails {
            return Verdict::Failed("no idea".into());
        }
        output.set(&[self.goal]);
        Verdict::Emit
    }
}

fn led(goal: f64, fails: bool, reach: f64) -> Box<dyn Hook> {
    let params = json!({"action": "agent", "agent": {}, "reach": reach, "speed": 1, "hold_ms": 20, "recover_ms": 20,
        "stop_ms": 2_000});
    let agent = Box::new(Guide { goal, fails, asked: 0 });
    supervised(&params, agent).unwrap_or_else(|error| panic!("{error}"))
}

/// The agent leads slowly and within its reach while commands are missing, and hands back without a jump.
#[test]
fn an_agent_carries_on_within_limits_and_hands_back() {
    let mut hook = led(5.0, false, 0.2);
    let (mut before, mut farthest) = (0.0f64, 0.0f64);
    for ms in 0..1_500i64 {
        let comes = !(100..900).contains(&ms);
        let y = tick(hook.as_mut(), ms, comes.then_some((&[0.0], ms)))[0];
        let most = if before.abs() > 0.01 { 0.5e-3 } else { 1e-3 };
        assert!((y - before).abs() <= most + 1e-12, "half the speed unless near, {ms}: {before} to {y}");
        (before, farthest) = (y, farthest.max(y));
        if ms == 800 {
            assert_eq!(state(hook.as_ref()), State::Hold);
        }
    }
    assert!((farthest - 0.2).abs() < 1e-9, "up to its reach: {farthest}");
    assert!(before.abs() < 1e-9 && state(hook.as_ref()) == State::Normal, "{before}");
}

/// An agent that fails is told of once, and the follower comes to rest.
#[test]
fn an_agent_that_fails_leads_to_rest() {
    let mut hook = led(5.0, true, 1.0);
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

/// Commands at the edge of a threshold: with `ease` the state changes once, and not at every command.
#[test]
fn thresholds_do_not_flutter() {
    let changes = |ease: f64| {
        let mut hook =
            make(json!({"degraded_ms": 20, "recover_ms": 15, "ease": ease, "near": 10, "loss": 1}));
        let (mut former, mut changes) = (State::Normal, 0);
        for ms in 0..4_000i64 {
            // 19 and 22 ms apart, in turns.
            let y = [0, 19].contains(&(ms % 41)).then_some((&[0.0][..], ms));
            tick(hook.as_mut(), ms, y);
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
        (json!({"action": "agent"}), "belong together"),
        (json!({"engage": "clutch"}), "belong together"),
        (json!({"clutch": 1}), "belong together"),
        (json!({"action": "agent", "agent": {"kind": "python", "name": "x"}}), "only a run can make"),
        (json!({"action": "agent", "agent": {"kind": "builtin", "name": "zho"}}), "allowed: aim, ar, arm3"),
        (json!({"ease": 0}), "above 0"),
        (json!({"reach": -1}), "above 0"),
    ] {
        let Err(error) = hook("supervisor", &params) else { panic!("{params} is taken") };
        assert!(error.to_string().contains(said), "{error}");
    }
}
