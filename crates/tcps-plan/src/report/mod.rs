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
pub use endpoint::Endpoint;
pub use network::{Emulated, EmulatedPath, Link, Recent, Traffic};
pub use node::{Boundary, NodeSelf, RealSelf};
pub use robot::RobotSelf;
pub use split::{splits, Split};
pub use spread::{quantiles, CodeCost, Drawn, Spread};
pub use stage::Stage;

use crate::{
    net::{Hops, LinkStats, TrafficStats},
    Plan,
};
use serde::Serialize;
use tcps_core::{
    ids::{ComponentId, FlowId, NodeId},
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
    /// Where the time of samples went, by flow; on sockets what nodes and emulator know of it, each its own.
    pub split: Vec<Split>,
    /// On sockets, what the user's Python code in the network took.
    pub code: Vec<CodeCost>,
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

    /// Adds where the time of samples went at a node on the machine's clock, by flow, whether
    /// they end there, and leg; to be called before the node is added.
    pub fn legs(&mut self, plan: &Plan, legs: &[(FlowId, bool, FlowSplit)]) {
        for (flow, ends, split) in legs {
            let leg = Split::new(&plan.flows[*flow].name, split);
            self.split.extend(leg.map(|leg| leg.leg(*ends)));
        }
    }

    /// Adds where the time of packets went at the links of an emulator, by flow.
    pub fn hops(&mut self, plan: &Plan, hops: &[Hops]) {
        for (id, flow) in FlowId::each(&plan.flows) {
            let mut split = Split::nowhere(&flow.name);
            for (link, hops) in hops.iter().enumerate() {
                hops.of(id).into_iter().for_each(|hop| split.hop(plan, link, hop));
            }
            self.split.extend(Some(split).filter(Split::has_hops));
        }
    }

    /// Adds what a node counted.
    pub fn node(&mut self, plan: &Plan, id: NodeId, told: NodeReport) {
        let component = |c: ComponentId| &plan.components[c].name;
        let n = &plan.nodes[id];
        for (component, flow, kind, name, stats) in told.stages {
            let (stage, failed) = Stage::new(plan, (component, flow), kind, name, stats);
            self.stages.push(stage);
            self.errors.extend(failed);
        }
        for (c, flow, visited) in told.visits {
            let flow = &plan.flows[flow].name;
            let split = self.split.iter_mut().find(|s| s.is_of(flow));
            split.into_iter().for_each(|s| s.visit(plan, c, &visited));
        }
        if let Some((at, c, text)) = told.died {
            self.interrupted = true;
            self.errors.push(format!(
                "{} failed at {:.3} s, which ended the run: {text}",
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
            let c = &plan.channels[channel];
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

    /// Adds the core time of a simulated node.
    pub fn virtual_node(&mut self, id: usize, busy_ns: Time) {
        self.nodes[id].busy_s = busy_ns as f64 / 1e9;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Hop;
    use serde_json::{json, Value};
    use tcps_core::{
        endpoint::EndpointStats,
        ids::ChannelId,
        record::StepKind,
        report::{ClockEstimate, StepStats, Visited},
        robot::Pace,
        split::{Part, Parts},
        time::{MS, SECOND},
    };

    /// Two flows over two links; the clock of `far` is 2 ms late, that of `near` 5 ms early and 100 ppm fast.
    fn plan() -> Plan {
        let flow = |name| {
            json!({"name": name, "session": 0, "direction": "forward", "period_ns": 1, "codec": "raw",
                   "source": {"kind": "generated", "bytes": 1}, "sink": {"kind": "count"}, "path": [{"component": 0}]})
        };
        let [near, far] = [(5 * MS, 100_000), (-2 * MS, 0)]
            .map(|(offset_ns, drift_ppb)| json!({"offset_ns": offset_ns, "drift_ppb": drift_ppb}));
        serde_json::from_value(json!({
            "name": "p", "seed": 1, "duration_ns": 1, "sessions": ["a"],
            "nodes": [{"name": "near", "clock": near}, {"name": "far", "clock": far}],
            "components": [{"name": "arm", "kind": "x", "session": 0, "node": 0}],
            "flows": [flow("f"), flow("g")],
            "network": {"links": [{"name": "l1", "from": 0, "to": 1}, {"name": "l2", "from": 1, "to": 0}]},
            "sync": {"reference": 1, "period_ns": 1},
        }))
        .expect("a plan")
    }

    /// The report of a node at which nothing happened.
    fn nothing() -> NodeReport {
        NodeReport {
            stages: Vec::new(),
            visits: Vec::new(),
            endpoints: Vec::new(),
            missed_ticks: 0,
            asides_refused: 0,
            died: None,
            failed_robots: Vec::new(),
            paces: Vec::new(),
            failed_endpoints: Vec::new(),
            clock: None,
            boards: Vec::new(),
        }
    }

    #[test]
    fn an_emulator_says_where_the_time_of_each_flow_went_at_each_link() {
        let [mut first, mut second] = [Hops::default(), Hops::default()];
        let hop =
            |n| Hop { queued_ns: n, serial_ns: 2 * n, propagated_ns: 3 * n, again_ns: 4 * n, packets: 0 };
        [10, 30].into_iter().for_each(|n| first.add(1, 1, &hop(n)));
        second.add(1, 1, &hop(7));
        let mut report = Report::default();
        report.hops(&plan(), &[first, second]);
        let seen = Visited { samples: 4, waiting_ns: 8, working_ns: 12 };
        let others = Visited { samples: 9, ..seen };
        let visits = vec![(ComponentId(0), FlowId(0), others), (ComponentId(0), FlowId(1), seen)];
        report.node(&plan(), NodeId(0), NodeReport { visits, ..nothing() });
        let link = |name, packets, n: f64| {
            json!({"link": name, "packets": packets, "queueing_ns": n, "serialisation_ns": 2.0 * n,
                   "propagation_ns": 3.0 * n, "radio_ns": 4.0 * n})
        };
        let found = serde_json::to_value(&report.split).unwrap();
        assert_eq!(found.as_array().map(Vec::len), Some(1), "no packet of the flow f passed a link: {found}");
        assert_eq!((&found[0]["flow"], &found[0]["ends"]), (&json!("g"), &json!(false)));
        assert_eq!(found[0]["hops"], json!([link("l1", 2, 20.0), link("l2", 1, 7.0)]));
        let arm = json!([{"component": "arm", "samples": 4, "waiting_ns": 2.0, "working_ns": 3.0}]);
        assert_eq!(found[0]["components"], arm, "once, and nothing of the flow f");
    }

    /// After 10 s the reference is 2 ms + 5 ms + 1 ms behind.
    #[test]
    fn an_estimate_of_a_clock_is_compared_with_the_truth_at_its_moment() {
        let (at_ns, offset_ns) = (10 * SECOND + 6 * MS, -8 * MS + 300);
        let estimate = ClockEstimate { at_ns, offset_ns, drift_ppb: 0.0, bound_ns: 1, exchanges: 1 };
        let mut report = Report::default();
        report.node(&plan(), NodeId(0), NodeReport { clock: Some(estimate), ..nothing() });
        true_clock_errors(&plan(), &mut report.clocks);
        let found = serde_json::to_value(&report.clocks[0]).unwrap();
        assert_eq!((&found["node"], &found["reference"]), (&json!("near"), &json!("far")));
        let error_ns = found["true_error_ns"].as_i64().unwrap();
        assert!((299..=301).contains(&error_ns), "{error_ns}");
    }

    /// Python shows what a node counted; a key that is lost shows as 0, as if nothing had happened.
    #[test]
    fn a_node_tells_what_it_counted() {
        let plan = crate::tests::plan(&[("/nodes/1/cores", json!(3))]);
        let mut report = Report::new(9, "hash".into(), false);
        let pace = Pace {
            ticks: 1,
            missed_ticks: 2,
            gaps_over_1ms: 3,
            watchdog: 4,
            p50_ns: 5,
            p99_ns: 6,
            max_ns: 7,
        };
        let stats = EndpointStats { malformed: 2, peer_fraction_lost: Some(64), ..Default::default() };
        report.node(
            &plan,
            NodeId(1),
            NodeReport {
                missed_ticks: 5,
                asides_refused: 6,
                paces: vec![(ComponentId(2), pace)],
                endpoints: vec![(ChannelId(0), stats, 3)],
                boards: vec![(ComponentId(1), BoardLine { sent: 8, ..Default::default() })],
                ..nothing()
            },
        );
        report.virtual_node(0, 1_500_000_000);
        let found = serde_json::to_value(&report).unwrap();
        let node =
            json!({"name": "right", "cores": 3, "busy_s": 1.5, "missed_ticks": 5, "asides_refused": 6});
        assert_eq!(found["nodes"], json!([node]));
        let late = json!({"p50": 5, "p99": 6, "max": 7});
        let robot = json!({"component": "arm", "node": "right", "ticks": 1, "missed_ticks": 2, "late_ns": late,
                           "gaps_over_1ms": 3, "watchdog": 4});
        assert_eq!(found["robots"], json!([robot]));
        let endpoint = &found["endpoints"][0];
        assert_eq!((&endpoint["channel"], &endpoint["side"]), (&json!("c"), &json!("right")));
        assert_eq!(
            (&endpoint["malformed"], &endpoint["peer_loss"]),
            (&json!(5), &json!(0.25)),
            "with strays"
        );
        let board = &found["boards"][0];
        assert_eq!((&board["component"], &board["sent"]), (&json!("com"), &json!(8)));
        let rows = [&found["records"], &found["records_sha256"], &found["interrupted"], &found["errors"]];
        assert_eq!(rows, [&json!(9), &json!("hash"), &json!(false), &json!([])]);
    }

    /// These lines are all that a user sees of them; only a death ends a run.
    #[test]
    fn each_failure_of_a_node_is_told_in_words() {
        let stats = StepStats {
            failures: 4,
            error: Some("division by zero".into()),
            not_finite: 2,
            ends: vec!["end failed".into()],
            ..Default::default()
        };
        let gone = Gone { at_s: 0.25, why: "unplugged".into() };
        let failures = NodeReport {
            stages: vec![(ComponentId(1), FlowId(0), StepKind::Kinematics, "m:C".into(), stats)],
            failed_robots: vec![(ComponentId(2), "torn".into())],
            failed_endpoints: vec![(ChannelId(0), "no class".into())],
            boards: vec![(ComponentId(1), BoardLine { gone: Some(gone), ..Default::default() })],
            ..nothing()
        };
        let mut report = Report::default();
        report.node(&crate::tests::plan(&[]), NodeId(0), failures);
        assert_eq!(
            report.errors,
            [
                "hook m:C at com (f): division by zero, 4 times",
                "hook m:C at com (f): returned values that are not finite, 2 times",
                "hook m:C at com (f): end failed",
                "robot arm: torn",
                "transport udp of c at left: no class",
                "board com: unplugged, at 0.250 s; its samples were lost from then on",
            ]
        );
        assert!(!report.interrupted);
        let died = Some((1_500_000_000, ComponentId(0), "killed".into()));
        report.node(&crate::tests::plan(&[]), NodeId(0), NodeReport { died, ..nothing() });
        let last = report.errors.last().map(String::as_str);
        assert_eq!(last, Some("op failed at 1.500 s, which ended the run: killed"));
        assert!(report.interrupted);
    }

    /// On sockets each node knows its leg only: legs that lead on are not the time to the sink.
    #[test]
    fn a_split_tells_the_means_of_its_parts_and_whether_it_ends_at_the_sink() {
        let mut split = FlowSplit::default();
        for span in [10, 30] {
            let mut parts = Parts::new(100);
            parts.take(Part::Working, span);
            parts.take(Part::Queueing, 4);
            split.add(&parts, 6);
        }
        let (f, g, none) = (FlowId(0), FlowId(1), FlowSplit::default());
        let mut report = Report::default();
        report
            .legs(&plan(), &[(f, true, split.clone()), (g, false, split.clone()), (f, false, none.clone())]);
        let found = serde_json::to_value(&report.split).unwrap();
        let leg = |flow, ends, hops: Value| {
            json!({"flow": flow, "ends": ends, "samples": 2, "total_ns": 24.0, "clock_error_ns": 6.0, "components": [],
                   "parts_ns": {"working": {"sum": 40, "mean": 20.0, "p99": 30},
                                "queueing": {"sum": 8, "mean": 4.0, "p99": 4}},
                   "hops": hops})
        };
        assert_eq!(found, json!([leg("f", true, json!([])), leg("g", false, json!([]))]));

        let mut hops = Hops::default();
        hops.add(1, 1, &Hop { queued_ns: 5, ..Hop::default() });
        let found = serde_json::to_value(splits(&plan(), &[none, split], &[Hops::default(), hops])).unwrap();
        let hop = json!({"link": "l2", "packets": 1, "queueing_ns": 5.0, "serialisation_ns": 0.0,
                         "propagation_ns": 0.0, "radio_ns": 0.0});
        assert_eq!(found, json!([leg("g", true, json!([hop]))]), "in simulated time all ends are known");
    }

    #[test]
    fn the_accounts_of_a_network_are_those_of_its_links_and_of_its_traffic() {
        let link = LinkStats { name: "l1".into(), packets: 2, ..Default::default() };
        let traffic = TrafficStats {
            name: "t".into(),
            packets: 5,
            bytes: 500,
            delivered_packets: 3,
            dropped_packets: 2,
        };
        let mut report = Report::default();
        report.accounts(vec![link], vec![traffic]);
        let found = serde_json::to_value(&report).unwrap();
        assert_eq!((&found["links"][0]["name"], &found["links"][0]["packets"]), (&json!("l1"), &json!(2)));
        let told =
            json!({"name": "t", "packets": 5, "bytes": 500, "delivered_packets": 3, "dropped_packets": 2});
        assert_eq!(found["traffic"], json!([told]));
    }
}
