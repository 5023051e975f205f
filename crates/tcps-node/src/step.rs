//! A stage at its node: code, cost, delay, and what its calls took.

use super::job::Job;
use crate::assets::{self, Assets, Shape};
use tcps_core::{
    dist::Sampler,
    hook::{Former, Hook, HookState, Notice, State},
    ids::FlowId,
    record::StepKind,
    report::StepStats,
    sample::{Echo, Meta},
    time::{Time, NEVER},
};
use tcps_plan::{CodePlan, RunError, StepPlan, WorkerPlan};

/// A stage with its code, cost and delay.
pub(super) struct Step {
    pub(super) kind: StepKind,
    pub(super) name: String,
    run: Option<CodePlan>,
    shape: Shape,
    /// It works in a thread of its own, where the world has threads.
    pub(super) worker: Option<WorkerAt>,
    pub(super) hook: Option<Box<dyn Hook>>,
    /// Flows whose newest values it is told; none: the newest of the other direction.
    pub(super) other: Vec<FlowId>,
    pub(super) cost: Option<Sampler>,
    pub(super) delay: Option<Sampler>,
    /// Latest delayed exit, so that a varying delay keeps the order.
    pub(super) last_exit: Time,
    pub(super) periodic: Option<Periodic>,
    pub(super) stats: StepStats,
    /// What a hook that has states gave out last, and what left its component: those behind it still go by that when it is
    /// restarted.
    pub(super) given: Vec<f64>,
    /// When its hook was called last, on the node's clock.
    pub(super) called_ns: Time,
    /// What its hook told after the last call, if it has states.
    told: Option<HookState>,
}

impl Step {
    pub(super) fn new(
        plan: &StepPlan,
        name: &str,
        seed: u64,
        assets: &mut dyn Assets,
    ) -> Result<Self, RunError> {
        let shape = match &plan.worker {
            Some(worker) => Shape::of_worker(plan.kind, worker),
            None => Shape::of(plan.kind),
        };
        let mut hook = plan.run.as_ref().map(|run| assets::hook(run, shape, assets)).transpose()?;
        if let Some(hook) = &mut hook {
            hook.notice(Notice::Period(plan.period_ns))
                .map_err(|e| RunError::hook(format!("{name}: {e}")))?;
        }
        let sampler = |dist: &Option<_>, what: &str| {
            dist.clone().map(|d| Sampler::new(d, seed, &format!("{name}.{what}")))
        };
        Ok(Self {
            kind: plan.kind,
            run: plan.run.clone(),
            shape,
            worker: plan.worker.map(WorkerAt::new),
            name: plan.run.as_ref().map_or_else(|| "work".into(), CodePlan::label),
            hook,
            other: plan.other.clone(),
            cost: sampler(&plan.cost, "cost"),
            delay: sampler(&plan.delay, "delay"),
            last_exit: 0,
            periodic: plan.period_ns.map(|period_ns| Periodic::new(period_ns, plan.on_arrival)),
            stats: StepStats::default(),
            given: Vec::new(),
            called_ns: 0,
            told: None,
        })
    }

    /// The former state and what the hook tells, if this is the first call or has changed its state.
    pub(super) fn turned(&mut self) -> Option<(State, HookState)> {
        let told = self.hook.as_ref()?.told()?;
        let former = self.told.replace(told).map(|f| f.state);
        self.stats.watch(former, &told);
        (former != Some(told.state)).then(|| (former.unwrap_or(told.state), told))
    }

    /// Whether it gives out at a period what follows from states, as a supervisor does.
    pub(super) fn has_states(&self) -> bool {
        self.periodic.is_some() && self.hook.as_ref().is_some_and(|hook| hook.told().is_some())
    }

    /// Ends the hook, which is not called any more.
    pub(super) fn end(&mut self) {
        self.stats.ends.extend(self.hook.iter_mut().flat_map(|hook| hook.end()));
    }

    /// Its component has been restarted: its code begins anew. Costs, delays and numbers of outputs go on.
    pub(super) fn restart(&mut self, assets: &mut dyn Assets) {
        // What works in a thread of its own has no state that belongs to its component.
        let run = self.run.as_ref().filter(|_| self.hook.is_some());
        match run.map(|run| assets::hook(run, self.shape, assets)) {
            None => {}
            Some(Ok(fresh)) => {
                self.end();
                self.hook = Some(fresh);
            }
            Some(Err(e)) => self.stats.complain(format!("cannot be restarted: {e}")),
        }
        let period_ns = self.periodic.as_ref().map(|p| p.period_ns);
        if let Some(hook) = &mut self.hook {
            let former = self.told.map(|told| Former { now_ns: self.called_ns, values: &self.given, told });
            let taken = hook.notice(Notice::Period(period_ns));
            let taken = taken.and_then(|()| former.map_or(Ok(()), |f| hook.notice(Notice::Resumed(f))));
            if let Err(e) = taken {
                self.stats.complain(format!("cannot be restarted: {e}"));
            }
        }
        if let Some(p) = &mut self.periodic {
            *p = Periodic {
                index: p.index,
                waiting: p.waiting.take(),
                newest: p.newest,
                ..Periodic::new(p.period_ns, p.on_arrival)
            };
        }
    }
}

/// A stage that works in a thread of its own, as its node sees it.
pub(super) struct WorkerAt {
    pub(super) plan: WorkerPlan,
    /// Number of its worker, once a driver has taken its hook; until then the hook is called in place.
    pub(super) number: Option<u16>,
    room: Vec<u8>,
}

impl WorkerAt {
    fn new(plan: WorkerPlan) -> Self {
        Self { plan, number: None, room: Vec::new() }
    }

    /// Room for what the stage writes where it is called in place.
    pub(super) fn room(&mut self) -> &mut Vec<u8> {
        self.room.resize(self.plan.most_bytes as usize, 0);
        &mut self.room
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
    // [design: echo commands]
    pub(super) fn take_in(&mut self, meta: &Meta) -> Option<Echo> {
        self.newest = (meta.index, meta.origin_ns);
        meta.echo.and_then(|echo| self.echo.replace(echo))
    }
}
