//! Rows made by hand with known answers.

mod attack;
mod echo;
mod flow;
mod live;
mod whole;

use super::*;
use serde_json::{json, Value};
use tcps_core::{
    ids::{ComponentId, FlowId, NodeId},
    record::Record,
    sample::PointId,
    time::{MS, SECOND},
};

fn entry(component: u16) -> u16 {
    PointId::entry(ComponentId(component)).0
}

fn exit(component: u16) -> u16 {
    PointId::exit(ComponentId(component)).0
}

fn held(component: u16) -> u16 {
    PointId::held(ComponentId(component)).0
}

/// hand -> srv -> robot with a channel on each hop, one flow at 1 kHz, one probe.
fn plan(duration_ns: Time, extra: Value) -> Plan {
    let component = |name: &str, node: u16| json!({"name": name, "kind": name, "session": 0, "node": node});
    let mut plan = json!({
        "name": "test", "seed": 1, "duration_ns": duration_ns, "sessions": ["main"],
        "nodes": [{"name": "n0"}, {"name": "n1"}, {"name": "n2", "clock": {"offset_ns": 7000, "drift_ppb": 50_000}}],
        "components": [component("hand", 0), component("srv", 1), component("robot", 2)],
        "flows": [{
            "name": "kinematic", "session": 0, "direction": "forward", "period_ns": MS, "codec": "f32",
            "source": {"kind": "generated", "bytes": 24}, "sink": {"kind": "count"},
            "path": [{"component": 0, "channel": 0}, {"component": 1, "channel": 1}, {"component": 2}],
        }],
        "channels": [
            {"name": "c0", "session": 0, "a": 0, "b": 1, "transport": "udp"},
            {"name": "c1", "session": 0, "a": 1, "b": 2, "transport": "udp"},
        ],
        "network": {"vertices": ["n0", "n1", "n2"], "links": [
            {"name": "l1.forward", "from": 0, "to": 1}, {"name": "l2.forward", "from": 1, "to": 2},
        ]},
        "events": [{"at_ns": 5, "name": "wall", "action": {"kind": "reroute"}}],
    });
    if let (Some(into), Value::Object(extra)) = (plan.as_object_mut(), extra) {
        into.extend(extra);
    }
    serde_json::from_value(plan).unwrap()
}

/// Rows in a buffer, sorted by time as a recorder leaves them.
#[derive(Default)]
struct Tape(Vec<Record>);

impl Tape {
    fn row(&mut self, time_ns: Time, kind: Kind, index: u32, value: i64) -> &mut Record {
        self.0.push(Record { index, value, flow: FlowId(0), node: NodeId(0), ..Record::new(time_ns, kind) });
        self.0.last_mut().unwrap()
    }

    fn sent(&mut self, index: u32) {
        let time_ns = index as Time * MS;
        let row = self.row(time_ns, Kind::Sent, index, time_ns);
        (row.point, row.size) = (exit(0), 24);
    }

    fn delivered(&mut self, index: u32, delay_ns: i64) {
        let row = self.row(index as Time * MS + delay_ns, Kind::Delivered, index, delay_ns);
        (row.point, row.size) = (entry(2), 24);
    }

    /// A sample that spends `spans` on link, srv, link.
    fn whole(&mut self, index: u32, spans: [i64; 3]) {
        self.sent(index);
        let (a, b) = (spans[0], spans[0] + spans[1]);
        self.row(index as Time * MS + a, Kind::Enter, index, a).point = entry(1);
        self.row(index as Time * MS + b, Kind::Exit, index, b).point = exit(1);
        self.delivered(index, b + spans[2]);
    }

    fn bytes(mut self) -> Vec<u8> {
        self.0.sort_by_key(|r| r.time_ns);
        self.0.iter().flat_map(Record::to_bytes).collect()
    }

    fn analyse(self, plan: &Plan, options: &Options) -> Analysis {
        analyse(&self.bytes()[..], plan, options).unwrap()
    }
}

/// Three points asked in turn: entry and exit of srv, entry of the robot, and its movement.
fn probe() -> Value {
    json!({"probes": [{"flow": 0, "points": [exit(1), entry(1), entry(2), exit(2), held(2)], "period_ns": 10 * MS, "reply_to": 0}]})
}
