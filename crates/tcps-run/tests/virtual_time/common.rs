//! A teleoperation of three nodes as a plan, and what its virtual run left.

use serde_json::{json, Value};
use std::path::PathBuf;
use tcps_core::record::{Kind, Record, RECORD_BYTES};
use tcps_plan::{report::Report, Plan};
use tcps_run::{
    assets::Disk,
    virtual_time::{run, Options},
};

pub const MS: i64 = 1_000_000;

/// Operator, server and arm on three nodes; a forward flow at 1 kHz over two channels.
pub fn chain() -> Value {
    json!({
        "name": "chain", "seed": 1, "duration_ns": 1000 * MS, "sessions": ["main"],
        "nodes": [{"name": "op"}, {"name": "edge"}, {"name": "top"}],
        "components": [
            {"name": "operator", "kind": "tactile-operator", "session": 0, "node": 0},
            {"name": "srv", "kind": "srv", "session": 0, "node": 1},
            {"name": "arm", "kind": "tactile-teleoperator", "session": 0, "node": 2}],
        "flows": [{
            "name": "kinematic", "session": 0, "direction": "forward", "period_ns": MS, "codec": "f32",
            "source": {"kind": "generated", "bytes": 24}, "sink": {"kind": "verify"},
            "path": [{"component": 0, "channel": 0}, {"component": 1, "channel": 1}, {"component": 2}]}],
        "channels": [
            {"name": "a", "session": 0, "a": 0, "b": 1, "transport": "udp"},
            {"name": "b", "session": 0, "a": 1, "b": 2, "transport": "udp"}],
        "network": {
            "vertices": ["op", "edge", "top"],
            "links": [link("l1.forward", 0, 1), link("l1.backward", 1, 0), link("l2.forward", 1, 2), link("l2.backward", 2, 1)]},
    })
}

pub fn link(name: &str, from: u16, to: u16) -> Value {
    json!({"name": name, "from": from, "to": to, "delay_ns": 5 * MS})
}

pub fn simulate(plan: &Value, name: &str) -> (Report, Vec<Record>) {
    let plan: Plan = serde_json::from_value(plan.clone()).expect("a plan");
    let path: PathBuf = std::env::temp_dir().join(format!("tcps-virtual-{name}-{}", std::process::id()));
    let options = Options { records: Some(&path), pcapng: None, progress: None, every_ns: None };
    let report = run(&plan, &mut Disk, options).expect("a run");
    let bytes = std::fs::read(&path).expect("rows");
    std::fs::remove_file(&path).expect("rows");
    let rows =
        bytes.chunks_exact(RECORD_BYTES).map(|b| Record::from_bytes(b.try_into().unwrap()).expect("a row"));
    (report, rows.collect())
}

pub fn of(rows: &[Record], kind: Kind) -> Vec<Record> {
    rows.iter().filter(|r| r.kind == kind).copied().collect()
}

/// What a plan that cannot run is refused with.
pub fn refusal(plan: Value) -> String {
    let plan: Plan = serde_json::from_value(plan).expect("a plan");
    let options = Options { records: None, pcapng: None, progress: None, every_ns: None };
    run(&plan, &mut Disk, options).expect_err("refused").to_string()
}
