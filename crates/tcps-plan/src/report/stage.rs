//! Calls of stages and what they cost.

use super::{quantiles, Spread};
use crate::Plan;
use serde::Serialize;
use tcps_core::{
    ids::{ComponentId, FlowId},
    record::StepKind,
    report::{StepStats, Watch},
};

/// A stage's calls.
#[derive(Debug, Clone, Serialize)]
pub struct Stage {
    component: String,
    flow: String,
    kind: &'static str,
    name: String,
    calls: u64,
    failures: u64,
    /// Calls that gave out values of which one is no number.
    not_finite: u64,
    /// Calls that took longer than the cost that the scenario gives the stage.
    overruns: u64,
    cpu_ns: Spread,
    quantiles_ns: Vec<u64>,
    /// What it told, if it is a hook that has states.
    #[serde(skip_serializing_if = "Option::is_none")]
    watch: Option<Watch>,
}

impl Stage {
    /// The stage of a flow at a component, with what went wrong in it, in words.
    pub(super) fn new(
        plan: &Plan,
        (component, flow): (ComponentId, FlowId),
        kind: StepKind,
        name: String,
        stats: StepStats,
    ) -> (Self, Vec<String>) {
        let component = &plan.components[component].name;
        let flow = &plan.flows[flow].name;
        let whose = format!("hook {name} at {component} ({flow})");
        let told = |text: &str, times: u64| format!("{whose}: {text}, {times} times");
        let mut wrong: Vec<_> = stats.error.iter().map(|text| told(text, stats.failures)).collect();
        if stats.not_finite > 0 {
            wrong.push(told("returned values that are not finite", stats.not_finite));
        }
        wrong.extend(stats.ends.iter().map(|text| format!("{whose}: {text}")));
        let stage = Self {
            component: component.clone(),
            flow: flow.clone(),
            kind: kind.name(),
            name,
            calls: stats.calls,
            failures: stats.failures,
            not_finite: stats.not_finite,
            overruns: stats.overruns,
            cpu_ns: Spread::of(&stats.cost_ns),
            quantiles_ns: quantiles(&stats.cost_ns),
            watch: stats.watch,
        };
        (stage, wrong)
    }
}
