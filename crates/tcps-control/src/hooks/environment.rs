//! Predictor `environment`: the haptic side at the operator, live while it comes and from a model while it does not: a
//! predictive display.
//!
//! ```text
//! in     force, position of the follower      other   what the operator commands now
//! live   as it came; every sample teaches the model of what is touched (`environment`)
//! stale  force of the model where the operator is now; position: where the operator is     older than `stale_ms`
//!        never more than the largest force that has come; without a model: the last force, which fades over `fade_ms`
//! out    force, position, and with `tell` 0 live or 1 predicted behind them
//! ```
//! Neither beginning nor end is a jump: the difference is taken back by at most `most_n_ms`.

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, HookState, State, Verdict},
    param::{Fault, Params as _},
    params,
    time::{Time, MS},
};

use super::{emit, too_few};
use crate::{
    bilateral::Motion,
    environment::{Environment, Form},
};

/// Fastest motion that is believed, in m/s.
const FASTEST_M_S: f64 = 10.0;

params! {
    /// Parameters.
    pub struct Params {
        form: Form = Choice(&["spring", "hunt_crossley"]), "spring", ANY, "form of the model";
        force: Vec<usize> = List(&Count), "[0]", NOT_NEGATIVE, "which received values are forces, one per axis";
        position: Vec<usize> = List(&Count), "[1]", NOT_NEGATIVE, "which are positions of the follower, one per axis";
        command: Vec<usize> = List(&Count), "[0]", NOT_NEGATIVE, "which values of the command are positions of the operator, one per axis";
        reaction: bool = Flag, "false", ANY, "true: received forces push on the tool; false: the tool exerts them";
        stale_ms: f64 = Number, "5", POSITIVE, "age from which a sample counts as stale, in ms";
        fade_ms: f64 = Number, "100", POSITIVE, "time in which a force without a model fades, in ms";
        most_n_ms: f64 = Number, "0.05", POSITIVE, "largest change when switching to the model and back, in N per ms";
        tell: bool = Flag, "true", ANY, "true: one more value of the output is 1 if the others are predicted, otherwise 0";
    }
}

/// The hook.
pub struct EnvironmentHook {
    params: Params,
    axes: Vec<Axis>,
    newest: Vec<f64>,
    /// Time that has passed since the newest sample.
    age_ns: Time,
    now_ns: Time,
    state: State,
    out: Vec<f64>,
}

/// One axis: its model, how the follower moved, and what is still taken back of a jump.
struct Axis {
    environment: Environment,
    follower: Track,
    operator: Track,
    /// Largest force that has come.
    most_n: f64,
    shown: f64,
    jump: f64,
}

/// A position with its velocity, as differences give it.
#[derive(Default)]
struct Track {
    at: Option<(Time, f64)>,
    v: f64,
}

impl Track {
    fn follow(&mut self, now: Time, x: f64) -> Motion {
        if let Some((before, last)) = self.at.filter(|(t, _)| now > *t) {
            self.v = ((x - last) / ((now - before) as f64 * 1e-9)).clamp(-FASTEST_M_S, FASTEST_M_S);
        }
        self.at = Some((now, x));
        Motion { x, v: self.v }
    }
}

impl EnvironmentHook {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let p = Params::of(params)?;
        let axes = p.force.len();
        if axes == 0 || p.position.len() != axes || p.command.len() != axes {
            let found = format!("{axes}, {} and {} values", p.position.len(), p.command.len());
            return Err(Fault::new("force", found, "as many in force, position and command, at least one"));
        }
        let axis = || Axis {
            environment: Environment::new(p.form),
            follower: Track::default(),
            operator: Track::default(),
            most_n: 0.0,
            shown: 0.0,
            jump: 0.0,
        };
        Ok(Self {
            axes: (0..axes).map(|_| axis()).collect(),
            params: p,
            newest: Vec::new(),
            age_ns: 0,
            now_ns: 0,
            state: State::Live,
            out: Vec::new(),
        })
    }

    /// Factor between the force of a sample and that of a model.
    fn sign(&self) -> f64 {
        if self.params.reaction {
            -1.0
        } else {
            1.0
        }
    }

    fn stale_ns(&self) -> Time {
        (self.params.stale_ms * MS as f64) as Time
    }

    /// Takes what came, and lets it teach the models.
    fn take(&mut self, origin: Time, x: &[f64]) -> bool {
        let p = &self.params;
        let most = p.force.iter().chain(&p.position).max().copied().unwrap_or(0);
        if x.len() <= most || x.iter().any(|v| !v.is_finite()) {
            return false;
        }
        let sign = self.sign();
        for (i, axis) in self.axes.iter_mut().enumerate() {
            let at = axis.follower.follow(origin, x[p.position[i]]);
            axis.environment.learn(at, sign * x[p.force[i]]);
            axis.most_n = axis.most_n.max(x[p.force[i]].abs());
        }
        self.newest.clear();
        self.newest.extend_from_slice(x);
        self.age_ns = 0;
        true
    }

    /// Force and position of an axis that is stale: of the model where the operator is, or the last, fading.
    fn predicted(&mut self, i: usize, now: Time, other: &[f64]) -> (f64, f64) {
        let sign = self.sign();
        let (p, axis) = (&self.params, &mut self.axes[i]);
        let (force, x) = (self.newest[p.force[i]], self.newest[p.position[i]]);
        let fade = (1.0 - (self.age_ns as f64 / MS as f64 - p.stale_ms) / p.fade_ms).clamp(0.0, 1.0);
        let Some(&there) = other.get(p.command[i]).filter(|v| v.is_finite()) else {
            return (force * fade, x);
        };
        let at = axis.operator.follow(now, there);
        // A hand that nothing holds goes deeper than a follower would: no more than has been felt.
        let most_n = axis.most_n;
        let felt = axis.environment.force(at).map(|f| (sign * f).clamp(-most_n, most_n));
        (felt.unwrap_or(force * fade), there)
    }

    /// What is shown now.
    fn show(&mut self, now: Time, other: &[f64], passed: Time) {
        let next = if self.age_ns > self.stale_ns() { State::Predicted } else { State::Live };
        let turned = std::mem::replace(&mut self.state, next) != next;
        self.out.clear();
        self.out.extend_from_slice(&self.newest);
        let most = self.params.most_n_ms * passed as f64 / MS as f64;
        for i in 0..self.axes.len() {
            let (f, x) = (self.params.force[i], self.params.position[i]);
            if next == State::Predicted {
                (self.out[f], self.out[x]) = self.predicted(i, now, other);
            }
            let axis = &mut self.axes[i];
            axis.jump = if turned { axis.shown - self.out[f] } else { axis.jump };
            axis.jump -= axis.jump.clamp(-most, most);
            self.out[f] += axis.jump;
            axis.shown = self.out[f];
        }
        if self.params.tell {
            self.out.push(f64::from(u8::from(next == State::Predicted)));
        }
    }
}

// [model: predictors] model-based, for the haptic side: rendered where the operator is, without the delay around it
impl Hook for EnvironmentHook {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        let now = input.now_ns;
        // A clock that is put back tells nothing; one that is put forward looks like a loop that was away.
        let passed = now.saturating_sub(std::mem::replace(&mut self.now_ns, now)).max(0);
        self.age_ns = self.age_ns.saturating_add(passed);
        if input.present != 0 && !self.take(input.origin_ns, input.x()) {
            return too_few("force and position", input.x());
        }
        if self.newest.is_empty() {
            return Verdict::Nothing;
        }
        self.show(now, input.other(), passed);
        emit(output, &self.out)
    }

    fn told(&self) -> Option<HookState> {
        let age_ns = if self.newest.is_empty() { Time::MAX } else { self.age_ns };
        let cause = if self.state == State::Live { "feedback came" } else { "feedback is late" };
        Some(HookState { state: self.state, age_ns, origin_ns: None, cause, limited: false })
    }
}
