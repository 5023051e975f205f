//! Stages that work at a period of their own: edge predictors.

use super::{job::Job, Node};
use crate::outside::Outside;
use tcps_core::{
    hook::Verdict,
    record::{Kind, Record, NONE},
    sample::Meta,
    time::{Time, NEVER},
};

impl Node {
    /// A periodic stage gives an output made of the newest sample, or of none.
    pub(super) fn tick_periodic<O: Outside>(&mut self, i: usize, now: Time, out: &mut O) {
        let (f, v, s) = self.periodic[i];
        let Some(visit) = self.flows[f as usize].visits[v as usize].as_mut() else { return };
        let Some(p) = visit.steps[s as usize].periodic.as_mut().filter(|p| p.next <= now) else { return };
        if now >= self.end {
            p.next = NEVER;
            return;
        }
        p.next += p.period_ns * ((now - p.next) / p.period_ns.max(1) + 1);
        let (waiting, origin, index) = (p.waiting.take(), p.origin_ns.unwrap_or(0), p.index);
        p.index = p.index.wrapping_add(1);
        let present = waiting.is_some();
        let mut job = waiting.unwrap_or_else(|| self.pool.pop().unwrap_or_else(Job::empty));
        if !present {
            (job.flow, job.visit, job.step) = (f, v, s);
            (job.coded, job.decoded) = (false, true);
            job.values.clear();
            job.meta = Meta { flow: f, index, origin_ns: origin, echo: None };
        }
        job.meta.index = index;
        let component = visit.component;
        let started = out.start(now);
        let verdict = self.call_hook(now, &mut job, present);
        let cost = self.account(started, &job, &verdict, out);
        if verdict == Verdict::Emit && self.alive[component as usize] {
            if let (Some(job), _) = self.occupy(started, job, cost, out) {
                self.todo.push_back(job);
                self.run(now, out);
            }
        } else {
            self.recycle(job);
        }
    }

    pub(super) fn superseded<O: Outside>(&mut self, now: Time, old: &Job, out: &mut O) {
        let component =
            self.flows[old.flow as usize].visits[old.visit as usize].as_ref().map_or(NONE, |v| v.component);
        let row = Record {
            index: old.meta.index,
            flow: old.flow,
            point: component,
            node: self.id,
            ..Record::new(now, Kind::Superseded)
        };
        out.record(row);
    }
}
