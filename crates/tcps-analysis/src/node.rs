//! What a node's loops say of themselves: gaps.

use super::names;
use serde::Serialize;
use tcps_core::{ids::NodeId, record::Record};
use tcps_plan::Plan;

/// Gaps that are listed one by one.
const LISTED: usize = 10_000;

/// A loop stalled.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gap {
    /// When it ended, seconds.
    pub t_s: f64,
    /// How long, ns.
    pub length_ns: i64,
}

/// Gaps of a node.
#[derive(Debug, Serialize)]
pub struct NodeReport {
    /// Its name.
    pub name: String,
    /// Gaps over 1 ms.
    pub gaps: u64,
    /// The longest, ns.
    pub longest_gap_ns: i64,
    /// The first ten thousand.
    pub first_gaps: Vec<Gap>,
}

#[derive(Debug, Default)]
struct NodeState {
    gaps: u64,
    longest_ns: i64,
    first: Vec<Gap>,
}

/// All nodes.
#[derive(Debug)]
pub struct Nodes {
    nodes: Vec<NodeState>,
}

impl Nodes {
    /// So many nodes and one place for rows of none.
    pub fn new(count: usize) -> Self {
        Self { nodes: (0..=count).map(|_| NodeState::default()).collect() }
    }

    /// A `Gap` row.
    pub fn take(&mut self, row: &Record) {
        let last = self.nodes.len() - 1;
        let node = &mut self.nodes[row.node.index().min(last)];
        node.gaps += 1;
        node.longest_ns = node.longest_ns.max(row.value);
        if node.first.len() < LISTED {
            node.first.push(Gap { t_s: row.time_ns as f64 / 1e9, length_ns: row.value });
        }
    }

    /// Nodes that had anything to say.
    pub fn report(&self, plan: &Plan) -> Vec<NodeReport> {
        let report = |(i, n): (usize, &NodeState)| {
            (n.gaps > 0).then(|| NodeReport {
                name: names::node(plan, NodeId(i as u16)),
                gaps: n.gaps,
                longest_gap_ns: n.longest_ns,
                first_gaps: n.first.clone(),
            })
        };
        self.nodes.iter().enumerate().filter_map(report).collect()
    }
}
