//! Schedules of failure, drawn at random, before a modelled robot.

use super::{make, resumed};
use crate::common::{call, Given};
use serde_json::{json, Value};
use tcps_core::{
    hook::{Hook, Verdict},
    seed::Stream,
    time::{Time, MS},
};

const SPEED: f64 = 2.0;

const ACCELERATION: f64 = 20.0;

const END_TO_END: Time = 300 * MS;

const CLOCK: Time = 20 * MS;

/// Farthest in a tick, with room for rounding.
const STEP: f64 = SPEED * 1e-3 + 1e-9;

/// Ticks from the highest speed to rest, and one more at either end.
const TO_REST: i64 = (SPEED / ACCELERATION * 1e3) as i64 + 2;

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
