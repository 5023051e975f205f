//! What lies between nodes, and what happens there: channels, events, echo commands, clock synchronisation.

use crate::{attack::AttackPlan, net::LinkChange};
use serde::Deserialize;
use serde_json::Value;
use tcps_core::{
    ids::{ComponentId, FlowId, NodeId, SessionId, TrafficId},
    param::Named,
    sample::PointId,
    time::Time,
};

/// A channel between two nodes, with one transport endpoint at each side.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelPlan {
    /// Its name.
    pub name: String,
    /// Number of its session.
    pub session: SessionId,
    /// Number of the node at side a.
    pub a: NodeId,
    /// Number of the node at side b.
    pub b: NodeId,
    /// Transport by name; `module:Class` in Python.
    pub transport: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Value,
    /// Code point of its datagrams; absent: that of the flow that each is sent for.
    #[serde(default)]
    pub dscp: Option<u8>,
    /// What seals its datagrams: `kind` and parameters; absent: nothing.
    #[serde(default)]
    pub security: Option<Named>,
}

/// Something that happens at a moment.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventPlan {
    /// When.
    pub at_ns: Time,
    /// What the report calls it.
    pub name: String,
    /// What.
    pub action: Action,
}

/// Actions of events.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Changes links.
    Link(LinkChange),
    /// Chooses all paths again, over links that are up.
    Reroute,
    /// Stops or starts a flow's source.
    Flow {
        /// Number of the flow.
        flow: FlowId,
        /// Whether it runs.
        running: bool,
    },
    /// Stops or starts background traffic.
    Traffic {
        /// Numbers of the traffic entries.
        traffic: Vec<TrafficId>,
        /// Whether it runs.
        running: bool,
    },
    /// Kills a component or restarts it: a dead one drops all samples.
    Component {
        /// Number of the component.
        component: ComponentId,
        /// Whether it lives.
        alive: bool,
    },
    /// Somebody attacks from a link.
    Attack(AttackPlan),
    /// Puts the clock of a node forward, or back by a negative step.
    Clock {
        /// Number of the node.
        node: NodeId,
        /// By how much.
        step_ns: Time,
    },
}

/// Echo commands on one flow, interleaved over points.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbePlan {
    /// Number of the flow whose samples carry the commands.
    pub flow: FlowId,
    /// Points to be asked in turn.
    pub points: Vec<PointId>,
    /// Time between commands; 0: every sample.
    pub period_ns: Time,
    /// Whether each command is due at a moment drawn within its period, or at the start of it.
    #[serde(default)]
    pub drawn: bool,
    /// First command.
    #[serde(default)]
    pub start_ns: Time,
    /// Commands in all; absent: to the end.
    pub count: Option<u32>,
    /// Node that waits for the answers (that of the test-pc).
    pub reply_to: NodeId,
}

/// Clock synchronisation of all nodes with one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncPlan {
    /// Number of the reference node.
    pub reference: NodeId,
    /// Time between exchanges with a node.
    pub period_ns: Time,
}
