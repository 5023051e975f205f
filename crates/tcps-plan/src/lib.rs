//! The compiled scenario: everything numbered, everything in SI units.
//!
//! ```text
//! plan ─┬─ place   nodes, components, robots       ├─ network  channels, clock synchronisation, probes, events (attack)
//!       ├─ flow    flows, sources, sinks, stages   ├─ code     code that a scenario names
//!       ├─ check   numbers that name nothing       ├─ loops    which sessions share a loop, and need Python
//!       ├─ places  what is at which node            ├─ real     settings of the real driver
//!       └─ report  what a run tells of itself
//! ```
//! Python reads and checks the scenario file and hands this over as JSON; both drivers and every node process read
//! the same text, so that a scenario means the same in every world.

#![forbid(unsafe_code)]

pub mod attack;
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
mod stepped;

pub use attack::{is_forged, Attack, AttackPlan};
pub use code::{CodeKind, CodePlan};
pub use error::{ErrorKind, RunError};
pub use flow::{Codec, Direction, FlowPlan, Repeat, SinkPlan, SourcePlan, StepPlan, VisitPlan, WorkerPlan};
pub use loops::Need;
pub use network::{Action, ChannelPlan, EventPlan, ProbePlan, SyncPlan};
pub use place::{
    Attached, Authority, BoardPlan, ComponentPlan, Interrupts, NodePlan, RobotPlan, SafeOutput, Scheduling,
};
pub use places::Places;
pub use real::{Background, Isolation, RealPlan, Waiting};
pub use stepped::SteppedClock;

use net::NetworkSpec;
use serde::Deserialize;
use serde_json::Value;
use tcps_core::{
    ids::{ChannelId, FlowId, NodeId},
    sample::PointId,
    split::Choice,
    time::Time,
};
use tcps_wire::{header, telehaptic};

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
    /// Samples made earlier do not count where it is told what their time was spent on.
    #[serde(default)]
    pub warmup_ns: Time,
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
    pub sync: Option<SyncPlan>,
    /// How often queues are looked at; absent: never.
    pub queue_probe_ns: Option<Time>,
    /// Points at which the values of samples are recorded: entry and exit points, and hold-until-done points for what
    /// robots sense.
    #[serde(default)]
    pub signals: Vec<PointId>,
    /// Settings of the real driver.
    #[serde(default)]
    pub real: RealPlan,
}
impl Plan {
    /// How many samples sources make at most.
    pub fn samples(&self) -> u64 {
        let of = |f: &FlowPlan| {
            let stop_ns = f.stop_ns.unwrap_or(self.duration_ns).min(self.duration_ns);
            (stop_ns - f.start_ns).max(0) as u64 / f.period_ns.max(1) as u64
        };
        self.flows.iter().map(of).sum()
    }

    /// Which of them are followed, in the account of where their time goes: at the level `packets` all.
    pub fn followed(&self) -> Choice {
        Choice::of(if self.records >= Level::Packets { 0 } else { self.samples() })
    }

    /// The flows of a channel, and whether they leave this node by it.
    pub fn flows_of(
        &self,
        channel: ChannelId,
        from: NodeId,
    ) -> impl Iterator<Item = (FlowId, &FlowPlan, bool)> {
        FlowId::each(&self.flows).filter_map(move |(id, flow)| {
            let mut by_it = flow.path.iter().filter(|v| v.channel == Some(channel)).peekable();
            by_it.peek()?;
            Some((id, flow, by_it.any(|v| self.components[v.component].node == from)))
        })
    }

    /// What links account around the payload of a channel's datagrams, where the channel sets it. [model: wire size]
    pub fn overhead_bytes(&self, channel: ChannelId) -> Option<u32> {
        let params = &self.channels[channel].params;
        params.get("overhead_bytes").and_then(Value::as_u64).map(|o| o as u32)
    }

    /// What links account for a telehaptic packet: its endpoint's own rule. [Gokhale 2017: header]
    pub fn accounted_telehaptic(&self, channel: ChannelId, packet: &telehaptic::Packet<&[u8]>) -> u32 {
        let params = &self.channels[channel].params;
        let strict = params.get("strict_two_subheaders").and_then(Value::as_bool).unwrap_or(false);
        let echoes = packet.trailer().map_or(0, |t| t.echoes());
        let payload = packet.payload_bytes();
        let own = telehaptic::accounted_bytes(payload, packet.sub_headers(), echoes, strict) as u32;
        self.overhead_bytes(channel).map_or(own + OVERHEAD_BYTES, |o| payload as u32 + o)
    }
}

/// Flow, sample and accounted size of a datagram that begins with the plain header and takes `wire_bytes` on the wire, unless
/// its channel sets what links account around its payload. [model: wire size]
pub fn accounted(
    datagram: &[u8],
    wire_bytes: u32,
    overhead_bytes: Option<u32>,
) -> Option<(FlowId, u32, u32)> {
    let packet = header::Packet::new_checked(datagram).ok()?;
    let h = header::Repr::parse(&packet).ok()?;
    Some((h.flow, h.index, overhead_bytes.map_or(wire_bytes, |o| h.payload_bytes() as u32 + o)))
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
