//! Playout at the last component of a flow: what has arrived waits there for the moment at which it is shown.
//!
//! ```text
//! entry ──► policy ──► stages ──► exit, sink
//!             │ after its moment, or left out: a row, and the sample ends
//! tick ───────┘ nothing new: a row; a robot or an ear goes on with the last one
//! ```
//! Policies work with this node's clock. What is shown has its age in a row, beside the delay in that of its arrival.

use super::{
    context::Context,
    due::Item,
    here::Here,
    job::{coded, decoded, Job},
};
use crate::host::Host;
use serde_json::Value;
use std::collections::BTreeSet;
use tcps_core::{
    ids::{ComponentId, FlowId},
    record::{DropReason, Kind, Record},
    sample::PointId,
    split::Part,
    time::{Time, NEVER},
};
use tcps_plan::{Codec, Plan, RunError};
use tcps_transport::{
    playout::{self, Act, Arrival, Playout},
    TransportError,
};

/// A flow that plays out here.
struct Display {
    flow: FlowId,
    component: ComponentId,
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

/// The flows that play out at a node, in their order.
pub(super) struct Displays(Vec<Display>);

// [model: playout]
impl Displays {
    /// Those of these flows that play out at a component `here`.
    pub(super) fn new(
        plan: &Plan,
        flows: &[FlowId],
        here: impl Fn(ComponentId) -> bool,
    ) -> Result<Self, RunError> {
        let mut displays = Vec::new();
        for &id in flows {
            let flow = &plan.flows[id];
            let last = flow.path.last().map(|v| v.component).filter(|c| here(*c));
            let (Some(component), Some(params)) = (last, &flow.playout) else { continue };
            let refused = |e: TransportError| {
                RunError::of(&e, e.fault()).within(format!("flows.{}.playout", flow.name))
            };
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
        Ok(Self(displays))
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Run time at which one has something to do.
    pub(super) fn next(&self, i: usize, here: &Here) -> Time {
        self.0[i].next(here)
    }

    /// A sample has arrived: the policy of its flow has it from now on. It comes back if there is none.
    pub(super) fn take<O: Host>(
        &mut self,
        now: Time,
        job: Box<Job>,
        cx: &mut Context<'_, O>,
    ) -> Option<Box<Job>> {
        let Ok(i) = self.0.binary_search_by_key(&job.flow, |d| d.flow) else { return Some(job) };
        self.0[i].take(now, job, cx);
        cx.due.set(Item::Display(i), self.0[i].next(cx.here));
        None
    }

    /// What is due at one.
    pub(super) fn tick<O: Host>(&mut self, i: usize, now: Time, cx: &mut Context<'_, O>) {
        let display = &mut self.0[i];
        if display.next(cx.here) <= now {
            display.renew(now, cx);
            display.policy.tick(cx.read(now), &mut display.acts);
            display.enact(now, cx);
        }
    }
}

impl Display {
    /// Run time at which it has something to do.
    fn next(&self, here: &Here) -> Time {
        // A sample may say that it was made in a thousand years.
        let next_ns = self.policy.next().map(|t| t.min(NEVER / 4));
        Some(here.true_time(next_ns)).filter(|t| *t < here.end).unwrap_or(NEVER)
    }

    fn take<O: Host>(&mut self, now: Time, mut job: Box<Job>, cx: &mut Context<'_, O>) {
        self.renew(now, cx);
        let key = self.key.map_or(0, |place| key(place, &mut job));
        let at_ns = job.received_ns.unwrap_or(cx.read(now));
        let (origin_ns, index) = (job.meta.origin_ns, job.meta.index);
        let token = cx.jobs.park(job);
        self.waiting.insert(token);
        self.policy.arrive(Arrival { at_ns, origin_ns, index, key, token }, &mut self.acts);
        self.enact(now, cx);
    }

    /// The component has died or begun anew since the display was last looked at: so does its policy, and what that
    /// had is lost.
    fn renew<O: Host>(&mut self, now: Time, cx: &mut Context<'_, O>) {
        let life = cx.here.life(self.component);
        if std::mem::replace(&mut self.life, life) == life {
            return;
        }
        // It could be built of the same parameters at the start.
        if let Ok(policy) = playout::policy(&self.params) {
            self.policy = policy;
        }
        for token in std::mem::take(&mut self.waiting) {
            if let Some(job) = cx.jobs.unpark(token) {
                cx.lose(now, job, self.component, DropReason::Dead);
            }
        }
    }

    /// Carries out what a policy has decided.
    fn enact<O: Host>(&mut self, now: Time, cx: &mut Context<'_, O>) {
        let mut acts = std::mem::take(&mut self.acts);
        for act in acts.drain(..) {
            match act {
                Act::Played { sample, .. } => self.show(now, sample.token, cx),
                Act::Late(sample) => self.pass_over(now, Kind::Overdue, sample.token, cx),
                Act::Dropped(sample) => self.pass_over(now, Kind::Skipped, sample.token, cx),
                Act::Gap { .. } => self.starve(now, cx),
            }
        }
        self.acts = acts;
    }

    fn show<O: Host>(&mut self, now: Time, token: u32, cx: &mut Context<'_, O>) {
        let Some(mut job) = self.take_waiting(token, cx) else { return };
        job.parts.spend(Part::Playout, now);
        if job.life != cx.here.life(self.component) || !cx.here.is_alive(self.component) {
            return cx.lose(now, job, self.component, DropReason::Dead);
        }
        self.shown = job.meta.index;
        cx.stamp(now, Kind::Played, self.component.0, &job);
        cx.jobs.go(job);
    }

    /// A sample is not shown: it came too late, or was left out. With it goes the command on it.
    fn pass_over<O: Host>(&mut self, now: Time, kind: Kind, token: u32, cx: &mut Context<'_, O>) {
        let Some(job) = self.take_waiting(token, cx) else { return };
        cx.stamp(now, kind, self.component.0, &job);
        let to_come = [PointId::exit(self.component), PointId::held(self.component)];
        if let Some(echo) = job.meta.echo.filter(|e| to_come.contains(&e.target)) {
            cx.echo_superseded(now, job.flow, echo);
        }
        cx.recycle(job);
    }

    fn take_waiting<O: Host>(&mut self, token: u32, cx: &mut Context<'_, O>) -> Option<Box<Job>> {
        self.waiting.remove(&token).then(|| cx.jobs.unpark(token)).flatten()
    }

    fn starve<O: Host>(&mut self, now: Time, cx: &mut Context<'_, O>) {
        let Display { flow, component, shown: index, .. } = *self;
        if cx.here.is_alive(component) {
            cx.out.record(Record { index, flow, point: component.0, ..cx.here.row(now, Kind::Starved) });
        }
    }
}

/// The value of a sample at a place, or its byte where there are no values; 0 if it has none there.
fn key(place: usize, job: &mut Job) -> u64 {
    if job.codec == Codec::Raw {
        coded(job);
        return job.bytes.get(place).map_or(0, |b| u64::from(*b));
    }
    decoded(job);
    job.values.get(place).map_or(0, |v| v.to_bits())
}
