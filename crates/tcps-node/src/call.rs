//! The calls of stages: hooks, core time, delays.

use super::{
    context::Context,
    doors::Doors,
    job::{coded, decoded, Job, Stage},
    pipeline::Pipeline,
    port::Ports,
    step::WorkerAt,
};
use crate::host::{Host, Started, Work};
use tcps_core::{
    hook::{HookIn, HookOut, Verdict},
    record::{DropReason, Kind, Record, StepKind},
    split::Part,
    time::{Time, MS},
};
use tcps_plan::Level;

/// A call of a hook that stalls for longer marks the run as disturbed.
const STALL_NS: Time = MS;

/// What becomes of a job after a step.
pub(super) enum After {
    /// It goes on at once.
    Goes(Time),
    /// It waits for a core, a delay or its turn, or it is over.
    Waits,
}

impl Pipeline {
    /// One micro-step: the code of a step with its core time, or its delay.
    pub(super) fn step<O: Host>(
        &mut self,
        now: Time,
        mut job: Box<Job>,
        doors: &mut Doors,
        cx: &mut Context<'_, O>,
    ) -> (Option<Box<Job>>, After) {
        let visit = self.flows[job.flow].visits.get_mut(job.visit);
        let step = visit.map(|v| &mut v.steps[job.step as usize]);
        if job.stage == Stage::Call {
            job.parts.spend(Part::Waiting, now);
            if step.is_some_and(|s| s.periodic.is_some()) {
                self.offer(now, job, doors, cx);
                return (None, After::Waits);
            }
            return self.call(now, job, doors, cx);
        }
        job.worked(now);
        job.stage = Stage::Next;
        if let Some((step, delay)) = step.and_then(|s| s.delay.as_mut().map(|d| d.draw()).map(|d| (s, d))) {
            let until = (now + delay).max(step.last_exit);
            step.last_exit = until;
            if until > now {
                self.release(&mut job, cx.jobs);
                cx.jobs.delay(until, job);
                return (None, After::Waits);
            }
        }
        (Some(job), After::Goes(now))
    }

    /// Calls the hook of the job's step and takes its core time.
    pub(super) fn call<O: Host>(
        &mut self,
        now: Time,
        mut job: Box<Job>,
        doors: &mut Doors,
        cx: &mut Context<'_, O>,
    ) -> (Option<Box<Job>>, After) {
        if let Some(worker) = self.worker_of(&job) {
            return self.delegate(now, job, worker, &doors.ports, cx);
        }
        if self.only_delays(&job) {
            job.stage = Stage::Delay;
            return (Some(job), After::Goes(now));
        }
        let started = cx.out.start(now);
        let verdict = self.call_hook(cx.read(now), &mut job, true, &doors.ports);
        let cost = self.account(started, &job, &verdict, cx);
        if verdict != Verdict::Emit {
            match verdict {
                Verdict::Failed(_) | Verdict::Dead(_) => self.end(cx.out.now(now), job, DropReason::Hook, cx),
                _ => self.suppress(cx.out.now(now), job, cx),
            }
            return (None, After::Waits);
        }
        self.occupy(started, job, cost, cx)
    }

    /// Whether the job's step has neither code nor cost: then nothing is measured.
    fn only_delays(&mut self, job: &Job) -> bool {
        let visit = self.flows[job.flow].visits.get_mut(job.visit);
        let Some(step) = visit.map(|v| &mut v.steps[job.step as usize]) else { return false };
        let only = step.hook.is_none() && step.cost.is_none();
        if only {
            step.stats.calls += 1;
            let _ = step.stats.cost_ns.record(0);
        }
        only
    }

    /// Notes what a call of the job's step took and whether it failed; its cost, if it has one.
    pub(super) fn account<O: Host>(
        &mut self,
        started: Started,
        job: &Job,
        verdict: &Verdict,
        cx: &mut Context<'_, O>,
    ) -> Time {
        let Some(visit) = self.flows[job.flow].visits.get_mut(job.visit) else { return 0 };
        let component = visit.component;
        let step = &mut visit.steps[job.step as usize];
        let cost = step.cost.as_mut().map_or(0, |c| c.draw());
        let own = cx.out.used(started);
        let used = own.max(cost).max(0);
        step.stats.overruns += u64::from(step.cost.is_some() && own > cost);
        step.stats.note(used, verdict);
        if let Some(text) = step.hook.as_mut().and_then(|h| h.complaint()) {
            step.stats.complain(text);
        }
        let after = cx.out.now(started.at);
        let detail = step.kind as u8;
        let (index, flow) = (job.meta.index, job.flow);
        if let Some((former, told)) = step.turned() {
            let (value, size, detail) = (told.age_ns, former as u32, told.state as u8);
            cx.out.record(Record {
                value,
                index,
                size,
                flow,
                point: component.0,
                detail,
                ..cx.here.row(after, Kind::State)
            });
        }
        // Time that was neither the hook's nor its cost's: it slept, or was kept from its core.
        let stood_still = after - started.at - own;
        if stood_still > STALL_NS {
            cx.out.record(Record { value: stood_still, ..cx.here.row(after, Kind::Gap) });
        }
        if let Verdict::Dead(why) = verdict {
            self.die(after, component, why.clone(), cx);
        }
        if cx.here.level >= Level::Events {
            cx.out.record(Record {
                value: used,
                index,
                flow,
                point: component.0,
                detail,
                ..cx.here.row(after, Kind::Stage)
            });
        }
        cost
    }

    /// Takes the core time of a call that gave something out; its delay comes next.
    pub(super) fn occupy<O: Host>(
        &mut self,
        started: Started,
        mut job: Box<Job>,
        cost: Time,
        cx: &mut Context<'_, O>,
    ) -> (Option<Box<Job>>, After) {
        (job.stage, job.cost_ns) = (Stage::Delay, cost);
        if cost <= 0 {
            return (Some(job), After::Goes(cx.out.now(started.at)));
        }
        let priority = self.flows[job.flow].priority;
        let id = cx.jobs.park(job);
        match cx.out.work(started, id, cost, priority) {
            Work::Done(t) => (cx.jobs.unpark(id), After::Goes(t)),
            Work::Later => (None, After::Waits),
        }
    }

    /// Calls the hook of the job's step, at `here` on the node's clock.
    pub(super) fn call_hook(&mut self, here: Time, job: &mut Job, present: bool, ports: &Ports) -> Verdict {
        let allowed_bps = self.allowance(job.flow, ports).unwrap_or(-1.0);
        let flow = &mut self.flows[job.flow];
        let direction = flow.direction;
        let Some(visit) = flow.visits.get_mut(job.visit) else { return Verdict::Nothing };
        let merging = ports.merging(visit.channel);
        let step = &mut visit.steps[job.step as usize];
        let Some(hook) = step.hook.as_mut() else { return Verdict::Emit };
        match step.kind {
            StepKind::Decode => coded(job),
            _ => decoded(job),
        }
        let latest = self.latest.get(visit.component);
        let s = &mut self.scratch;
        let other = latest.map_or(&[][..], |l| l.other(direction, &step.other, &mut s.other));
        let mut input = HookIn::tick(here, job.meta.origin_ns, job.meta.index, job.flow).with_other(other);
        if present {
            input = input.with_sample(&job.values, if job.coded { &job.bytes } else { &[] });
            input.tagged = job.meta.echo.is_some().into();
        }
        (input.merging, input.allowed_bps) = (merging, allowed_bps);
        let bytes = step.worker.as_mut().map_or(&mut s.bytes, WorkerAt::room);
        let mut output = HookOut::new(&mut s.values, bytes);
        let verdict = hook.call(&input, &mut output);
        step.called_ns = input.now_ns;
        let (n, n_bytes) = output.written();
        if n > 0 {
            let values = &s.values[..n];
            // What is measured on a picture that is shown may be unknown.
            let broken = step.kind != StepKind::Show && values.iter().any(|v| !v.is_finite());
            step.stats.not_finite += u64::from(broken);
            job.values.clear();
            job.values.extend_from_slice(values);
            (job.decoded, job.coded) = (true, false);
        }
        if n_bytes > 0 {
            job.bytes.clear();
            job.bytes.extend_from_slice(&bytes[..n_bytes]);
            job.coded = true;
            job.decoded &= step.kind == StepKind::Code;
        }
        verdict
    }
}
