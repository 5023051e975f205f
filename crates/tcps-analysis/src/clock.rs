//! Clock synchronisation: the last offset, its strict bound, the drift, and the true error where truth is known.
//!
//! An offset is the peer's clock minus the own one. Of all exchanges the one with the shortest round trip bounds it
//! best: whatever the asymmetry, the truth lies within half that round trip (RFC 5905, section 8).

use super::names;
use serde::Serialize;
use tcps_core::{record::Record, time::Time};
use tcps_plan::Plan;

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
}

/// Exchanges of one node with one peer.
#[derive(Debug)]
struct Pair {
    node: u16,
    peer: u16,
    n: u64,
    last: Record,
    bound_ns: u32,
    error_ns: i64,
    error_max_ns: u64,
    step_max_ns: u64,
    line: Line,
}

/// Least squares over time, about the first point.
#[derive(Debug, Default)]
struct Line {
    origin: Option<(Time, i64)>,
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Line {
    fn add(&mut self, time_ns: Time, value: i64) {
        let (time0, value0) = *self.origin.get_or_insert((time_ns, value));
        let x = (time_ns as f64 - time0 as f64) / 1e9;
        let y = value as f64 - value0 as f64;
        self.n += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
    }

    /// Nanoseconds a second.
    fn slope(&self) -> Option<f64> {
        let spread = self.n * self.xx - self.x * self.x;
        (self.n >= 3.0 && spread > 0.0).then(|| (self.n * self.xy - self.x * self.y) / spread)
    }
}

/// All clocks.
#[derive(Debug, Default)]
pub struct Clocks {
    pairs: Vec<Pair>,
}

impl Clocks {
    /// A `Sync` row; nodes that the plan does not have are left out.
    // [RFC 5905 §8]
    pub fn take(&mut self, row: &Record, plan: &Plan) {
        let known = |n: u16| (n as usize) < plan.nodes.len();
        if !known(row.node) || !known(row.point) {
            return;
        }
        let at_ns = row.time_ns.clamp(0, plan.duration_ns.max(0));
        let error = |n: u16| plan.clock_at(n, at_ns).error(at_ns);
        let truth = error(row.point).saturating_sub(error(row.node));
        let at = self.pairs.iter().position(|p| (p.node, p.peer) == (row.node, row.point));
        let at = at.unwrap_or_else(|| {
            self.pairs.push(Pair::new(row));
            self.pairs.len() - 1
        });
        self.pairs[at].take(row, row.value.saturating_sub(truth));
    }

    /// What is known at the end.
    pub fn report(&self, plan: &Plan) -> Vec<ClockReport> {
        let report = |p: &Pair| ClockReport {
            node: names::node(plan, p.node),
            peer: names::node(plan, p.peer),
            n: p.n,
            offset_ns: p.last.value,
            bound_ns: p.bound_ns,
            drift_ppm: p.line.slope().map(|ns_a_second| ns_a_second / 1000.0),
            true_error_ns: p.error_ns,
            true_error_max_ns: p.error_max_ns,
            step_max_ns: p.step_max_ns,
        };
        self.pairs.iter().map(report).collect()
    }
}

impl Pair {
    fn new(row: &Record) -> Self {
        Self {
            node: row.node,
            peer: row.point,
            n: 0,
            last: *row,
            bound_ns: u32::MAX,
            error_ns: 0,
            error_max_ns: 0,
            step_max_ns: 0,
            line: Line::default(),
        }
    }

    fn take(&mut self, row: &Record, error_ns: i64) {
        let leap = row.value.abs_diff(self.last.value);
        let allowed = u64::from(row.size) + u64::from(self.last.size);
        self.step_max_ns = self.step_max_ns.max(leap.saturating_sub(allowed));
        self.n += 1;
        self.last = *row;
        self.bound_ns = self.bound_ns.min(row.size);
        self.error_ns = error_ns;
        self.error_max_ns = self.error_max_ns.max(error_ns.unsigned_abs());
        self.line.add(row.time_ns, row.value);
    }
}
