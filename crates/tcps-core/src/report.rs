//! What a run reports beside its rows: counts and costs by number, before the names of a plan are put to them.
//!
//! Who counts (nodes, lines to boards, clocks) and who writes reports both import this, and neither the other.

use crate::{
    endpoint::EndpointStats,
    hook::{HookState, State, Verdict},
    ids::{ChannelId, ComponentId, FlowId},
    record::StepKind,
    robot::Pace,
    time::Time,
};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a node tells about itself at the end.
pub struct NodeReport {
    /// Calls and costs of stages.
    pub stages: Vec<StageReport>,
    /// Where time went at components: component, flow, sums.
    pub visits: Vec<(ComponentId, FlowId, Visited)>,
    /// Counters of endpoints by channel, with stray samples.
    pub endpoints: Vec<(ChannelId, EndpointStats, u64)>,
    /// Ticks that passed while the loop was away.
    pub missed_ticks: u64,
    /// Datagrams outside channels that were not what they should be.
    pub asides_refused: u64,
    /// What has died, and when: component and reason.
    pub died: Option<(Time, ComponentId, String)>,
    /// Robots that failed: component and what went wrong.
    pub failed_robots: Vec<(ComponentId, String)>,
    /// How the robots that have a loop of their own kept their time, by component.
    pub paces: Vec<(ComponentId, Pace)>,
    /// Endpoints whose code failed: channel and what went wrong.
    pub failed_endpoints: Vec<(ChannelId, String)>,
    /// Estimate of the clock relative to the reference node.
    pub clock: Option<ClockEstimate>,
    /// Boards: component and counts.
    pub boards: Vec<(ComponentId, BoardLine)>,
}

/// Calls and costs of a stage: component, flow, kind, name, statistics.
pub type StageReport = (ComponentId, FlowId, StepKind, String, StepStats);

/// Where the time of a flow's samples went at a component that they left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Visited {
    /// How many left it.
    pub samples: u64,
    /// They waited there.
    pub waiting_ns: Time,
    /// Stages used a core for them.
    pub working_ns: Time,
}

/// What is known of a clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockEstimate {
    /// The local moment that it is for: the arrival of the last response.
    pub at_ns: Time,
    /// How far the reference is ahead of the local clock.
    pub offset_ns: i64,
    /// How fast the offset grows, in parts per billion of local time; a clock that runs fast has a negative
    /// one.
    pub drift_ppb: f64,
    /// The true offset is within ± this, however unequal the ways are.
    pub bound_ns: i64,
    /// Exchanges in the window.
    pub exchanges: u32,
}

/// Calls of a step.
pub struct StepStats {
    /// Times it ran.
    pub calls: u64,
    /// Times it failed.
    pub failures: u64,
    /// Times it gave out values of which one is no number.
    pub not_finite: u64,
    /// Times it took longer than its cost.
    pub overruns: u64,
    /// The first failure in words.
    pub error: Option<String>,
    /// What was wrong with the end of its hooks, in words.
    pub ends: Vec<String>,
    /// Core time per call.
    pub cost_ns: Histogram<u64>,
    /// What it told, if it is a hook that has states.
    pub watch: Option<Watch>,
}

/// Changes of state that are told one by one.
pub const TURNS: usize = 1_000;

/// What a hook that has states told in all its calls.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Watch {
    /// Calls after which its limits kept it away from what it was sent.
    pub limited: u64,
    /// What led to each of the first changes of state.
    pub turns: Vec<&'static str>,
    /// How often what led to which state.
    pub causes: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
}

impl StepStats {
    /// Notes a call that took `used_ns` of processor time.
    pub fn note(&mut self, used_ns: Time, verdict: &Verdict) {
        self.calls += 1;
        let _ = self.cost_ns.record(used_ns.max(0) as u64);
        if let Verdict::Failed(text) | Verdict::Dead(text) = verdict {
            self.complain(text.clone());
        }
    }

    /// Notes what a hook told after a call, and in which state it was after the one before.
    pub fn watch(&mut self, before: Option<State>, told: &HookState) {
        let watch = self.watch.get_or_insert_default();
        watch.limited += u64::from(told.limited);
        if before.is_none_or(|state| state == told.state) {
            return;
        }
        if watch.turns.len() < TURNS {
            watch.turns.push(told.cause);
        }
        *watch.causes.entry(told.state.name()).or_default().entry(told.cause).or_default() += 1;
    }

    /// Counts a failure; the first one is told.
    pub fn complain(&mut self, text: String) {
        self.failures += 1;
        self.error.get_or_insert(text);
    }
}

impl Default for StepStats {
    fn default() -> Self {
        Self {
            calls: 0,
            failures: 0,
            not_finite: 0,
            overruns: 0,
            error: None,
            ends: Vec::new(),
            cost_ns: histogram(),
            watch: None,
        }
    }
}

/// What was counted on the line of a board. What only a real line can tell is absent of a modelled one, on which nothing is
/// damaged and whose moments are exact.
#[derive(Debug, Clone, Default, Serialize)]
pub struct BoardLine {
    /// Samples that the line has taken.
    pub sent: u64,
    /// Samples that the board has given back.
    pub answered: u64,
    /// Samples that the line or the board has lost.
    pub lost: u64,
    /// Times that its watchdog went to the safe output.
    pub safe: u64,
    /// Answers to no sample that was waited for: they came too late.
    pub late: Option<u64>,
    /// What came from the board and was no frame, or not one for us.
    pub damaged: Option<Damage>,
    /// The same of what came to the board, as it told at the end; absent if it did not.
    pub damaged_there: Option<DamageThere>,
    /// Values that were no numbers, as the board told or as its model counted; absent if it did not tell.
    pub refused_values: Option<u32>,
    /// How wrong its stamps can be.
    pub clock_bound_ns: Option<Time>,
    /// Why and when it went away.
    pub gone: Option<Gone>,
}

/// What a reader of frames counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Frames whose checksum was wrong.
    pub no_crc: u32,
    /// Torn frames.
    pub no_cobs: u32,
    /// Stretches that are longer than any frame.
    pub too_long: u32,
    /// Whole frames that mean nothing here.
    pub unknown: u32,
    /// Frames that were numbered and never came.
    pub missing: u32,
}

/// What a board counts of its line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DamageThere {
    /// What its reader of frames counts.
    #[serde(flatten)]
    pub frames: Damage,
    /// Bytes for which its port had no room.
    pub overflown: u32,
}

/// A board that went away.
#[derive(Debug, Clone, Serialize)]
pub struct Gone {
    /// When, seconds of run time.
    pub at_s: f64,
    /// Why.
    pub why: String,
}

/// A histogram of nanoseconds with three digits up to a minute.
pub fn histogram() -> Histogram<u64> {
    let mut h =
        Histogram::new_with_bounds(1, 60_000_000_000, 3).unwrap_or_else(|_| unreachable!("constant bounds"));
    h.auto(true);
    h
}
