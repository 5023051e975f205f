//! Stages: periodic ones, blocking sends, robots that are waited for, restarts.

use crate::common::{chain, of, refusal, simulate, MS};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use tcps_analysis::{analyse, Options};
use tcps_core::{
    record::{DropReason, Kind, Record},
    sample::PointId,
};
use tcps_plan::Plan;

fn predictor(period_ns: i64) -> Value {
    json!([{"kind": "predict", "run": {"kind": "builtin", "name": "zoh", "symbol": ""}, "period_ns": period_ns}])
}

/// The chain with a predictor at the server.
fn predicted(period_ns: i64) -> Value {
    let mut plan = chain();
    plan["flows"][0]["sink"] = json!({"kind": "count"});
    plan["flows"][0]["path"][1]["steps"] = predictor(period_ns);
    plan
}

fn at(rows: &[Record], kind: Kind, point: u16) -> Vec<Record> {
    of(rows, kind).into_iter().filter(|r| r.point == point).collect()
}

#[test]
fn a_periodic_stage_has_its_own_pace_and_ends_with_the_run() {
    let (_, rows) = simulate(&predicted(2 * MS), "periodic");
    let left = of(&rows, Kind::Exit).into_iter().filter(|r| r.point == 3).count();
    assert!((495..=500).contains(&left), "{left}");
    let superseded = of(&rows, Kind::Superseded).len();
    assert!((490..=500).contains(&superseded), "{superseded}");
}

#[test]
fn a_row_says_which_sample_each_output_of_a_periodic_stage_was_made_of() {
    // [design: identity of samples] Identity through a relay: index in, index out. The origin of a sample is that of its source.
    let mut plan = predicted(2 * MS);
    plan["network"]["links"][0]["loss"] = json!({"kind": "random", "p": 0.3});
    let (_, rows) = simulate(&plan, "renumbered");
    let numbered = of(&rows, Kind::Renumbered);
    assert!((495..=500).contains(&numbered.len()), "{}", numbered.len());
    let sources: BTreeMap<u32, i64> = numbered.iter().map(|r| (r.index, r.value)).collect();
    assert_eq!(sources.len(), numbered.len(), "each number is given once");
    for r in of(&rows, Kind::Delivered) {
        assert_eq!(r.time_ns - r.value, sources[&r.index] * MS, "output {}", r.index);
    }
    let fresh = numbered.iter().filter(|r| r.detail == 1).count();
    let repeated = numbered.windows(2).filter(|w| w[0].value == w[1].value).count();
    assert!(repeated > 20 && fresh + repeated == numbered.len(), "{fresh} {repeated}");
}

#[test]
fn the_way_to_a_periodic_stage_is_that_of_the_samples_it_uses() {
    let plan = predicted(3 * MS);
    let (_, rows) = simulate(&plan, "used");
    let bytes: Vec<u8> = rows.iter().flat_map(Record::to_bytes).collect();
    let plan: Plan = serde_json::from_value(plan).expect("a plan");
    let f = &analyse(&bytes[..], &plan, &Options::default()).expect("an analysis").flows[0];
    assert!(f.superseded > f.delivered, "two of three samples are not used");
    let means: Vec<f64> = f.path.segments.iter().map(|s| s.mean_ns.expect("a mean")).collect();
    assert!(means.iter().all(|&mean| mean >= 0.0), "{means:?}");
    let whole = f.path.delay_mean_ns.expect("a mean");
    assert!((means.iter().sum::<f64>() - whole).abs() < 1.0, "{means:?}: {whole}");
    let counted: Vec<u64> =
        f.path.segments.iter().filter_map(|s| s.latency_ns.as_ref()).map(|l| l.n).collect();
    assert!(counted.iter().all(|&n| n <= f.delivered + 3), "{counted:?} of {}", f.delivered);
}

#[test]
fn every_sample_has_one_fate_whatever_the_warm_up() {
    // The last one waits for a measured position, so that it gives out nothing.
    let waiting =
        json!({"kind": "builtin", "name": "supervisor", "params": {"measured": [0, 1, 2, 3, 4, 5]}});
    let zoh = json!({"kind": "builtin", "name": "zoh"});
    let kinds = [(MS, false, &zoh), (2 * MS, false, &zoh), (700_000, false, &zoh), (MS, true, &zoh)];
    for (period_ns, on_arrival, run) in kinds.into_iter().chain([(MS, false, &waiting)]) {
        let mut plan = predicted(period_ns);
        plan["flows"][0]["path"][1]["steps"][0]["on_arrival"] = json!(on_arrival);
        plan["flows"][0]["path"][1]["steps"][0]["run"] = run.clone();
        for link in [0, 2] {
            plan["network"]["links"][link]["loss"] = json!({"kind": "random", "p": 0.1});
        }
        let (_, rows) = simulate(&plan, "fates");
        let bytes: Vec<u8> = rows.iter().flat_map(Record::to_bytes).collect();
        let plan: Plan = serde_json::from_value(plan).expect("a plan");
        for warmup_ns in (0..1100).step_by(7).map(|i| i * MS + i * 1001) {
            let options = Options { warmup_ns, grace_ns: 200 * MS, ..Options::default() };
            let f = &analyse(&bytes[..], &plan, &options).expect("an analysis").flows[0];
            let sent = of(&rows, Kind::Sent).iter().filter(|r| r.time_ns >= warmup_ns).count();
            assert_eq!(f.sent, sent as u64);
            let fates = [f.delivered, f.lost, f.superseded, f.suppressed, f.in_flight];
            assert_eq!(f.sent, fates.iter().sum::<u64>(), "{period_ns} {on_arrival} {warmup_ns}: {fates:?}");
        }
    }
}

#[test]
fn verifying_behind_a_periodic_stage_is_refused() {
    let mut plan = predicted(2 * MS);
    plan["flows"][0]["sink"] = json!({"kind": "verify"});
    let refused = refusal(plan);
    assert!(refused.contains("flows.kinematic.sink: verify") && refused.contains("srv"), "{refused}");
}

#[test]
fn a_raw_flow_whose_values_nothing_codes_is_refused() {
    let pose = json!({"kind": "kinematics", "run": {"kind": "builtin", "name": "pose"}});
    let code = json!({"kind": "code", "run": {"kind": "builtin", "name": "quantise16"}});
    let with = |steps: Value| {
        let mut plan = chain();
        plan["flows"][0]["codec"] = json!("raw");
        plan["flows"][0]["sink"] = json!({"kind": "count"});
        plan["flows"][0]["path"][1]["steps"] = steps;
        plan
    };
    let refused = refusal(with(json!([pose])));
    assert!(refused.contains("flows.kinematic.codec: raw") && refused.contains("srv"), "{refused}");
    simulate(&with(json!([pose, code])), "raw");
}

#[test]
fn the_command_on_a_sample_goes_to_the_first_output_made_of_it() {
    // [design: echo commands] A tick every 2 ms: of two samples one is superseded, and the command on it with it, not lost.
    let mut plan = predicted(2 * MS);
    plan["probes"] = json!([{"flow": 0, "points": [3, 4], "period_ns": MS, "reply_to": 0}]);
    let (_, rows) = simulate(&plan, "tags");
    let (echoes, superseded) = (of(&rows, Kind::Echo), of(&rows, Kind::EchoSuperseded));
    assert!(echoes.len() > 450 && superseded.len() > 450, "{} {}", echoes.len(), superseded.len());
    let mut fates: Vec<u32> = echoes.iter().chain(&superseded).map(|r| r.index).collect();
    fates.sort_unstable();
    assert_eq!(fates[..950], (0..950).collect::<Vec<u32>>(), "every command has one fate");
    let exits: Vec<i64> = at(&rows, Kind::Exit, 3).iter().map(|r| r.time_ns).collect();
    for r in at(&rows, Kind::EchoForward, 3) {
        assert!(exits.contains(&(r.time_ns - 5 * MS)), "answered when an output left");
    }
}

#[test]
fn a_blocking_send_holds_the_next_sample_but_not_the_core() {
    // 1000 B at 4 Mbit/s take 2.1 ms: with blocking sends the second flow keeps its core, the first one waits.
    let mut plan = chain();
    plan["flows"][0]["source"]["bytes"] = json!(1000);
    plan["flows"][0]["blocking_send"] = json!(true);
    plan["network"]["links"][0]["rate_bps"] = json!(4e6);
    let (_, rows) = simulate(&plan, "blocking");
    let enters = of(&rows, Kind::Enter);
    let wire = ((1000 + 24 + 54) as f64 * 8e9 / 4e6) as i64;
    for w in enters.windows(2).take(300) {
        assert!((w[1].time_ns - w[0].time_ns - wire).abs() <= 1, "{} {}", w[1].time_ns - w[0].time_ns, wire);
    }
}

#[test]
fn a_blocking_send_holds_what_a_delay_has_let_go() {
    // 2.1 ms on the link, a sample a millisecond and a stage that only delays: the link takes one when it is free.
    let mut plan = chain();
    plan["flows"][0]["source"]["bytes"] = json!(1000);
    plan["flows"][0]["blocking_send"] = json!(true);
    plan["flows"][0]["path"][0]["steps"] =
        json!([{"kind": "work", "delay": {"kind": "constant", "span_ns": MS}}]);
    plan["network"]["links"][0]["rate_bps"] = json!(4e6);
    plan["queue_probe_ns"] = json!(MS);
    let (_, rows) = simulate(&plan, "blocking-delay");
    let wire = ((1000 + 24 + 54) as f64 * 8e9 / 4e6) as i64;
    let exits = at(&rows, Kind::Exit, 1);
    assert!(exits.len() > 400, "{}", exits.len());
    for w in exits.windows(2) {
        assert!((w[1].time_ns - w[0].time_ns - wire).abs() <= 1, "{} {wire}", w[1].time_ns - w[0].time_ns);
    }
    assert!(of(&rows, Kind::Queue).iter().all(|r| r.index == 0), "nothing waits at the link");
}

/// The chain with a robot that never arrives where it is sent: its commands move on.
fn pushed(source: Value) -> Value {
    let mut plan = chain();
    plan["components"][2]["robot"] =
        json!({"run": {"kind": "builtin", "name": "wall_mass"}, "period_ns": MS, "senses": 3});
    plan["flows"][0]["source"] = source;
    plan["flows"][0]["sink"] = json!({"kind": "robot"});
    plan["probes"] = json!([{"flow": 0, "points": [PointId::HELD | 2], "period_ns": 10 * MS, "reply_to": 0}]);
    plan
}

#[test]
fn a_newer_command_supersedes_the_echo_that_waits_for_the_robot() {
    // [Polachan 2022: echoes] hold until done: the robot follows a triangle wave and is nowhere when the next command comes.
    let plan = pushed(json!({"kind": "generated", "bytes": 24}));
    let (_, rows) = simulate(&plan, "held");
    let (echoes, superseded) = (of(&rows, Kind::Echo), of(&rows, Kind::EchoSuperseded));
    let fates = echoes.len() + superseded.len();
    assert!(superseded.len() > 50 && (96..=100).contains(&fates), "{} {fates}", superseded.len());
    assert!(superseded.iter().all(|r| r.point == PointId::HELD | 2 && r.value >= 10 * MS));
}

#[test]
fn what_a_component_held_is_lost_with_it() {
    // Dead for 1 ms, with samples inside that take 20 ms: none of those that had entered before leaves after.
    let mut plan = chain();
    plan["flows"][0]["path"][1]["steps"] =
        json!([{"kind": "work", "delay": {"kind": "constant", "span_ns": 20 * MS}}]);
    plan["events"] = json!([
        {"at_ns": 300 * MS, "name": "kill", "action": {"kind": "component", "component": 1, "alive": false}},
        {"at_ns": 301 * MS, "name": "restart", "action": {"kind": "component", "component": 1, "alive": true}}]);
    let (_, rows) = simulate(&plan, "held-inside");
    let dropped = of(&rows, Kind::Dropped);
    assert!((20..=22).contains(&dropped.len()), "{}", dropped.len());
    assert!(dropped.iter().all(|r| r.detail == DropReason::Dead as u8 && r.point == 1));
}

#[test]
fn a_restarted_component_knows_nothing_of_its_former_life() {
    // The predictor holds its last sample; killed while nothing comes, it has none to hold when it is back.
    let mut plan = predicted(2 * MS);
    plan["events"] = json!([
        {"at_ns": 200 * MS, "name": "stop", "action": {"kind": "flow", "flow": 0, "running": false}},
        {"at_ns": 300 * MS, "name": "kill", "action": {"kind": "component", "component": 1, "alive": false}},
        {"at_ns": 310 * MS, "name": "restart", "action": {"kind": "component", "component": 1, "alive": true}},
        {"at_ns": 500 * MS, "name": "go", "action": {"kind": "flow", "flow": 0, "running": true}}]);
    let (_, rows) = simulate(&plan, "restart");
    let left = at(&rows, Kind::Exit, 3);
    let between =
        |from: i64, to: i64| left.iter().filter(|r| (from * MS..to * MS).contains(&r.time_ns)).count();
    assert_eq!((between(206, 300), between(300, 505)), (47, 0));
    assert!(between(505, 1000) > 240);
    assert!(left.windows(2).all(|w| w[0].index < w[1].index), "its numbers go on");
}

#[test]
fn a_restarted_robot_begins_where_it_began() {
    let mut plan = pushed(json!({"kind": "generated", "bytes": 8}));
    let back = json!({"name": "back", "session": 0, "direction": "backward", "period_ns": MS, "codec": "f64",
        "source": {"kind": "robot"}, "sink": {"kind": "count"}, "path": [{"component": 2}]});
    plan["flows"].as_array_mut().expect("flows").push(back);
    plan["probes"] = json!([]);
    plan["events"] = json!([
        {"at_ns": 500 * MS, "name": "kill", "action": {"kind": "component", "component": 2, "alive": false}},
        {"at_ns": 510 * MS, "name": "restart", "action": {"kind": "component", "component": 2, "alive": true}}]);
    let (_, rows) = simulate(&plan, "robot");
    let back: Vec<Record> = of(&rows, Kind::Sent).into_iter().filter(|r| r.flow.0 == 1).collect();
    let sizes = |from: i64, to: i64| -> Vec<u32> {
        back.iter().filter(|r| (from * MS..to * MS).contains(&r.time_ns)).map(|r| r.size).collect()
    };
    assert_eq!(sizes(500, 510), [0; 0], "a dead robot senses nothing");
    assert!(sizes(511, 1000).iter().all(|&n| n == 24));
}

#[test]
fn a_packet_that_arrives_leaves_one_row_whatever_it_carries() {
    // Five fragments a frame: five rows at each end, and bytes on the wire at both.
    let mut plan = chain();
    plan["records"] = json!("packets");
    plan["flows"][0]["codec"] = json!("raw");
    plan["flows"][0]["period_ns"] = json!(40 * MS);
    plan["flows"][0]["source"]["bytes"] = json!(5000);
    let (_, rows) = simulate(&plan, "packets");
    let (sent, received) = (of(&rows, Kind::Transmit), of(&rows, Kind::Receive));
    assert_eq!((sent.len(), received.len()), (250, 250));
    let sum = |rows: &[Record]| rows.iter().map(|r| r.size).sum::<u32>();
    assert_eq!(sum(&sent), sum(&received));
    assert!(received.iter().all(|r| r.flow.0 == 0) && received[249].index == 24);
}
