//! What nodes estimated of their clocks, and how wrong they were.

use crate::Plan;
use serde::Serialize;
use tcps_core::{ids::NodeId, report::ClockEstimate, time::Time};

/// The estimate of a node's clock against the reference.
#[derive(Debug, Clone, Serialize)]
pub struct Clock {
    node: String,
    reference: String,
    offset_ns: i64,
    drift_ppb: f64,
    bound_ns: i64,
    exchanges: u32,
    at_ns: Time,
    /// Numbers of the node and the reference.
    #[serde(skip)]
    numbers: [NodeId; 2],
    /// Estimate minus truth, where the truth is known.
    true_error_ns: Option<i64>,
}

impl Clock {
    /// What node `node` estimated of its clock against that of node `reference`.
    pub(super) fn new(plan: &Plan, node: NodeId, reference: NodeId, e: ClockEstimate) -> Self {
        Self {
            node: plan.nodes[node].name.clone(),
            reference: plan.nodes[reference].name.clone(),
            offset_ns: e.offset_ns,
            drift_ppb: e.drift_ppb,
            bound_ns: e.bound_ns,
            exchanges: e.exchanges,
            at_ns: e.at_ns,
            numbers: [node, reference],
            true_error_ns: None,
        }
    }
}

/// Compares clock estimates with the clocks that the plan gives the nodes (both worlds put them in themselves), as they
/// are at the end.
pub fn true_clock_errors(plan: &Plan, clocks: &mut [Clock]) {
    for c in clocks {
        let [node, reference] = c.numbers.map(|node| plan.stepped_clock(node).at(plan.duration_ns));
        let t = c.at_ns - node.error(c.at_ns);
        let truth = reference.read(t) - node.read(t);
        c.true_error_ns = Some(c.offset_ns - truth);
    }
}
