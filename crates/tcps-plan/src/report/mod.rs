//! What a run tells about itself, as JSON beside the rows.

mod board;
mod clock;
mod endpoint;
mod network;
mod node;
mod robot;
mod split;
mod spread;
mod stage;

pub use board::Board;
pub use clock::{true_clock_errors, Clock};
pub use endpoint::{Connections, Endpoint};
pub use network::{Emulated, EmulatedPath, Link, Recent, Traffic};
pub use node::{Boundary, NodeSelf, RealSelf};
pub use robot::RobotSelf;
pub use split::Split;
pub use spread::{quantiles, Spread};
pub use stage::Stage;

use crate::{
    net::{Hops, LinkStats, TrafficStats},
    Plan,
};
use serde::Serialize;
use tcps_core::{
    report::{BoardLine, Gone, NodeReport},
    split::FlowSplit,
    time::Time,
};

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
    pub emulator: Vec<EmulatedPath>,
    /// Clock estimates.
    pub clocks: Vec<Clock>,
    /// Boards and their lines.
    pub boards: Vec<Board>,
    /// Where the time of samples went, by flow; only in virtual time.
    pub split: Vec<Split>,
    /// What failed, in words.
    pub errors: Vec<String>,
}

impl Report {
    /// A report of rows.
    pub fn new(records: u64, records_sha256: String, interrupted: bool) -> Self {
        Self { records, records_sha256, interrupted, ..Self::default() }
    }

    /// Adds accounts of links and background traffic.
    pub fn accounts(&mut self, links: Vec<LinkStats>, traffic: Vec<TrafficStats>) {
        self.links = links.into_iter().map(Link::from).collect();
        self.traffic = traffic.into_iter().map(Traffic::from).collect();
    }

    /// Adds where the time of each flow's samples went, and of its packets at each link; to be called before nodes are added.
    pub fn split(&mut self, plan: &Plan, splits: &[FlowSplit], hops: &[Hops]) {
        for (id, split) in (0u16..).zip(splits) {
            let Some(mut split) = Split::new(&plan.flows[usize::from(id)].name, split) else { continue };
            for (link, hops) in hops.iter().enumerate() {
                hops.of(id).into_iter().for_each(|hop| split.hop(plan, link, hop));
            }
            self.split.push(split);
        }
    }

    /// Adds what a node counted.
    pub fn node(&mut self, plan: &Plan, id: u16, told: NodeReport) {
        let component = |c: u16| &plan.components[usize::from(c)].name;
        let n = &plan.nodes[usize::from(id)];
        for (component, flow, kind, name, stats) in told.stages {
            let (stage, failed) = Stage::new(plan, (component, flow), kind, name, stats);
            self.stages.push(stage);
            self.errors.extend(failed);
        }
        for (c, flow, visited) in told.visits {
            let flow = &plan.flows[usize::from(flow)].name;
            let split = self.split.iter_mut().find(|s| s.is_of(flow));
            split.into_iter().for_each(|s| s.visit(plan, c, &visited));
        }
        if let Some((at, c, text)) = told.died {
            self.interrupted = true;
            self.errors.push(format!(
                "{} lost what it works with at {:.3} s, and the run was ended: {text}",
                component(c),
                at as f64 / 1e9
            ));
        }
        for (c, text) in told.failed_robots {
            self.errors.push(format!("robot {}: {text}", component(c)));
        }
        for (c, pace) in told.paces {
            self.robots.push(RobotSelf::new(component(c), &n.name, pace));
        }
        for (channel, text) in told.failed_endpoints {
            let c = &plan.channels[usize::from(channel)];
            self.errors.push(format!("transport {} of {} at {}: {text}", c.transport, c.name, n.name));
        }
        for (channel, stats, strays) in told.endpoints {
            self.endpoints.push(Endpoint::new(plan, id, channel, stats, strays));
        }
        for (c, line) in told.boards {
            self.board(component(c), line);
        }
        if let (Some(estimate), Some(sync)) = (told.clock, plan.sync.as_ref()) {
            self.clocks.push(Clock::new(plan, id, sync.reference, estimate));
        }
        self.nodes.push(NodeSelf {
            name: n.name.clone(),
            cores: n.cores,
            missed_ticks: told.missed_ticks,
            asides_refused: told.asides_refused,
            ..NodeSelf::default()
        });
    }

    fn board(&mut self, component: &str, line: BoardLine) {
        if let Some(Gone { at_s, why }) = &line.gone {
            self.errors.push(format!(
                "board {component}: {why}, at {at_s:.3} s; its samples were lost from then on"
            ));
        }
        self.boards.push(Board { component: component.into(), line });
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
