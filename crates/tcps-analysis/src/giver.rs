//! Round trips whose command was given by one node and whose echo came to another: from one clock to the other.
//!
//! ```text
//! round trip = (arrival + offset of the answered node) - (command + offset of the commanding node)
//! ```
//! Offsets, to the reference of the clock synchronisation, are the newest estimates of both nodes. Without
//! synchronisation the difference of the clocks stays in the figure.

use super::names;
use serde::Serialize;
use tcps_core::{ids::NodeId, record::Record};
use tcps_plan::{Plan, ProbePlan};

/// What is known of the clocks at both ends of a round trip.
#[derive(Debug, Serialize)]
pub struct GiverReport {
    /// Node that gives the commands: the source of the flow.
    pub from: String,
    /// Node that the answers come to.
    pub to: String,
    /// Whether round trips are corrected.
    pub corrected: bool,
    /// Answers that came before both clocks were known; they are in no figure.
    pub unknown: u64,
    /// Mean of what was added to round trips, ns.
    pub correction_ns: f64,
    /// How wrong the correction can be, however unequal the ways are: the bounds of both clocks together, ns.
    pub bound_ns: u64,
}

/// A round trip between two clocks.
#[derive(Debug)]
pub struct Giver {
    ends: [End; 2],
    synchronised: bool,
    unknown: u64,
    corrected: u64,
    sum_ns: f64,
}

/// The clock of a node, as it was estimated.
#[derive(Debug)]
struct End {
    node: NodeId,
    /// Reference minus this clock.
    offset_ns: Option<i64>,
    /// Half the shortest round trip to the reference. [RFC 5905 §8]
    bound_ns: u32,
}

impl End {
    fn new(node: NodeId, plan: &Plan) -> Self {
        let reference = plan.sync.as_ref().is_some_and(|s| s.reference == node);
        let (offset_ns, bound_ns) = if reference { (Some(0), 0) } else { (None, u32::MAX) };
        Self { node, offset_ns, bound_ns }
    }
}

impl Giver {
    /// The clocks of a probe; nothing if one clock takes both stamps.
    pub fn new(plan: &Plan, probe: &ProbePlan) -> Option<Self> {
        let first = plan.flows.get(usize::from(probe.flow))?.path.first()?;
        let from = plan.components.get(usize::from(first.component))?.node;
        (from != probe.reply_to).then(|| Self {
            ends: [End::new(from, plan), End::new(probe.reply_to, plan)],
            synchronised: plan.sync.is_some(),
            unknown: 0,
            corrected: 0,
            sum_ns: 0.0,
        })
    }

    /// A `Sync` row.
    pub fn take(&mut self, row: &Record) {
        for end in self.ends.iter_mut().filter(|end| end.node == row.node) {
            end.offset_ns = Some(row.value);
            end.bound_ns = end.bound_ns.min(row.size);
        }
    }

    /// A round trip by one clock; nothing as long as one of the clocks is not known.
    pub fn correct(&mut self, round_trip_ns: i64) -> Option<i64> {
        if !self.synchronised {
            return Some(round_trip_ns);
        }
        let [Some(from_ns), Some(to_ns)] = [&self.ends[0], &self.ends[1]].map(|end| end.offset_ns) else {
            self.unknown += 1;
            return None;
        };
        let correction_ns = to_ns.saturating_sub(from_ns);
        self.corrected += 1;
        self.sum_ns += correction_ns as f64;
        Some(round_trip_ns.saturating_add(correction_ns))
    }

    /// What it did by the end of the run.
    pub fn report(&self, plan: &Plan) -> GiverReport {
        let bounds = self.ends.iter().map(|end| u64::from(end.bound_ns));
        GiverReport {
            from: names::node(plan, self.ends[0].node),
            to: names::node(plan, self.ends[1].node),
            corrected: self.corrected > 0,
            unknown: self.unknown,
            correction_ns: self.sum_ns / self.corrected.max(1) as f64,
            bound_ns: if self.corrected > 0 { bounds.sum() } else { 0 },
        }
    }
}
