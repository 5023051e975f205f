//! Background traffic over TCP and QUIC: users with pages, transfers without end, driven links.

use serde_json::{json, Value};
use tcps_plan::{report::Report, Plan};
use tcps_run::{
    assets::Disk,
    virtual_time::{run, Options},
};

const MS: i64 = 1_000_000;
const SECOND: i64 = 1000 * MS;

/// Two nodes at the ends of a line of 10 Mbit/s and 5 ms, with a session of 1 kHz over it and `traffic` besides.
fn plan(seconds: i64, traffic: Value) -> Value {
    let link = |name: &str, from: u16, to: u16| {
        json!({"name": name, "from": from, "to": to, "delay_ns": 5 * MS, "rate_bps": 10e6,
               "queue": {"limit_bytes": 60_000}})
    };
    json!({
        "name": "busy", "seed": 1, "duration_ns": seconds * SECOND, "sessions": ["main"],
        "nodes": [{"name": "op"}, {"name": "top"}],
        "components": [
            {"name": "operator", "kind": "tactile-operator", "session": 0, "node": 0},
            {"name": "arm", "kind": "tactile-teleoperator", "session": 0, "node": 1}],
        "flows": [{
            "name": "kinematic", "session": 0, "direction": "forward", "period_ns": MS, "codec": "raw",
            "source": {"kind": "generated", "bytes": 24}, "sink": {"kind": "count"},
            "path": [{"component": 0, "channel": 0}, {"component": 1}]}],
        "channels": [{"name": "a", "session": 0, "a": 0, "b": 1, "transport": "udp"}],
        "network": {
            "vertices": ["op", "top"],
            "links": [link("l1.forward", 0, 1), link("l1.backward", 1, 0)],
            "traffic": traffic},
    })
}

/// A 3GPP web page.
fn pages() -> Value {
    json!({
        "request": {"kind": "constant", "value": 350},
        "main": {"kind": "lognormal", "mu": 8.37, "sigma": 1.37, "min": 100, "max": 2e6},
        "embedded": {"kind": "pareto", "scale": 2, "shape": 1.1, "max": 55, "less": 2},
        "object": {"kind": "lognormal", "mu": 6.17, "sigma": 2.36, "min": 50, "max": 2e6},
        "parse": {"kind": "exponential", "mean": 0.13},
        "think": {"kind": "exponential", "mean": 30},
    })
}

fn tcp(congestion: &str, users: u16, more: Value) -> Value {
    let mut model = json!({"kind": "users", "users": users, "congestion": congestion, "mtu_bytes": 1500,
                           "buffer_bytes": 65_536});
    model.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"name": "web.forward", "from": 0, "to": 1, "model": model})
}

fn simulate(plan: &Value) -> (Report, Value) {
    let plan: Plan = serde_json::from_value(plan.clone()).expect("a plan");
    let options = Options { records: None, pcapng: None, progress: None, every_ns: None };
    let report = run(&plan, &mut Disk, options).expect("a run");
    let json = serde_json::to_value(&report).expect("json");
    (report, json)
}

/// Share of the run in which the forward line was busy.
fn utilisation(report: &Value, seconds: i64) -> f64 {
    report["links"][0]["busy_s"].as_f64().unwrap() / seconds as f64
}

// [Hudson 2001: results]
#[test]
fn users_drive_a_link_to_the_wanted_utilisation_whoever_else_uses_it() {
    for wanted in [0.5, 0.9, 0.98] {
        let drive = json!({"pages": pages(), "drive": {"link": 0, "utilisation": wanted}});
        let (_, report) = simulate(&plan(60, json!([tcp("reno", 48, drive)])));
        let share = utilisation(&report, 60);
        println!("wanted {wanted}: {share:.4}");
        assert!((share - wanted).abs() < 0.03, "{wanted}: {share}");
        let traffic = &report["traffic"][0];
        let sum = ["delivered_packets", "dropped_packets"]
            .iter()
            .map(|k| traffic[k].as_u64().unwrap())
            .sum::<u64>();
        assert!(sum.abs_diff(traffic["packets"].as_u64().unwrap()) < 200, "{traffic}");
    }
}

#[test]
fn transfers_without_end_fill_the_link_and_its_queue() {
    for congestion in ["reno", "cubic"] {
        let (_, report) = simulate(&plan(20, json!([tcp(congestion, 2, json!({}))])));
        let share = utilisation(&report, 20);
        let link = &report["links"][0];
        println!("{congestion}: busy {share:.4}, largest queue {}", link["max_queue_bytes"]);
        assert!(share > 0.8, "{congestion}: {share}");
        assert!(link["max_queue_bytes"].as_u64().unwrap() > 58_000, "TCP fills what there is: {link}");
        assert!(link["dropped_packets"].as_u64().unwrap() > 10);
    }
}

#[test]
fn a_connection_for_each_object_loads_the_same_bytes_with_more_packets() {
    let packets = |each: bool| {
        let more = json!({"pages": pages(), "connection_per_object": each});
        let mut model = tcp("cubic", 20, more);
        model["model"]["pages"]["think"] = json!({"kind": "constant", "value": 2.0});
        simulate(&plan(30, json!([model]))).1["traffic"][0]["packets"].as_u64().unwrap()
    };
    let (page, object) = (packets(false), packets(true));
    assert!(object > page, "{page} {object}");
}

#[test]
fn traffic_starts_stops_and_is_stopped_by_events() {
    let mut model = tcp("cubic", 2, json!({}));
    (model["start_ns"], model["stop_ns"]) = (json!(2 * SECOND), json!(4 * SECOND));
    let (_, report) = simulate(&plan(10, json!([model])));
    let share = utilisation(&report, 10);
    assert!((0.15..0.3).contains(&share), "two of ten seconds, and a session: {share}");
    let mut evented = plan(10, json!([tcp("cubic", 2, json!({}))]));
    let event = |at: i64, running: bool| json!({"at_ns": at * SECOND, "name": "e", "action": {"kind": "traffic", "traffic": [0], "running": running}});
    evented["events"] = json!([event(1, false), event(8, true)]);
    let share = utilisation(&simulate(&evented).1, 10);
    assert!((0.15..0.4).contains(&share), "three of ten seconds, and a session: {share}");
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let hash = |seed: u64| {
        let drive = json!({"pages": pages(), "drive": {"link": 0, "utilisation": 0.9}});
        let mut plan = plan(10, json!([tcp("cubic", 16, drive)]));
        plan["seed"] = json!(seed);
        simulate(&plan).0.records_sha256
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

/// Copies, damage, loss and reordering on the line: users go on.
#[test]
fn users_survive_a_bad_line() {
    let mut bad = plan(20, json!([tcp("cubic", 4, json!({}))]));
    let link = bad["network"]["links"][0].as_object_mut().unwrap();
    link.insert("loss".into(), json!({"kind": "random", "p": 0.005}));
    link.insert("duplicate".into(), json!(0.02));
    link.insert("corrupt".into(), json!(0.002));
    let (_, report) = simulate(&bad);
    let share = utilisation(&report, 20);
    assert!(share > 0.3, "{share}");
}

/// The plan with the users of its first entries, so many, over QUIC.
fn over_quic(mut plan: Value, entries: usize) -> Value {
    for traffic in &mut plan["network"]["traffic"].as_array_mut().unwrap()[..entries] {
        traffic["model"]["transport"] = json!("quic");
    }
    plan
}

/// The line of a dumbbell: 1.5 Mbit/s and 15 kB of queue.
fn narrow(mut plan: Value) -> Value {
    for link in plan["network"]["links"].as_array_mut().unwrap() {
        (link["rate_bps"], link["queue"]["limit_bytes"]) = (json!(1.5e6), json!(15_000));
    }
    plan["flows"][0]["period_ns"] = json!(100 * MS);
    plan
}

// [model: wire size]
#[test]
fn a_transfer_over_quic_fills_a_line_and_shares_it_with_a_constant_rate() {
    let cbr = json!({"name": "cbr", "from": 0, "to": 1,
                     "model": {"kind": "cbr", "rate_bps": 500e3, "packet_bytes": 500}});
    for congestion in ["cubic", "reno"] {
        let alone = narrow(plan(20, json!([tcp(congestion, 1, json!({}))])));
        let (_, report) = simulate(&over_quic(alone, 1));
        let share = utilisation(&report, 20);
        println!("{congestion}: busy {share:.4}, {}", report["traffic"][0]);
        assert!(share > 0.95, "{congestion}: {share}");
        let both = narrow(plan(20, json!([tcp(congestion, 1, json!({})), cbr])));
        let (_, report) = simulate(&over_quic(both, 1));
        let (quic, cbr) = (&report["traffic"][0], &report["traffic"][1]);
        println!("{congestion} beside 500 kbit/s: busy {:.4}, {quic}, {cbr}", utilisation(&report, 20));
        assert!(utilisation(&report, 20) > 0.95);
        let [came, all] = ["delivered_packets", "packets"].map(|k| cbr[k].as_f64().unwrap());
        assert!(came > 0.9 * all, "QUIC gives way: {cbr}");
        assert!(quic["dropped_packets"].as_u64().unwrap() > 0, "and finds out by losses: {quic}");
    }
}

#[test]
fn users_over_quic_drive_a_link_with_a_connection_for_each_page_or_object() {
    for each in [false, true] {
        let drive = json!({"link": 0, "utilisation": 0.5});
        let more = json!({"pages": pages(), "drive": drive, "connection_per_object": each});
        let (_, report) = simulate(&over_quic(plan(20, json!([tcp("cubic", 24, more)])), 1));
        let share = utilisation(&report, 20);
        println!("an object each {each}: {share:.4}");
        assert!((share - 0.5).abs() < 0.06, "{each}: {share}");
    }
}

#[test]
fn users_over_quic_ask_again_after_an_outage_longer_than_their_patience() {
    let mut pages = pages();
    pages["think"] = json!({"kind": "constant", "value": 0.1});
    let mut cut = over_quic(plan(24, json!([tcp("cubic", 4, json!({"pages": pages}))])), 1);
    let event = |at: i64, up: bool| json!({"at_ns": at * SECOND, "name": "e", "action": {"kind": "link", "links": [0, 1], "up": up}});
    cut["events"] = json!([event(2, false), event(14, true)]);
    let after = simulate(&cut).1["traffic"][0]["delivered_packets"].as_u64().unwrap();
    cut["duration_ns"] = json!(14 * SECOND);
    let before = simulate(&cut).1["traffic"][0]["delivered_packets"].as_u64().unwrap();
    println!("before {before}, and after {after}");
    assert!(after > 3 * before, "2 s before the outage, 10 s after it: {before} {after}");
}

#[test]
fn over_quic_too_the_same_seed_gives_the_same_run_and_another_seed_another() {
    let hash = |seed: u64| {
        let models = json!([tcp("cubic", 8, json!({"pages": pages()})), tcp("reno", 1, json!({}))]);
        let mut plan = over_quic(plan(5, models), 2);
        plan["network"]["traffic"][1]["name"] = json!("bulk");
        plan["network"]["links"][0]["loss"] = json!({"kind": "random", "p": 0.005});
        plan["network"]["links"][0]["duplicate"] = json!(0.02);
        plan["seed"] = json!(seed);
        simulate(&plan).0.records_sha256
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

#[test]
fn what_quic_cannot_be_is_refused_with_the_entry_and_what_is_allowed() {
    let without = over_quic(plan(1, json!([tcp("none", 1, json!({}))])), 1);
    let without: Plan = serde_json::from_value(without).expect("a plan");
    let options = Options { records: None, pcapng: None, progress: None, every_ns: None };
    assert_eq!(
        run(&without, &mut Disk, options).map(drop).expect_err("a refusal").to_string(),
        "traffic.web.forward: transport quic: congestion is \"none\"; allowed: \"cubic\", \"newreno\""
    );
}
