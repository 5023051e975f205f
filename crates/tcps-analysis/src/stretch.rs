//! A stretch of the way between two echo points: what it is, and its latency from echoes.

use super::interval::{Estimate, Estimator};
use super::names::{component, point};
use serde::Serialize;
use tcps_core::sample::PointId;
use tcps_plan::{FlowPlan, Plan};

/// A stretch of a path between two points that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stretch {
    /// Between entry and exit of a component.
    Component(String),
    /// Between a component and the next; whether a network lies between them.
    Link(String, bool),
    /// From the exit of a component to the end of its movement.
    Actuation(String),
    /// Anything else.
    Span(String),
}

impl Stretch {
    /// `component`, `link`, `actuation` or `span`.
    pub fn what(&self) -> &'static str {
        match self {
            Stretch::Component(_) => "component",
            Stretch::Link(..) => "link",
            Stretch::Actuation(_) => "actuation",
            Stretch::Span(_) => "span",
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Stretch::Component(n) | Stretch::Link(n, _) | Stretch::Actuation(n) | Stretch::Span(n) => n,
        }
    }

    /// The stretch between two points of a flow.
    pub fn between(plan: &Plan, flow: &FlowPlan, from: PointId, to: PointId) -> Self {
        let (a, b) = (from.owner(), to.owner());
        if a == b && to.is_held() {
            return Stretch::Actuation(component(plan, a));
        }
        if a == b {
            return Stretch::Component(component(plan, a));
        }
        let hop = flow.path.windows(2).find(|w| w[0].component == a && w[1].component == b);
        match hop {
            Some(w) if from == PointId::exit(a) && to == PointId::entry(b) => {
                let name = format!("{} -> {}", component(plan, a), component(plan, b));
                Stretch::Link(name, w[0].channel.is_some())
            }
            _ => Stretch::Span(format!("{} -> {}", point(plan, from), point(plan, to))),
        }
    }
}

/// An estimate with the stretch it is of.
#[derive(Debug, Serialize)]
pub struct StretchEstimate {
    /// `component`, `link`, `actuation` or `span`.
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// Points at its ends.
    pub from: String,
    /// See `from`.
    pub to: String,
    /// Latency, ns; from one-way stamps where there are any.
    pub latency_ns: Option<Estimate>,
    /// `one_way` or `round_trip`.
    pub source: &'static str,
    /// Whether it is half the difference of the round trips.
    pub halved: bool,
    /// Difference of the round trips, ns, never halved.
    pub round_trip_difference_ns: Option<Estimate>,
}

impl StretchEstimate {
    /// From paired differences of round trips and of forward legs.
    ///
    /// One-way differences are taken as they are. Of round trips only a link's is halved, because its echo comes
    /// back over the same link; a component is passed by the forward leg alone.
    // [Polachan 2022: echoes]
    pub fn of(stretch: Stretch, ends: (String, String), round_trip: &Estimator, one_way: &Estimator) -> Self {
        let has_one_way = one_way.n() > 0;
        let halved = !has_one_way && matches!(stretch, Stretch::Link(_, true));
        let source = if has_one_way { one_way } else { round_trip };
        Self {
            what: stretch.what(),
            name: stretch.name().into(),
            from: ends.0,
            to: ends.1,
            latency_ns: source.estimate(if halved { 0.5 } else { 1.0 }),
            source: if has_one_way { "one_way" } else { "round_trip" },
            halved,
            round_trip_difference_ns: round_trip.estimate(1.0),
        }
    }
}
