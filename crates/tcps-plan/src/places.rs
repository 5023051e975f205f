//! What of a plan is where: asked once for all nodes, so that setting up one of many does not mean reading everything.

use super::Plan;
use tcps_core::{
    ids::{ChannelId, ComponentId, FlowId},
    sample::PointId,
    split::Choice,
};

/// Numbers of the things of each node and each channel, in rising order.
#[derive(Debug, Default)]
pub struct Places {
    /// Of each node: its components.
    pub components: Vec<Vec<ComponentId>>,
    /// Of each node: flows that visit one of them.
    pub flows: Vec<Vec<FlowId>>,
    /// Of each node: channels that end there.
    pub channels: Vec<Vec<ChannelId>>,
    /// Of each node: points whose values are recorded.
    pub signals: Vec<Vec<PointId>>,
    /// Of each channel: flows that it carries.
    pub carried: Vec<Vec<FlowId>>,
    /// Of each flow: its entry of `probes`, or none.
    pub probe: Vec<Option<usize>>,
    /// Samples whose time is followed to their sink.
    pub followed: Choice,
}

impl Places {
    /// Those of a plan that has been checked.
    pub fn new(plan: &Plan) -> Self {
        fn lists<T: Clone>(count: usize) -> Vec<Vec<T>> {
            vec![Vec::new(); count]
        }
        let nodes = plan.nodes.len();
        let mut places = Self {
            components: lists(nodes),
            flows: lists(nodes),
            channels: lists(nodes),
            signals: lists(nodes),
            carried: lists(plan.channels.len()),
            probe: vec![None; plan.flows.len()],
            followed: plan.followed(),
        };
        for (number, c) in ComponentId::each(&plan.components) {
            places.components[c.node].push(number);
        }
        for (number, c) in ChannelId::each(&plan.channels) {
            add(&mut places.channels[c.a], number);
            add(&mut places.channels[c.b], number);
        }
        for (number, flow) in FlowId::each(&plan.flows) {
            for visit in &flow.path {
                let node = plan.components[visit.component].node;
                add(&mut places.flows[node], number);
            }
            for channel in flow.path.windows(2).filter_map(|w| w[0].channel) {
                add(&mut places.carried[channel], number);
            }
        }
        for (number, probe) in plan.probes.iter().enumerate() {
            places.probe[usize::from(probe.flow)].get_or_insert(number);
        }
        for &point in &plan.signals {
            if let Some(c) = plan.components.get(point.owner().index()) {
                places.signals[c.node].push(point);
            }
        }
        places.signals.iter_mut().for_each(|points| points.sort_unstable());
        places
    }
}

/// Adds a number that is not below those before it, once.
fn add<T: PartialEq>(numbers: &mut Vec<T>, number: T) {
    if numbers.last() != Some(&number) {
        numbers.push(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tcps_core::ids::NodeId;

    /// Nodes are set up from these lists: a flow or channel that is twice in one would be set up twice, and one that is in
    /// none not at all.
    #[test]
    fn each_node_has_what_is_there_once() {
        let inside = json!({"name": "inside", "session": 0, "a": 0, "b": 0, "transport": "udp"});
        let between = json!({"name": "c", "session": 0, "a": 0, "b": 1, "transport": "udp"});
        let probe = json!({"flow": 0, "points": [0], "period_ns": 0, "reply_to": 0});
        let (op, arm) = (ComponentId(0), ComponentId(2));
        let points = [PointId::held(arm), PointId::entry(arm), PointId::exit(op)];
        let plan = crate::tests::plan(&[
            ("/channels", json!([between, inside])),
            (
                "/flows/0/path",
                json!([{"component": 0, "channel": 1}, {"component": 1, "channel": 0}, {"component": 2}]),
            ),
            ("/probes", json!([probe, probe])),
            ("/signals", json!(points)),
        ]);
        let places = Places::new(&plan);
        let [left, right] = [NodeId(0), NodeId(1)].map(NodeId::index);
        assert_eq!(
            (&places.components[left], &places.components[right]),
            (&vec![op, ComponentId(1)], &vec![arm])
        );
        assert_eq!(places.flows, [[FlowId(0)], [FlowId(0)]], "it visits two components of the first node");
        assert_eq!(places.channels[left], [ChannelId(0), ChannelId(1)], "both ends of one are there");
        assert_eq!(places.channels[right], [ChannelId(0)]);
        assert_eq!(places.carried, [[FlowId(0)], [FlowId(0)]]);
        assert_eq!(places.probe, [Some(0)], "the first of its probes");
        assert_eq!(places.signals[left], [points[2]]);
        assert_eq!(places.signals[right], [points[1], points[0]], "in rising order");
    }
}
