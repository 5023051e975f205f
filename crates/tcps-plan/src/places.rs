//! What of a plan is where: asked once for all nodes, so that setting up one of many does not mean reading everything.

use super::Plan;
use tcps_core::sample::HELD;

/// Numbers of the things of each node and each channel, in rising order.
#[derive(Debug, Default)]
pub struct Places {
    /// Of each node: its components.
    pub components: Vec<Vec<u16>>,
    /// Of each node: flows that visit one of them.
    pub flows: Vec<Vec<u16>>,
    /// Of each node: channels that end there.
    pub channels: Vec<Vec<u16>>,
    /// Of each node: points whose values are recorded.
    pub signals: Vec<Vec<u16>>,
    /// Of each channel: flows that it carries.
    pub carried: Vec<Vec<u16>>,
    /// Of each flow: its entry of `probes`, or none.
    pub probe: Vec<Option<usize>>,
}

impl Places {
    /// Those of a plan that has been checked.
    pub fn new(plan: &Plan) -> Self {
        let lists = |count: usize| vec![Vec::new(); count];
        let nodes = plan.nodes.len();
        let mut places = Self {
            components: lists(nodes),
            flows: lists(nodes),
            channels: lists(nodes),
            signals: lists(nodes),
            carried: lists(plan.channels.len()),
            probe: vec![None; plan.flows.len()],
        };
        for (number, c) in (0..).zip(&plan.components) {
            places.components[usize::from(c.node)].push(number);
        }
        for (number, c) in (0..).zip(&plan.channels) {
            add(&mut places.channels[usize::from(c.a)], number);
            add(&mut places.channels[usize::from(c.b)], number);
        }
        for (number, flow) in (0..).zip(&plan.flows) {
            for visit in &flow.path {
                let node = plan.components[usize::from(visit.component)].node;
                add(&mut places.flows[usize::from(node)], number);
            }
            for channel in flow.path.windows(2).filter_map(|w| w[0].channel) {
                add(&mut places.carried[usize::from(channel)], number);
            }
        }
        for (number, probe) in plan.probes.iter().enumerate() {
            places.probe[usize::from(probe.flow)].get_or_insert(number);
        }
        for &point in &plan.signals {
            let owner = if point & HELD != 0 { point & !HELD } else { point / 2 };
            if let Some(c) = plan.components.get(usize::from(owner)) {
                places.signals[usize::from(c.node)].push(point);
            }
        }
        places.signals.iter_mut().for_each(|points| points.sort_unstable());
        places
    }
}

/// Adds a number that is not below those before it, once.
fn add(numbers: &mut Vec<u16>, number: u16) {
    if numbers.last() != Some(&number) {
        numbers.push(number);
    }
}
