//! The compiled scenario: everything numbered, everything in SI units.
//!
//! Python reads and checks the scenario file and hands this over as JSON; both drivers and every node process read
//! the same text, so that a scenario means the same in every world.

use crate::error::RunError;
use serde::Deserialize;
use serde_json::Value;
use tcps_core::{
    dist::Dist,
    time::{NodeClock, Time},
};
use tcps_net::spec::NetworkSpec;

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
    /// Values are compared at source and sink, of samples made from then on; absent: not at all (virtual time).
    #[serde(default)]
    pub snr_from_ns: Option<Time>,
    /// Settings of the real driver.
    #[serde(default)]
    pub real: RealPlan,
}

impl Plan {
    /// Refuses numbers that name nothing, so that nothing later looks past an end.
    pub fn check(&self) -> Result<(), RunError> {
        let below = |what: &str, number: u16, count: usize| match usize::from(number) < count {
            true => Ok(()),
            false => Err(RunError::new(format!("plan: {what} {number}, and there are {count}"))),
        };
        let (nodes, components, channels) = (self.nodes.len(), self.components.len(), self.channels.len());
        below("number of components", components.min(0xffff) as u16, MOST_COMPONENTS)?;
        below("number of channels", channels.min(0xffff) as u16, MOST_CHANNELS)?;
        for c in &self.components {
            below(&format!("components.{}: node", c.name), c.node, nodes)?;
            below(&format!("components.{}: session", c.name), c.session, self.sessions.len())?;
        }
        for c in &self.channels {
            below(&format!("channels.{}: node", c.name), c.a.max(c.b), nodes)?;
        }
        for flow in &self.flows {
            for visit in &flow.path {
                below(&format!("flows.{}: component", flow.name), visit.component, components)?;
            }
            flow.path.windows(2).try_for_each(|w| self.check_step(flow, &w[0], &w[1]))?;
        }
        for p in &self.probes {
            below("probe: flow", p.flow, self.flows.len())?;
            below("probe: reply_to", p.reply_to, nodes)?;
        }
        self.sync.iter().try_for_each(|s| below("sync: reference", s.reference, nodes))?;
        self.events.iter().try_for_each(|e| match e.action {
            Action::Flow { flow, .. } => below(&format!("events.{}: flow", e.name), flow, self.flows.len()),
            Action::Component { component, .. } => {
                below(&format!("events.{}: component", e.name), component, components)
            }
            _ => Ok(()),
        })
    }

    fn check_step(&self, flow: &FlowPlan, from: &VisitPlan, to: &VisitPlan) -> Result<(), RunError> {
        let node = |v: &VisitPlan| self.components[usize::from(v.component)].node;
        let joins =
            |c: &ChannelPlan| [c.a, c.b] == [node(from), node(to)] || [c.b, c.a] == [node(from), node(to)];
        let leads = match from.channel {
            None => node(from) == node(to),
            Some(c) => self.channels.get(usize::from(c)).is_some_and(joins),
        };
        let name = |v: &VisitPlan| &self.components[usize::from(v.component)].name;
        let text =
            || format!("plan: flows.{}: no channel leads from {} to {}", flow.name, name(from), name(to));
        leads.then_some(()).ok_or_else(|| RunError::new(text()))
    }

    /// The sessions of each loop of a node: one session each, but those that share a component share a loop.
    pub fn loops(&self, node: u16) -> Vec<Vec<u16>> {
        let mut loops: Vec<Vec<u16>> = Vec::new();
        let own = self.components.iter().filter(|c| c.node == node).map(|c| [c.session, c.session]);
        let visits = self
            .flows
            .iter()
            .flat_map(|f| f.path.iter().map(move |v| (f, &self.components[v.component as usize])));
        for pair in own.chain(visits.filter(|(_, c)| c.node == node).map(|(f, c)| [f.session, c.session])) {
            let (mut joined, others): (Vec<_>, Vec<_>) =
                loops.into_iter().partition(|l| l.contains(&pair[0]) || l.contains(&pair[1]));
            joined.push(pair.to_vec());
            let mut joined = joined.concat();
            joined.sort_unstable();
            joined.dedup();
            loops = others;
            loops.push(joined);
        }
        loops.sort_unstable();
        loops
    }

    /// Whether a loop at a node runs Python code.
    pub fn needs_python(&self, node: u16, sessions: &[u16]) -> bool {
        let here = |c: u16| {
            let c = &self.components[c as usize];
            c.node == node && sessions.contains(&c.session)
        };
        let python = |code: &CodePlan| code.kind == CodeKind::Python;
        let visits = self.flows.iter().flat_map(|f| &f.path).filter(|v| here(v.component));
        let mut robots = self.components.iter().filter(|c| c.node == node && sessions.contains(&c.session));
        visits.flat_map(|v| &v.steps).any(|s| s.run.as_ref().is_some_and(python))
            || robots.any(|c| c.robot.as_ref().is_some_and(|r| python(&r.run)))
    }

    /// What links account for a channel's datagram with `payload` bytes of a sample: its size on the wire, unless the
    /// channel sets another overhead. [PROTOCOLS 1.2]
    pub fn accounted_bytes(&self, channel: u16, wire_bytes: u32, payload: usize) -> u32 {
        let overhead = self.channels[channel as usize].params.get("overhead_bytes").and_then(Value::as_u64);
        overhead.map_or(wire_bytes, |o| payload as u32 + o as u32)
    }
}

/// Echo points of components have 15 bits.
const MOST_COMPONENTS: usize = 1 << 14;
/// Channels have UDP ports of their own in captures.
const MOST_CHANNELS: usize = 999;

/// Bytes below the transport on the wire: UDP, IPv4, link. [PROTOCOLS 1.2]
pub const OVERHEAD_BYTES: u32 = 8 + 20 + 26;

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

/// A computer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodePlan {
    /// Its name.
    pub name: String,
    /// Processor cores that its stages compete for.
    #[serde(default = "one")]
    pub cores: u16,
    /// How they compete (virtual time).
    #[serde(default)]
    pub scheduling: Scheduling,
    /// Its clock.
    #[serde(default)]
    pub clock: NodeClock,
}

fn one() -> u16 {
    1
}

/// How stages on one node compete for its cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Scheduling {
    /// First come, first served, to completion.
    #[default]
    RunToCompletion,
    /// Each takes a core for at most a quantum, then queues again.
    RoundRobin {
        /// Length of a turn.
        quantum_ns: Time,
    },
    /// The flow with the highest priority runs; it pre-empts others.
    Priority,
}

/// A component instance.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentPlan {
    /// Its id.
    pub name: String,
    /// Its kind, for example `ms-com`.
    pub kind: String,
    /// Number of its session.
    pub session: u16,
    /// Number of its node.
    pub node: u16,
    /// The robot, at a tactile-teleoperator.
    #[serde(default)]
    pub robot: Option<RobotPlan>,
}

/// A robot and its tick.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RobotPlan {
    /// The code.
    pub run: CodePlan,
    /// Time between steps.
    pub period_ns: Time,
    /// Room for sensed values.
    pub senses: u16,
}

/// Code named in a scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodePlan {
    /// What kind of code it is.
    pub kind: CodeKind,
    /// Built-in name; path of a library; Python module (a name, or the path of a file).
    pub name: String,
    /// Function or class in it.
    #[serde(default)]
    pub symbol: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Value,
}

/// Kinds of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeKind {
    /// A Rust file in the tree.
    Builtin,
    /// A C function in a shared library.
    Library,
    /// A function compiled by numba, or a plain Python class.
    Python,
}

/// A stream of samples in one direction.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowPlan {
    /// Its name, `kinematic` or, with several sessions, `left/kinematic`.
    pub name: String,
    /// Number of its session.
    pub session: u16,
    /// Operator to robot, or back.
    pub direction: Direction,
    /// Time between samples.
    pub period_ns: Time,
    /// Moment of the first sample.
    #[serde(default)]
    pub start_ns: Time,
    /// No sample at or after this moment.
    #[serde(default)]
    pub stop_ns: Option<Time>,
    /// Differentiated services code point.
    #[serde(default)]
    pub dscp: u8,
    /// Larger is more urgent (priority scheduling of cores).
    #[serde(default)]
    pub priority: i32,
    /// A send holds the flow's next sample at that component until the first link has taken the packet.
    #[serde(default)]
    pub blocking_send: bool,
    /// Samples that may be on their way from the source to the first link at once; a tick that finds none free is left
    /// out. 1: copy, then send; 2: copy while sending.
    #[serde(default)]
    pub buffers: Option<u32>,
    /// How values become bytes: `f32` (network order), `f64`, or `raw` (bytes as they are).
    pub codec: Codec,
    /// Where samples come from.
    pub source: SourcePlan,
    /// Where they go.
    pub sink: SinkPlan,
    /// The components on the way, source first.
    pub path: Vec<VisitPlan>,
}

/// Directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Operator to teleoperator.
    Forward,
    /// Teleoperator to operator.
    Backward,
}

/// How values become bytes at every component boundary, unless a `code` or `decode` hook says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Codec {
    /// 4-byte floats in network order.
    F32,
    /// 8-byte floats in network order.
    F64,
    /// Bytes, no values.
    Raw,
}

/// Sources of samples.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SourcePlan {
    /// `bytes` bytes: a triangle wave per value, or mixed bytes where there are no values.
    Generated {
        /// Size of a sample.
        bytes: u32,
    },
    /// A recording resampled to the flow's rate: row-major little-endian f64 in a file.
    Values {
        /// The file.
        path: String,
        /// Values a sample.
        columns: u32,
        /// What happens at its end.
        #[serde(default)]
        repeat: Repeat,
    },
    /// Frames of bytes from a file: `offsets` has one more entry than there are frames.
    Frames {
        /// The file.
        path: String,
        /// Where each frame begins.
        offsets: Vec<u64>,
    },
    /// Frames of given sizes with generated bytes, repeated.
    Sizes {
        /// Size of each frame.
        bytes: Vec<u32>,
    },
    /// What the robot of the first component senses.
    Robot,
}

/// What a recording does at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// Starts again.
    #[default]
    Loop,
    /// Goes back and forth, so that nothing jumps.
    Mirror,
    /// Holds the last row.
    Hold,
}

/// Sinks of samples.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SinkPlan {
    /// Counts.
    Count,
    /// Drives the robot of the last component.
    Robot,
    /// Compares every sample's checksum with that of the source's sample (the source must be reproducible).
    Verify,
}

/// A component on a flow's way.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VisitPlan {
    /// Number of the component.
    pub component: u16,
    /// What happens there between its entry and its exit point, in order.
    #[serde(default)]
    pub steps: Vec<StepPlan>,
    /// Channel to the next component; absent if that is on the same node (or there is none).
    #[serde(default)]
    pub channel: Option<u16>,
}

/// A stage: code, its cost, its delay.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepPlan {
    /// `decode`, `kinematics`, `inverse_kinematics`, `predict`, `sense`, `feedback`, `code` or `work`.
    pub kind: StepKind,
    /// The code; absent for `work`, which only costs.
    #[serde(default)]
    pub run: Option<CodePlan>,
    /// Time that it occupies a core.
    #[serde(default)]
    pub cost: Option<Dist>,
    /// Time that it takes without occupying a core.
    #[serde(default)]
    pub delay: Option<Dist>,
    /// Output period of a periodic stage (`predict`).
    #[serde(default)]
    pub period_ns: Option<Time>,
}

/// Kinds of stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Bytes to values.
    Decode,
    /// Devices to poses.
    Kinematics,
    /// Poses to joints.
    InverseKinematics,
    /// Estimates at its own period.
    Predict,
    /// Robot to feeling.
    Sense,
    /// Feeling to hand.
    Feedback,
    /// Values to bytes.
    Code,
    /// Only costs.
    Work,
}

/// A channel between two nodes, with one transport endpoint at each side.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelPlan {
    /// Its name.
    pub name: String,
    /// Number of its session.
    pub session: u16,
    /// Number of the node at side a.
    pub a: u16,
    /// Number of the node at side b.
    pub b: u16,
    /// Transport by name.
    pub transport: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Value,
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
    /// Changes links; absent keys stay as they are.
    Link {
        /// Numbers of the links.
        links: Vec<u16>,
        /// New rate.
        #[serde(default)]
        rate_bps: Option<f64>,
        /// New propagation.
        #[serde(default)]
        delay_ns: Option<Time>,
        /// New independent loss.
        #[serde(default)]
        loss: Option<f64>,
        /// Link down or up again.
        #[serde(default)]
        up: Option<bool>,
    },
    /// Chooses all paths again, over links that are up.
    Reroute,
    /// Stops or starts a flow's source.
    Flow {
        /// Number of the flow.
        flow: u16,
        /// Whether it runs.
        running: bool,
    },
    /// Stops or starts background traffic.
    Traffic {
        /// Numbers of the traffic entries.
        traffic: Vec<u16>,
        /// Whether it runs.
        running: bool,
    },
    /// Kills a component or restarts it: a dead one drops all samples.
    Component {
        /// Number of the component.
        component: u16,
        /// Whether it lives.
        alive: bool,
    },
}

/// Echo commands on one flow, interleaved over points.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbePlan {
    /// Number of the flow whose samples carry the commands.
    pub flow: u16,
    /// Points to be asked in turn.
    pub points: Vec<u16>,
    /// Time between commands; 0: every sample.
    pub period_ns: Time,
    /// First command.
    #[serde(default)]
    pub start_ns: Time,
    /// Commands in all; absent: to the end.
    #[serde(default)]
    pub count: Option<u32>,
    /// Node that waits for the answers (that of the test-pc).
    pub reply_to: u16,
}

/// Clock synchronisation of all nodes with one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncPlan {
    /// Number of the reference node.
    pub reference: u16,
    /// Time between exchanges with a node.
    pub period_ns: Time,
}

/// Settings of the real driver.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RealPlan {
    /// How a loop waits.
    pub waiting: Waiting,
    /// Length of the spin at the end of a hybrid wait.
    pub spin_ns: Time,
    /// Ask for SCHED_FIFO and locked memory.
    pub realtime: bool,
    /// IPv6 in place of IPv4.
    pub ipv6: bool,
    /// What the emulator stands between.
    pub network: Isolation,
}

impl Default for RealPlan {
    fn default() -> Self {
        Self {
            waiting: Waiting::Timer,
            spin_ns: 50_000,
            realtime: true,
            ipv6: false,
            network: Isolation::Gates,
        }
    }
}

/// Where the nodes of a real run have their sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// On loopback, with UDP gates of the emulator between them.
    Gates,
    /// In network namespaces of their own, with TUN devices that the emulator holds.
    Namespaces,
}

/// Ways of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// Blocking poll with millisecond time-outs.
    Blocking,
    /// ppoll with nanosecond deadlines and timer slack 1 ns.
    Timer,
    /// As timer, with the last part spun.
    Hybrid,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sessions_that_share_a_robot_share_its_loop() {
        let component = |name: &str, session: u16, node: u16| json!({"name": name, "kind": "x", "session": session, "node": node});
        let flow = |session: u16, from: u16, to: u16| {
            json!({"name": "f", "session": session, "direction": "forward", "period_ns": 1, "codec": "raw",
                   "source": {"kind": "generated", "bytes": 1}, "sink": {"kind": "count"},
                   "path": [{"component": from, "channel": 0}, {"component": to}]})
        };
        let plan: Plan = serde_json::from_value(json!({
            "name": "p", "seed": 1, "duration_ns": 1, "sessions": ["a", "b", "c"],
            "nodes": [{"name": "left"}, {"name": "right"}],
            "components": [component("op-a", 0, 0), component("op-b", 1, 0), component("robot", 0, 1), component("c", 2, 1)],
            "flows": [flow(0, 0, 2), flow(1, 1, 2)],
        }))
        .expect("a plan");
        assert_eq!(plan.loops(0), [[0], [1]]);
        assert_eq!(plan.loops(1), [vec![0, 1], vec![2]]);
    }
}
