//! The follower's supervisor over schedules of failure: never too fast, never on old commands, and back without a jump.

mod common;

use common::{call, Given};
use serde_json::{json, Value};
use tcps_control::hook;
use tcps_core::{
    hook::{Former, Hook, Notice, State, Told, Verdict},
    seed::Stream,
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

const SPEED: f64 = 2.0;
const ACCELERATION: f64 = 20.0;
const END_TO_END: Time = 300 * MS;
const CLOCK: Time = 20 * MS;
/// Farthest in a tick, with room for rounding.
const STEP: f64 = SPEED * 1e-3 + 1e-9;
/// Ticks from the highest speed to rest, and one more at either end.
const TO_REST: i64 = (SPEED / ACCELERATION * 1e3) as i64 + 2;

/// The last call of a supervisor, at `now_ns`, as its runtime remembers it.
fn resumed<'a>(hook: &dyn Hook, now_ns: Time, values: &'a [f64]) -> Notice<'a> {
    Notice::Resumed(Former { now_ns, values, told: hook.told().unwrap() })
}

/// What a schedule does to the follower's supervisor, in ms of the truth.
struct Schedule {
    draw: Stream,
    action: &'static str,
    hold: i64,
    params: Value,
    /// Clocks of the command's origin and of the follower's node.
    clocks: [Time; 2],
    /// When the other clock makes the same step.
    agreed: Option<(i64, usize, Time)>,
    delay: i64,
    loss: f64,
    outage: i64,
    stalled: i64,
    number: u32,
    /// Whether there is a clutch, and for how long the operator lets go of it.
    clutch: bool,
    let_go: i64,
}

/// A command on its way.
struct Sent {
    number: u32,
    origin: Time,
    x: f64,
    held: bool,
}

/// The robot behind it, and what the supervisor has given out and taken.
struct Behind {
    at: f64,
    given: Option<Vec<f64>>,
    before: Option<f64>,
    /// When it was called last, on its clock.
    called: Time,
    /// Number of the newest command that it may take, origin of the newest sample, and when that came.
    newest: Option<u32>,
    origin: Option<Time>,
    good: Option<i64>,
    /// Whether the clutch is known to be open; what the hand has done since the last stop.
    open: Option<bool>,
    gesture: &'static [bool],
    state: u8,
    /// Ticks since it is to come to rest.
    resting: i64,
    /// How often it began to hold, and by how many ms a command that was followed was older than the threshold at most.
    holds: u64,
    beyond: i64,
}

impl Schedule {
    fn new(seed: u64, action: &'static str) -> Self {
        let mut draw = Stream::new(seed, action);
        let hold = 20 + draw.below(60) as i64;
        let clutch = draw.chance(0.3);
        let mut params = json!({"tell": true, "hold_ms": hold, "stop_ms": hold + 150, "action": action, "speed": SPEED,
            "acceleration": ACCELERATION, "measured": [1], "workspace": [[-1, 1]], "recover_ms": 20,
            "end_to_end_ms": END_TO_END / MS, "clock_ms": CLOCK / MS});
        if clutch {
            (params["engage"], params["clutch"]) = (json!("clutch"), json!(1));
        }
        let delay = if draw.chance(0.05) { 3_000 } else { draw.below(10) as i64 };
        let (loss, number) = (0.6 * draw.unit(), draw.below(4_000) as u32);
        let (clocks, agreed, outage, stalled, let_go) = ([0; 2], None, 0, 0, 0);
        Self {
            draw,
            action,
            hold,
            params,
            clocks,
            agreed,
            delay,
            loss,
            outage,
            stalled,
            number,
            clutch,
            let_go,
        }
    }

    /// Draws what goes wrong at this moment.
    fn turn(&mut self, ms: i64) {
        let draw = &mut self.draw;
        self.number = if draw.chance(0.001) { 0 } else { self.number + 1 };
        self.outage = if draw.chance(0.003) { draw.below(300) as i64 } else { self.outage - 1 };
        self.stalled = if draw.chance(0.002) { draw.below(400) as i64 } else { self.stalled - 1 };
        self.let_go = if draw.chance(0.01) { draw.below(50) as i64 } else { self.let_go - 1 };
        // A clock that is put back while the loop is away hides as much of the gap: nobody at the node can know.
        // And where commands are to be refused for their delay, clocks agree.
        let runs = self.stalled < 0 && self.delay < 1_000;
        if draw.chance(0.002) && runs {
            let (whose, step) = (draw.below(2) as usize, draw.uniform(-3e9, 3e9) as Time);
            self.clocks[whose] += step;
            self.agreed = Some((ms + draw.below(200) as i64, 1 - whose, step));
        }
        if let Some((_, whose, step)) = self.agreed.take_if(|(at, ..)| *at <= ms && runs) {
            self.clocks[whose] += step;
        }
    }

    /// The command that comes at this moment, if one does: some come late, and some are made of an older sample.
    fn command(&mut self, ms: i64) -> Option<Sent> {
        let draw = &mut self.draw;
        if self.outage > 0 || draw.chance(self.loss) {
            return None;
        }
        let late = if draw.chance(0.05) { draw.below(8) as i64 } else { 0 };
        let old = if draw.chance(0.1) { draw.below(50) as i64 } else { late };
        let absurd = [f64::NAN, f64::INFINITY, 1e99, 5.0, -1.0000001];
        let x = match draw.chance(0.02) {
            true => absurd[draw.below(absurd.len() as u64) as usize],
            false => 0.98 * libm::sin(ms as f64 * 0.01 + 1.0),
        };
        let origin = (ms - self.delay - old) * MS + self.clocks[0];
        Some(Sent { number: self.number.saturating_sub(late as u32), origin, x, held: self.let_go <= 0 })
    }

    /// Runs it; what is checked at each tick is that speed, workspace and the time to stop are kept.
    fn run(mut self, seed: u64) -> (bool, u64, i64) {
        let mut hook = make(self.params.clone());
        let mut behind = Behind::new(self.draw.uniform(-0.9, 0.9));
        let mut begun = false;
        for ms in 0..600i64 {
            self.turn(ms);
            let came = self.command(ms);
            if self.stalled > 0 {
                continue;
            }
            if self.draw.chance(0.002) {
                hook = self.restart(hook.as_ref(), &mut behind);
            }
            let now = ms * MS + self.clocks[1];
            let x = came.as_ref().map(|c| [c.x, f64::from(u8::from(c.held))]);
            let x = x.as_ref().map(|x| &x[..1 + usize::from(self.clutch)]);
            let (index, origin_ns) = came.as_ref().map_or((0, 0), |c| (c.number, c.origin));
            let other = [7.0, behind.at];
            let given = Given { now_ns: now, origin_ns, index, x, other: &other, ..Given::default() };
            let answer = call(hook.as_mut(), given);
            behind.take(now, ms, came);
            if answer.verdict == Verdict::Emit {
                begun = true;
                self.judge(&mut behind, ms, (answer.y[0], answer.y[1] as u8), seed);
                behind.given = Some(answer.y);
            } else {
                assert!(behind.given.is_none(), "seed {seed}, {ms} ms: silent");
            }
        }
        assert!(self.delay < 1_000 || !begun, "seed {seed}: 3 s of delay are never followed");
        (begun, behind.holds, behind.beyond)
    }

    /// The component begins anew: with what its runtime remembers, or as after a restart of its computer.
    fn restart(&mut self, former: &dyn Hook, behind: &mut Behind) -> Box<dyn Hook> {
        let mut hook = make(self.params.clone());
        match behind.given.take() {
            Some(given) if self.draw.chance(0.7) => {
                hook.notice(resumed(former, behind.called, &given)).unwrap();
                // Of numbers and of the clutch it knows nothing more; ages and a stop go on.
                (behind.newest, behind.gesture) = (None, &[]);
                (behind.open, behind.given) = (self.clutch.then_some(true), Some(given));
            }
            _ => *behind = Behind { holds: behind.holds, beyond: behind.beyond, ..Behind::new(behind.at) },
        }
        hook
    }

    fn judge(&self, behind: &mut Behind, ms: i64, (y, state): (f64, u8), seed: u64) {
        let place = format!("seed {seed}, {} , {ms} ms, state {state}", self.action);
        let former = behind.before.unwrap_or(behind.at);
        assert!((-1.0..=1.0).contains(&y), "{place}: {y} is outside the workspace");
        let moved = (y - former).abs();
        assert!(moved <= STEP || self.action == "zero", "{place}: {former} to {y}");
        let age = ms - behind.good.unwrap_or(ms);
        if state != 2 && state != 3 {
            assert!(age <= self.hold + 1, "{place}: age {age}");
            behind.beyond = behind.beyond.max(age - self.hold);
        }
        behind.holds += u64::from(state == 2 && behind.state != 2);
        assert!(age <= self.hold + 150 + 1 || state == 3, "{place}: age {age}");
        let left = self.clutch && behind.state == 3 && state != 3;
        assert!(!left || behind.gesture.len() == 2, "{place}: left a stop with the clutch held");
        // Going back the way it came is a motion of its own, until the stop.
        let open = self.clutch && behind.open == Some(true);
        let rests = open || state == 3 || (state == 2 && self.action != "retreat");
        behind.resting = if rests { behind.resting + 1 } else { 0 };
        assert!(behind.resting <= TO_REST || moved < 1e-12, "{place}: still moves, {former} to {y}");
        if state == 3 && behind.state != 3 {
            behind.gesture = if open { &[false] } else { &[] };
        }
        (behind.before, behind.state) = (Some(y), state);
        behind.at += 0.2 * (y - behind.at);
    }
}

impl Behind {
    fn new(at: f64) -> Self {
        let (given, before, newest, origin, good, open) = (None, None, None, None, None, None);
        Self {
            at,
            given,
            before,
            called: 0,
            newest,
            origin,
            good,
            open,
            gesture: &[],
            state: 2,
            resting: 0,
            holds: 0,
            beyond: i64::MIN,
        }
    }

    /// What the supervisor may make of what came.
    fn take(&mut self, now: Time, ms: i64, came: Option<Sent>) {
        if now < self.called {
            self.origin = None;
        }
        self.called = now;
        let Some(Sent { number, origin, x, held }) = came else { return };
        if x.is_nan() || x.abs() > 1.0 || !(-CLOCK..=END_TO_END - CLOCK).contains(&(now - origin)) {
            self.open = if held { self.open } else { Some(true) };
            return;
        }
        let newer = self.origin.is_none_or(|o| origin > o);
        if self.newest.is_some_and(|n| number <= n && (n - number <= 2000 || !newer)) {
            return;
        }
        self.newest = Some(number);
        // One that is made of an older sample may be beyond its horizon, and is then passed over.
        self.open = if newer { Some(!held) } else { self.open.filter(|open| *open != held) };
        self.gesture = match (self.gesture, held) {
            (_, false) => &[false],
            ([false], true) => &[false, true],
            (same, true) => same,
        };
        if newer {
            (self.origin, self.good) = (Some(origin), Some(ms));
        }
    }
}

/// 10,000 random schedules of loss, outage, stall, clock steps of both nodes, restart, absurd values and delay, before a modelled
/// robot: speed, workspace, ages and time to stop are kept in all.
#[test]
fn ten_thousand_schedules_of_failure() {
    let count: u64 = std::env::var("SCHEDULES").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000);
    let (mut begun, mut holds, mut beyond) = (0, 0, i64::MIN);
    for seed in 0..count {
        let action = ["hold", "decelerate", "retreat", "zero"][seed as usize % 4];
        let (moved, held, late) = Schedule::new(seed, action).run(seed);
        (begun, holds, beyond) = (begun + u64::from(moved), holds + held, beyond.max(late));
    }
    println!(
        "{count} schedules, {holds} holds; a command was followed up to {beyond} ms beyond the threshold"
    );
    assert!(begun > count * 9 / 10, "{begun} of {count} ever moved");
}

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

#[test]
fn thresholds_that_do_not_rise_are_refused() {
    let Err(error) = hook("supervisor", &json!({"hold_ms": 10})) else { panic!("hold before degraded") };
    assert!(error.to_string().contains("they must rise"), "{error}");
    assert!(hook("supervisor", &json!({"action": "panic"})).is_err());
    assert!(hook("supervisor", &json!({"speed": 0})).is_err());
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
    let none = "no command came";
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
            (Hold, "its loop stood still"),
            (Recovering, "commands are good again"),
            (Normal, "it has come to the command")
        ]
    );
    let every_third = |ms: i64| (ms, Some(0.0), 3 * ms as u32);
    assert_eq!(turns(json!({}), &every_third)[0], (Degraded, "commands are lost"));
    let swapped = |ms: i64| (ms, Some(0.0), (ms ^ 1) as u32);
    assert_eq!(turns(json!({}), &swapped)[0], (Degraded, "commands are out of order"));
    assert_eq!(
        turns(json!({"least_hz": 900, "loss": 1}), &|ms| (ms, (ms % 4 == 0).then_some(0.0), ms as u32))[0],
        (Degraded, "commands come too seldom")
    );
    let mut hook = following(json!({"speed": 0.1}), 100);
    tick(hook.as_mut(), 100 * MS, Some(0.005), 100);
    assert!(!hook.told().unwrap().limited, "near");
    tick(hook.as_mut(), 101 * MS, Some(1.0), 101);
    assert!(hook.told().unwrap().limited);
    hook.notice(Notice::Halt).unwrap();
    tick(hook.as_mut(), 102 * MS, Some(1.0), 102);
    let told = hook.told().unwrap();
    assert_eq!((told.state, told.limited), (Hold, false));
    assert_eq!(told.cause, "what it works for has died, or the run ends");
}

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
        said.contains("a command has 1 values, but where the follower is measured to be makes no sense"),
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

/// After a restart of its component it stays where it was until commands have been good for long enough, and a robot that was
/// told so does not jump.
#[test]
fn a_restart_makes_no_step() {
    let mut hook = make(json!({"tell": true, "start": [0.0], "recover_ms": 10}));
    let told = Told { state: State::Normal, age_ns: 0, origin_ns: None, cause: "", limited: false };
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
    let (again, far) = ("commands are good again", "commands are good again, and it is not near them");
    let arrived = (State::Normal, "it has come to the command");
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
        (json!({"period_ms": 1}), "it is the hook's own and no parameter; allowed: period = \"1 ms\""),
        (json!({"measured": [0], "start": [0]}), "one of them"),
        (json!({"workspace": [[1, -1]]}), "workspace = [1, -1]: the least must be below the most"),
        (json!({"workspace": [[0, 0]]}), "must be below"),
        (json!({"workspace": [[-1e7, 0]]}), "within 1e6"),
        (json!({"workspace": [[0, 1e7]]}), "within 1e6"),
        (json!({"workspace": [[0, 1]], "start": [2]}), "start: value 0 is 2e0"),
        (json!({"workspace": [[1, 2]], "action": "zero"}), "0 must be inside"),
        (json!({"workspace": [[-2, -1]], "action": "zero"}), "0 must be inside"),
        (json!({"end_to_end_ms": 50}), "above clock_ms = 50"),
        (json!({"end_to_end_ms": -1}), "end_to_end_ms = -1"),
        (json!({"clock_ms": -1}), "clock_ms = -1"),
        (json!({"workspace": [[0.1, 1]]}), "workspace: 0 is outside, where the follower begins"),
        (json!({"workspace": [[-1, 1], [-2, -1]]}), "allowed: start or measured"),
        (json!({"start": []}), "start = [] says nothing; allowed: start = [0]"),
        (json!({"measured": []}), "measured = [] says nothing"),
        (json!({"hold_ms": 600}), "hold_ms = 600, stop_ms = 500: they must rise; allowed: degraded_ms = 20"),
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
            assert!(error.to_string().contains(&format!("{key} = ")), "{error}");
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
