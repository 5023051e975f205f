//! Where the time of samples goes: the parts of each add up to its true time, whatever lies on its way.
//!
//! That no part of any sample is below nothing, and that they add up to the nanosecond, is asserted where samples are counted.

use crate::common::{chain, of, simulate, MS};
use serde_json::{json, Map, Value};
use tcps_core::record::Kind;

/// The split of the forward flow of a plan, after a look at whether its sums are those of the rows.
fn split(plan: &Value, name: &str) -> Value {
    let (report, rows) = simulate(plan, &format!("split-{name}"));
    let split = serde_json::to_value(&report.split).unwrap()[0].clone();
    let made: std::collections::BTreeMap<u32, i64> =
        of(&rows, Kind::Sent).iter().filter(|r| r.flow == 0).map(|r| (r.index, r.time_ns)).collect();
    let came = of(&rows, Kind::Verified);
    let total: i64 = came.iter().map(|r| r.time_ns - made[&r.index]).sum();
    assert_eq!(split["samples"], came.len(), "{name}");
    let parts = split["parts_ns"].as_object().expect("parts");
    assert_eq!(parts.values().map(|p| p["sum"].as_i64().unwrap()).sum::<i64>(), total, "{name}: {parts:?}");
    let mean = total as f64 / came.len() as f64;
    assert!((split["total_ns"].as_f64().unwrap() - mean).abs() < 1e-3, "{name}");
    assert!(came.len() > 100, "{name}: {}", came.len());
    split
}

fn mean(split: &Value, part: &str) -> f64 {
    split["parts_ns"][part]["mean"].as_f64().unwrap_or(0.0)
}

/// A plan with keys of its first link, and the names of the parts that its samples then have.
fn over(keys: Value) -> Value {
    let mut plan = chain();
    let link = plan["network"]["links"][0].as_object_mut().expect("a link");
    link.extend(keys.as_object().cloned().unwrap_or_else(Map::new));
    plan
}

fn names(split: &Value) -> Vec<&str> {
    split["parts_ns"].as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn propagation_and_serialisation_are_those_of_arithmetic() {
    let plan = over(json!({"rate_bps": 1e6}));
    let found = split(&plan, "line");
    assert_eq!(names(&found), ["propagation", "serialisation"]);
    assert_eq!(mean(&found, "propagation"), 10e6, "two links of 5 ms");
    let bytes = mean(&found, "serialisation") / 8_000.0;
    assert_eq!(bytes, bytes.round(), "8 µs a byte");
    let hops = found["hops"].as_array().unwrap();
    assert_eq!(hops[0]["link"], "l1.forward");
    assert_eq!(hops[0]["serialisation_ns"], found["parts_ns"]["serialisation"]["mean"]);
}

#[test]
fn a_queue_is_where_it_is() {
    let plan = over(json!({"rate_bps": 500e3, "queue": {"limit_bytes": 5000}}));
    let found = split(&plan, "queue");
    assert!(mean(&found, "queueing") > 20e6, "{found}");
    let hop = &found["hops"][0];
    // Samples that are still in the queue at the end are in the account of the link only.
    assert!((hop["queueing_ns"].as_f64().unwrap() / mean(&found, "queueing") - 1.0).abs() < 0.05, "{found}");
}

#[test]
fn a_core_is_waited_for_and_used() {
    let mut plan = chain();
    let cost = |ns: i64| json!([{"kind": "work", "cost": {"kind": "constant", "ns": ns}, "delay": {"kind": "constant", "ns": MS}}]);
    plan["flows"][0]["path"][1]["steps"] = cost(600_000);
    let mut other = plan["flows"][0].clone();
    other["name"] = json!("other");
    other["sink"] = json!({"kind": "count"});
    plan["flows"].as_array_mut().unwrap().push(other);
    plan["flows"][1]["path"][1]["steps"] = cost(300_000);
    let found = split(&plan, "core");
    assert_eq!(names(&found), ["delay", "propagation", "working"]);
    assert_eq!((mean(&found, "working"), mean(&found, "delay")), (6e5, 1e6));
    let (report, _) = simulate(&plan, "split-other");
    let other = serde_json::to_value(&report.split).unwrap()[1].clone();
    assert_eq!((mean(&other, "waiting"), mean(&other, "working")), (6e5, 3e5), "it comes behind the first");
    assert_eq!(other["components"][1]["component"], "srv");
    assert_eq!(other["components"][1]["waiting_ns"], 6e5);
    plan["nodes"][1]["scheduling"] = json!({"kind": "round_robin", "quantum_ns": 100_000});
    assert!(mean(&split(&plan, "turns"), "waiting") > 2e5, "in turns the first waits too");
}

#[test]
fn playout_keeps_samples_until_their_moment() {
    let uniform = json!({"kind": "uniform", "low_ns": 0, "high_ns": 8 * MS});
    for reorder in [false, true] {
        let mut plan = over(json!({"jitter": {"delay": uniform, "reorder": reorder}}));
        plan["flows"][0]["playout"] = json!({"kind": "fixed", "delay_ns": 30 * MS});
        let found = split(&plan, "playout");
        assert_eq!(found["total_ns"], 30e6, "{found}");
        assert_eq!(names(&found), ["playout", "propagation"]);
    }
}

#[test]
fn what_is_lost_is_sent_again_and_holds_up_what_comes_behind() {
    let mut plan = over(json!({"loss": {"kind": "random", "p": 0.05}, "rate_bps": 10e6}));
    plan["channels"][0]["transport"] = json!("tcp");
    let found = split(&plan, "tcp");
    assert!(mean(&found, "held") + mean(&found, "endpoint") > 1e6, "{found}");
}

#[test]
fn media_that_are_shared_and_radio_links_add_up() {
    let nr = |up: bool| {
        json!({"kind": "nr", "slot_ns": MS / 2, "pattern": "DDDSU", "up": up, "processing_ns": 200_000, "block_error": 0.1,
            "again_ns": 4 * MS, "retransmissions": 3, "access": {"kind": "request", "period_ns": 5 * MS, "grant_ns": 2 * MS}})
    };
    for up in [false, true] {
        let found = split(&over(json!({"rate_bps": 50e6, "radio": nr(up)})), "nr");
        assert!(mean(&found, "radio") > 2e5 && mean(&found, "queueing") > 1e5, "{found}");
        assert_eq!(found["hops"][0]["link"], "l1.forward");
    }
    let mut plan = over(json!({"rate_bps": 2e6, "medium": "air", "duplicate": 0.1, "corrupt": 0.1}));
    plan["network"]["links"][1] =
        json!({"name": "l1.backward", "from": 1, "to": 0, "rate_bps": 2e6, "delay_ns": MS, "medium": "air"});
    plan["network"]["traffic"] = json!([
        {"name": "t", "from": 1, "to": 0, "model": {"kind": "poisson", "rate_bps": 8e5, "packet_bytes": 500}}]);
    let found = split(&plan, "medium");
    assert!(mean(&found, "queueing") > 1e5, "{found}");
    let trace = json!({"opportunities_ns": [2 * MS, 3 * MS, 9 * MS]});
    assert!(mean(&split(&over(trace), "trace"), "queueing") > 1e6);
}

#[test]
fn links_that_change_take_nothing_and_add_nothing() {
    let mut plan = over(json!({"rate_bps": 700e3}));
    let change = |at: i64, rate: f64| json!({"at_ns": at * MS, "name": "e", "action": {"kind": "link", "links": [0], "rate_bps": rate, "delay_ns": MS}});
    plan["events"] = json!([change(200, 400e3), change(500, 5e6), change(700, 300e3)]);
    assert!(mean(&split(&plan, "events"), "queueing") > 1e6);
}

#[test]
fn the_error_of_clocks_is_apart() {
    let mut plan = chain();
    plan["nodes"][2]["clock"] = json!({"offset_ns": 3 * MS, "drift_ppb": 0});
    let found = split(&plan, "clock");
    assert_eq!((&found["total_ns"], &found["clock_error_ns"]), (&json!(10e6), &json!(3e6)));
}

#[test]
fn costs_of_send_calls_and_interrupts_are_the_systems() {
    let mut plan = chain();
    for node in 0..3 {
        for key in ["send", "receive"] {
            plan["nodes"][node][key] = json!({"kind": "constant", "ns": 20_000});
        }
    }
    assert_eq!(mean(&split(&plan, "system"), "system"), 80e3, "two sends and two receives");
}
