//! A stage at its node: code, cost, delay, and what its calls took.

use super::job::Job;
use crate::{
    code,
    error::RunError,
    plan::{CodePlan, StepKind, StepPlan},
};
use hdrhistogram::Histogram;
use tcps_core::{
    dist::Sampler,
    hook::{Hook, State, Told},
    sample::{Echo, Meta},
    time::{Time, NEVER},
};

/// A stage with its code, cost and delay.
pub(super) struct Step {
    pub(super) kind: StepKind,
    pub(super) name: String,
    run: Option<CodePlan>,
    pub(super) hook: Option<Box<dyn Hook>>,
    pub(super) cost: Option<Sampler>,
    pub(super) delay: Option<Sampler>,
    /// Latest delayed exit, so that a varying delay keeps the order.
    pub(super) last_exit: Time,
    pub(super) periodic: Option<Periodic>,
    pub(super) stats: StepStats,
    /// State of its hook after the last call, if it has states.
    state: Option<State>,
}

impl Step {
    pub(super) fn new(
        plan: &StepPlan,
        name: &str,
        seed: u64,
        python: &mut dyn code::PythonCode,
    ) -> Result<Self, RunError> {
        let hook = plan.run.as_ref().map(|run| hook(run, plan.kind, python)).transpose()?;
        let sampler = |dist: &Option<_>, what: &str| {
            dist.clone().map(|d| Sampler::new(d, seed, &format!("{name}.{what}")))
        };
        Ok(Self {
            kind: plan.kind,
            run: plan.run.clone(),
            name: plan.run.as_ref().map_or_else(|| "work".into(), CodePlan::label),
            hook,
            cost: sampler(&plan.cost, "cost"),
            delay: sampler(&plan.delay, "delay"),
            last_exit: 0,
            periodic: plan.period_ns.map(|period_ns| Periodic::new(period_ns, plan.on_arrival)),
            stats: StepStats::default(),
            state: None,
        })
    }

    /// The former state and what the hook tells, if the last call has changed its state.
    pub(super) fn turned(&mut self) -> Option<(State, Told)> {
        let told = self.hook.as_ref()?.told()?;
        let former = self.state.replace(told.state)?;
        (former != told.state).then_some((former, told))
    }

    /// Its component has been restarted: its code begins anew. Costs, delays and numbers of outputs go on.
    pub(super) fn restart(&mut self, python: &mut dyn code::PythonCode) {
        match self.run.as_ref().map(|run| hook(run, self.kind, python)) {
            None => {}
            Some(Ok(fresh)) => self.hook = Some(fresh),
            Some(Err(e)) => {
                self.stats.failures += 1;
                self.stats.error.get_or_insert(format!("cannot be restarted: {e}"));
            }
        }
        if let Some(p) = &mut self.periodic {
            *p = Periodic {
                index: p.index,
                waiting: p.waiting.take(),
                ..Periodic::new(p.period_ns, p.on_arrival)
            };
        }
    }
}

/// The state of a stage that works at its own period.
pub(super) struct Periodic {
    pub(super) period_ns: Time,
    /// A sample goes on when it comes; ticks fill the gaps.
    pub(super) on_arrival: bool,
    pub(super) next: Time,
    /// Number of its next output.
    pub(super) index: u32,
    pub(super) waiting: Option<Box<Job>>,
    /// Number and origin of the newest sample that it was given.
    pub(super) newest: (u32, Time),
    /// The command on a sample that no output was made of yet.
    pub(super) echo: Option<Echo>,
}

impl Periodic {
    fn new(period_ns: Time, on_arrival: bool) -> Self {
        Self { period_ns, on_arrival, next: NEVER, index: 0, waiting: None, newest: (0, 0), echo: None }
    }

    /// A sample is used. The command on it is for the first output made of it; one that still waits is superseded.
    // [DECISIONS 5]
    pub(super) fn take_in(&mut self, meta: &Meta) -> Option<Echo> {
        self.newest = (meta.index, meta.origin_ns);
        meta.echo.and_then(|echo| self.echo.replace(echo))
    }
}

/// Calls of a step.
pub struct StepStats {
    /// Times it ran.
    pub calls: u64,
    /// Times it failed.
    pub failures: u64,
    /// Times it took longer than its cost.
    pub overruns: u64,
    /// The first failure in words.
    pub error: Option<String>,
    /// Core time per call.
    pub cost_ns: Histogram<u64>,
}

impl Default for StepStats {
    fn default() -> Self {
        Self { calls: 0, failures: 0, overruns: 0, error: None, cost_ns: histogram() }
    }
}

fn hook(
    run: &CodePlan,
    kind: StepKind,
    python: &mut dyn code::PythonCode,
) -> Result<Box<dyn Hook>, RunError> {
    code::hook(run, kind == StepKind::Decode, kind == StepKind::Code, python)
}

/// A histogram of nanoseconds with three digits up to a minute.
pub fn histogram() -> Histogram<u64> {
    let mut h =
        Histogram::new_with_bounds(1, 60_000_000_000, 3).unwrap_or_else(|_| unreachable!("constant bounds"));
    h.auto(true);
    h
}
