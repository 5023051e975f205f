//! Predictor `supervisor`: the follower's safety, at each tick of its own period (`safety`).
//!
//! ```text
//! in     commands, or none        out    where the follower is to be; with `tell`, the number of the state behind it:
//!                                        0 normal, 1 degraded, 2 hold, 3 safe stop, 4 recovering
//! ```
//! The age of a command counts from its arrival. The follower never moves faster than `speed`, also when commands come
//! back; where it goes without commands is `action`. Before the first command it says nothing.

use serde::Deserialize;
use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    time::Time,
};

use super::emit;
use crate::{
    params::{not_negative, parse, positive},
    safety::{Action, Engage, Limits, Supervisor, Thresholds, Timing},
};

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
    /// Distance at which follower and command count as together.
    pub near: f64,
    /// What is done while commands are missing.
    pub action: Action,
    /// How control is taken up again after a stop.
    pub engage: Engage,
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
            recover_ms: 50.0,
            loss: 0.5,
            reordered: 0.2,
            least_hz: 0.0,
            speed: 1.0,
            acceleration: 10.0,
            slowly: 0.5,
            near: 0.01,
            action: Action::Decelerate,
            engage: Engage::Auto,
            tell: false,
        }
    }
}

/// The hook.
pub struct SupervisorHook {
    supervisor: Supervisor,
    tell: bool,
    out: Vec<f64>,
}

impl SupervisorHook {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, String> {
        let p: Params = parse(params)?;
        for (key, value) in [
            ("period_ms", p.period_ms),
            ("degraded_ms", p.degraded_ms),
            ("speed", p.speed),
            ("acceleration", p.acceleration),
            ("slowly", p.slowly),
            ("near", p.near),
        ] {
            positive(key, value)?;
        }
        for (key, value) in [("recover_ms", p.recover_ms), ("loss", p.loss), ("reordered", p.reordered)] {
            not_negative(key, value)?;
        }
        not_negative("least_hz", p.least_hz)?;
        if !(p.degraded_ms <= p.hold_ms && p.hold_ms <= p.stop_ms && p.stop_ms.is_finite()) {
            return Err(format!(
                "degraded_ms = {}, hold_ms = {}, stop_ms = {}: they must rise",
                p.degraded_ms, p.hold_ms, p.stop_ms
            ));
        }
        let ns = |ms: f64| (ms * 1e6) as Time;
        let timing = Timing {
            period: ns(p.period_ms),
            degraded: ns(p.degraded_ms),
            hold: ns(p.hold_ms),
            stop: ns(p.stop_ms),
            recover: ns(p.recover_ms),
        };
        let thresholds = Thresholds { loss: p.loss, reordered: p.reordered, least_hz: p.least_hz };
        let limits = Limits { speed: p.speed, acceleration: p.acceleration };
        let supervisor =
            Supervisor::new(timing, thresholds, limits, p.action, p.engage, p.near, p.slowly.min(1.0));
        Ok(Self { supervisor, tell: p.tell, out: Vec::new() })
    }
}

impl Hook for SupervisorHook {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        let command = (input.present != 0).then(|| (input.index, input.x()));
        let at = self.supervisor.tick(input.now_ns, command);
        if at.is_empty() {
            return Verdict::Nothing;
        }
        self.out.clear();
        self.out.extend_from_slice(at);
        if self.tell {
            self.out.push(f64::from(self.supervisor.state() as u8));
        }
        emit(output, &self.out)
    }
}
