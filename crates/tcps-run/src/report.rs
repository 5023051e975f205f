//! What a run tells about itself, as JSON beside the rows.

use crate::{
    node::NodeReport,
    plan::{Plan, StepKind},
};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tcps_core::{endpoint::Told, record::DropReason, robot::Pace, time::Time};
use tcps_net::{LinkStats, Network, TrafficStats};

/// The result of a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// Wall time from the first to the last event, rows written and hashed.
    pub simulate_s: f64,
    /// Moments at which something happened.
    pub events: u64,
    /// Rows.
    pub records: u64,
    /// SHA-256 of the rows.
    pub records_sha256: String,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// Links.
    pub links: Vec<Link>,
    /// Background traffic.
    pub traffic: Vec<Traffic>,
    /// Transport endpoints.
    pub endpoints: Vec<Endpoint>,
    /// Stages.
    pub stages: Vec<Stage>,
    /// Nodes.
    pub nodes: Vec<NodeSelf>,
    /// Robots with a loop of their own.
    pub robots: Vec<RobotSelf>,
    /// What the emulator did, set against delivered.
    pub emulator: Vec<Emulated>,
    /// Clock estimates.
    pub clocks: Vec<Clock>,
    /// Boards and their lines.
    pub boards: Vec<Board>,
    /// What failed, in words.
    pub errors: Vec<String>,
}

/// A link's accounts.
#[derive(Debug, Clone, Serialize)]
pub struct Link {
    name: String,
    packets: u64,
    bytes: u64,
    dropped_packets: u64,
    dropped_bytes: u64,
    drops: std::collections::BTreeMap<&'static str, u64>,
    max_queue_bytes: u64,
    max_queue_packets: u64,
    busy_s: f64,
    duplicated: u64,
    corrupted: u64,
}

/// A background flow's accounts.
#[derive(Debug, Clone, Serialize)]
pub struct Traffic {
    name: String,
    packets: u64,
    bytes: u64,
    delivered_packets: u64,
    dropped_packets: u64,
}

/// An endpoint's counters.
#[derive(Debug, Clone, Serialize)]
pub struct Endpoint {
    channel: String,
    side: String,
    malformed: u64,
    duplicates: u64,
    incomplete: u64,
    recovered: u64,
    lost: u64,
    reports: u64,
    rtt_ns: Option<Time>,
    jitter_ns: Option<Time>,
    /// Share, 0 to 1.
    peer_loss: Option<f64>,
    refused: u64,
    retransmits: u64,
    unanswered: u64,
    #[serde(flatten)]
    told: Option<PacketsTold>,
    #[serde(flatten)]
    connections: Option<Connections>,
}

/// What a peer has told of single packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct PacketsTold {
    told: u64,
    told_lost: u64,
    told_queue_ns: Option<Time>,
    allowed_bps: Option<u64>,
}

impl From<Told> for PacketsTold {
    fn from(told: Told) -> Self {
        let Told { packets, lost, queue_ns, allowed_bps } = told;
        Self { told: packets, told_lost: lost, told_queue_ns: queue_ns, allowed_bps }
    }
}

/// What became of the connections of an endpoint over the kernel's TCP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Connections {
    /// Connections that stood.
    pub connections: u64,
    /// Connections that stood and were lost before the end of the run.
    pub connections_lost: u64,
    /// Times that nothing was acknowledged for 200 ms or more, one that lasts to the end among them.
    pub stalls: u64,
    /// The longest of them.
    pub longest_stall_ns: Time,
    /// The one that lasts to the end; 0 if none does.
    pub silent_at_end_ns: Time,
    /// Connections that others than the peer asked for.
    pub strangers: u64,
}

/// A board by its component's name, and its line.
#[derive(Debug, Clone, Serialize)]
pub struct Board {
    component: String,
    #[serde(flatten)]
    line: BoardLine,
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
}

/// Mean and percentiles of a histogram in nanoseconds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Spread {
    mean: f64,
    p50: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

impl Spread {
    /// Of a histogram.
    pub fn of(h: &Histogram<u64>) -> Self {
        let q = |p| h.value_at_quantile(p);
        Self { mean: h.mean(), p50: q(0.5), p99: q(0.99), p999: q(0.999), max: h.max() }
    }
}

/// Percentiles 0 to 100 of a histogram; none if it is empty.
pub fn quantiles(h: &Histogram<u64>) -> Vec<u64> {
    let all = if h.is_empty() { 0..0 } else { 0..101 };
    all.map(|p| h.value_at_quantile(f64::from(p) / 100.0)).collect()
}

/// What lies between a loop's code and its network, as percentiles in nanoseconds, for virtual time to load.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Boundary {
    /// From the moment that a timer was set for to the one at which the loop went on.
    pub wakeup: Vec<u64>,
    /// A send call.
    pub send: Vec<u64>,
    /// From the kernel's receive stamp to the loop.
    pub receive: Vec<u64>,
}

/// What a node tells about itself.
#[derive(Debug, Clone, Default, Serialize)]
pub struct NodeSelf {
    /// Its name.
    pub name: String,
    /// Its cores.
    pub cores: u16,
    /// Core time of stages.
    pub busy_s: f64,
    /// Ticks left out because the loop was away.
    pub missed_ticks: u64,
    /// Datagrams outside channels that were refused.
    pub asides_refused: u64,
    /// What only a real loop can tell.
    #[serde(flatten)]
    pub real: Option<RealSelf>,
}

/// What a robot with a loop of its own tells about itself.
#[derive(Debug, Clone, Serialize)]
pub struct RobotSelf {
    component: String,
    node: String,
    ticks: u64,
    /// Ticks left out because its loop was away; one step made up for them.
    missed_ticks: u64,
    late_ns: RobotLate,
    gaps_over_1ms: u64,
}

/// How late a robot's loop woke up, in nanoseconds.
#[derive(Debug, Clone, Serialize)]
struct RobotLate {
    p50: u64,
    p99: u64,
    max: u64,
}

impl RobotSelf {
    fn new(component: &str, node: &str, pace: Pace) -> Self {
        Self {
            component: component.into(),
            node: node.into(),
            ticks: pace.ticks,
            missed_ticks: pace.missed_ticks,
            late_ns: RobotLate { p50: pace.p50_ns, p99: pace.p99_ns, max: pace.max_ns },
            gaps_over_1ms: pace.gaps_over_1ms,
        }
    }
}

/// What a real loop tells about itself.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RealSelf {
    /// Sessions of the loop, of a node that has several loops.
    pub sessions: Vec<String>,
    /// Ticks of the loop.
    pub ticks: u64,
    /// How late it woke up.
    pub late_ns: Spread,
    /// Times it stood still for over 1 ms.
    pub gaps_over_1ms: u64,
    /// Rows lost because the ring was full.
    pub ring_overflows: u64,
    /// Datagrams that the kernel dropped at its sockets.
    pub socket_drops: u64,
    /// From the kernel's receive stamp to the loop.
    pub stamp_to_loop_ns: Spread,
    /// How long its send calls took.
    pub send_ns: Spread,
    /// How long it took to get the interpreter back after a wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter_wait_ns: Option<Spread>,
    /// Datagrams from senders that are not peers.
    pub strangers: u64,
    /// Datagrams that the kernel would not take.
    pub unsent: u64,
    /// Steps of the wall clock.
    pub clock_steps: u64,
    /// How it waited.
    pub waiting: String,
    /// Privileges it has, and those it was refused.
    pub privileges: Vec<String>,
    /// What lies between its code and the network; absent at the emulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantiles_ns: Option<Boundary>,
}

/// Set against delivered between two nodes.
#[derive(Debug, Clone, Serialize)]
pub struct Emulated {
    path: String,
    packets: u64,
    set_delay_ns: Spread,
    delivered_delay_ns: Spread,
    /// Delivered later than set.
    error_ns: Spread,
    /// Bits on the wire between the first and the last packet, as the network let them out; none below 1 s.
    set_rate_bps: Option<f64>,
    /// The same as they were handed to the kernel.
    delivered_rate_bps: Option<f64>,
    set_loss: f64,
    delivered_loss: f64,
    /// What says when packets entered.
    stamps: &'static str,
}

impl Emulated {
    /// From histograms of (set, delivered, error), rates (set, delivered) and counts; `stamps` says what tells when
    /// packets entered.
    pub fn new(
        stamps: &'static str,
        path: String,
        (set, delivered, error): (&Histogram<u64>, &Histogram<u64>, &Histogram<u64>),
        (set_rate_bps, delivered_rate_bps): (Option<f64>, Option<f64>),
        entered: u64,
        lost: u64,
    ) -> Self {
        let share = |n: u64| n as f64 / entered.max(1) as f64;
        Self {
            path,
            packets: entered,
            set_delay_ns: Spread::of(set),
            delivered_delay_ns: Spread::of(delivered),
            error_ns: Spread::of(error),
            set_rate_bps,
            delivered_rate_bps,
            set_loss: share(lost),
            delivered_loss: share(entered - delivered.len().min(entered)),
            stamps,
        }
    }
}

/// The estimate of a node's clock against the reference.
#[derive(Debug, Clone, Serialize)]
pub struct Clock {
    node: String,
    reference: String,
    offset_ns: i64,
    drift_ppb: f64,
    bound_ns: i64,
    exchanges: u32,
    at_ns: Time,
    /// Estimate minus truth, where the truth is known.
    true_error_ns: Option<i64>,
}

impl From<LinkStats> for Link {
    fn from(s: LinkStats) -> Self {
        let named = |r: &DropReason| (s.drops[*r as usize] > 0).then(|| (r.name(), s.drops[*r as usize]));
        Self {
            drops: DropReason::ALL.iter().filter_map(named).collect(),
            name: s.name,
            packets: s.packets,
            bytes: s.bytes,
            dropped_packets: s.dropped_packets,
            dropped_bytes: s.dropped_bytes,
            max_queue_bytes: s.max_queue_bytes,
            max_queue_packets: s.max_queue_packets,
            busy_s: s.busy_ns as f64 / 1e9,
            duplicated: s.duplicated,
            corrupted: s.corrupted,
        }
    }
}

impl From<TrafficStats> for Traffic {
    fn from(s: TrafficStats) -> Self {
        let TrafficStats { name, packets, bytes, delivered_packets, dropped_packets } = s;
        Self { name, packets, bytes, delivered_packets, dropped_packets }
    }
}

impl Report {
    /// A report of rows.
    pub fn new(records: u64, records_sha256: String, interrupted: bool) -> Self {
        Self { records, records_sha256, interrupted, ..Self::default() }
    }

    /// Adds the accounts of the built-in network.
    pub fn network(&mut self, network: &Network) {
        self.accounts(network.link_stats(), network.traffic_stats());
    }

    /// Adds accounts of links and background traffic.
    pub fn accounts(&mut self, links: Vec<LinkStats>, traffic: Vec<TrafficStats>) {
        self.links = links.into_iter().map(Link::from).collect();
        self.traffic = traffic.into_iter().map(Traffic::from).collect();
    }

    /// Adds what a node counted.
    pub fn node(&mut self, plan: &Plan, id: u16, node: NodeReport) {
        for (component, flow, kind, name, stats) in node.stages {
            let (component, flow) =
                (&plan.components[component as usize].name, &plan.flows[flow as usize].name);
            if let Some(text) = stats.error {
                self.errors
                    .push(format!("hook {name} at {component} ({flow}): {text}, {} times", stats.failures));
            }
            if stats.not_finite > 0 {
                let said = "gave out values that are no numbers";
                self.errors
                    .push(format!("hook {name} at {component} ({flow}): {said}, {} times", stats.not_finite));
            }
            self.stages.push(Stage {
                component: component.clone(),
                flow: flow.clone(),
                kind: kind_name(kind),
                name,
                calls: stats.calls,
                failures: stats.failures,
                not_finite: stats.not_finite,
                overruns: stats.overruns,
                cpu_ns: Spread::of(&stats.cost_ns),
                quantiles_ns: quantiles(&stats.cost_ns),
            });
        }
        for (component, text) in node.failed_robots {
            self.errors.push(format!("robot {}: {text}", plan.components[component as usize].name));
        }
        for (component, pace) in node.paces {
            let (component, node) =
                (&plan.components[component as usize].name, &plan.nodes[id as usize].name);
            self.robots.push(RobotSelf::new(component, node, pace));
        }
        for (channel, text) in node.failed_endpoints {
            let (c, at) = (&plan.channels[channel as usize], &plan.nodes[id as usize].name);
            self.errors.push(format!("transport {} of {} at {at}: {text}", c.transport, c.name));
        }
        for (channel, s, strays) in node.endpoints {
            let c = &plan.channels[channel as usize];
            self.endpoints.push(Endpoint {
                channel: c.name.clone(),
                side: plan.nodes[id as usize].name.clone(),
                malformed: s.malformed + strays,
                duplicates: s.duplicates,
                incomplete: s.incomplete,
                recovered: s.recovered,
                lost: s.lost,
                reports: s.reports,
                rtt_ns: s.rtt_ns,
                jitter_ns: s.jitter_ns,
                peer_loss: s.peer_fraction_lost.map(|f| f64::from(f) / 256.0),
                refused: s.refused,
                retransmits: s.retransmits,
                unanswered: s.unanswered,
                told: s.told.map(PacketsTold::from),
                connections: None,
            });
        }
        for (component, line) in node.boards {
            let component = plan.components[component as usize].name.clone();
            if let Some(Gone { at_s, why }) = &line.gone {
                self.errors.push(format!(
                    "board {component}: {why}, at {at_s:.3} s; its samples were lost from then on"
                ));
            }
            self.boards.push(Board { component, line });
        }
        if let (Some(e), Some(sync)) = (node.clock, plan.sync.as_ref()) {
            self.clocks.push(Clock {
                node: plan.nodes[id as usize].name.clone(),
                reference: plan.nodes[sync.reference as usize].name.clone(),
                offset_ns: e.offset_ns,
                drift_ppb: e.drift_ppb,
                bound_ns: e.bound_ns,
                exchanges: e.exchanges,
                at_ns: e.at_ns,
                true_error_ns: None,
            });
        }
        let n = &plan.nodes[id as usize];
        self.nodes.push(NodeSelf {
            name: n.name.clone(),
            cores: n.cores,
            missed_ticks: node.missed_ticks,
            asides_refused: node.asides_refused,
            ..NodeSelf::default()
        });
    }

    /// Adds what became of the connections of a channel.
    pub fn connections(&mut self, plan: &Plan, channel: u16, connections: Connections) {
        let name = &plan.channels[usize::from(channel)].name;
        let own = self.endpoints.iter_mut().find(|e| e.channel == *name);
        own.into_iter().for_each(|e| e.connections = Some(connections));
    }

    /// Adds the core time of a simulated node.
    pub fn virtual_node(&mut self, id: usize, busy_ns: Time) {
        self.nodes[id].busy_s = busy_ns as f64 / 1e9;
    }
}

/// Compares clock estimates with the clocks that the plan gives the nodes (both worlds put them in themselves), as they
/// are at the end.
pub fn true_clock_errors(plan: &Plan, report: &mut Report) {
    let find = |name: &str| {
        let node = plan.nodes.iter().position(|n| n.name == name)?;
        Some(plan.clock_at(node as u16, plan.duration_ns))
    };
    for c in &mut report.clocks {
        if let (Some(node), Some(reference)) = (find(&c.node), find(&c.reference)) {
            let t = c.at_ns - node.error(c.at_ns);
            let truth = reference.read(t) - node.read(t);
            c.true_error_ns = Some(c.offset_ns - truth);
        }
    }
}

fn kind_name(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Decode => "decode",
        StepKind::Kinematics => "kinematics",
        StepKind::InverseKinematics => "inverse_kinematics",
        StepKind::Predict => "predict",
        StepKind::Sense => "sense",
        StepKind::Feedback => "feedback",
        StepKind::Code => "code",
        StepKind::Work => "work",
        StepKind::Capture => "capture",
        StepKind::Show => "show",
    }
}
