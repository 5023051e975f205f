//! Where the time of datagrams went in the network, for each flow that they had samples of.

use crate::emu::{Carries, Datagram, Transit};
use std::collections::BTreeMap;
use tcps_core::{
    ids::{ChannelId, FlowId, NodeId, VertexId},
    split::{FlowSplit, Part, Parts},
};
use tcps_plan::Plan;

/// A flow that leaves a node, and which medium it is.
type Leaving = (FlowId, Option<usize>);

/// The sums of flows by where their datagrams entered and left: a sample that passes three nodes is in two of them.
#[derive(Debug, Default)]
pub(super) struct Transits {
    /// The flows that leave a node by a channel.
    leaving: BTreeMap<(ChannelId, NodeId), Vec<Leaving>>,
    legs: BTreeMap<(FlowId, VertexId, VertexId), FlowSplit>,
}

impl Transits {
    /// Of the flows of a plan.
    pub fn new(plan: &Plan) -> Self {
        let ends = ChannelId::each(&plan.channels).flat_map(|(c, ends)| [(c, ends.a), (c, ends.b)]);
        let flows = |(channel, from): (ChannelId, NodeId)| {
            let flows = plan.flows_of(channel, from).filter(|(.., leaves)| *leaves);
            ((channel, from), flows.map(|(id, flow, _)| (id, flow.medium())).collect())
        };
        Self { leaving: ends.map(flows).collect(), legs: BTreeMap::new() }
    }

    /// The network let a datagram out.
    pub fn add(&mut self, datagram: &Datagram, transit: &Transit) {
        let mut parts = Parts::new(transit.entered);
        parts.take(Part::Queueing, transit.spent.queued_ns);
        parts.take(Part::Serialisation, transit.spent.serial_ns);
        parts.take(Part::Radio, transit.spent.again_ns);
        parts.spend(Part::Propagation, transit.left);
        let Datagram { from, to, .. } = *datagram;
        let legs = &mut self.legs;
        let mut add = |flow: FlowId| legs.entry((flow, from, to)).or_default().add(&parts, 0);
        match datagram.carries {
            Carries::Nothing => {}
            Carries::Flow(flow) => add(flow),
            Carries::Channel(channel, node, media) => {
                let flows = self.leaving.get(&(channel, node)).into_iter().flatten();
                let inside = flows.filter(|(_, medium)| medium.is_none_or(|m| media[m]));
                inside.for_each(|(flow, _)| add(*flow));
            }
        }
    }

    /// The sums, as legs that lead on.
    pub fn finish(self) -> Vec<(FlowId, bool, FlowSplit)> {
        self.legs.into_iter().map(|((flow, ..), split)| (flow, false, split)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};
    use tcps_net::Spent;

    #[test]
    fn time_in_the_network_is_that_of_every_flow_with_samples_in_the_datagram() {
        let flow = |name: &str| {
            let path = json!([{"component": 0, "channel": 0}, {"component": 1}]);
            json!({"name": name, "session": 0, "direction": "forward", "period_ns": 1_000_000, "codec": "raw",
                   "source": {"kind": "generated", "bytes": 12}, "sink": {"kind": "count"}, "path": path})
        };
        let component = |n: u16| json!({"name": format!("c{n}"), "kind": "srv", "session": 0, "node": n});
        let plan: Value = json!({
            "name": "p", "seed": 1, "duration_ns": 1, "sessions": ["a"], "nodes": [{"name": "n0"}, {"name": "n1"}],
            "channels": [{"name": "c", "session": 0, "a": 0, "b": 1, "transport": "dpm"}],
            "components": [component(0), component(1)], "flows": [flow("kinematic"), flow("audio"), flow("video")],
        });
        let mut transits = Transits::new(&serde_json::from_value(plan).unwrap());
        let spent = Spent { queued_ns: 3, serial_ns: 4, again_ns: 0 };
        let mut add = |carries: Carries, left: i64| {
            let datagram = Datagram { to: VertexId(1), carries, ..Datagram::default() };
            transits.add(&datagram, &Transit { entered: 10, left, sent: None, spent });
        };
        add(Carries::Channel(ChannelId(0), NodeId(0), [true, false]), 22);
        add(Carries::Channel(ChannelId(0), NodeId(0), [false, false]), 20);
        add(Carries::Flow(FlowId(2)), 30);
        add(Carries::Nothing, 40);
        let of = |split: &FlowSplit, part: Part| split.parts[part as usize].sum;
        let found: Vec<_> = transits
            .finish()
            .into_iter()
            .map(|(flow, _, split)| {
                (flow.0, split.samples, of(&split, Part::Queueing), of(&split, Part::Propagation))
            })
            .collect();
        assert_eq!(found, [(0, 2, 6, 5 + 3), (1, 1, 3, 5), (2, 1, 3, 13)]);
    }
}
