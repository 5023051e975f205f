//! Stages with a worker of their own: samples go to it and come back, and the loop goes on meanwhile. [design: run to completion]
//!
//! ```text
//! job ──► parked ──► worker (real world)      or called in place, for its cost (virtual time)
//!  next step ◄── what it has made of the sample ◄──┘
//! ```

use super::{
    call::After,
    context::Context,
    doors::Doors,
    job::{coded, Job, Stage},
    pipeline::Pipeline,
    port::Ports,
};
use crate::host::{Host, Outcome, Task};
use tcps_core::{
    hook::{Hook, Verdict},
    ids::FlowId,
    record::{DropReason, Kind, Record, StepKind},
    time::Time,
};
use tcps_plan::{Level, WorkerPlan};

impl Pipeline {
    /// The hooks that want a thread of their own, by the number of their worker; from then on their samples go to
    /// `Host::delegate`.
    pub(super) fn take_workers(&mut self) -> Vec<(Box<dyn Hook>, WorkerPlan)> {
        let mut hired = Vec::new();
        let visits = self.flows.iter_mut().flat_map(|f| f.visits.iter_mut());
        for step in visits.flat_map(|v| &mut v.steps) {
            let Some(worker) = step.worker.as_mut() else { continue };
            if let Some(hook) = step.hook.take() {
                worker.number = Some(hired.len() as u16);
                hired.push((hook, worker.plan));
            }
        }
        hired
    }

    /// What was wrong with the end of the hook that a worker had.
    pub(super) fn ended(&mut self, worker: u16, told: Vec<String>) {
        let visits = self.flows.iter_mut().flat_map(|f| f.visits.iter_mut());
        let mut steps = visits.flat_map(|v| &mut v.steps);
        let step = steps.find(|s| s.worker.as_ref().is_some_and(|w| w.number == Some(worker)));
        step.into_iter().for_each(|s| s.stats.ends.extend(told.iter().cloned()));
    }

    /// The worker that the job's step has been given, if it has one.
    pub(super) fn worker_of(&self, job: &Job) -> Option<u16> {
        let visit = self.flows[job.flow].visits.get(job.visit)?;
        visit.steps[job.step as usize].worker.as_ref()?.number
    }

    /// Gives the job to the worker of its step; one for which there is no room is dropped.
    pub(super) fn delegate<O: Host>(
        &mut self,
        now: Time,
        mut job: Box<Job>,
        worker: u16,
        ports: &Ports,
        cx: &mut Context<'_, O>,
    ) -> (Option<Box<Job>>, After) {
        coded(&mut job);
        let flow = &mut self.flows[job.flow];
        let direction = flow.direction;
        let visit = flow.visits.get_mut(job.visit);
        let (mut cost_ns, mut other) = (None, Vec::new());
        if let Some((component, step)) = visit.map(|v| (v.component, &mut v.steps[job.step as usize])) {
            cost_ns = step.cost.as_mut().map(|c| c.draw());
            if let Some(latest) = self.latest.get(component) {
                other = latest.other(direction, &step.other, &mut self.scratch.other).to_vec();
            }
        }
        let bytes = std::mem::take(&mut job.bytes);
        let (flow, index, origin_ns) = (job.flow, job.meta.index, job.meta.origin_ns);
        let id = cx.jobs.park(job);
        let task = Task {
            job: id,
            now_ns: cx.here.clock.read(now),
            origin_ns,
            index,
            flow,
            bytes,
            other,
            allowed_bps: self.allowance(flow, ports).unwrap_or(-1.0),
            cost_ns,
        };
        if let Err(task) = cx.out.delegate(worker, task) {
            if let Some(mut job) = cx.jobs.unpark(id) {
                job.bytes = task.bytes;
                self.end(now, job, DropReason::Overload, cx);
            }
        }
        (None, After::Waits)
    }

    /// A worker is done with a sample, which goes on.
    pub(super) fn finished<O: Host>(
        &mut self,
        now: Time,
        outcome: Outcome,
        doors: &mut Doors,
        cx: &mut Context<'_, O>,
    ) {
        let Some(mut job) = cx.jobs.unpark(outcome.job) else { return };
        self.account_worker(now, &job, &outcome, cx);
        job.bytes = outcome.bytes;
        (job.coded, job.decoded) = (true, !outcome.values.is_empty());
        if job.decoded {
            job.values = outcome.values;
        }
        match outcome.verdict {
            Verdict::Failed(_) | Verdict::Dead(_) => self.end(now, job, DropReason::Hook, cx),
            Verdict::Nothing => self.suppress(now, job, cx),
            Verdict::Emit => {
                job.stage = Stage::Delay;
                cx.jobs.go(job);
            }
        }
        self.run(now, doors, cx);
    }

    /// Notes what a worker's call took and whether it failed.
    fn account_worker<O: Host>(&mut self, now: Time, job: &Job, outcome: &Outcome, cx: &mut Context<'_, O>) {
        let Some(visit) = self.flows[job.flow].visits.get_mut(job.visit) else { return };
        let (component, step) = (visit.component, &mut visit.steps[job.step as usize]);
        let used_ns = outcome.used_ns.max(outcome.cost_ns.unwrap_or(0));
        step.stats.overruns += u64::from(outcome.cost_ns.is_some_and(|cost| outcome.used_ns > cost));
        step.stats.note(used_ns, &outcome.verdict);
        let kind = step.kind;
        if let Verdict::Dead(why) = &outcome.verdict {
            self.die(now, component, why.clone(), cx);
        }
        if cx.here.level >= Level::Events {
            let row = Record {
                value: used_ns,
                point: component.0,
                detail: kind as u8,
                node: cx.here.id,
                index: job.meta.index,
                flow: job.flow,
                ..Record::new(now, Kind::Stage)
            };
            cx.out.record(row);
        }
    }

    /// What the transport allows a flow on its first way out of this node, in bit/s, if it says so.
    pub(super) fn allowance(&self, flow: FlowId, ports: &Ports) -> Option<f64> {
        let visits = self.flows[flow].visits.iter();
        ports.allowance_bps(flow, visits.map(|v| v.channel))
    }

    /// Whether the job has just been shown to the operator: then its values are what was measured on it.
    pub(super) fn was_shown(&self, job: &Job) -> bool {
        let visit = self.flows[job.flow].visits.get(job.visit);
        visit.and_then(|v| v.steps.last()).is_some_and(|s| s.kind == StepKind::Show)
    }
}
