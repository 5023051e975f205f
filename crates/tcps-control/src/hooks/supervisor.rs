//! Predictor `supervisor`: the follower's safety, at each tick of its own period (`safety`).
//!
//! ```text
//! in     commands, or none        out    where the follower is to be; with `tell`, the number of the state behind it:
//! other  where it is measured            0 normal, 1 degraded, 2 hold, 3 safe stop, 4 recovering
//! agent  where the follower is, while it holds; other: as this hook      out    where it is to go
//! ```
//! The age of a command counts from its arrival, and by its origin too (`end_to_end_ms`); one made of a sample that was known
//! already, a predictor's, is no sign of life. The follower begins where it is, and never moves faster than `speed`, also when
//! commands come back; where it goes without commands is `action`. Before the first command, and before it is known where the
//! follower is, it says nothing.

use serde::Deserialize;
use serde_json::Value;
use std::ops::RangeInclusive;
use tcps_core::{
    hook::{Former, Hook, HookIn, HookOut, HookState, Notice, Verdict},
    param::{Fault, Params as _, NOTHING},
    params,
    time::{Time, MS},
};

use super::emit;
use crate::{
    registry,
    safety::{
        Action, Command, Engage, Limits, Origin, Settings, Supervisor, Thresholds, Timing, Workspace, MOST,
    },
};

/// Times up to a day (ms), from none on or from that of a period.
const DAY_MS: RangeInclusive<f64> = 0.0..=86.4e6;
const SOON_MS: RangeInclusive<f64> = 1e-3..=86.4e6;
/// Bounds of what must be above 0: beyond them it would be no motion, or no limit.
const LEAST: f64 = 1e-9;
const RATE: RangeInclusive<f64> = LEAST..=1e9;
const PART: RangeInclusive<f64> = LEAST..=1.0;
const FAR: RangeInclusive<f64> = LEAST..=MOST;
/// Most values that an agent may give.
const MOST_VALUES: usize = 256;

params! {
    /// Parameters.
    pub struct Params {
        degraded_ms: f64 = Number, "20", SOON_MS, "age beyond which commands count as bad, in ms";
        hold_ms: f64 = Number, "50", SOON_MS, "age beyond which commands are not followed, in ms";
        stop_ms: f64 = Number, "500", SOON_MS, "age beyond which the follower stops, in ms";
        horizon_ms: Option<f64> = Number, ABSENT, DAY_MS, "age of the received sample up to which a command predicted from it is followed, in ms; default `hold_ms`";
        end_to_end_ms: f64 = Number, "1000", SOON_MS, "a command is refused if its age since its origin exceeds this less `clock_ms`, in ms";
        clock_ms: f64 = Number, "50", DAY_MS, "largest difference between the clocks of the command's origin and of this node, in ms";
        measured: Option<Vec<usize>> = List(&Count), ABSENT, NOT_NEGATIVE, "which returned values are the follower's position, one for each value of a command";
        start: Option<Vec<f64>> = List(&Number), ABSENT, ANY, "position of the follower at the start, if it is not measured; absent: 0";
        workspace: Vec<[f64; 2]> = List(&Array(2, &Number)), "[]", -MOST..=MOST, "lowest and highest value, for all or each; absent: -10^6 and 10^6";
        recover_ms: f64 = Number, "50", DAY_MS, "how long commands must be good before they are trusted again, in ms";
        loss: f64 = Number, "0.5", SHARE, "share of commands lost that counts as bad";
        reordered: f64 = Number, "0.2", SHARE, "share of commands out of order that counts as bad";
        least_hz: f64 = Number, "0", 0.0..=1e6, "lowest rate of commands, in Hz; 0 means any";
        speed: f64 = Number, "1", RATE, "highest speed of a value, in units per second";
        acceleration: f64 = Number, "10", RATE, "highest deceleration when coming to rest, in units per second squared";
        slowly: f64 = Number, "0.5", PART, "share of the speed while degraded or recovering";
        ease: f64 = Number, "0.8", PART, "share of a threshold below which commands count as good again";
        near: f64 = Number, "0.01", FAR, "distance at which follower and command count as together";
        action: Action = Choice(&["hold", "decelerate", "retreat", "zero", "agent"]), "decelerate", ANY, "what the follower does without commands";
        engage: Engage = Choice(&["auto", "near", "clutch"]), "auto", ANY, "how control resumes after a stop";
        clutch: Option<usize> = Count, ABSENT, NOT_NEGATIVE, "index (from 0) of the value of a command that is above 0.5 while the clutch is closed; it is not passed on";
        agent: Option<Value> = Object, ABSENT, ANY, "the emergency agent: code, such as `\"./agent.py:Agent\"` or `{ run = \"…\", params = {…} }`";
        reach: Option<f64> = Number, ABSENT, FAR, "farthest that the agent may move a value from where it took over; absent: without limit";
        tell: bool = Flag, "false", ANY, "true: one more value of the output is the supervisor's state";
    }
}

/// The agent's code where it is built in.
#[derive(Deserialize)]
struct Named {
    kind: String,
    name: String,
    #[serde(default)]
    params: Value,
}

/// The hook.
pub struct SupervisorHook {
    supervisor: Supervisor,
    agent: Option<Agent>,
    clutch: Option<usize>,
    tell: bool,
    /// Which of the values that come back are the follower's position.
    measured: Option<Vec<usize>>,
    place: Vec<f64>,
    motion: Vec<f64>,
    out: Vec<f64>,
}

struct Agent {
    hook: Box<dyn Hook>,
    room: Vec<f64>,
    bytes: [u8; 1],
    /// Whether it has failed: then it is not asked again.
    failed: bool,
}

impl SupervisorHook {
    /// Reads its parameters and makes the agent, if it is built in.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let p = Params::of(params)?;
        let Some(agent) = &p.agent else { return Self::with(&p, None) };
        let named = Named::deserialize(agent).map_err(|e| Fault::new("agent", e, "code"))?;
        if named.kind != "builtin" {
            return Err(Fault::new("agent", named.name, "built-in code, where no run makes it"));
        }
        let made = registry::hook(&named.name, &named.params).map_err(|e| e.within("agent"))?;
        Self::with(&p, Some(made))
    }

    /// Reads its parameters; the agent has been made from what they name.
    pub fn led(params: &Value, agent: Box<dyn Hook>) -> Result<Self, Fault> {
        Self::with(&Params::of(params)?, Some(agent))
    }

    fn with(p: &Params, agent: Option<Box<dyn Hook>>) -> Result<Self, Fault> {
        check(p)?;
        if (p.action == Action::Agent) != agent.is_some() {
            let found = format!("{} agent", if agent.is_some() { "an" } else { "no" });
            return Err(Fault::new("agent", found, "action = \"agent\" and an agent, or neither"));
        }
        if (p.engage == Engage::Clutch) != p.clutch.is_some() {
            let found = p.clutch.map_or(NOTHING.into(), |i| i.to_string());
            let allowed =
                "engage = \"clutch\" and clutch, the index of its value, such as clutch = 6, or neither";
            return Err(Fault::new("clutch", found, allowed));
        }
        let agent = agent.map(|hook| Agent { hook, room: vec![0.0; MOST_VALUES], bytes: [0], failed: false });
        Ok(Self {
            supervisor: Supervisor::new(settings(p)?),
            agent,
            clutch: p.clutch,
            tell: p.tell,
            measured: p.measured.clone(),
            place: Vec::new(),
            motion: Vec::new(),
            out: Vec::new(),
        })
    }

    /// Where the follower is measured to be, if all of it has come back.
    fn locate(&mut self, other: &[f64]) -> bool {
        self.place.clear();
        let Some(measured) = &self.measured else { return false };
        self.place.extend(measured.iter().filter_map(|i| other.get(*i)));
        self.place.len() == measured.len()
    }

    /// Asks the agent where to go from here; why it failed, the first time.
    fn ask(&mut self, input: &HookIn) -> Result<(), String> {
        let Some(agent) = self.agent.as_mut().filter(|a| !a.failed && self.supervisor.wants_agent()) else {
            return Ok(());
        };
        let at = self.supervisor.at();
        let asked = HookIn::tick(input.now_ns, input.origin_ns, input.index, input.flow)
            .with_sample(at, &[])
            .with_other(input.other());
        let mut answer = HookOut::new(&mut agent.room, &mut agent.bytes);
        let verdict = agent.hook.call(&asked, &mut answer);
        let (n, _) = answer.written();
        match verdict {
            Verdict::Emit => self.supervisor.lead(Some(&agent.room[..n])),
            Verdict::Nothing => self.supervisor.lead(None),
            Verdict::Failed(why) | Verdict::Dead(why) => {
                agent.failed = true;
                self.supervisor.lead(None);
                return Err(format!("the emergency agent failed, and the follower comes to rest: {why}"));
            }
        }
        Ok(())
    }

    /// What of a command is motion, nothing if it is without the value of the clutch; whether the operator holds that.
    fn parted(&mut self, x: &[f64]) -> bool {
        self.motion.clear();
        let Some(held) = self.clutch.map_or(Some(&1.0), |i| x.get(i)) else { return false };
        self.motion.extend(x.iter().enumerate().filter(|(i, _)| Some(*i) != self.clutch).map(|(_, v)| v));
        *held > 0.5
    }
}

/// Refuses parameters that make no sense.
fn check(p: &Params) -> Result<(), Fault> {
    if !(p.degraded_ms <= p.hold_ms && p.hold_ms <= p.stop_ms) {
        let found = format!("{} beside degraded_ms = {}, stop_ms = {}", p.hold_ms, p.degraded_ms, p.stop_ms);
        let allowed = "times that rise, such as degraded_ms = 20, hold_ms = 50, stop_ms = 500";
        return Err(Fault::new("hold_ms", found, allowed));
    }
    for (key, named) in
        [("start", p.start.as_ref().map(Vec::len)), ("measured", p.measured.as_ref().map(Vec::len))]
    {
        if named == Some(0) {
            return Err(Fault::new(key, "[]", "a number for each value of a command, such as [0]"));
        }
    }
    if p.measured.is_some() && p.start.is_some() {
        let allowed = "one of start and measured, which say where the follower is";
        return Err(Fault::new("start", "it beside measured", allowed));
    }
    if p.clock_ms >= p.end_to_end_ms {
        let allowed = format!("above clock_ms = {}, the assumed difference of the clocks", p.clock_ms);
        return Err(Fault::new("end_to_end_ms", p.end_to_end_ms, allowed));
    }
    Ok(())
}

fn settings(p: &Params) -> Result<Settings, Fault> {
    let ns = |ms: f64| (ms * 1e6) as Time;
    let workspace = Workspace::new(p.workspace.clone())?;
    let start = p.start.clone().unwrap_or_default();
    if let Some(why) = workspace.refuses(&start).filter(|_| !start.is_empty()) {
        return Err(Fault::new("start", why, "a place inside the workspace"));
    }
    let excludes_zero = p.workspace.iter().any(|[low, high]| *low > 0.0 || *high < 0.0);
    if excludes_zero && p.action == Action::Zero {
        return Err(Fault::new("action", "\"zero\"", "zero where 0 is inside the workspace"));
    }
    if excludes_zero && start.is_empty() && p.measured.is_none() {
        let allowed = "start or measured, a number for each value of a command, where 0 is outside";
        return Err(Fault::new("workspace", "no place where the follower begins", allowed));
    }
    Ok(Settings {
        timing: Timing {
            period: MS,
            degraded: ns(p.degraded_ms),
            hold: ns(p.hold_ms),
            stop: ns(p.stop_ms),
            recover: ns(p.recover_ms),
            horizon: ns(p.horizon_ms.unwrap_or(p.hold_ms)),
            end_to_end: ns(p.end_to_end_ms),
            clock: ns(p.clock_ms),
        },
        thresholds: Thresholds { loss: p.loss, reordered: p.reordered, least_hz: p.least_hz },
        limits: Limits { speed: p.speed, acceleration: p.acceleration, workspace },
        origin: if p.measured.is_some() { Origin::Measured } else { Origin::Start(start) },
        action: p.action,
        engage: p.engage,
        near: p.near,
        slowly: p.slowly,
        ease: p.ease,
        reach: p.reach.unwrap_or(MOST),
    })
}

impl Hook for SupervisorHook {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        let engaged = input.present == 0 || self.parted(input.x());
        if let Err(why) = self.ask(input) {
            return Verdict::Failed(why);
        }
        let known = self.locate(input.other());
        let command = Command { number: input.index, origin_ns: input.origin_ns, engaged, x: &self.motion };
        self.supervisor.tick(
            input.now_ns,
            (input.present != 0).then_some(command),
            known.then_some(&self.place[..]),
        );
        if self.supervisor.at().is_empty() {
            return Verdict::Nothing;
        }
        self.out.clear();
        self.out.extend_from_slice(self.supervisor.at());
        if self.tell {
            self.out.push(f64::from(self.supervisor.told().state as u8));
        }
        emit(output, &self.out)
    }

    fn notice(&mut self, notice: Notice<'_>) -> Result<(), String> {
        match notice {
            Notice::Period(None) => {
                return Err(
                    "period: the supervisor needs one of its own; allowed: period = \"1 ms\" beside `run`"
                        .into(),
                )
            }
            Notice::Period(Some(period_ns)) => self.supervisor.set_period(period_ns),
            Notice::Resumed(former) => {
                let values = former.values.len().saturating_sub(usize::from(self.tell));
                self.supervisor.resume(Former { values: &former.values[..values], ..former });
            }
            Notice::Superseded { index, origin_ns, overtaken } => {
                self.supervisor.superseded(index, origin_ns, overtaken);
            }
            Notice::Halt => self.supervisor.halt(),
        }
        Ok(())
    }

    fn complaint(&mut self) -> Option<String> {
        self.supervisor.take_refusal()
    }

    fn told(&self) -> Option<HookState> {
        Some(self.supervisor.told())
    }
}
