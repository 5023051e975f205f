//! The compiled scenario: everything numbered, everything in SI units.
//!
//! ```text
//! plan ─┬─ place   nodes, components, robots       ├─ network  channels, clock synchronisation, probes, events
//!       ├─ flow    flows, sources, sinks, stages   ├─ code     code that a scenario names
//!       ├─ check   numbers that name nothing       ├─ loops    which sessions share a loop, and need Python
//!       ├─ places  what is at which node            ├─ real     settings of the real driver
//!       └─ report  what a run tells of itself
//! ```
//! Python reads and checks the scenario file and hands this over as JSON; both drivers and every node process read
//! the same text, so that a scenario means the same in every world.

#![forbid(unsafe_code)]

mod check;
mod code;
mod error;
mod flow;
mod loops;
pub mod net;
mod network;
mod place;
mod places;
mod real;
pub mod report;

pub use code::{CodeKind, CodePlan};
pub use error::RunError;
pub use flow::{Codec, Direction, FlowPlan, Repeat, SinkPlan, SourcePlan, StepPlan, VisitPlan, WorkerPlan};
pub use loops::Need;
pub use network::{Action, ChannelPlan, EventPlan, ProbePlan, SyncPlan};
pub use place::{
    Attached, Authority, BoardPlan, ComponentPlan, Interrupts, NodePlan, RobotPlan, SafeOutput, Scheduling,
};
pub use places::Places;
pub use real::{Background, Isolation, RealPlan, Waiting};

use net::NetworkSpec;
use serde::Deserialize;
use serde_json::Value;
use tcps_core::time::{NodeClock, Time};
use tcps_wire::telehaptic;

/// A scenario, ready to run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Name of the scenario.
    pub name: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// Simulated or real time from the barrier to the end.
    pub duration_ns: Time,
    /// How much is recorded.
    #[serde(default)]
    pub records: Level,
    /// Names of the sessions.
    pub sessions: Vec<String>,
    /// Computers. Node `i` is vertex `i` of the network.
    pub nodes: Vec<NodePlan>,
    /// Component instances.
    pub components: Vec<ComponentPlan>,
    /// Flows.
    pub flows: Vec<FlowPlan>,
    /// Channels between nodes.
    #[serde(default)]
    pub channels: Vec<ChannelPlan>,
    /// The network; without links all nodes reach each other at once.
    #[serde(default)]
    pub network: NetworkSpec,
    /// What happens when.
    #[serde(default)]
    pub events: Vec<EventPlan>,
    /// Echo commands.
    #[serde(default)]
    pub probes: Vec<ProbePlan>,
    /// Clock synchronisation.
    #[serde(default)]
    pub sync: Option<SyncPlan>,
    /// How often queues are looked at; absent: never.
    #[serde(default)]
    pub queue_probe_ns: Option<Time>,
    /// Points at which the values of samples are recorded: entry and exit points, and `HELD | component` for what a
    /// robot senses.
    #[serde(default)]
    pub signals: Vec<u16>,
    /// Settings of the real driver.
    #[serde(default)]
    pub real: RealPlan,
}
impl Plan {
    /// The clock of a node as it is at a moment of the run: with the steps that events have made by then.
    pub fn clock_at(&self, node: u16, t: Time) -> NodeClock {
        let steps = self.events.iter().filter(|e| e.at_ns <= t).filter_map(|e| match e.action {
            Action::Clock { node: whose, step_ns } if whose == node => Some(step_ns),
            _ => None,
        });
        let clock = self.nodes[usize::from(node)].clock;
        NodeClock { offset_ns: steps.fold(clock.offset_ns, Time::saturating_add), ..clock }
    }

    /// How many samples sources make at most.
    pub fn samples(&self) -> u64 {
        let of = |f: &FlowPlan| {
            let stop_ns = f.stop_ns.unwrap_or(self.duration_ns).min(self.duration_ns);
            (stop_ns - f.start_ns).max(0) as u64 / f.period_ns.max(1) as u64
        };
        self.flows.iter().map(of).sum()
    }

    /// What links account for a channel's datagram with `payload` bytes of a sample: its size on the wire, unless the
    /// channel sets another overhead. [model: wire size]
    pub fn accounted_bytes(&self, channel: u16, wire_bytes: u32, payload: usize) -> u32 {
        let overhead = self.channels[channel as usize].params.get("overhead_bytes").and_then(Value::as_u64);
        overhead.map_or(wire_bytes, |o| payload as u32 + o as u32)
    }

    /// What links account for a telehaptic packet: its endpoint's own rule. [Gokhale 2017: header]
    pub fn accounted_telehaptic(&self, channel: u16, packet: &telehaptic::Packet<&[u8]>) -> u32 {
        let params = &self.channels[channel as usize].params;
        let strict = params.get("strict_two_subheaders").and_then(Value::as_bool).unwrap_or(false);
        let echoes = packet.trailer().map_or(0, |t| t.echoes());
        let payload = packet.payload_bytes();
        let own = telehaptic::accounted_bytes(payload, packet.sub_headers(), echoes, strict) as u32;
        self.accounted_bytes(channel, own + OVERHEAD_BYTES, payload)
    }
}

pub use tcps_core::size::STACK_BYTES as OVERHEAD_BYTES;

/// How much is recorded. Each level holds the ones before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Samples at sources, echo points and sinks; drops; echoes; queues; clock exchanges.
    #[default]
    Samples,
    /// And every packet at its nodes.
    Packets,
    /// And every hook call.
    Events,
}
