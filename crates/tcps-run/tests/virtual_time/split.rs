//! Where the time of samples goes: the parts of each add up to its true time, whatever lies on its way.
//!
//! That no part of any sample is below nothing, and that they add up to the nanosecond, is asserted where samples are counted.

use crate::common::{chain, link, of, simulate, MS};
use serde_json::{json, Map, Value};
use tcps_core::{
    ids::NodeId,
    record::{Kind, Record},
};

/// The split of the forward flow of a plan, after a look at whether its sums are those of the rows.
fn split(plan: &Value, name: &str) -> Value {
    let (report, rows) = simulate(plan, &format!("split-{name}"));
    let split = serde_json::to_value(&report.split).unwrap()[0].clone();
    let made: std::collections::BTreeMap<u32, i64> =
        of(&rows, Kind::Sent).iter().filter(|r| r.flow.0 == 0).map(|r| (r.index, r.time_ns)).collect();
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
    let cost = |ns: i64| json!([{"kind": "work", "cost": {"kind": "constant", "span_ns": ns}, "delay": {"kind": "constant", "span_ns": MS}}]);
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

/// The split of a flow over a transport, on a link that loses.
fn lossy(transport: &str, params: Value) -> Value {
    let mut plan = over(json!({"loss": {"kind": "random", "p": 0.05}, "rate_bps": 10e6}));
    (plan["channels"][0]["transport"], plan["channels"][0]["params"]) = (json!(transport), params);
    split(&plan, transport)
}

#[test]
fn what_is_lost_is_sent_again_and_holds_up_what_comes_behind() {
    let found = lossy("tcp", json!({}));
    assert!(mean(&found, "retransmission") > 1e6, "{found}");
}

#[test]
fn what_was_sent_before_is_apart_from_what_is_merged() {
    for (transport, params) in [
        ("coarse-copy", json!({})),
        ("irtp", json!({"key_every": 2})),
        ("nack", json!({})),
        ("parity", json!({})),
        ("quic", json!({})),
        ("repeat", json!({})),
        ("rtp", json!({"nack": 2})),
        ("rtp", json!({"redundancy": "rfc2198"})),
        ("rtp", json!({"redundancy": "flexfec"})),
    ] {
        let found = lossy(transport, params.clone());
        assert!(mean(&found, "retransmission") > 1e4, "{transport} {params}: {found}");
    }
    let merged = lossy("merge-span", json!({"span_ns": 8 * MS}));
    assert!(mean(&merged, "merging") > 1e6 && mean(&merged, "retransmission") == 0.0, "{merged}");
    assert!(names(&lossy("udp", json!({}))).iter().all(|p| !["merging", "retransmission"].contains(p)));
}

#[test]
fn a_copy_is_waited_for_as_long_as_it_was_set() {
    let mut plan = over(json!({"outages": [[100 * MS, 110 * MS]]}));
    (plan["channels"][0]["transport"], plan["channels"][0]["params"]) =
        (json!("repeat"), json!({"copies": 1, "spacing_ns": 15 * MS}));
    let found = split(&plan, "copies");
    assert_eq!(found["parts_ns"]["retransmission"]["sum"], 10 * 15 * MS, "ten were lost once: {found}");
    assert_eq!(names(&found), ["propagation", "retransmission"]);
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

/// Rows of hops of a plan whose first channel crosses a link with a rate and one without, by link; their sums are those of the
/// account.
fn hops(mut plan: Value, name: &str) -> [Vec<Record>; 2] {
    plan["records"] = json!("packets");
    plan["flows"][0]["stop_ns"] = json!(600 * MS);
    plan["network"]["vertices"].as_array_mut().unwrap().push(json!("router"));
    plan["network"]["links"][0]["to"] = json!(3);
    plan["network"]["links"].as_array_mut().unwrap().push(link("l1.behind", 3, 1));
    let (report, rows) = simulate(&plan, name);
    let split = serde_json::to_value(&report.split).unwrap()[0].clone();
    let rows = [0, 4].map(|l| of(&rows, Kind::Hop).into_iter().filter(|r| r.point == l).collect::<Vec<_>>());
    let account = split["hops"].as_array().unwrap().iter().find(|h| h["link"] == "l1.forward").unwrap();
    let packets = account["packets"].as_f64().unwrap();
    let queued: i64 = rows[0].iter().map(|r| r.value).sum();
    let serial: i64 = rows[0].iter().map(|r| i64::from(r.size)).sum();
    assert!((account["queueing_ns"].as_f64().unwrap() * packets - queued as f64).abs() < 1.0, "{name}");
    assert!((account["serialisation_ns"].as_f64().unwrap() * packets - serial as f64).abs() < 1.0, "{name}");
    rows
}

#[test]
fn each_hop_of_a_packet_is_a_row() {
    for loss in [0.0, 0.1] {
        let loss = json!({"kind": "random", "p": loss});
        let plan = over(json!({"rate_bps": 700e3, "loss": loss, "queue": {"limit_bytes": 50_000}}));
        let [first, behind] = hops(plan, "hops");
        assert!(first.len() > 300 && first.len() == behind.len(), "{}", first.len());
        for (one, next) in first.iter().zip(&behind) {
            assert_eq!((one.flow.0, one.index, one.detail, one.node), (0, next.index, 0, NodeId::NONE));
            assert_eq!(next.time_ns - one.time_ns - one.value - i64::from(one.size), 5 * MS, "propagation");
            assert_eq!((next.value, next.size), (0, 0), "it only delays");
        }
        assert!(first.iter().map(|r| r.value).max() > Some(50 * MS), "a queue grew");
    }
}

#[test]
fn a_hop_that_a_change_takes_back_is_told_once() {
    let mut plan = over(json!({"rate_bps": 700e3, "queue": {"limit_bytes": 50_000}}));
    let change = |at: i64, rate: f64| json!({"at_ns": at * MS, "name": "e", "action": {"kind": "link", "links": [0], "rate_bps": rate}});
    plan["events"] = json!([change(200, 400e3), {"at_ns": 201 * MS, "name": "r", "action": {"kind": "reroute"}}, change(500, 5e6)]);
    let [first, behind] = hops(plan, "changed");
    assert_eq!(behind.len(), 600, "each packet came to the second link once");
    let waited = first.iter().filter(|r| r.size == 0).count();
    assert!(waited > 20 && first.len() == 600 + waited, "what waited is told of before and after: {waited}");
    let serial_ns = |bps: f64| (8.0 * 78.0 / bps * 1e9).ceil() as u32;
    assert!(first.iter().all(|r| r.size == 0 || r.size >= serial_ns(5e6)));
}

#[test]
fn a_hop_that_takes_longer_than_its_row_can_tell_says_so() {
    let mut plan = over(json!({"rate_bps": 100.0}));
    plan["duration_ns"] = json!(60_000 * MS);
    plan["flows"][0]["period_ns"] = json!(20_000 * MS);
    plan["records"] = json!("packets");
    let (_, rows) = simulate(&plan, "long");
    let hop = of(&rows, Kind::Hop)[0];
    assert_eq!((hop.size, hop.detail), (u32::MAX, 1));
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
            plan["nodes"][node][key] = json!({"kind": "constant", "span_ns": 20_000});
        }
    }
    assert_eq!(mean(&split(&plan, "system"), "system"), 80e3, "two sends and two receives");
}
