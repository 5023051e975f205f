//! The way of samples through a node: flows with their stages, and what these know of each other.
//!
//! `path` moves samples, `call` and `delegate` have stages work on them, `periodic` are stages with a period of their own.

use super::{
    assets::{Assets, MOST_BYTES},
    context::Context,
    flow::{side, FlowAt},
    job::{decoded, Job},
    latest::Latest,
    sparse::Sparse,
};
use crate::host::Host;
use std::collections::BTreeMap;
use tcps_core::{
    hook::Notice,
    ids::{ComponentId, FlowId},
    record::{Kind, Record},
    report::{StageReport, Visited},
    time::Time,
};
use tcps_plan::Codec;

/// Most values a hook may write.
const MAX_VALUES: usize = 256;

/// The flows of a node.
pub(super) struct Pipeline {
    /// Those that visit a component here.
    pub(super) flows: Sparse<FlowId, FlowAt>,
    /// Periodic steps as (flow, visit, step), in that order.
    pub(super) periodic: Vec<(FlowId, u16, u16)>,
    /// Newest values at components where a hook may look at the other side's signal.
    pub(super) latest: Sparse<ComponentId, Latest>,
    pub(super) scratch: Scratch,
    /// What has died, and when: component and reason.
    died: Option<(Time, ComponentId, String)>,
    /// Supervisors hold, also those that are restarted.
    halted: bool,
}

/// Room for what hooks write, and for what they are compared with.
pub(super) struct Scratch {
    pub(super) values: Vec<f64>,
    pub(super) bytes: Vec<u8>,
    pub(super) other: Vec<f64>,
    pub(super) twin: Vec<u8>,
}

impl Scratch {
    /// Room for the hooks of these flows; none where there are none.
    fn new(flows: &Sparse<FlowId, FlowAt>) -> Self {
        let (values, bytes) = match flows.iter().any(FlowAt::has_hooks) {
            true => (MAX_VALUES, flows.iter().map(FlowAt::most_bytes).fold(MOST_BYTES, usize::max)),
            false => (0, 0),
        };
        Self { values: vec![0.0; values], bytes: vec![0; bytes], other: Vec::new(), twin: Vec::new() }
    }
}

impl Pipeline {
    /// These flows.
    pub(super) fn new(flows: Sparse<FlowId, FlowAt>) -> Self {
        let scratch = Scratch::new(&flows);
        let mut latest: BTreeMap<ComponentId, Latest> = BTreeMap::new();
        let mut periodic = Vec::new();
        for (f, flow) in flows.numbered() {
            for (v, visit) in flow.visits.numbered() {
                for (s, step) in visit.steps.iter().enumerate() {
                    if step.periodic.is_some() {
                        periodic.push((f, v, s as u16));
                    }
                    if step.hook.is_some() {
                        latest.entry(visit.component).or_default().keep(&step.other);
                    }
                }
            }
        }
        Self { flows, periodic, latest: latest.into_iter().collect(), scratch, died: None, halted: false }
    }

    /// A component begins anew: so do its hooks.
    pub(super) fn restart(&mut self, component: ComponentId, assets: &mut dyn Assets) {
        let visits = self.flows.iter_mut().flat_map(|f| f.visits.iter_mut());
        for visit in visits.filter(|v| v.component == component) {
            visit.steps.iter_mut().for_each(|s| s.restart(assets));
        }
        self.latest.get_mut(component).into_iter().for_each(Latest::clear);
        if self.halted {
            self.halt();
        }
    }

    /// What a component works with has died: supervisors hold, and its driver ends the run.
    pub(super) fn die<O: Host>(
        &mut self,
        now: Time,
        component: ComponentId,
        why: String,
        cx: &mut Context<'_, O>,
    ) {
        if self.died.is_none() {
            cx.out.record(Record { point: component.0, ..cx.here.row(now, Kind::Died) });
            self.died = Some((now, component, why));
            self.halt();
        }
    }

    /// Whether something has died without which the run cannot go on.
    pub(super) fn has_died(&self) -> bool {
        self.died.is_some()
    }

    /// What has died; told once.
    pub(super) fn take_died(&mut self) -> Option<(Time, ComponentId, String)> {
        self.died.take()
    }

    /// Lets supervisors hold, whatever comes; whether there are any.
    pub(super) fn halt(&mut self) -> bool {
        self.halted = true;
        let visits = self.flows.iter_mut().flat_map(|f| f.visits.iter_mut());
        let hooks = visits.flat_map(|v| &mut v.steps).filter_map(|s| s.hook.as_mut());
        let watching = hooks.filter(|h| h.told().is_some()).map(|h| h.notice(Notice::Halt));
        watching.count() > 0
    }

    /// Keeps the newest values seen at a component where a hook may want them.
    pub(super) fn remember(&mut self, component: ComponentId, job: &mut Job) {
        // Bytes of a raw flow are values once a hook has decoded them.
        let known = job.codec != Codec::Raw || job.decoded;
        let Some(latest) = self.latest.get_mut(component).filter(|_| known) else { return };
        decoded(job);
        latest.take(side(self.flows[job.flow].direction), job.flow, &job.values);
    }

    /// Where time went at the components that flows visit.
    pub(super) fn visits(&self) -> Vec<(ComponentId, FlowId, Visited)> {
        let visits = |(f, flow): (FlowId, &'_ FlowAt)| -> Vec<_> {
            flow.visits.iter().map(|v| (v.component, f, v.visited)).collect()
        };
        self.flows.numbered().flat_map(visits).collect()
    }

    /// What calls of stages took; their hooks end.
    pub(super) fn report(&mut self) -> Vec<StageReport> {
        let mut stages = Vec::new();
        for (f, flow) in self.flows.numbered_mut() {
            for visit in flow.visits.iter_mut() {
                for s in &mut visit.steps {
                    s.end();
                    let stats = std::mem::take(&mut s.stats);
                    stages.push((visit.component, f, s.kind, s.name.clone(), stats));
                }
            }
        }
        stages
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_VALUES, MOST_BYTES};
    use crate::{assets::Nothing, secrets::Seeded, Node};
    use serde_json::json;
    use tcps_core::ids::NodeId;
    use tcps_plan::{Places, Plan};

    /// Thousands of users are thousands of nodes, most of which call nothing.
    #[test]
    fn a_node_has_room_for_what_hooks_write_only_if_it_has_hooks() {
        let hook = json!({"kind": "predict", "run": {"kind": "builtin", "name": "zoh"}});
        for (step, values, bytes) in [(json!({"kind": "work"}), 0, 0), (hook, MAX_VALUES, MOST_BYTES)] {
            let plan = json!({
                "name": "n", "seed": 1, "duration_ns": 1, "sessions": ["main"], "nodes": [{"name": "here"}],
                "components": [{"name": "c", "kind": "ms-com", "session": 0, "node": 0}],
                "flows": [{"name": "f", "session": 0, "direction": "forward", "period_ns": 1, "codec": "f32",
                    "source": {"kind": "generated", "bytes": 8}, "sink": {"kind": "count"},
                    "path": [{"component": 0, "steps": [step]}]}]});
            let plan: Plan = serde_json::from_value(plan).unwrap();
            let node =
                Node::new(&plan, &Places::new(&plan), NodeId(0), None, &mut Nothing, &mut Seeded(1)).unwrap();
            let scratch = &node.pipeline.scratch;
            assert_eq!((scratch.values.len(), scratch.bytes.len()), (values, bytes));
        }
    }
}
