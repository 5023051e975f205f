//! The follower's supervisor: never too fast, never on old commands, and back without a jump.

mod beginnings;
#[path = "../common/mod.rs"]
mod common;
mod refusals;
mod schedules;
mod states;

use common::{call, Given};
use serde_json::{json, Value};
use tcps_control::hook;
use tcps_core::{
    hook::{Former, Hook, Notice, State, Verdict},
    time::{Time, MS},
};

fn make(params: Value) -> Box<dyn Hook> {
    let mut hook = hook("supervisor", &params).unwrap_or_else(|error| panic!("{error}"));
    hook.notice(Notice::Period(Some(MS))).unwrap();
    hook
}

/// A tick with a command or without: values and state.
fn tick(hook: &mut dyn Hook, now_ns: Time, command: Option<f64>, number: u32) -> Option<(f64, u8)> {
    let x = command.map(|x| [x]);
    let given =
        Given { now_ns, origin_ns: now_ns, x: x.as_ref().map(|x| &x[..]), index: number, ..Given::default() };
    let answer = call(hook, given);
    (answer.verdict == Verdict::Emit).then(|| (answer.y[0], answer.y[1] as u8))
}

/// The last call of a supervisor, at `now_ns`, as its runtime remembers it.
fn resumed<'a>(hook: &dyn Hook, now_ns: Time, values: &'a [f64]) -> Notice<'a> {
    Notice::Resumed(Former { now_ns, values, told: hook.told().unwrap() })
}

/// A supervisor with commands each ms at rest at 0, until `ms`.
fn following(more: Value, ms: i64) -> Box<dyn Hook> {
    let mut params = json!({"tell": true, "action": "hold"});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut hook = make(params);
    (0..ms).for_each(|t| _ = tick(hook.as_mut(), t * MS, Some(0.0), t as u32));
    assert_eq!(state(hook.as_ref()), State::Normal);
    hook
}

fn state(hook: &dyn Hook) -> State {
    hook.told().unwrap().state
}
