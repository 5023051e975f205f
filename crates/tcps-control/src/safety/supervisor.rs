//! The supervisor: which state the follower is in, and where it goes.

use tcps_core::{
    hook::{State, Told},
    time::Time,
};

use super::{Action, Arrival, Health, Limits, Mover, Thresholds};

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
    /// Age of its sample up to which a predicted command is followed.
    pub horizon: Time,
}

/// How control is taken up again after a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engage {
    /// By itself.
    Auto,
    /// Once the operator has come to where the follower is.
    Near,
    /// Once the operator has let go of the clutch and closed it again.
    Clutch,
}

/// What a supervisor goes by.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Times.
    pub timing: Timing,
    /// What is too much.
    pub thresholds: Thresholds,
    /// Limits of the motion.
    pub limits: Limits,
    /// What is done without commands.
    pub action: Action,
    /// How control is taken up again.
    pub engage: Engage,
    /// Distance at which follower and command count as together.
    pub near: f64,
    /// Share of the speed while degraded, recovering, or led by the agent.
    pub slowly: f64,
    /// Share of a threshold below which commands must come to count as good again.
    pub ease: f64,
    /// Farthest that the agent may lead a value from where it took over.
    pub reach: f64,
}

/// A command that has come.
#[derive(Debug, Clone, Copy)]
pub struct Command<'a> {
    /// Its number.
    pub number: u32,
    /// Origin of the sample that it was made of.
    pub origin_ns: Time,
    /// Whether the operator holds the clutch; true where there is none.
    pub engaged: bool,
    /// Its values.
    pub x: &'a [f64],
}

/// The supervisor.
#[derive(Debug, Clone)]
pub struct Supervisor {
    settings: Settings,
    state: State,
    health: Health,
    mover: Mover,
    command: Vec<f64>,
    /// Where the agent took over, and where it leads.
    taken: Vec<f64>,
    goal: Vec<f64>,
    last: Option<Time>,
    good_ns: Time,
    clutch: Clutch,
}

/// What the operator's hand has done since the last stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clutch {
    Untouched,
    LetGo,
    Closed,
}

impl Supervisor {
    /// A supervisor before its first command.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            state: State::Normal,
            health: Health::default(),
            mover: Mover::default(),
            command: Vec::new(),
            taken: Vec::new(),
            goal: Vec::new(),
            last: None,
            good_ns: 0,
            clutch: Clutch::Untouched,
        }
    }

    /// The state, and the age of the newest good command.
    pub fn told(&self) -> Told {
        Told { state: self.state, age_ns: self.health.age_ns() }
    }

    /// Where the follower is to be; empty before the first command.
    pub fn at(&self) -> &[f64] {
        self.mover.at()
    }

    /// Whether the agent is asked where to go.
    pub fn wants_agent(&self) -> bool {
        self.state == State::Hold && self.settings.action == Action::Agent && !self.mover.at().is_empty()
    }

    /// What the agent said for the next tick; nothing, or nonsense, lets the follower come to rest.
    pub fn lead(&mut self, goal: Option<&[f64]>) {
        self.goal.clear();
        let sound = |g: &&[f64]| g.len() == self.taken.len() && g.iter().all(|v| v.is_finite());
        let reach = self.settings.reach;
        if let Some(goal) = goal.filter(sound) {
            self.goal
                .extend(goal.iter().zip(&self.taken).map(|(g, from)| g.clamp(from - reach, from + reach)));
        }
    }

    /// A tick, with the command that has come since the one before. Without commands before it does nothing.
    pub fn tick(&mut self, now: Time, command: Option<Command<'_>>) {
        let last = self.last.replace(now).unwrap_or(now);
        let (passed, period) = (now.saturating_sub(last), self.settings.timing.period);
        // A clock that was put back tells nothing; one that was put forward cannot be told from a loop that was away.
        self.health.pass(if passed >= 0 { passed } else { period });
        let sound = command.is_some_and(|command| self.take(now, command));
        if self.mover.at().is_empty() {
            return;
        }
        self.judge(sound, passed.max(0));
        // Never farther than in one period, whatever the clock says.
        self.go(passed.clamp(0, period) as f64 * 1e-9);
    }

    fn go(&mut self, dt: f64) {
        let Settings { limits, action, slowly, .. } = self.settings;
        let slow = slowly * limits.speed;
        match self.state {
            State::Degraded | State::Recovering => self.mover.follow(&self.command, dt, slow),
            State::Hold if !self.goal.is_empty() => self.mover.follow(&self.goal, dt, slow),
            State::Hold => self.mover.without(action, dt, &limits),
            State::SafeStop => {
                let action = if action == Action::Zero { Action::Zero } else { Action::Decelerate };
                self.mover.without(action, dt, &limits);
            }
            _ => self.mover.follow(&self.command, dt, limits.speed),
        }
    }

    /// Takes a command, if it is a newer one and all of it makes sense; a predicted one only up to its horizon.
    fn take(&mut self, now: Time, command: Command<'_>) -> bool {
        let x = command.x;
        let whole = !x.is_empty() && x.iter().all(|v| v.is_finite());
        if !whole || !(self.command.is_empty() || self.command.len() == x.len()) {
            return false;
        }
        match self.health.arrive(now, command.number, command.origin_ns) {
            Arrival::Old => return false,
            Arrival::Predicted if self.health.age_ns() > self.settings.timing.horizon => return false,
            _ => {}
        }
        self.clutch = match (self.clutch, command.engaged) {
            (_, false) => Clutch::LetGo,
            (Clutch::LetGo, true) => Clutch::Closed,
            (same, true) => same,
        };
        if self.command.is_empty() {
            self.mover.begin(x);
        } else if !command.engaged {
            return true;
        }
        self.command.clear();
        self.command.extend_from_slice(x);
        true
    }

    fn judge(&mut self, sound: bool, passed: Time) {
        let (age, t) = (self.health.age_ns(), self.settings.timing);
        let share = if self.state == State::Normal { 1.0 } else { self.settings.ease };
        let poor =
            age as f64 > share * t.degraded as f64 || self.health.poor(&self.settings.thresholds, share);
        self.good_ns = if poor { 0 } else { self.good_ns.saturating_add(passed) };
        let trusted = sound && self.good_ns >= t.recover;
        let near = self.mover.distance(&self.command) <= self.settings.near;
        // A threshold is passed at the tick nearest to it: a clock that trembles does not put it off by a whole period.
        let passes = |threshold: Time| age.saturating_add(t.period / 2) >= threshold;
        let next = match self.state {
            _ if passes(t.stop) => State::SafeStop,
            State::Hold | State::SafeStop if trusted && self.engaged(near) => State::Recovering,
            State::Hold | State::SafeStop => self.state,
            _ if passes(t.hold) => State::Hold,
            State::Normal if poor => State::Degraded,
            State::Degraded if trusted && near => State::Normal,
            State::Recovering if near => State::Normal,
            same => same,
        };
        self.enter(next);
    }

    /// Whether control may be taken up again: after a hold by itself, after a stop as it was asked for.
    fn engaged(&self, near: bool) -> bool {
        self.state == State::Hold
            || match self.settings.engage {
                Engage::Auto => true,
                Engage::Near => near,
                Engage::Clutch => self.clutch == Clutch::Closed,
            }
    }

    fn enter(&mut self, next: State) {
        if next == self.state {
            return;
        }
        match next {
            State::SafeStop => self.clutch = Clutch::Untouched,
            State::Hold => {
                self.taken.clear();
                self.taken.extend_from_slice(self.mover.at());
            }
            _ => {}
        }
        self.goal.clear();
        self.state = next;
    }
}
