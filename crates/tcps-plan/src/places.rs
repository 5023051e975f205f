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
