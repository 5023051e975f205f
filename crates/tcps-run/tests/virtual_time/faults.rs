//! Random schedules of faults between an operator and a supervised follower, whole runs in virtual time.

use crate::common::{link, of, simulate, MS};
use proptest::{collection::vec, prelude::*, test_runner::TestCaseError};
use serde_json::{json, Value};
use std::sync::atomic::{AtomicU64, Ordering};
use tcps_core::{
    hook::State,
    record::{Kind, Record},
};

const HOLD: i64 = 50;
const STOP: i64 = 200;
const SPEED: f64 = 6.0;
const ACCELERATION: f64 = 60.0;
/// Limit of a command's age at its arrival, less what clocks may differ by.
const END_TO_END: i64 = 300;
const CLOCK: i64 = 50;
/// Ticks from the highest speed to rest, and one more at either end.
const TO_REST: i64 = (SPEED / ACCELERATION * 1e3) as i64 + 2;
/// Farthest in a tick; values travel as f32.
const STEP: f64 = SPEED * 1e-3 + 1e-6;
const RUN: i64 = 1600;
/// How long the end of a run is without a fault. Commands that were delayed may come in its first 400 ms, out of order.
const WELL: i64 = 600;
/// Entry and exit of the supervisor's component.
const ENTRY: u16 = 2;
const EXIT: u16 = 3;

/// Something that goes wrong, from a moment on for a while.
#[derive(Debug, Clone)]
enum Fault {
    /// One direction is down.
    Cut {
        link: u16,
    },
    Loss {
        share: f64,
    },
    Delay {
        ms: i64,
    },
    /// The link is too slow for the flow, or nearly so.
    Slow {
        bps: f64,
    },
    /// The source sends nothing.
    Silent,
    /// The operator's component is dead.
    Dead,
    /// The operator's clock steps, and is put right again.
    Clock {
        step_ms: i64,
    },
}

impl Fault {
    /// What the plan does at its begin, and at its end.
    fn actions(&self) -> [Value; 2] {
        let both = |begin: Value, end: Value| {
            [begin, end].map(|change| {
                let mut action = json!({"kind": "link", "links": [0]});
                action.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
                action
            })
        };
        match *self {
            Self::Cut { link } => {
                both(json!({"links": [link], "up": false}), json!({"links": [link], "up": true}))
            }
            Self::Loss { share } => both(json!({"loss": share}), json!({"loss": 0.0})),
            Self::Delay { ms } => both(json!({"delay_ns": ms * MS}), json!({"delay_ns": 5 * MS})),
            Self::Slow { bps } => both(json!({"rate_bps": bps}), json!({"rate_bps": 1e9})),
            Self::Silent => [false, true].map(|on| json!({"kind": "flow", "flow": 0, "running": on})),
            Self::Dead => [false, true].map(|on| json!({"kind": "component", "component": 0, "alive": on})),
            Self::Clock { step_ms } => {
                [step_ms, -step_ms].map(|by| json!({"kind": "clock", "node": 0, "step_ns": by * MS}))
            }
        }
    }
}

fn fault() -> impl Strategy<Value = (i64, i64, Fault)> {
    let what = prop_oneof![
        (0u16..2).prop_map(|link| Fault::Cut { link }),
        (0.05f64..=1.0).prop_map(|share| Fault::Loss { share }),
        (0i64..400).prop_map(|ms| Fault::Delay { ms }),
        (2e5f64..5e6).prop_map(|bps| Fault::Slow { bps }),
        Just(Fault::Silent),
        Just(Fault::Dead),
        (-400i64..400).prop_map(|step_ms| Fault::Clock { step_ms }),
    ];
    (0i64..RUN - WELL - 100, 1i64..400, what)
}

/// An operator and a follower with a supervisor, 5 ms apart; the link duplicates, reorders and damages at random.
fn plan(seed: u64, action: &str, faults: &[(i64, i64, Fault)]) -> Value {
    let supervisor = json!({"kind": "builtin", "name": "supervisor", "symbol": "", "params": {
        "tell": true, "hold_ms": HOLD, "stop_ms": STOP, "action": action, "speed": SPEED, "slowly": 0.9,
        "acceleration": ACCELERATION, "start": [0.0], "workspace": [[-1.0, 1.0]], "near": 0.05, "recover_ms": 20,
        "end_to_end_ms": END_TO_END, "clock_ms": CLOCK}});
    let mut forward = link("l.forward", 0, 1);
    forward.as_object_mut().unwrap().extend(
        json!({"duplicate": 0.02, "corrupt": 0.02, "rate_bps": 1e9,
            "jitter": {"delay": {"kind": "uniform", "low_ns": 0, "high_ns": 1_400_000}, "reorder": true}})
        .as_object()
        .unwrap()
        .clone(),
    );
    let mut events: Vec<(i64, Value)> = Vec::new();
    for (at, long, fault) in faults {
        let [begin, end] = fault.actions();
        events.push((*at, begin));
        events.push(((at + long).min(RUN - WELL), end));
    }
    events.sort_by_key(|(at, _)| *at);
    let events: Vec<Value> = events
        .into_iter()
        .map(|(at, action)| json!({"at_ns": at * MS, "name": "fault", "action": action}))
        .collect();
    json!({
        "name": "faults", "seed": seed, "duration_ns": RUN * MS, "sessions": ["main"],
        "nodes": [{"name": "op"}, {"name": "top"}],
        "components": [
            {"name": "operator", "kind": "tactile-operator", "session": 0, "node": 0},
            {"name": "ss", "kind": "ss-com", "session": 0, "node": 1}],
        "flows": [{
            "name": "kinematic", "session": 0, "direction": "forward", "period_ns": MS, "codec": "f32",
            "source": {"kind": "generated", "bytes": 4}, "sink": {"kind": "count"},
            "path": [{"component": 0, "channel": 0},
                {"component": 1, "steps": [{"kind": "predict", "run": supervisor, "period_ns": MS}]}]}],
        "channels": [{"name": "a", "session": 0, "a": 0, "b": 1, "transport": "udp"}],
        "network": {"vertices": ["op", "top"], "links": [forward, link("l.backward", 1, 0)]},
        "events": events, "signals": [EXIT],
    })
}

/// What came to the supervisor and what it gave out, moment by moment.
fn judge(rows: &[Record], action: &str) -> Result<(), TestCaseError> {
    let (mut last, mut state, mut good) = (None::<f64>, State::Hold, None::<i64>);
    let (mut resting, mut gave) = (0, 0u32);
    for row in rows {
        match row.kind {
            // One that was too old where it came is no sign of life.
            Kind::Delivered if row.point == ENTRY && row.value <= (END_TO_END + CLOCK) * MS => {
                good = Some(row.time_ns);
            }
            Kind::State => state = State::ALL[usize::from(row.detail)],
            Kind::Signal if row.detail == 0 => {
                let at = row.time_ns / MS;
                let y = f64::from_bits(row.value as u64);
                gave += 1;
                prop_assert!((-1.0..=1.0).contains(&y), "{at} ms: {y} is outside of the workspace");
                let moved = last.map_or(0.0, |last| (y - last).abs());
                prop_assert!(moved <= STEP, "{at} ms, {state:?}: moved by {moved}");
                let age = row.time_ns - good.expect("silent before the first command");
                let stopped = matches!(state, State::Hold | State::SafeStop);
                prop_assert!(stopped || age <= (HOLD + 1) * MS, "{at} ms, {state:?}: age {age} ns");
                prop_assert!(
                    state == State::SafeStop || age <= (STOP + 1) * MS,
                    "{at} ms, {state:?}: age {age} ns"
                );
                let rests = state == State::SafeStop || (state == State::Hold && action != "retreat");
                resting = if rests { resting + 1 } else { 0 };
                prop_assert!(
                    resting <= TO_REST || moved < 1e-6,
                    "{at} ms, {state:?}: still moves by {moved}"
                );
                last = Some(y);
            }
            _ => {}
        }
    }
    prop_assert!(
        gave == 0 || !matches!(state, State::Hold | State::SafeStop),
        "{state:?} at the end, all well again"
    );
    let [sent, came] = [Kind::Sent, Kind::Delivered].map(|kind| of(rows, kind).len());
    prop_assert!(came <= sent, "{came} of {sent}: duplicates are dropped");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]
    /// Speed, workspace, age, time to rest and recovery, whatever the network, the operator's computer and its clock do.
    #[test]
    fn a_supervised_follower_survives(
        seed in any::<u32>(),
        action in prop::sample::select(vec!["hold", "decelerate", "retreat"]),
        faults in vec(fault(), 0..6),
    ) {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let (_, rows) = simulate(&plan(u64::from(seed), action, &faults), &format!("faults{number}"));
        judge(&rows, action)?;
    }
}
