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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tcps_core::sample::{Echo, Meta};
    use tcps_wire::echo;

    /// A plan of one flow, from `op` by `com` over the channel `c` to `arm` at another node. `changes` are keys of objects in
    /// it by their places (JSON pointers), with their new values.
    pub fn plan(changes: &[(&str, Value)]) -> Plan {
        let component =
            |name: &str, node: u16| json!({"name": name, "kind": "x", "session": 0, "node": node});
        let mut plan = json!({
            "name": "p", "seed": 1, "duration_ns": 1_000, "sessions": ["a"],
            "nodes": [{"name": "left"}, {"name": "right"}],
            "components": [component("op", 0), component("com", 0), component("arm", 1)],
            "channels": [{"name": "c", "session": 0, "a": 0, "b": 1, "transport": "udp"}],
            "flows": [{"name": "f", "session": 0, "direction": "forward", "period_ns": 10, "codec": "f32",
                       "source": {"kind": "generated", "bytes": 4}, "sink": {"kind": "count"},
                       "path": [{"component": 0}, {"component": 1, "channel": 0}, {"component": 2}]}],
        });
        for (place, value) in changes {
            let (object, key) = place.rsplit_once('/').expect("a pointer");
            plan.pointer_mut(object).expect("an object")[key] = value.clone();
        }
        serde_json::from_value(plan).expect("a plan")
    }

    /// Room and the choice of the samples that are followed depend on this number.
    #[test]
    fn a_flow_makes_samples_until_it_or_the_run_stops() {
        for (start_ns, stop_ns, samples) in
            [(0, None, 100), (400, None, 60), (0, Some(200), 20), (400, Some(5_000), 60), (2_000, None, 0)]
        {
            let plan = plan(&[("/flows/0/start_ns", json!(start_ns)), ("/flows/0/stop_ns", json!(stop_ns))]);
            assert_eq!(plan.samples(), samples, "from {start_ns} to {stop_ns:?}");
        }
    }

    /// Following a sample costs time, which only the account of every packet is worth in a long run.
    #[test]
    fn of_many_samples_some_are_followed_unless_every_packet_is_recorded() {
        for (records, all) in [("samples", false), ("packets", true), ("events", true)] {
            let plan = plan(&[("/duration_ns", json!(10_000_000)), ("/records", json!(records))]);
            let taken = (0..1_000).filter(|i| plan.followed().takes(*i)).count();
            assert_eq!(taken == 1_000, all, "{records}: {taken} of 1000");
        }
    }

    /// A node asks its endpoints for the flows that they send and those that they are to expect.
    #[test]
    fn a_channel_carries_the_flows_whose_path_takes_it() {
        let flows = |channel, from| {
            let plan = plan(&[]);
            let found = plan.flows_of(ChannelId(channel), NodeId(from));
            found.map(|(id, flow, leaves)| (id.0, flow.name.clone(), leaves)).collect::<Vec<_>>()
        };
        assert_eq!(flows(0, 0), [(0, "f".into(), true)]);
        assert_eq!(flows(0, 1), [(0, "f".into(), false)]);
        assert_eq!(flows(1, 0), []);
    }

    /// The size that links account decides how long a packet takes: 8 bytes of header, 5 of a sub-header, 100 of samples and
    /// frames, 54 of UDP, IP and Ethernet, and 20 for an echo command.
    #[test]
    fn links_account_a_telehaptic_packet_by_the_rule_of_its_channel() {
        let datagram = |echoes: &[echo::Repr]| {
            let medium = |bytes| Some(telehaptic::SubHeader { frame: 0, bytes, part: 0 });
            let head = telehaptic::Repr {
                fragments: 1,
                repeated: false,
                delay_us: None,
                timestamp_ms: 0,
                audio: medium(30),
                video: medium(50),
                has_trailer: !echoes.is_empty(),
            };
            let mut datagram = Vec::new();
            head.emit(&mut datagram);
            datagram.extend([0; 20 + 30 + 50]);
            if head.has_trailer {
                telehaptic::trailer::emit(echoes, &[], &[], &mut datagram);
            }
            datagram
        };
        let (target, reply_to) = (PointId(0), NodeId(0));
        let echo = echo::Repr { sample: 0, echo: Echo { target, sequence: 0, reply_to, injected_ns: 0 } };
        for (params, echoes, bytes) in [
            (json!({}), &[][..], 8 + 5 + 100 + 54),
            (json!({"strict_two_subheaders": true}), &[], 8 + 2 * 5 + 100 + 54),
            (json!({}), &[echo], 8 + 5 + 100 + 20 + 54),
            (json!({"overhead_bytes": 40, "strict_two_subheaders": true}), &[echo], 100 + 40),
        ] {
            let plan = plan(&[("/channels/0/params", params.clone())]);
            let datagram = datagram(echoes);
            let packet = telehaptic::Packet::new_checked(&datagram[..]).expect("a packet");
            assert_eq!(plan.accounted_telehaptic(ChannelId(0), &packet), bytes, "{params}");
        }
    }

    /// The same of a sample with the plain header: all of it as it is on the wire, unless the channel sets what surrounds it.
    #[test]
    fn links_account_a_plain_datagram_by_its_size_on_the_wire_or_by_its_payload() {
        let meta = Meta { flow: FlowId(3), index: 7, origin_ns: 0, echo: None };
        let mut datagram = Vec::new();
        header::Repr::whole(&meta, 100, false).emit(&mut datagram);
        datagram.extend([0; 100]);
        assert_eq!(accounted(&datagram, 178, None), Some((FlowId(3), 7, 178)));
        assert_eq!(accounted(&datagram, 178, Some(40)), Some((FlowId(3), 7, 140)));
        assert_eq!(accounted(&datagram[..20], 74, None), None, "no whole header");
    }
}
