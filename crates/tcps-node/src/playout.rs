//! Playout at the last component of a flow: what has arrived waits there for the moment at which it is shown.
//!
//! ```text
//! entry ──► policy ──► stages ──► exit, sink
//!             │ after its moment, or left out: a row, and the sample ends
//! tick ───────┘ nothing new: a row; a robot or an ear goes on with the last one
//! ```
//! Policies work with this node's clock. What is shown has its age in a row, beside the delay in that of its arrival.

use super::{
    due::Item,
    job::{coded, decoded, Job},
    Node,
};
use crate::outside::Outside;
use serde_json::Value;
use std::collections::BTreeSet;
use tcps_core::{
    record::{DropReason, Kind, Record},
    time::{Time, NEVER},
};
use tcps_plan::{Codec, Plan, RunError};
use tcps_transport::playout::{self, Act, Arrival, Playout};

/// A flow that plays out here.
pub(super) struct Display {
    flow: u16,
    component: u16,
    params: Value,
    policy: Box<dyn Playout>,
    /// What the policy has: the numbers under which samples are parked.
    waiting: BTreeSet<u32>,
    /// The life of the component that the policy is of.
    life: u32,
    /// The value of a sample that says what it replaces.
    key: Option<usize>,
    acts: Vec<Act>,
    /// Number of the sample shown last.
    shown: u32,
}

/// Those of these flows that play out at a component `here`, in the order of flows.
pub(super) fn displays(
    plan: &Plan,
    flows: &[u16],
    here: impl Fn(u16) -> bool,
) -> Result<Vec<Display>, RunError> {
    let mut displays = Vec::new();
    for &id in flows {
        let flow = &plan.flows[usize::from(id)];
        let last = flow.path.last().map(|v| v.component).filter(|c| here(*c));
        let (Some(component), Some(params)) = (last, &flow.playout) else { continue };
        let refused = |e| RunError::new(format!("flows.{}.playout: {e}", flow.name));
        let policy = playout::policy(params).map_err(refused)?;
        let key = playout::key(params).map_err(refused)?;
        displays.push(Display {
            flow: id,
            component,
            params: params.clone(),
            policy,
            waiting: BTreeSet::new(),
            life: 0,
            key,
            acts: Vec::new(),
            shown: 0,
        });
    }
    Ok(displays)
}

// [model: playout]
impl Node {
    /// Run time at which a display has something to do.
    pub(super) fn next_display(&self, display: &Display) -> Time {
        // A sample may say that it was made in a thousand years.
        let next_ns = display.policy.next().map(|t| t.min(NEVER / 4));
        Some(self.true_time(next_ns)).filter(|t| *t < self.end).unwrap_or(NEVER)
    }

    /// The display that a sample has come to.
    pub(super) fn display_of(&self, job: &Job) -> Option<usize> {
        let visit = self.flows[job.flow as usize].visits[job.visit as usize].as_ref()?;
        let plays_out = visit.plays_out.then_some(job.flow)?;
        self.displays.binary_search_by_key(&plays_out, |d| d.flow).ok()
    }

    /// A sample has arrived: its policy has it from now on.
    pub(super) fn wait_for_display<O: Outside>(
        &mut self,
        i: usize,
        now: Time,
        mut job: Box<Job>,
        out: &mut O,
    ) {
        self.renew_display(i, now, out);
        let key = self.displays[i].key.map_or(0, |place| self.key(place, &mut job));
        let at_ns = job.received_ns.unwrap_or(self.clock.read(now));
        let (origin_ns, index) = (job.meta.origin_ns, job.meta.index);
        let token = self.park(job);
        let display = &mut self.displays[i];
        display.waiting.insert(token);
        display.policy.arrive(Arrival { at_ns, origin_ns, index, key, token }, &mut display.acts);
        self.enact(i, now, out);
        self.arm(Item::Display(i));
    }

    /// What is due at a display.
    pub(super) fn tick_display<O: Outside>(&mut self, i: usize, now: Time, out: &mut O) {
        if self.next_display(&self.displays[i]) > now {
            return;
        }
        self.renew_display(i, now, out);
        let at_ns = self.clock.read(now);
        let display = &mut self.displays[i];
        display.policy.tick(at_ns, &mut display.acts);
        self.enact(i, now, out);
        self.run(now, out);
    }

    /// The component has died or begun anew since the display was last looked at: so does its policy, and what that
    /// had is lost.
    fn renew_display<O: Outside>(&mut self, i: usize, now: Time, out: &mut O) {
        let display = &mut self.displays[i];
        let life = self.life[display.component as usize];
        if std::mem::replace(&mut display.life, life) == life {
            return;
        }
        // It could be built of the same parameters at the start.
        if let Ok(policy) = playout::policy(&display.params) {
            display.policy = policy;
        }
        for token in std::mem::take(&mut display.waiting) {
            if let Some(job) = self.unpark(token) {
                self.end(now, job, DropReason::Dead, out);
            }
        }
    }

    /// Carries out what a policy has decided.
    fn enact<O: Outside>(&mut self, i: usize, now: Time, out: &mut O) {
        let mut acts = std::mem::take(&mut self.displays[i].acts);
        for act in acts.drain(..) {
            match act {
                Act::Played { sample, .. } => self.show(i, now, sample.token, out),
                Act::Late(sample) => self.pass_over(i, now, Kind::Overdue, sample.token, out),
                Act::Dropped(sample) => self.pass_over(i, now, Kind::Skipped, sample.token, out),
                Act::Gap { .. } => self.starve(i, now, out),
            }
        }
        self.displays[i].acts = acts;
    }

    fn show<O: Outside>(&mut self, i: usize, now: Time, token: u32, out: &mut O) {
        let Some(job) = self.take_waiting(i, token) else { return };
        let (component, index) = (self.displays[i].component, job.meta.index);
        if job.life != self.life[component as usize] || !self.is_alive(component) {
            return self.end(now, job, DropReason::Dead, out);
        }
        self.displays[i].shown = index;
        self.stamp(now, Kind::Played, component, &job, out);
        self.todo.push_back(job);
    }

    /// A sample is not shown: it came too late, or was left out. With it goes the command on it.
    fn pass_over<O: Outside>(&mut self, i: usize, now: Time, kind: Kind, token: u32, out: &mut O) {
        let Some(job) = self.take_waiting(i, token) else { return };
        self.stamp(now, kind, self.displays[i].component, &job, out);
        if let Some(echo) = job.meta.echo {
            self.echo_superseded(now, job.flow, job.visit, echo, out);
        }
        self.recycle(job);
    }

    fn take_waiting(&mut self, i: usize, token: u32) -> Option<Box<Job>> {
        self.displays[i].waiting.remove(&token).then(|| self.unpark(token)).flatten()
    }

    fn starve<O: Outside>(&mut self, i: usize, now: Time, out: &mut O) {
        let Display { flow, component: point, shown: index, .. } = self.displays[i];
        if self.is_alive(point) {
            out.record(Record { index, flow, point, node: self.id, ..Record::new(now, Kind::Starved) });
        }
    }

    /// The value of a sample at a place, or its byte where there are no values; 0 if it has none there.
    fn key(&self, place: usize, job: &mut Job) -> u64 {
        let codec = self.flows[job.flow as usize].codec;
        if codec == Codec::Raw {
            coded(codec, job);
            return job.bytes.get(place).map_or(0, |b| u64::from(*b));
        }
        decoded(codec, job);
        job.values.get(place).map_or(0, |v| v.to_bits())
    }
}
