//! Clock synchronisation: the last offset, its strict bound, the drift, and the true error where truth is known.
//!
//! An offset is the peer's clock minus the own one. Of all exchanges the one with the shortest round trip bounds it
//! best: whatever the asymmetry, the truth lies within half that round trip (RFC 5905, section 8).

use super::names;
use serde::Serialize;
use std::collections::BTreeMap;
use tcps_core::{fit::Slope, ids::NodeId, record::Record};
use tcps_plan::{Plan, SteppedClock};

/// What a node knows of a peer's clock.
#[derive(Debug, Serialize)]
pub struct ClockReport {
    /// Who estimates.
    pub node: String,
    /// Of whom.
    pub peer: String,
    /// Exchanges.
    pub n: u64,
    /// Estimated offset at the last exchange, ns.
    pub offset_ns: i64,
    /// Half the shortest round trip, ns.
    pub bound_ns: u32,
    /// Slope of the estimates over time, parts per million.
    pub drift_ppm: Option<f64>,
    /// Estimate minus truth at the last exchange, ns, from the clocks of the plan.
    pub true_error_ns: i64,
    /// Largest magnitude of estimate minus truth, ns.
    pub true_error_max_ns: u64,
    /// Largest leap between two estimates beyond both their bounds, ns.
    pub step_max_ns: u64,
    /// Of those behind a lie of an attacker's and no larger than it, the largest; they are not in `step_max_ns`.
    pub step_by_lies_max_ns: u64,
}

/// Exchanges of one node with one peer.
#[derive(Debug)]
struct Pair {
    node: NodeId,
    peer: NodeId,
    n: u64,
    last: Record,
    bound_ns: u32,
    error_ns: i64,
    error_max_ns: u64,
    step_max_ns: u64,
    step_by_lies_max_ns: u64,
    /// Estimates in ns over seconds, both from the first exchange on.
    line: Slope,
    first: Record,
}

/// All clocks.
#[derive(Debug, Default)]
pub struct Clocks {
    pairs: Vec<Pair>,
    /// The clocks that the plan gives nodes, as far as they were asked for.
    true_clocks: BTreeMap<NodeId, SteppedClock>,
}

impl Clocks {
    /// A `Sync` row, with the largest lie that an attacker has told its node until then; nodes that the plan does not have are
    /// left out.
    // [RFC 5905 §8]
    pub fn take(&mut self, row: &Record, plan: &Plan, lies_ns: u64) {
        let peer = NodeId(row.point);
        if row.node.max(peer).index() >= plan.nodes.len() {
            return;
        }
        let at_ns = row.time_ns.clamp(0, plan.duration_ns.max(0));
        let mut error = |n: NodeId| {
            let clock = self.true_clocks.entry(n).or_insert_with(|| plan.stepped_clock(n));
            clock.at(at_ns).error(at_ns)
        };
        let truth = error(peer).saturating_sub(error(row.node));
        let at = self.pairs.iter().position(|p| (p.node, p.peer) == (row.node, peer));
        let at = at.unwrap_or_else(|| {
            self.pairs.push(Pair::new(row));
            self.pairs.len() - 1
        });
        self.pairs[at].take(row, row.value.saturating_sub(truth), lies_ns);
    }

    /// What is known at the end.
    pub fn report(&self, plan: &Plan) -> Vec<ClockReport> {
        let report = |p: &Pair| ClockReport {
            node: names::node(plan, p.node),
            peer: names::node(plan, p.peer),
            n: p.n,
            offset_ns: p.last.value,
            bound_ns: p.bound_ns,
            drift_ppm: p.line.slope().filter(|_| p.n >= 3).map(|ns_a_second| ns_a_second / 1000.0),
            true_error_ns: p.error_ns,
            true_error_max_ns: p.error_max_ns,
            step_max_ns: p.step_max_ns,
            step_by_lies_max_ns: p.step_by_lies_max_ns,
        };
        self.pairs.iter().map(report).collect()
    }
}

impl Pair {
    fn new(row: &Record) -> Self {
        Self {
            node: row.node,
            peer: NodeId(row.point),
            n: 0,
            last: *row,
            bound_ns: u32::MAX,
            error_ns: 0,
            error_max_ns: 0,
            step_max_ns: 0,
            step_by_lies_max_ns: 0,
            line: Slope::default(),
            first: *row,
        }
    }

    fn take(&mut self, row: &Record, error_ns: i64, lies_ns: u64) {
        let leap = row.value.abs_diff(self.last.value);
        let allowed = u64::from(row.size) + u64::from(self.last.size);
        let by_lies = leap <= lies_ns.saturating_add(allowed);
        let step = if by_lies { &mut self.step_by_lies_max_ns } else { &mut self.step_max_ns };
        *step = (*step).max(leap.saturating_sub(allowed));
        self.n += 1;
        self.last = *row;
        self.bound_ns = self.bound_ns.min(row.size);
        self.error_ns = error_ns;
        self.error_max_ns = self.error_max_ns.max(error_ns.unsigned_abs());
        let x = (row.time_ns as f64 - self.first.time_ns as f64) / 1e9;
        self.line.add(x, row.value as f64 - self.first.value as f64);
    }
}
