//! States of hooks that watch over a flow: when they changed, and how long each lasted.

use serde::Serialize;
use std::collections::BTreeMap;
use tcps_core::{
    hook::State,
    ids::FlowId,
    record::Record,
    report::TURNS,
    time::{Time, MS},
};
use tcps_plan::Plan;

/// The state that it begins in.
#[derive(Debug, Serialize)]
pub struct First {
    /// When it was told, seconds; 0 where only a change tells it.
    pub t_s: f64,
    /// The state.
    pub state: &'static str,
}

/// A change.
#[derive(Debug, Serialize)]
pub struct Change {
    /// When, seconds.
    pub t_s: f64,
    /// The state before.
    pub from: &'static str,
    /// The state after.
    pub to: &'static str,
    /// Age of the newest good sample at that moment.
    pub age_ms: f64,
}

/// The states of a flow at a component.
#[derive(Debug, Serialize)]
pub struct StateReport {
    /// The component.
    pub component: String,
    /// The flow.
    pub flow: String,
    /// The first state.
    pub first: First,
    /// How often the state changed.
    pub count: u64,
    /// The first changes.
    pub changes: Vec<Change>,
    /// Seconds in each state, from the beginning to the end of the run.
    pub spent_s: BTreeMap<&'static str, f64>,
}

/// The states of all flows at all components, in the order of flows.
#[derive(Debug, Default)]
pub struct States {
    found: BTreeMap<(FlowId, u16), Watched>,
}

#[derive(Debug)]
struct Watched {
    first: First,
    count: u64,
    changes: Vec<Change>,
    spent_s: BTreeMap<&'static str, f64>,
    state: State,
    since: Time,
}

impl Watched {
    fn stay(&mut self, until: Time) {
        let spent = (until - self.since).max(0) as f64 / 1e9;
        *self.spent_s.entry(self.state.name()).or_default() += spent;
        self.since = until;
    }
}

impl States {
    /// A row of a first state or a change; false if it names no state.
    pub fn take(&mut self, row: &Record) -> bool {
        let from = u8::try_from(row.size).ok().and_then(State::from_u8);
        let (Some(from), Some(to)) = (from, State::from_u8(row.detail)) else { return false };
        let t_s = row.time_ns as f64 / 1e9;
        let watched = self.found.entry((row.flow, row.point)).or_insert_with(|| Watched {
            first: First { t_s: if from == to { t_s } else { 0.0 }, state: from.name() },
            count: 0,
            changes: Vec::new(),
            spent_s: BTreeMap::new(),
            state: from,
            since: 0,
        });
        watched.stay(row.time_ns);
        if from == to {
            return true;
        }
        watched.state = to;
        watched.count += 1;
        if watched.changes.len() < TURNS {
            let age_ms = row.value as f64 / MS as f64;
            watched.changes.push(Change { t_s, from: from.name(), to: to.name(), age_ms });
        }
        true
    }

    /// What was found, up to the end of the run.
    pub fn report(self, plan: &Plan, end_ns: Time) -> Vec<StateReport> {
        let name = |number: u16, of: Option<&String>| of.cloned().unwrap_or_else(|| number.to_string());
        self.found
            .into_iter()
            .map(|((flow, point), mut watched)| {
                watched.stay(end_ns);
                StateReport {
                    component: name(point, plan.components.get(point as usize).map(|c| &c.name)),
                    flow: name(flow.0, plan.flows.get(flow.index()).map(|f| &f.name)),
                    first: watched.first,
                    count: watched.count,
                    changes: watched.changes,
                    spent_s: watched.spent_s,
                }
            })
            .collect()
    }
}
