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
    hook::Hook,
    time::{Time, NEVER},
};

/// A stage with its code, cost and delay.
pub(super) struct Step {
    pub(super) kind: StepKind,
    pub(super) name: String,
    pub(super) hook: Option<Box<dyn Hook>>,
    pub(super) cost: Option<Sampler>,
    pub(super) delay: Option<Sampler>,
    /// Latest delayed exit, so that a varying delay keeps the order.
    pub(super) last_exit: Time,
    pub(super) periodic: Option<Periodic>,
    pub(super) stats: StepStats,
}

impl Default for StepStats {
    fn default() -> Self {
        Self { calls: 0, failures: 0, error: None, cost_ns: histogram() }
    }
}

impl Step {
    pub(super) fn new(
        plan: &StepPlan,
        name: &str,
        seed: u64,
        python: &mut dyn code::PythonCode,
    ) -> Result<Self, RunError> {
        let (bytes_in, bytes_out) = (plan.kind == StepKind::Decode, plan.kind == StepKind::Code);
        let hook = match &plan.run {
            Some(run) => Some(code::hook(run, bytes_in, bytes_out, python)?),
            None => None,
        };
        let sampler = |dist: &Option<_>, what: &str| {
            dist.clone().map(|d| Sampler::new(d, seed, &format!("{name}.{what}")))
        };
        Ok(Self {
            kind: plan.kind,
            name: plan.run.as_ref().map_or_else(|| "work".into(), CodePlan::label),
            hook,
            cost: sampler(&plan.cost, "cost"),
            delay: sampler(&plan.delay, "delay"),
            last_exit: 0,
            periodic: plan.period_ns.map(|period_ns| Periodic {
                period_ns,
                next: NEVER,
                index: 0,
                waiting: None,
                origin_ns: None,
            }),
            stats: StepStats { calls: 0, failures: 0, error: None, cost_ns: histogram() },
        })
    }
}

/// The state of a stage that works at its own period.
pub(super) struct Periodic {
    pub(super) period_ns: Time,
    pub(super) next: Time,
    pub(super) index: u32,
    pub(super) waiting: Option<Box<Job>>,
    /// Origin of the newest sample it has seen.
    pub(super) origin_ns: Option<Time>,
}

/// Calls of a step.
pub struct StepStats {
    /// Times it ran.
    pub calls: u64,
    /// Times it failed.
    pub failures: u64,
    /// The first failure in words.
    pub error: Option<String>,
    /// Core time per call.
    pub cost_ns: Histogram<u64>,
}

/// A histogram of nanoseconds with three digits up to a minute.
pub fn histogram() -> Histogram<u64> {
    let mut h =
        Histogram::new_with_bounds(1, 60_000_000_000, 3).unwrap_or_else(|_| unreachable!("constant bounds"));
    h.auto(true);
    h
}
