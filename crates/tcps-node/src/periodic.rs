//! Stages that work at a period of their own (edge predictors): they give samples of their own numbering.
//!
//! ```text
//! samples in ──► waiting, the newest one ──► tick ──► hook ──► sample out, with a row: number in ──► number out
//!                  │ superseded                        ▲ also without a new sample
//! ```
//! A stage that answers on arrival ticks when a sample comes, and by its timer only where none has come for one and a
//! half periods: a sample that is a little late is no gap.

use super::{context::Context, doors::Doors, due::Item, job::Job, pipeline::Pipeline};
use crate::host::Host;
use tcps_core::{
    hook::{Notice, Verdict},
    ids::ComponentId,
    record::{DropReason, Kind, Record},
    sample::Meta,
    split::Part,
    time::{Time, NEVER},
};

impl Pipeline {
    /// Keeps the newest sample for the next tick; the one that still waits is superseded, or that which comes after a newer.
    pub(super) fn offer<O: Host>(
        &mut self,
        now: Time,
        mut job: Box<Job>,
        doors: &mut Doors,
        cx: &mut Context<'_, O>,
    ) {
        self.release(&mut job, cx.jobs);
        let Some(visit) = self.flows[job.flow].visits.get_mut(job.visit) else { return };
        let component = visit.component;
        let stage = &mut visit.steps[job.step as usize];
        let Some(p) = stage.periodic.as_mut() else { return };
        let (flow, at, step) = (job.flow, job.visit, job.step);
        let answers = p.on_arrival;
        if p.next == NEVER || answers {
            p.next = now;
        }
        let before = p.waiting.as_ref().map_or(0, |old| old.meta.index.wrapping_sub(job.meta.index));
        let overtaken = before != 0 && before < u32::MAX / 2;
        let superseded = if overtaken { Some(job) } else { p.waiting.replace(job) };
        if let Some(old) = superseded {
            let Meta { index, origin_ns, .. } = old.meta;
            let notice = Notice::Superseded { index, origin_ns, overtaken };
            if let Some(Err(why)) = stage.hook.as_mut().map(|hook| hook.notice(notice)) {
                stage.stats.complain(why);
            }
            self.superseded(now, component, &old, cx);
            cx.recycle(old);
        }
        let Ok(i) = self.periodic.binary_search(&(flow, at, step)) else { return };
        if answers {
            self.tick_periodic(i, now, doors, cx);
        }
        cx.due.set(Item::Periodic(i), self.next_periodic(i));
    }

    /// A periodic stage gives an output made of the newest sample, or of none.
    pub(super) fn tick_periodic<O: Host>(
        &mut self,
        i: usize,
        now: Time,
        doors: &mut Doors,
        cx: &mut Context<'_, O>,
    ) {
        let Some((component, waiting)) = self.due(i, now, cx.here.end) else { return };
        if let Some(lost) = waiting.as_ref().filter(|w| w.life != cx.here.life(component)) {
            cx.drop_sample(now, &lost.meta, component, DropReason::Dead);
        }
        let waiting = waiting.filter(|w| w.life == cx.here.life(component));
        if !cx.here.is_alive(component) {
            return;
        }
        let present = waiting.is_some();
        let mut job = waiting.unwrap_or_else(|| cx.out.spare().take());
        match present {
            true => job.parts.spend(Part::Waiting, now),
            false => job.parts.forget(now),
        }
        let source = self.number(i, &mut job, present, now, cx);
        let started = cx.out.start(now);
        // The hook is told the number of the sample that it is given, which says what was lost on the way.
        let own = std::mem::replace(&mut job.meta.index, source);
        let verdict = self.call_hook(cx.read(now), &mut job, present, &doors.ports);
        job.meta.index = own;
        let cost = self.account(started, &job, &verdict, cx);
        let now = cx.out.now(now);
        if verdict != Verdict::Emit {
            job.meta.index = source;
            return match verdict {
                _ if !present => cx.recycle(job),
                Verdict::Failed(_) | Verdict::Dead(_) => self.end(now, job, DropReason::Hook, cx),
                _ => self.suppress(now, job, cx),
            };
        }
        self.renumbered(now, component, source, present, &mut job, cx);
        if let (Some(job), _) = self.occupy(started, job, cost, cx) {
            cx.jobs.go(job);
            self.run(now, doors, cx);
        }
    }

    /// The component of a stage whose tick has come, and the sample that waits for it.
    fn due(&mut self, i: usize, now: Time, end: Time) -> Option<(ComponentId, Option<Box<Job>>)> {
        let (f, v, s) = self.periodic[i];
        let visit = self.flows[f].visits.get_mut(v)?;
        let p = visit.steps[s as usize].periodic.as_mut().filter(|p| p.next <= now)?;
        // What is on its way at the end still goes on; nothing is made up any more.
        if now >= end && !(p.on_arrival && p.waiting.is_some()) {
            p.next = NEVER;
            return None;
        }
        p.next += p.period_ns * ((now - p.next) / p.period_ns.max(1) + 1);
        if p.on_arrival && p.waiting.is_some() {
            p.next += p.period_ns / 2;
        }
        Some((visit.component, p.waiting.take()))
    }

    /// Gives a job the stage's own number; returns the number of the newest sample that it is made of.
    fn number<O: Host>(
        &mut self,
        i: usize,
        job: &mut Job,
        present: bool,
        now: Time,
        cx: &mut Context<'_, O>,
    ) -> u32 {
        let (f, v, s) = self.periodic[i];
        let flow = &mut self.flows[f];
        let codec = flow.codec;
        let Some(visit) = flow.visits.get_mut(v) else { return 0 };
        let Some(p) = visit.steps[s as usize].periodic.as_mut() else { return 0 };
        let superseded = if present { p.take_in(&job.meta) } else { None };
        let (index, (source, origin_ns)) = (p.index, p.newest);
        p.index = p.index.wrapping_add(1);
        if !present {
            (job.flow, job.visit, job.step, job.codec) = (f, v, s, codec);
            (job.coded, job.decoded, job.received_ns) = (false, true, None);
            job.values.clear();
            job.life = cx.here.life(visit.component);
        }
        job.meta = Meta { flow: f, index, origin_ns, echo: None };
        if let Some(echo) = superseded {
            self.echo_superseded(now, f, v, echo, cx);
        }
        source
    }

    /// An output goes out: with the command that waits for one, and a row that says which sample it was made of.
    // [design: identity of samples] [design: echo commands]
    fn renumbered<O: Host>(
        &mut self,
        now: Time,
        component: ComponentId,
        source: u32,
        new: bool,
        job: &mut Job,
        cx: &mut Context<'_, O>,
    ) {
        let visit = self.flows[job.flow].visits.get_mut(job.visit);
        let periodic = visit.and_then(|v| v.steps[job.step as usize].periodic.as_mut());
        job.meta.echo = periodic.and_then(|p| p.echo.take());
        let (flow, index) = (job.flow, job.meta.index);
        let (value, point, detail) = (i64::from(source), component.0, u8::from(new));
        cx.out.record(Record { value, index, flow, point, detail, ..cx.here.row(now, Kind::Renumbered) });
    }

    /// When a stage ticks next.
    pub(super) fn next_periodic(&self, i: usize) -> Time {
        let (f, v, s) = self.periodic[i];
        let step = self.flows[f].visits.get(v).map(|v| &v.steps[s as usize]);
        step.and_then(|s| s.periodic.as_ref()).map_or(NEVER, |p| p.next)
    }
}
