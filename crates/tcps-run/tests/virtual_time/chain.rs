//! The virtual driver against what arithmetic says.

use crate::common::{chain, of, refusal, simulate, MS};
use serde_json::{json, Value};
use std::{os::unix::fs::FileTypeExt, path::PathBuf};
use tcps_core::record::{DropReason, Kind};
use tcps_plan::Plan;
use tcps_run::{
    assets::Disk,
    virtual_time::{run, Goes, Options},
};

#[test]
fn delay_is_the_sum_of_propagation() {
    let (_, rows) = simulate(&chain(), "sum");
    let delivered = of(&rows, Kind::Delivered);
    assert_eq!(delivered.len(), 990);
    assert!(delivered.iter().all(|r| r.value == 10 * MS));
    assert!(of(&rows, Kind::Verified).iter().all(|r| r.detail == 1));
}

#[test]
fn a_stage_costs_and_delays_between_its_points() {
    let mut plan = chain();
    plan["flows"][0]["path"][1]["steps"] = json!([{"kind": "work", "cost": {"kind": "constant", "span_ns": 300_000}, "delay": {"kind": "constant", "span_ns": 2 * MS}}]);
    let (report, rows) = simulate(&plan, "cost");
    let (enter, exit) = (of(&rows, Kind::Enter), of(&rows, Kind::Exit));
    assert!(enter.iter().all(|r| r.value == 5 * MS));
    let left: Vec<i64> = exit.iter().filter(|r| r.point == 3).map(|r| r.value).collect();
    assert!(left.len() > 900 && left.iter().all(|v| *v == 7 * MS + 300_000), "{:?}", &left[..5]);
    assert!((report.nodes[1].busy_s - 0.2985).abs() < 0.001, "{}", report.nodes[1].busy_s);
}

#[test]
fn stages_that_ask_for_more_than_a_core_queue_up() {
    // 1.5 ms of work every ms on one core: the wait grows by 0.5 ms a sample.
    let mut plan = chain();
    plan["flows"][0]["path"][1]["steps"] =
        json!([{"kind": "work", "cost": {"kind": "constant", "span_ns": 1_500_000}}]);
    let (_, rows) = simulate(&plan, "queue");
    for r in of(&rows, Kind::Exit).iter().take(100) {
        assert_eq!(r.value, 5 * MS + 1_500_000 + r.index as i64 * 500_000, "sample {}", r.index);
    }
}

#[test]
fn echoes_measure_points_exactly_and_are_answered_over_the_network() {
    // [Polachan 2022: echoes] Component latency is the difference of its points; the forward leg is measured, not halved.
    let mut plan = chain();
    plan["flows"][0]["path"][1]["steps"] =
        json!([{"kind": "work", "cost": {"kind": "constant", "span_ns": 300_000}}]);
    plan["probes"] = json!([{"flow": 0, "points": [2, 3, 4], "period_ns": 10 * MS, "reply_to": 0}]);
    let (_, rows) = simulate(&plan, "echo");
    let value = |kind, point| {
        let all: Vec<i64> = of(&rows, kind).iter().filter(|r| r.point == point).map(|r| r.value).collect();
        assert!(all.len() > 25 && all.windows(2).all(|w| w[0] == w[1]), "{kind:?} {point}: {all:?}");
        all[0]
    };
    assert_eq!((value(Kind::Echo, 2), value(Kind::Echo, 3)), (10 * MS, 10 * MS + 300_000));
    assert_eq!((value(Kind::EchoForward, 4), value(Kind::EchoReturn, 4)), (10 * MS + 300_000, 10 * MS));
}

#[test]
fn node_clocks_put_their_error_into_delays() {
    let mut plan = chain();
    plan["nodes"][2]["clock"] = json!({"offset_ns": 3 * MS, "drift_ppb": 0});
    let (_, rows) = simulate(&plan, "clock");
    assert!(of(&rows, Kind::Delivered).iter().all(|r| r.value == 13 * MS));
}

#[test]
fn clock_synchronisation_finds_offset_and_drift() {
    let mut plan = chain();
    plan["duration_ns"] = json!(60_000 * MS);
    plan["flows"][0]["period_ns"] = json!(100 * MS);
    plan["nodes"][2]["clock"] = json!({"offset_ns": 3 * MS, "drift_ppb": 50_000});
    plan["sync"] = json!({"reference": 0, "period_ns": 125 * MS});
    let (report, rows) = simulate(&plan, "sync");
    assert!(of(&rows, Kind::Sync).len() > 900);
    let text = serde_json::to_value(&report).unwrap();
    let clock = text["clocks"].as_array().unwrap().iter().find(|c| c["node"] == "top").unwrap().clone();
    assert!(clock["true_error_ns"].as_i64().unwrap().abs() < 1_000, "{clock}");
    assert!((clock["drift_ppb"].as_f64().unwrap() + 50_000.0).abs() < 1_000.0, "{clock}");
}

#[test]
fn a_dead_component_drops_and_a_restarted_one_goes_on() {
    let mut plan = chain();
    plan["events"] = json!([
        {"at_ns": 300 * MS, "name": "kill", "action": {"kind": "component", "component": 1, "alive": false}},
        {"at_ns": 400 * MS, "name": "restart", "action": {"kind": "component", "component": 1, "alive": true}}]);
    let (_, rows) = simulate(&plan, "dead");
    let dropped = of(&rows, Kind::Dropped);
    assert_eq!(dropped.len(), 100);
    assert!(dropped.iter().all(|r| r.detail == DropReason::Dead as u8 && r.point == 1));
    assert_eq!(of(&rows, Kind::Event).len(), 2);
}

#[test]
fn a_stopped_flow_leaves_its_ticks_out() {
    let mut plan = chain();
    plan["events"] = json!([
        {"at_ns": 200 * MS, "name": "stop", "action": {"kind": "flow", "flow": 0, "running": false}},
        {"at_ns": 500 * MS, "name": "go", "action": {"kind": "flow", "flow": 0, "running": true}}]);
    let (_, rows) = simulate(&plan, "stopped");
    let sent = of(&rows, Kind::Sent);
    assert_eq!(sent.len(), 700);
    assert!(sent.iter().all(|r| r.time_ns < 200 * MS || r.time_ns >= 500 * MS));
}

#[test]
fn a_damaged_datagram_is_dropped_where_it_arrives_and_brings_no_phantom() {
    // [RFC 768] The checksum of UDP finds a changed bit: nothing that a header could claim is ever delivered.
    let mut plan = chain();
    plan["network"]["links"][0]["corrupt"] = json!(0.1);
    let (_, rows) = simulate(&plan, "corrupt");
    let dropped = of(&rows, Kind::Dropped);
    assert!((60..140).contains(&dropped.len()), "{} of 1000", dropped.len());
    assert!(dropped.iter().all(|r| (r.detail, r.point, r.flow.0) == (DropReason::Corrupt as u8, 0, 0)));
    let delivered = of(&rows, Kind::Delivered);
    assert!(delivered.iter().all(|r| r.value == 10 * MS && r.index < 1000));
    assert!(of(&rows, Kind::Verified).iter().all(|r| r.detail == 1));
    assert!((990 - dropped.len()..=1000 - dropped.len()).contains(&delivered.len()));
}

#[test]
fn duplicates_are_delivered_once() {
    let mut plan = chain();
    plan["network"]["links"][0]["duplicate"] = json!(0.2);
    let (report, rows) = simulate(&plan, "duplicates");
    assert_eq!(of(&rows, Kind::Delivered).len(), 990);
    let text = serde_json::to_value(&report).unwrap();
    let seen: u64 =
        text["endpoints"].as_array().unwrap().iter().map(|e| e["duplicates"].as_u64().unwrap()).sum();
    assert!((150..250).contains(&seen), "{seen}");
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let mut plan = chain();
    plan["network"]["links"][0]["loss"] = json!({"kind": "random", "p": 0.1});
    let hash = |plan: &Value| simulate(plan, "seed").0.records_sha256;
    let first = hash(&plan);
    assert_eq!(first, hash(&plan));
    plan["seed"] = json!(2);
    assert_ne!(first, hash(&plan));
}

#[test]
fn a_full_disk_ends_the_run_at_once_with_its_reason() {
    let mut plan = chain();
    plan["duration_ns"] = json!(1_000_000 * 1000 * MS);
    let plan: Plan = serde_json::from_value(plan).expect("a plan");
    let full = PathBuf::from("/dev/full");
    if !std::fs::metadata(&full).is_ok_and(|m| m.file_type().is_char_device()) {
        return eprintln!("skipped: /dev/full is no device here");
    }
    let mut last = 0;
    let mut progress = |now, _| {
        last = now;
        if now < 1000 * 1000 * MS {
            Goes::On(Vec::new())
        } else {
            Goes::Stop
        }
    };
    let options =
        Options { records: Some(&full), pcapng: None, progress: Some(&mut progress), every_ns: None };
    let refused = run(&plan, &mut Disk, options);
    assert!(refused.as_ref().is_err_and(|e| e.to_string().contains("No space left")), "{:?}", refused.err());
    assert!(last < 1000 * 1000 * MS, "it went on to {} s", last / (1000 * MS));
}

#[test]
fn samples_are_conserved() {
    let mut plan = chain();
    plan["network"]["links"][2]["loss"] = json!({"kind": "random", "p": 0.3});
    let (_, rows) = simulate(&plan, "conserved");
    let (sent, delivered, dropped) =
        (of(&rows, Kind::Sent), of(&rows, Kind::Delivered), of(&rows, Kind::Dropped));
    let on_the_way = sent.iter().filter(|s| s.time_ns > 990 * MS - 1).count();
    assert!(sent.len() - delivered.len() - dropped.len() <= on_the_way);
    assert!((200..400).contains(&dropped.len()), "{}", dropped.len());
}

#[test]
fn a_frame_larger_than_a_packet_arrives_whole_and_last_byte_counts() {
    let mut plan = chain();
    plan["flows"][0]["codec"] = json!("raw");
    plan["flows"][0]["period_ns"] = json!(40 * MS);
    plan["flows"][0]["source"]["bytes"] = json!(5000);
    plan["network"]["links"][0]["rate_bps"] = json!(8e6);
    let (_, rows) = simulate(&plan, "frame");
    let delivered = of(&rows, Kind::Delivered);
    assert!(delivered.len() >= 24 && delivered.iter().all(|r| r.size == 5000));
    // Five fragments: 5000 B of payload and 5 times 24 + 54 B above it, at 1 B/us.
    assert!(delivered.iter().all(|r| r.value == 10 * MS + (5000 + 5 * 78) * 1000), "{}", delivered[0].value);
}

#[test]
fn events_of_one_moment_take_effect_together() {
    let mut plan = chain();
    let mut second = plan["flows"][0].clone();
    second["name"] = json!("second");
    plan["flows"].as_array_mut().unwrap().push(second);
    let stop = |flow: u16| json!({"at_ns": 500 * MS, "name": "stop", "action": {"kind": "flow", "flow": flow, "running": false}});
    plan["events"] = json!([stop(0), stop(1)]);
    let (_, rows) = simulate(&plan, "together");
    let sent = |flow| of(&rows, Kind::Sent).iter().filter(|r| r.flow.0 == flow).count();
    assert_eq!((sent(0), sent(1)), (500, 500));
}

#[test]
fn nothing_leaves_a_component_after_its_death() {
    let mut plan = chain();
    plan["flows"][0]["path"][1]["steps"] =
        json!([{"kind": "work", "cost": {"kind": "constant", "span_ns": 1_500_000}}]);
    plan["events"] = json!([
        {"at_ns": 300 * MS, "name": "kill", "action": {"kind": "component", "component": 1, "alive": false}}]);
    let (_, rows) = simulate(&plan, "death");
    assert!(of(&rows, Kind::Exit).iter().all(|r| r.time_ns <= 300 * MS));
    assert!(of(&rows, Kind::Dropped).iter().any(|r| r.detail == DropReason::Dead as u8));
}

#[test]
fn an_overloaded_stage_drops_instead_of_growing() {
    let mut plan = chain();
    plan["duration_ns"] = json!(20_000 * MS);
    plan["flows"][0]["path"][1]["steps"] =
        json!([{"kind": "work", "cost": {"kind": "constant", "span_ns": 3 * MS}}]);
    let (_, rows) = simulate(&plan, "overload");
    let dropped = of(&rows, Kind::Dropped);
    assert!(dropped.len() > 5_000 && dropped.iter().all(|r| r.detail == DropReason::Overload as u8));
}

/// A step of the clock shows only in the ages of samples that are stamped before it and dropped after it.
#[test]
fn what_a_transport_drops_is_as_old_as_the_clock_of_its_stamp_says() {
    let mut plan = chain();
    let alphan = json!({"name": "a", "session": 0, "a": 0, "b": 1, "transport": "alphan", "params": {"rate_bps": 50_000}});
    plan["channels"][0] = alphan;
    let plain = of(&simulate(&plan, "unstepped").1, Kind::Dropped);
    let at_ns = 600 * MS + MS / 2;
    for step_ns in [-3000 * MS, 2000 * MS] {
        plan["events"] = json!([
            {"at_ns": at_ns, "name": "step", "action": {"kind": "clock", "node": 0, "step_ns": step_ns}}]);
        let stepped = of(&simulate(&plan, "stepped").1, Kind::Dropped);
        assert_eq!(plain.len(), stepped.len());
        let mut seen = [0; 3];
        for (a, b) in plain.iter().zip(&stepped) {
            let stamped_ns = a.time_ns - a.value;
            let across = stamped_ns < at_ns && a.time_ns > at_ns;
            assert_eq!((a.index, a.time_ns), (b.index, b.time_ns));
            assert_eq!(b.value - a.value, if across { step_ns } else { 0 }, "{a:?}");
            seen[usize::from(a.time_ns > at_ns) + usize::from(stamped_ns > at_ns)] += 1;
        }
        assert!(seen.iter().all(|n| *n > 20), "before it, across it, after it: {seen:?}");
    }
}

#[test]
fn hostile_times_do_not_overflow() {
    let mut plan = chain();
    plan["network"]["links"][0]["corrupt"] = json!(0.5);
    plan["flows"][0]["period_ns"] = json!(20_000);
    simulate(&plan, "hostile");
}

#[test]
fn a_plan_with_numbers_that_name_nothing_is_refused() {
    type Bend = fn(&mut Value);
    let bends: [(Bend, &str); 4] = [
        (|p| p["components"][1]["node"] = json!(7), "components.srv: node 7"),
        (|p| p["flows"][0]["path"][0]["channel"] = json!(9), "no channel leads from operator to srv"),
        (|p| p["flows"][0]["path"][1]["component"] = json!(9), "component 9"),
        (|p| p["probes"] = json!([{"flow": 0, "points": [2], "period_ns": 1, "reply_to": 9}]), "reply_to 9"),
    ];
    for (bend, says) in bends {
        let mut plan = chain();
        bend(&mut plan);
        let refused = refusal(plan);
        assert!(refused.contains(says), "{says}: {refused}");
    }
}

#[test]
fn a_round_of_echoes_asks_every_point_once() {
    let mut plan = chain();
    plan["probes"] = json!([{"flow": 0, "points": [2, 3, 4], "period_ns": MS, "reply_to": 0, "count": 299}]);
    let (_, rows) = simulate(&plan, "rounds");
    let mut seen: Vec<u32> = of(&rows, Kind::Echo).iter().map(|r| r.index).collect();
    assert!(seen.windows(2).any(|w| w[1] < w[0]), "always in the same order");
    seen.sort_unstable();
    assert_eq!(seen, (0..299).collect::<Vec<u32>>());
    assert!(of(&rows, Kind::Echo).iter().all(|r| r.point == [2, 3, 4][r.index as usize % 3]));
}

#[test]
fn a_restarted_flow_is_where_its_recording_is() {
    // Ticks number the samples, so that a recording does not fall behind by what was left out.
    let mut plan = chain();
    plan["events"] = json!([
        {"at_ns": 200 * MS, "name": "stop", "action": {"kind": "flow", "flow": 0, "running": false}},
        {"at_ns": 500 * MS, "name": "go", "action": {"kind": "flow", "flow": 0, "running": true}}]);
    let (_, rows) = simulate(&plan, "recording");
    assert!(of(&rows, Kind::Sent).iter().all(|r| r.time_ns == r.index as i64 * MS));
    assert!(of(&rows, Kind::Verified).iter().all(|r| r.detail == 1));
}

#[test]
fn measured_boundaries_delay_ticks_sends_and_receives_and_keep_the_order() {
    let mut plan = chain();
    let constant = |ns: i64| json!({"kind": "constant", "span_ns": ns});
    plan["nodes"][0]["wakeup"] = constant(40_000);
    plan["nodes"][0]["send"] = constant(10_000);
    plan["nodes"][1]["receive"] = constant(20_000);
    let (report, rows) = simulate(&plan, "boundary");
    let (sent, enter) = (of(&rows, Kind::Sent), of(&rows, Kind::Enter));
    assert!(sent.iter().zip(0..).all(|(r, k)| r.time_ns == k * MS + 40_000 && r.value == r.time_ns));
    assert!(enter.len() > 900 && enter.iter().all(|r| r.value == 5 * MS + 30_000));
    assert!(of(&rows, Kind::Delivered).iter().all(|r| r.value == 10 * MS + 30_000));
    assert_eq!(report.nodes[0].missed_ticks, 0);

    // A spread of costs far beyond the period: some ticks are missed, and nothing overtakes.
    let spread = json!({"kind": "empirical", "quantiles_ns": [0, 3 * MS]});
    for key in ["wakeup", "send", "receive"] {
        plan["nodes"][0][key] = spread.clone();
        plan["nodes"][1][key] = spread.clone();
    }
    let (report, rows) = simulate(&plan, "boundary-spread");
    assert!(report.nodes[0].missed_ticks > 100);
    let indices: Vec<u32> = of(&rows, Kind::Delivered).iter().map(|r| r.index).collect();
    assert!(indices.len() > 300 && indices.windows(2).all(|w| w[0] < w[1]));
    assert_eq!(simulate(&plan, "boundary-again").1, rows, "the same seed, the same rows");
    plan["flows"][0]["stop_ns"] = json!(500 * MS);
    let last = of(&simulate(&plan, "boundary-stop").1, Kind::Sent).last().map(|r| (r.index, r.time_ns));
    assert!(last.is_some_and(|(index, t)| index < 500 && t < 503 * MS), "{last:?}");
}
