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
use tcps_core::{
    hook::{Former, Hook, HookIn, HookOut, Notice, Told, Verdict},
    time::{Time, MS},
};

use super::emit;
use crate::{
    params::{parse, within},
    registry,
    safety::{
        Action, Command, Engage, Limits, Origin, Settings, Supervisor, Thresholds, Timing, Workspace, MOST,
    },
};

/// Shortest time (ms), that of a period, and longest, a day.
const LEAST_MS: f64 = 1e-3;
const DAY_MS: f64 = 86.4e6;
/// Least of what must be above 0, and most of a speed or an acceleration: beyond them it would be no motion, or no limit.
const LEAST: f64 = 1e-9;
const MOST_RATE: f64 = 1e9;
/// Most values that an agent may give.
const MOST_VALUES: usize = 256;

/// Parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Age beyond which commands count as bad, in ms.
    pub degraded_ms: f64,
    /// Age beyond which they are not followed, in ms.
    pub hold_ms: f64,
    /// Age beyond which the follower is stopped, in ms.
    pub stop_ms: f64,
    /// Age of its sample up to which a predicted command is followed, in ms; absent: `hold_ms`.
    pub horizon_ms: Option<f64>,
    /// Age by its origin at which a command is refused, in ms.
    pub end_to_end_ms: f64,
    /// How far the clock of its origin and that of this node may differ, in ms.
    pub clock_ms: f64,
    /// Which of the values that come back are the follower's position, one for each value of a command.
    pub measured: Option<Vec<usize>>,
    /// Where the follower is at the beginning, where it is not measured; absent: 0.
    pub start: Option<Vec<f64>>,
    /// Least and most of every value, or of each; absent: 10^6 either way.
    pub workspace: Vec<Vec<f64>>,
    /// How long commands must be good before they are trusted again, in ms.
    pub recover_ms: f64,
    /// Share of commands lost that counts as bad.
    pub loss: f64,
    /// Share of commands out of order that counts as bad.
    pub reordered: f64,
    /// Fewest commands a second; 0: any.
    pub least_hz: f64,
    /// Highest speed of a value, in units a second.
    pub speed: f64,
    /// Highest acceleration when coming to rest, in units a second squared.
    pub acceleration: f64,
    /// Share of the speed while degraded or recovering.
    pub slowly: f64,
    /// Share of a threshold below which commands must come to count as good again.
    pub ease: f64,
    /// Distance at which follower and command count as together.
    pub near: f64,
    /// What is done while commands are missing.
    pub action: Action,
    /// How control is taken up again after a stop.
    pub engage: Engage,
    /// Which value of a command says, above 0.5, that the operator holds the clutch; it is no motion, and is not given out.
    pub clutch: Option<usize>,
    /// The emergency agent: code as a plan has it, `{kind, name, symbol, params}`.
    pub agent: Option<Value>,
    /// Farthest that the agent may lead a value from where it took over; absent: any way.
    pub reach: Option<f64>,
    /// Whether the state is given out behind the values.
    pub tell: bool,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            degraded_ms: 20.0,
            hold_ms: 50.0,
            stop_ms: 500.0,
            horizon_ms: None,
            end_to_end_ms: 1000.0,
            clock_ms: 50.0,
            measured: None,
            start: None,
            workspace: Vec::new(),
            recover_ms: 50.0,
            loss: 0.5,
            reordered: 0.2,
            least_hz: 0.0,
            speed: 1.0,
            acceleration: 10.0,
            slowly: 0.5,
            ease: 0.8,
            near: 0.01,
            action: Action::Decelerate,
            engage: Engage::Auto,
            clutch: None,
            agent: None,
            reach: None,
            tell: false,
        }
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
    pub fn new(params: &Value) -> Result<Self, String> {
        let p = read(params)?;
        let Some(agent) = &p.agent else { return Self::with(&p, None) };
        let named: Named = parse(agent).map_err(|e| format!("agent: {e}"))?;
        if named.kind != "builtin" {
            return Err(format!("agent = {}: code that only a run can make", named.name));
        }
        let made = registry::hook(&named.name, &named.params).map_err(|e| format!("agent: {e}"))?;
        Self::with(&p, Some(made))
    }

    /// Reads its parameters; the agent has been made from what they name.
    pub fn led(params: &Value, agent: Box<dyn Hook>) -> Result<Self, String> {
        Self::with(&read(params)?, Some(agent))
    }

    fn with(p: &Params, agent: Option<Box<dyn Hook>>) -> Result<Self, String> {
        check(p)?;
        if (p.action == Action::Agent) != agent.is_some() {
            return Err("action = \"agent\" and an agent belong together".into());
        }
        if (p.engage == Engage::Clutch) != p.clutch.is_some() {
            return Err("engage = \"clutch\" and clutch, the number of its value, belong together".into());
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

/// Reads parameters; the period is the hook's own.
fn read(params: &Value) -> Result<Params, String> {
    match params.get("period_ms") {
        Some(_) => {
            Err("period: it is the hook's own and no parameter; allowed: period = \"1 ms\" beside `run`"
                .into())
        }
        None => parse(params),
    }
}

/// Refuses parameters that make no sense.
fn check(p: &Params) -> Result<(), String> {
    if !(p.degraded_ms <= p.hold_ms && p.hold_ms <= p.stop_ms) {
        return Err(format!(
            "degraded_ms = {}, hold_ms = {}, stop_ms = {}: they must rise; allowed: degraded_ms = 20, hold_ms = 50, stop_ms = 500",
            p.degraded_ms, p.hold_ms, p.stop_ms
        ));
    }
    let horizon_ms = p.horizon_ms.unwrap_or(p.hold_ms);
    for (key, ms, least_ms) in [
        ("degraded_ms", p.degraded_ms, LEAST_MS),
        ("hold_ms", p.hold_ms, LEAST_MS),
        ("stop_ms", p.stop_ms, LEAST_MS),
        ("end_to_end_ms", p.end_to_end_ms, LEAST_MS),
        ("recover_ms", p.recover_ms, 0.0),
        ("horizon_ms", horizon_ms, 0.0),
        ("clock_ms", p.clock_ms, 0.0),
    ] {
        within(key, ms, least_ms, DAY_MS)?;
    }
    for (key, value, least, most) in [
        ("loss", p.loss, 0.0, 1.0),
        ("reordered", p.reordered, 0.0, 1.0),
        ("least_hz", p.least_hz, 0.0, 1e6),
        ("speed", p.speed, LEAST, MOST_RATE),
        ("acceleration", p.acceleration, LEAST, MOST_RATE),
        ("slowly", p.slowly, LEAST, 1.0),
        ("ease", p.ease, LEAST, 1.0),
        ("near", p.near, LEAST, MOST),
        ("reach", p.reach.unwrap_or(MOST), LEAST, MOST),
    ] {
        within(key, value, least, most)?;
    }
    for (key, named) in
        [("start", p.start.as_ref().map(Vec::len)), ("measured", p.measured.as_ref().map(Vec::len))]
    {
        if named == Some(0) {
            return Err(format!(
                "{key} = [] says nothing; allowed: {key} = [0], a number for each value of a command"
            ));
        }
    }
    if p.measured.is_some() && p.start.is_some() {
        return Err("measured and start: one of them says where the follower is".into());
    }
    if p.clock_ms >= p.end_to_end_ms {
        return Err(format!(
            "end_to_end_ms = {}: it must be above clock_ms = {}, the difference of the clocks that it goes by",
            p.end_to_end_ms, p.clock_ms
        ));
    }
    Ok(())
}

fn bounds(workspace: &[Vec<f64>]) -> Result<Vec<[f64; 2]>, String> {
    let pair = |b: &Vec<f64>| {
        <[f64; 2]>::try_from(&b[..]).map_err(|_| {
            format!("workspace = [{b:?}]; allowed: workspace = [[-1, 1]], the least and the most, or such a pair for each value")
        })
    };
    workspace.iter().map(pair).collect()
}

fn settings(p: &Params) -> Result<Settings, String> {
    let ns = |ms: f64| (ms * 1e6) as Time;
    let bounds = bounds(&p.workspace)?;
    let workspace = Workspace::new(bounds.clone())?;
    let start = p.start.clone().unwrap_or_default();
    if let Some(why) = workspace.refuses(&start).filter(|_| !start.is_empty()) {
        return Err(format!("start: {why}"));
    }
    let excludes_zero = bounds.iter().any(|[low, high]| *low > 0.0 || *high < 0.0);
    if excludes_zero && p.action == Action::Zero {
        return Err("action = \"zero\": 0 must be inside the workspace".into());
    }
    if excludes_zero && start.is_empty() && p.measured.is_none() {
        return Err("workspace: 0 is outside, where the follower begins if nothing says where it is; allowed: start or measured, \
                    a number for each value of a command"
            .into());
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

    fn told(&self) -> Option<Told> {
        Some(self.supervisor.told())
    }
}
