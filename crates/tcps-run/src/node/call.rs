//! The calls of stages: hooks, core time, delays.

use super::{
    flow::side,
    job::{coded, decoded, Job, Stage},
    Node,
};
use crate::{
    outside::{Outside, Started, Work},
    plan::{Level, StepKind},
};
use std::cmp::Reverse;
use tcps_core::{
    hook::{HookIn, HookOut, Verdict},
    record::{DropReason, Kind, Record, NONE},
    time::{Time, MS, NEVER},
};

/// A call of a hook that stood still for longer marks the run as disturbed.
const STALL_NS: Time = MS;

/// What becomes of a job after a step.
pub(super) enum After {
    /// It goes on at once.
    Goes(Time),
    /// It waits for a core, a delay or its turn, or it is over.
    Waits,
}

impl Node {
    /// One micro-step: the code of a step with its core time, or its delay.
    pub(super) fn step<O: Outside>(
        &mut self,
        now: Time,
        mut job: Box<Job>,
        out: &mut O,
    ) -> (Option<Box<Job>>, After) {
        if job.stage == Stage::Call {
            let visit = self.flows[job.flow as usize].visits[job.visit as usize].as_mut();
            let periodic = visit.and_then(|v| v.steps[job.step as usize].periodic.as_mut());
            if let Some(p) = periodic {
                if p.next == NEVER {
                    p.next = now;
                }
                p.origin_ns = Some(job.meta.origin_ns);
                let old = p.waiting.take();
                self.release(&mut job);
                self.offer(job);
                if let Some(old) = old {
                    self.superseded(now, &old, out);
                    self.recycle(old);
                }
                return (None, After::Waits);
            }
            return self.call(now, job, out);
        }
        let visit = self.flows[job.flow as usize].visits[job.visit as usize].as_mut();
        let step = visit.map(|v| &mut v.steps[job.step as usize]);
        job.stage = Stage::Next;
        if let Some((step, delay)) = step.and_then(|s| s.delay.as_mut().map(|d| d.draw()).map(|d| (s, d))) {
            let until = (now + delay).max(step.last_exit);
            step.last_exit = until;
            if until > now {
                self.release(&mut job);
                let id = self.park(job);
                self.order += 1;
                self.delayed.push(Reverse((until, self.order, id)));
                return (None, After::Waits);
            }
        }
        (Some(job), After::Goes(now))
    }

    /// Calls the hook of the job's step and takes its core time.
    pub(super) fn call<O: Outside>(
        &mut self,
        now: Time,
        mut job: Box<Job>,
        out: &mut O,
    ) -> (Option<Box<Job>>, After) {
        let started = out.start(now);
        let verdict = self.call_hook(now, &mut job, true);
        let cost = self.account(started, &job, &verdict, out);
        if verdict != Verdict::Emit {
            let component = self.flows[job.flow as usize].visits[job.visit as usize]
                .as_ref()
                .map_or(NONE, |v| v.component);
            self.drop_sample(now, &job.meta, component, DropReason::Hook, out);
            self.release(&mut job);
            self.recycle(job);
            return (None, After::Waits);
        }
        self.occupy(started, job, cost, out)
    }

    /// Notes what a call of the job's step took and whether it failed; its cost, if it has one.
    pub(super) fn account<O: Outside>(
        &mut self,
        started: Started,
        job: &Job,
        verdict: &Verdict,
        out: &mut O,
    ) -> Time {
        let Some(visit) = self.flows[job.flow as usize].visits[job.visit as usize].as_mut() else { return 0 };
        let component = visit.component;
        let step = &mut visit.steps[job.step as usize];
        let cost = step.cost.as_mut().map_or(0, |c| c.draw());
        let own = out.used(started);
        let used = own.max(cost).max(0);
        step.stats.calls += 1;
        let _ = step.stats.cost_ns.record(used as u64);
        if let Verdict::Failed(text) = verdict {
            step.stats.failures += 1;
            step.stats.error.get_or_insert_with(|| text.clone());
        }
        let after = out.now(started.at);
        let (detail, node) = (step.kind as u8, self.id);
        // Time that was neither the hook's nor its cost's: it slept, or was kept from its core.
        let stood_still = after - started.at - own;
        if stood_still > STALL_NS {
            out.record(Record { value: stood_still, node, ..Record::new(after, Kind::Gap) });
        }
        if self.level >= Level::Events {
            let row = Record {
                value: used,
                point: component,
                detail,
                node,
                index: job.meta.index,
                flow: job.flow,
                ..Record::new(after, Kind::Stage)
            };
            out.record(row);
        }
        cost
    }

    /// Takes the core time of a call that gave something out; its delay comes next.
    pub(super) fn occupy<O: Outside>(
        &mut self,
        started: Started,
        mut job: Box<Job>,
        cost: Time,
        out: &mut O,
    ) -> (Option<Box<Job>>, After) {
        job.stage = Stage::Delay;
        if cost <= 0 {
            return (Some(job), After::Goes(out.now(started.at)));
        }
        let priority = self.flows[job.flow as usize].priority;
        let id = self.park(job);
        match out.work(started, id, cost, priority) {
            Work::Done(t) => (self.unpark(id), After::Goes(t)),
            Work::Later => (None, After::Waits),
        }
    }

    pub(super) fn call_hook(&mut self, now: Time, job: &mut Job, present: bool) -> Verdict {
        let flow = &mut self.flows[job.flow as usize];
        let (codec, direction) = (flow.codec, flow.direction);
        let Some(visit) = flow.visits[job.visit as usize].as_mut() else { return Verdict::Nothing };
        let step = &mut visit.steps[job.step as usize];
        let Some(hook) = step.hook.as_mut() else { return Verdict::Emit };
        match step.kind {
            StepKind::Decode => coded(codec, job),
            _ => decoded(codec, job),
        }
        let latest = self.latest[visit.component as usize].as_ref();
        let other: &[f64] = latest.map_or(&[], |l| &l[1 - side(direction)]);
        let (x, bytes) = (&job.values, if job.coded { job.bytes.as_slice() } else { &[] });
        let input = HookIn {
            now_ns: self.clock.read(now),
            origin_ns: job.meta.origin_ns,
            index: job.meta.index,
            flow: job.flow,
            present: present as u16,
            n: if present { x.len() as u32 } else { 0 },
            n_bytes: if present { bytes.len() as u32 } else { 0 },
            n_other: other.len() as u32,
            reserved: 0,
            x: x.as_ptr(),
            bytes: bytes.as_ptr(),
            other: other.as_ptr(),
        };
        let s = &mut self.scratch;
        let mut output = HookOut {
            n: 0,
            cap: s.values.len() as u32,
            n_bytes: 0,
            cap_bytes: s.bytes.len() as u32,
            y: s.values.as_mut_ptr(),
            bytes: s.bytes.as_mut_ptr(),
        };
        let verdict = hook.call(&input, &mut output);
        if output.n > 0 {
            job.values.clear();
            job.values.extend_from_slice(&s.values[..(output.n as usize).min(s.values.len())]);
            (job.decoded, job.coded) = (true, false);
        }
        if output.n_bytes > 0 {
            job.bytes.clear();
            job.bytes.extend_from_slice(&s.bytes[..(output.n_bytes as usize).min(s.bytes.len())]);
            job.coded = true;
            job.decoded &= step.kind == StepKind::Code;
        }
        verdict
    }

    /// Puts a sample where its periodic stage will find it.
    pub(super) fn offer(&mut self, job: Box<Job>) {
        let visit = self.flows[job.flow as usize].visits[job.visit as usize].as_mut();
        if let Some(p) = visit.and_then(|v| v.steps[job.step as usize].periodic.as_mut()) {
            p.waiting = Some(job);
        }
    }
}
