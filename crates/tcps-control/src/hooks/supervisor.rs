//! Predictor `supervisor`: the follower's safety, at each tick of its own period (`safety`).
//!
//! ```text
//! in     commands, or none        out    where the follower is to be; with `tell`, the number of the state behind it:
//!                                        0 normal, 1 degraded, 2 hold, 3 safe stop, 4 recovering
//! agent  where the follower is, while it holds; other: as this hook      out    where it is to go
//! ```
//! The age of a command counts from its arrival; one made of a sample that was known already, a predictor's, is no sign of
//! life. The follower never moves faster than `speed`, also when commands come back; where it goes without commands is
//! `action`. Before the first command it says nothing.

use serde::Deserialize;
use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Told, Verdict},
    time::Time,
};

use super::emit;
use crate::{
    params::{not_negative, parse, positive},
    registry,
    safety::{Action, Command, Engage, Limits, Settings, Supervisor, Thresholds, Timing},
};

/// Most values that an agent may give.
const MOST_VALUES: usize = 256;

/// Parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Time between ticks: that of the hook, in ms.
    pub period_ms: f64,
    /// Age beyond which commands count as bad, in ms.
    pub degraded_ms: f64,
    /// Age beyond which they are not followed, in ms.
    pub hold_ms: f64,
    /// Age beyond which the follower is stopped, in ms.
    pub stop_ms: f64,
    /// Age of its sample up to which a predicted command is followed, in ms; absent: `hold_ms`.
    pub horizon_ms: Option<f64>,
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
            period_ms: 1.0,
            degraded_ms: 20.0,
            hold_ms: 50.0,
            stop_ms: 500.0,
            horizon_ms: None,
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
        let p: Params = parse(params)?;
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
        Self::with(&parse(params)?, Some(agent))
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
        let (supervisor, clutch, tell) = (Supervisor::new(settings(p)), p.clutch, p.tell);
        Ok(Self { supervisor, agent, clutch, tell, motion: Vec::new(), out: Vec::new() })
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
            Verdict::Failed(why) => {
                agent.failed = true;
                self.supervisor.lead(None);
                return Err(format!("the emergency agent failed, and the follower comes to rest: {why}"));
            }
        }
        Ok(())
    }

    /// What of a command is motion, and whether the operator holds the clutch.
    fn parted(&mut self, x: &[f64]) -> bool {
        self.motion.clear();
        self.motion.extend(x.iter().enumerate().filter(|(i, _)| Some(*i) != self.clutch).map(|(_, v)| v));
        self.clutch.is_none_or(|i| x.get(i).is_some_and(|v| *v > 0.5))
    }
}

/// Refuses parameters that make no sense.
fn check(p: &Params) -> Result<(), String> {
    for (key, value) in [
        ("period_ms", p.period_ms),
        ("degraded_ms", p.degraded_ms),
        ("speed", p.speed),
        ("acceleration", p.acceleration),
        ("slowly", p.slowly),
        ("ease", p.ease),
        ("near", p.near),
        ("reach", p.reach.unwrap_or(1.0)),
    ] {
        positive(key, value)?;
    }
    for (key, value) in [
        ("recover_ms", p.recover_ms),
        ("loss", p.loss),
        ("reordered", p.reordered),
        ("least_hz", p.least_hz),
        ("horizon_ms", p.horizon_ms.unwrap_or(0.0)),
    ] {
        not_negative(key, value)?;
    }
    if p.degraded_ms <= p.hold_ms && p.hold_ms <= p.stop_ms && p.stop_ms.is_finite() {
        return Ok(());
    }
    Err(format!(
        "degraded_ms = {}, hold_ms = {}, stop_ms = {}: they must rise",
        p.degraded_ms, p.hold_ms, p.stop_ms
    ))
}

fn settings(p: &Params) -> Settings {
    let ns = |ms: f64| (ms * 1e6) as Time;
    Settings {
        timing: Timing {
            period: ns(p.period_ms),
            degraded: ns(p.degraded_ms),
            hold: ns(p.hold_ms),
            stop: ns(p.stop_ms),
            recover: ns(p.recover_ms),
            horizon: ns(p.horizon_ms.unwrap_or(p.hold_ms)),
        },
        thresholds: Thresholds { loss: p.loss, reordered: p.reordered, least_hz: p.least_hz },
        limits: Limits { speed: p.speed, acceleration: p.acceleration },
        action: p.action,
        engage: p.engage,
        near: p.near,
        slowly: p.slowly.min(1.0),
        ease: p.ease.min(1.0),
        reach: p.reach.unwrap_or(f64::MAX),
    }
}

impl Hook for SupervisorHook {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        let engaged = input.present == 0 || self.parted(input.x());
        if let Err(why) = self.ask(input) {
            return Verdict::Failed(why);
        }
        let (number, origin_ns) = (input.index, input.origin_ns);
        let command = Command { number, origin_ns, engaged, x: &self.motion };
        self.supervisor.tick(input.now_ns, (input.present != 0).then_some(command));
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

    fn told(&self) -> Option<Told> {
        Some(self.supervisor.told())
    }
}
