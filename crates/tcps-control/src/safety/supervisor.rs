//! The supervisor: which state the follower is in, and where it goes.
//!
//! ```text
//! tick    time passes ─► a gap is judged ─► the command is refused or taken ─► judged ─► a step within limits ─► near?
//! begin   where the follower is measured to be, else its start
//! resume  after a restart: where and in which state it was; the time that has passed since is judged as a gap
//! ```

use tcps_core::{
    hook::{Former, HookState, State},
    time::Time,
};

use super::{Action, Arrival, Health, Limits, Mover, Thresholds, MOST};

/// Times, in ns.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Time between ticks, as the runtime says.
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
    /// Age by its origin at which a command is refused, whenever it came.
    pub end_to_end: Time,
    /// How far the clocks of the command's origin and of this node may differ.
    pub clock: Time,
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

/// Where the follower is at the beginning.
#[derive(Debug, Clone)]
pub enum Origin {
    /// Where it is measured to be.
    Measured,
    /// Here; empty: every value is 0.
    Start(Vec<f64>),
}

/// What a supervisor goes by.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Times.
    pub timing: Timing,
    /// What is too much.
    pub thresholds: Thresholds,
    /// Limits of the motion.
    pub limits: Limits,
    /// Where the follower is at the beginning.
    pub origin: Origin,
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
    /// The operator has let go of the clutch: the follower stays.
    open: bool,
    /// How long there has been a command, and nobody knows where the follower is.
    waits_ns: Time,
    /// Age of the newest good command when it was judged last.
    judged_ns: Time,
    /// Why the newest command is not followed.
    refused: Option<String>,
    /// The same in few words, until one is followed.
    wrong: Option<&'static str>,
    halted: bool,
    cause: &'static str,
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
            state: State::Hold,
            health: Health::default(),
            mover: Mover::default(),
            command: Vec::new(),
            taken: Vec::new(),
            goal: Vec::new(),
            last: None,
            good_ns: 0,
            clutch: Clutch::Untouched,
            open: false,
            waits_ns: 0,
            judged_ns: Time::MAX,
            refused: None,
            wrong: None,
            halted: false,
            cause: "it begins",
        }
    }

    /// It is called at this period from now on.
    pub fn set_period(&mut self, period: Time) {
        self.settings.timing.period = period;
    }

    /// Its component was restarted: it goes on where it was, stopped if it was, else in a hold until commands are good: how
    /// long it was away it knows only by a clock that may have been put back meanwhile. What the operator's hand has done is
    /// not known either: the clutch counts as open, and after a stop must be let go of anew.
    pub fn resume(&mut self, former: Former<'_>) {
        if former.values.is_empty() {
            return;
        }
        self.mover.begin(former.values);
        self.health = Health::since(former.told.age_ns, former.told.origin_ns);
        self.last = Some(former.now_ns);
        self.open = self.settings.engage == Engage::Clutch;
        let restarted = "its component was restarted";
        self.enter(State::Recovering, restarted);
        let stopped = former.told.state == State::SafeStop;
        self.enter(if stopped { State::SafeStop } else { State::Hold }, restarted);
    }

    /// A command came that it was not given, for a newer one came within the same tick, before it if it was `overtaken`.
    pub fn superseded(&mut self, number: u32, origin_ns: Time, overtaken: bool) {
        self.health.superseded(number, origin_ns, overtaken);
    }

    /// It holds from now on, whatever comes.
    pub fn halt(&mut self) {
        self.halted = true;
    }

    /// Why the newest command is not followed, once.
    pub fn take_refusal(&mut self) -> Option<String> {
        self.refused.take()
    }

    /// The state, and the age of the newest good command when it was judged.
    pub fn told(&self) -> HookState {
        let follows = matches!(self.state, State::Normal | State::Degraded | State::Recovering) && !self.open;
        HookState {
            state: self.state,
            age_ns: self.judged_ns,
            origin_ns: self.health.origin_ns(),
            cause: self.cause,
            limited: follows && self.mover.distance(&self.command) > self.settings.near,
        }
    }

    /// Where the follower is to be; empty before it has begun.
    pub fn at(&self) -> &[f64] {
        self.mover.at()
    }

    /// Whether the agent is asked where to go.
    pub fn wants_agent(&self) -> bool {
        let leads = self.settings.action == Action::Agent && !self.open;
        self.state == State::Hold && leads && !self.mover.at().is_empty()
    }

    /// What the agent said for the next tick; nothing, or nonsense, lets the follower come to rest.
    pub fn lead(&mut self, goal: Option<&[f64]>) {
        self.goal.clear();
        let Settings { reach, limits, .. } = &self.settings;
        let Some(goal) = goal.filter(|g| g.len() == self.taken.len() && g.iter().all(|v| v.is_finite()))
        else {
            return;
        };
        let near = goal.iter().zip(&self.taken).map(|(g, from)| g.clamp(from - reach, from + reach));
        let places = near.zip(self.mover.at()).enumerate();
        self.goal.extend(places.map(|(i, (near, at))| limits.workspace.held(i, *at, near)));
    }

    /// A tick, with the command that has come since the one before, and where the follower is measured to be.
    pub fn tick(&mut self, now: Time, command: Option<Command<'_>>, measured: Option<&[f64]>) {
        let period = self.settings.timing.period;
        // A clock that was put forward or back cannot be told from a loop that was away so long.
        let last = self.last.replace(now).unwrap_or(now);
        let passed = Time::try_from(now.abs_diff(last)).unwrap_or(Time::MAX);
        self.health.pass(passed);
        self.refused = None;
        let away = passed > period.saturating_add(period / 2);
        if away {
            self.judge(false, 0, away);
            if now < last {
                self.health.forget_origin();
            }
        }
        if passed >= self.settings.timing.hold {
            // Nothing was given out for so long: the follower stands where it was sent last.
            self.mover.rest();
        }
        let gap_ns = self.health.age_ns();
        let sound = command.is_some_and(|command| self.take(now, command));
        if self.mover.at().is_empty() && !self.begin(measured, passed) {
            return;
        }
        let before = self.state;
        self.judge(sound, passed.min(period), away);
        self.judged_ns = if away { gap_ns } else { self.health.age_ns() };
        // Never farther than in one period, whatever the clock says.
        self.go(passed.min(period) as f64 * 1e-9);
        if self.state == before {
            self.arrive(sound);
        }
    }

    /// Why it cannot begin: nobody says where the follower is, value by value.
    fn unplaced(&self, at: Option<&[f64]>) -> String {
        let wanted = self.command.len();
        let why = match at {
            None => "none of the values that `measured` names has been returned".into(),
            Some(at) if at.len() != wanted => format!("{} say where the follower is", at.len()),
            Some(_) => "the measured position of the follower is not finite, or beyond 10^6".into(),
        };
        let zeros = vec!["0.0"; wanted].join(", ");
        format!(
            "holds: a command has {wanted} values, but {why}; give one for each, such as start = [{zeros}]"
        )
    }

    /// Begins at rest, once there is a command and it is known where the follower is.
    fn begin(&mut self, measured: Option<&[f64]>, passed: Time) -> bool {
        if self.command.is_empty() {
            return false;
        }
        self.waits_ns = self.waits_ns.saturating_add(passed);
        let zeros = vec![0.0; self.command.len()];
        let at = match &self.settings.origin {
            Origin::Measured => measured,
            Origin::Start(at) if at.is_empty() => Some(&zeros[..]),
            Origin::Start(at) => Some(&at[..]),
        };
        let known = at.filter(|at| at.len() == self.command.len() && at.iter().all(|v| v.abs() <= MOST));
        let Some(at) = known else {
            if self.waits_ns >= self.settings.timing.stop {
                self.refused = Some(self.unplaced(at));
            }
            return false;
        };
        self.mover.begin(at);
        self.enter(State::Recovering, "it begins");
        true
    }

    fn go(&mut self, dt: f64) {
        let Settings { limits, action, slowly, .. } = &self.settings;
        let (action, slow) = (*action, slowly * limits.speed);
        let stop = if action == Action::Zero { Action::Zero } else { Action::Decelerate };
        match self.state {
            State::Hold if action == Action::Hold => self.mover.without(action, dt, limits),
            State::SafeStop => self.mover.without(stop, dt, limits),
            _ if self.open => self.mover.without(stop, dt, limits),
            State::Degraded | State::Recovering => self.mover.follow(&self.command, dt, slow),
            State::Hold if !self.goal.is_empty() => self.mover.follow(&self.goal, dt, slow),
            State::Hold => self.mover.without(action, dt, limits),
            _ => self.mover.follow(&self.command, dt, limits.speed),
        }
    }

    /// Takes a command, if it is a newer one and all of it makes sense; a predicted one only up to its horizon.
    fn take(&mut self, now: Time, command: Command<'_>) -> bool {
        if let Some((wrong, why)) = self.refuses(now, &command) {
            (self.wrong, self.refused) = (Some(wrong), Some(format!("refused: {why}")));
            // Letting go is safe, whatever else the command says.
            self.open |= !command.engaged;
            return false;
        }
        match self.health.arrive(now, command.number, command.origin_ns) {
            Arrival::Old => return false,
            Arrival::Predicted if self.health.age_ns() > self.settings.timing.horizon => return false,
            _ => {}
        }
        self.wrong = None;
        self.open = !command.engaged;
        self.clutch = match (self.clutch, command.engaged) {
            (_, false) => Clutch::LetGo,
            (Clutch::LetGo, true) => Clutch::Closed,
            (same, true) => same,
        };
        if command.engaged {
            self.command.clear();
            self.command.extend_from_slice(command.x);
        }
        true
    }

    /// What is wrong with a command, if anything is: in few words, and in full.
    fn refuses(&self, now: Time, command: &Command<'_>) -> Option<(&'static str, String)> {
        let (n, known) = (command.x.len(), self.command.len().max(self.mover.at().len()));
        let number = "a command has another number of values";
        if n == 0 {
            let why = "a command without a value that is motion, or without that of the clutch";
            return Some((number, why.into()));
        }
        if known > 0 && known != n {
            return Some((number, format!("a command of {n} values, of {known} before")));
        }
        let Timing { end_to_end, clock, .. } = self.settings.timing;
        let (age, ms) = (now.saturating_sub(command.origin_ns), |ns: Time| ns as f64 * 1e-6);
        if age > end_to_end - clock || age < -clock {
            let why = format!(
                "a command {:.1} ms old end to end, by clocks that agree within {} ms (end_to_end_ms = {})",
                ms(age),
                ms(clock),
                ms(end_to_end)
            );
            return Some(("a command is too old end to end", why));
        }
        let why = self.settings.limits.workspace.refuses(command.x)?;
        Some(("a command is outside the workspace", why))
    }

    /// The state that the age and quality of commands ask for, and why; without a follower yet, it holds. `away`: after a
    /// stall of its loop.
    fn judge(&mut self, sound: bool, passed: Time, away: bool) {
        if self.mover.at().is_empty() {
            return;
        }
        let (age, t) = (self.health.age_ns(), self.settings.timing);
        let share =
            if matches!(self.state, State::Normal | State::Recovering) { 1.0 } else { self.settings.ease };
        let late = (age as f64 > share * t.degraded as f64).then_some("commands are late");
        let poor = self.wrong.filter(|_| self.refused.is_some()).or(late);
        let poor = poor.or_else(|| self.health.poor(&self.settings.thresholds, share));
        self.good_ns = if poor.is_some() { 0 } else { self.good_ns.saturating_add(passed) };
        // A threshold is passed at the tick nearest to it: a clock that trembles does not put it off by a whole period.
        let passes = |threshold: Time| age.saturating_add(t.period / 2) >= threshold;
        let missing = if away { "its loop stalled" } else { self.wrong.unwrap_or("no command arrived") };
        let (next, cause) = match self.state {
            _ if passes(t.stop) => (State::SafeStop, missing),
            State::Hold | State::SafeStop if self.trusts(sound) && self.engaged() => {
                (State::Recovering, "commands are good again")
            }
            State::Hold | State::SafeStop => (self.state, ""),
            _ if passes(t.hold) => (State::Hold, missing),
            _ if self.halted => (State::Hold, "its robot or worker has died, or the run ends"),
            State::Normal | State::Recovering => poor.map_or((self.state, ""), |why| (State::Degraded, why)),
            same => (same, ""),
        };
        self.enter(next, cause);
    }

    /// Where the step of this tick has led: a hand that moves is never near before it.
    fn arrive(&mut self, sound: bool) {
        let (next, cause) = match (self.state, self.near()) {
            (State::Degraded, true) if self.trusts(sound) => (State::Normal, "commands are good again"),
            (State::Degraded, false) if self.trusts(sound) => {
                (State::Recovering, "commands are good again, but far from the follower")
            }
            (State::Recovering, true) => (State::Normal, "it has reached the command"),
            (same, _) => (same, ""),
        };
        self.enter(next, cause);
    }

    /// Whether this command comes after others that were good for long enough.
    fn trusts(&self, sound: bool) -> bool {
        sound && !self.halted && self.good_ns >= self.settings.timing.recover.max(1)
    }

    fn near(&self) -> bool {
        !self.command.is_empty() && self.mover.distance(&self.command) <= self.settings.near
    }

    /// Whether control may be taken up again: after a hold by itself, after a stop as it was asked for.
    fn engaged(&self) -> bool {
        self.state == State::Hold
            || match self.settings.engage {
                Engage::Auto => true,
                Engage::Near => self.near(),
                Engage::Clutch => self.clutch == Clutch::Closed,
            }
    }

    fn enter(&mut self, next: State, cause: &'static str) {
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
        (self.state, self.cause) = (next, cause);
    }
}
