//! Where the time of samples went, from their making to their sink.

use crate::{
    net::{Hop, Hops},
    Plan,
};
use serde::Serialize;
use std::collections::BTreeMap;
use tcps_core::{
    ids::{ComponentId, FlowId},
    report::Visited,
    split::{FlowSplit, Part, Spans},
    time::Time,
};

/// Where the time of a flow's samples went that came to their sink.
#[derive(Debug, Clone, Serialize)]
pub struct Split {
    flow: String,
    /// Whether it ends at the sink.
    ends: bool,
    samples: u64,
    /// Mean true time from making to sink: the sum of the means of all parts.
    total_ns: f64,
    parts_ns: BTreeMap<&'static str, Span>,
    /// By how much ages that are stamped by clocks of nodes are longer.
    clock_error_ns: f64,
    components: Vec<Component>,
    hops: Vec<Link>,
}

#[derive(Debug, Clone, Serialize)]
struct Span {
    sum: Time,
    mean: f64,
    p99: Time,
}

/// Means at a component over samples that left it.
#[derive(Debug, Clone, Serialize)]
struct Component {
    component: String,
    samples: u64,
    waiting_ns: f64,
    working_ns: f64,
}

/// Means at a link over packets that it took.
#[derive(Debug, Clone, Serialize)]
struct Link {
    link: String,
    packets: u64,
    queueing_ns: f64,
    serialisation_ns: f64,
    propagation_ns: f64,
    radio_ns: f64,
}

impl Split {
    /// That of a flow, if samples have come.
    pub(super) fn new(flow: &str, split: &FlowSplit) -> Option<Self> {
        let samples = Some(split.samples).filter(|n| *n > 0)?;
        let span =
            |s: &Spans| Span { sum: s.sum, mean: mean(s.sum, samples), p99: s.quantile(0.99, samples) };
        let parts = Part::ALL.iter().zip(&split.parts).filter(|(_, s)| s.sum != 0);
        Some(Self {
            flow: flow.into(),
            ends: true,
            samples,
            total_ns: mean(split.total, samples),
            parts_ns: parts.map(|(part, s)| (part.name(), span(s))).collect(),
            clock_error_ns: mean(split.clock, samples),
            components: Vec::new(),
            hops: Vec::new(),
        })
    }

    /// That of a flow of which no sample came here.
    pub(super) fn nowhere(flow: &str) -> Self {
        let (components, hops) = (Vec::new(), Vec::new());
        let [total_ns, clock_error_ns] = [0.0; 2];
        let (flow, ends, samples, parts_ns) = (flow.into(), false, 0, BTreeMap::new());
        Self { flow, ends, samples, total_ns, parts_ns, clock_error_ns, components, hops }
    }

    /// That of a leg, which may lead on.
    pub(super) fn leg(self, ends: bool) -> Self {
        Self { ends, ..self }
    }

    /// Whether a link took packets of it.
    pub(super) fn has_hops(&self) -> bool {
        !self.hops.is_empty()
    }

    /// Whether it is of this flow.
    pub(super) fn is_of(&self, flow: &str) -> bool {
        self.flow == flow
    }

    /// Adds what happened at a component.
    pub(super) fn visit(&mut self, plan: &Plan, component: ComponentId, visited: &Visited) {
        let samples = visited.samples;
        self.components.push(Component {
            component: plan.components[component].name.clone(),
            samples,
            waiting_ns: mean(visited.waiting_ns, samples),
            working_ns: mean(visited.working_ns, samples),
        });
    }

    /// Adds what happened at a link.
    pub(super) fn hop(&mut self, plan: &Plan, link: usize, hop: &Hop) {
        let packets = hop.packets;
        self.hops.push(Link {
            link: plan.network.links[link].name.clone(),
            packets,
            queueing_ns: mean(hop.queued_ns, packets),
            serialisation_ns: mean(hop.serial_ns, packets),
            propagation_ns: mean(hop.propagated_ns, packets),
            radio_ns: mean(hop.again_ns, packets),
        });
    }
}

/// Where the time of each flow's samples went, and of its packets at each link.
pub fn splits(plan: &Plan, flows: &[FlowSplit], hops: &[Hops]) -> Vec<Split> {
    let mut found = Vec::new();
    for (id, flow) in FlowId::each(flows) {
        let Some(mut split) = Split::new(&plan.flows[id].name, flow) else { continue };
        for (link, hops) in hops.iter().enumerate() {
            hops.of(id).into_iter().for_each(|hop| split.hop(plan, link, hop));
        }
        found.push(split);
    }
    found
}

fn mean(sum: Time, count: u64) -> f64 {
    sum as f64 / count.max(1) as f64
}
