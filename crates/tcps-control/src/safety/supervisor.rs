//! The supervisor: which state the follower is in, and where it goes.

use tcps_core::time::Time;

use super::{Action, Health, Limits, Mover, Thresholds};

/// States, in the order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Commands are followed.
    Normal = 0,
    /// Commands come badly: they are followed slowly.
    Degraded = 1,
    /// The newest command is too old: the action is taken.
    Hold = 2,
    /// It has been for so long that the follower stays where it is.
    SafeStop = 3,
    /// Commands have come back: the follower goes to where they are, slowly.
    Recovering = 4,
}

/// Times, in ns.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Time between ticks.
    pub period: Time,
    /// Age beyond which commands count as bad.
    pub degraded: Time,
    /// Age beyond which they are not followed.
    pub hold: Time,
    /// Age beyond which the follower is stopped.
    pub stop: Time,
    /// How long commands must be good before they are trusted again.
    pub recover: Time,
}

/// How control is taken up again after a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engage {
    /// By itself.
    Auto,
    /// Once the operator has come to where the follower is.
    Near,
}

/// The supervisor.
#[derive(Debug, Clone)]
pub struct Supervisor {
    timing: Timing,
    thresholds: Thresholds,
    limits: Limits,
    action: Action,
    engage: Engage,
    /// Distance at which follower and command count as together.
    near: f64,
    /// Share of the speed in the states degraded and recovering.
    slowly: f64,
    state: State,
    health: Health,
    mover: Mover,
    command: Vec<f64>,
    last: Option<Time>,
    good_ns: Time,
}

impl Supervisor {
    /// A supervisor before its first command.
    pub fn new(
        timing: Timing,
        thresholds: Thresholds,
        limits: Limits,
        action: Action,
        engage: Engage,
        near: f64,
        slowly: f64,
    ) -> Self {
        Self {
            timing,
            thresholds,
            limits,
            action,
            engage,
            near,
            slowly,
            state: State::Normal,
            health: Health::default(),
            mover: Mover::default(),
            command: Vec::new(),
            last: None,
            good_ns: 0,
        }
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// A tick, with the command that has come since the one before: where the follower is to be. Empty before the first.
    pub fn tick(&mut self, now: Time, command: Option<(u32, &[f64])>) -> &[f64] {
        let last = self.last.replace(now).unwrap_or(now);
        let passed = now.saturating_sub(last);
        // A clock that was put back tells nothing; one that was put forward cannot be told from a loop that was away.
        self.health.pass(if passed >= 0 { passed } else { self.timing.period });
        let sound = command.is_some_and(|(number, x)| self.take(now, number, x));
        if self.mover.at().is_empty() {
            return self.mover.at();
        }
        self.judge(sound, passed.max(0));
        // Never farther than in one period, whatever the clock says.
        let dt = passed.clamp(0, self.timing.period) as f64 * 1e-9;
        let slow = self.slowly * self.limits.speed;
        match self.state {
            State::Normal => self.mover.follow(&self.command, dt, self.limits.speed),
            State::Degraded | State::Recovering => self.mover.follow(&self.command, dt, slow),
            State::Hold => self.mover.without(self.action, dt, &self.limits),
            State::SafeStop => {
                let action = if self.action == Action::Zero { Action::Zero } else { Action::Decelerate };
                self.mover.without(action, dt, &self.limits);
            }
        }
        self.mover.at()
    }

    /// Takes a command, if it is a newer one and all of it makes sense.
    fn take(&mut self, now: Time, number: u32, x: &[f64]) -> bool {
        let whole = !x.is_empty() && x.iter().all(|v| v.is_finite());
        if !whole || !(self.command.is_empty() || self.command.len() == x.len()) {
            return false;
        }
        if !self.health.arrive(now, number) {
            return false;
        }
        if self.command.is_empty() {
            self.mover.begin(x);
        }
        self.command.clear();
        self.command.extend_from_slice(x);
        true
    }

    fn judge(&mut self, sound: bool, passed: Time) {
        let (age, t) = (self.health.age_ns(), self.timing);
        let poor = age > t.degraded || self.health.poor(&self.thresholds);
        self.good_ns = if poor { 0 } else { self.good_ns.saturating_add(passed) };
        let trusted = sound && self.good_ns >= t.recover;
        let near = self.mover.distance(&self.command) <= self.near;
        self.state = match self.state {
            _ if age > t.stop => State::SafeStop,
            State::Normal | State::Degraded | State::Recovering if age > t.hold => State::Hold,
            State::Normal if poor => State::Degraded,
            State::Degraded if trusted && near => State::Normal,
            State::Hold if trusted => State::Recovering,
            State::SafeStop if trusted && (self.engage == Engage::Auto || near) => State::Recovering,
            State::Recovering if near => State::Normal,
            same => same,
        };
    }
}
