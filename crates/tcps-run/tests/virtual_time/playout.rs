//! Playout at the last component of a flow.

use crate::common::{chain, of, refusal, simulate, MS};
use serde_json::{json, Value};
use tcps_analysis::analyse;
use tcps_core::{
    ids::NodeId,
    record::{DropReason, Kind, Record},
};
use tcps_plan::{report::Report, Plan};

/// The chain with jitter on its second link, and playout at the arm.
fn played(playout: Value, name: &str) -> (Report, Vec<Record>, Value) {
    let mut plan = chain();
    plan["flows"][0]["sink"] = json!({"kind": "count"});
    plan["flows"][0]["playout"] = playout;
    let uniform = json!({"kind": "uniform", "low_ns": 0, "high_ns": 8 * MS});
    plan["network"]["links"][2]["jitter"] = json!({"delay": uniform, "reorder": true});
    let (report, rows) = simulate(&plan, name);
    (report, rows, plan)
}

fn count(rows: &[Record], kind: Kind) -> usize {
    of(rows, kind).len()
}

#[test]
fn a_fixed_delay_shows_every_sample_at_its_moment_and_names_the_late() {
    // [model: playout] Propagation 10 ms and up to 8 ms of jitter: 16 ms is too short for a quarter of the samples.
    let (_, rows, plan) = played(json!({"kind": "fixed", "delay_ns": 16 * MS}), "fixed");
    let shown = of(&rows, Kind::Played);
    assert!(shown.iter().all(|r| r.value == 16 * MS && r.point == 2 && r.node == NodeId(2)));
    assert!(shown.windows(2).all(|w| w[0].index < w[1].index), "the order is that of the numbers again");
    let late = count(&rows, Kind::Overdue);
    assert!((200..300).contains(&late), "{late}");
    assert!(of(&rows, Kind::Overdue).iter().all(|r| r.value > 16 * MS));
    let left = of(&rows, Kind::Exit).iter().filter(|r| r.point == 5).count();
    assert_eq!(left, shown.len(), "the last component is left when a sample is shown");
    let plan: Plan = serde_json::from_value(plan).unwrap();
    let bytes: Vec<u8> = rows.iter().flat_map(|r| r.to_bytes()).collect();
    let analysis = analyse(&bytes[..], &plan, &Default::default()).unwrap();
    let report = analysis.flows[0].playout.as_ref().unwrap();
    assert_eq!((report.played, report.late), (shown.len() as u64, late as u64));
    assert_eq!(report.age_ns.as_ref().unwrap().max, 16e6);
    assert_eq!(analysis.flows[0].lost, 0, "a sample that came too late is not a lost one");
}

#[test]
fn a_hold_shows_one_a_tick_and_a_burst_only_the_newest() {
    // [Gokhale 2017: zero-order hold] Replay loses nothing but what is overtaken; burst leaves out what came together.
    let (_, replay, _) = played(json!({"kind": "hold"}), "replay");
    let at: Vec<i64> = of(&replay, Kind::Played).iter().map(|r| r.time_ns).collect();
    assert!(at.iter().all(|t| t % MS == 0) && at.windows(2).all(|w| w[0] < w[1]));
    assert_eq!(count(&replay, Kind::Skipped), 0);
    let (_, burst, _) = played(json!({"kind": "hold", "display": "burst"}), "burst");
    let skipped = count(&burst, Kind::Skipped);
    assert!(skipped > 50, "{skipped}");
    let mean = |rows: &[Record]| {
        let shown = of(rows, Kind::Played);
        shown.iter().map(|r| r.value).sum::<i64>() / shown.len() as i64
    };
    assert!(mean(&burst) < mean(&replay), "what is left out makes the others younger");
    assert!(count(&burst, Kind::Starved) > 50);
}

#[test]
fn adaptive_policies_follow_the_delay_and_lose_little() {
    // [model: playout] Delays are uniform from 10 to 18 ms: mean 14, mean deviation 2, 99th percentile 17.92.
    for (policy, least, most) in [("ramjee", 17.0, 25.0), ("moon", 17.5, 18.1)] {
        let (_, rows, _) = played(json!({"kind": policy}), policy);
        let shown = of(&rows, Kind::Played);
        let late_half: Vec<_> = shown.iter().filter(|r| r.time_ns > 500 * MS).collect();
        let mean = late_half.iter().map(|r| r.value as f64 / 1e6).sum::<f64>() / late_half.len() as f64;
        assert!((least..most).contains(&mean), "{policy}: {mean}");
        let overdue = of(&rows, Kind::Overdue);
        let late = overdue.iter().filter(|r| r.time_ns > 500 * MS).count();
        assert!(late < 25, "{policy}: {late} of {}", late_half.len());
    }
}

#[test]
fn a_restarted_component_begins_with_new_playout_and_has_lost_what_waited() {
    // The delay falls from 10 to 5 ms while the arm is dead: what `ramjee` had learnt would last for hundreds of samples.
    let mut plan = chain();
    plan["flows"][0]["sink"] = json!({"kind": "count"});
    plan["flows"][0]["playout"] = json!({"kind": "ramjee"});
    plan["network"]["links"][2]["jitter"] = json!({"delay": {"kind": "uniform", "low_ns": 0, "high_ns": MS}});
    let arm = |ms: i64, alive: bool| json!({"at_ns": ms * MS, "name": "a", "action": {"kind": "component", "component": 2, "alive": alive}});
    let faster =
        json!({"at_ns": 550 * MS, "name": "l", "action": {"kind": "link", "links": [2], "delay_ns": 0}});
    plan["events"] = json!([arm(500, false), faster, arm(600, true)]);
    let (_, rows) = simulate(&plan, "renewed");
    let ages = |from: i64| {
        let shown = of(&rows, Kind::Played);
        let all: Vec<_> =
            shown.iter().filter(|r| (from..from + 50).contains(&(r.time_ns / MS))).map(|r| r.value).collect();
        (*all.iter().min().unwrap(), *all.iter().max().unwrap())
    };
    assert!(ages(620).1 < ages(450).0, "{:?} {:?}", ages(450), ages(620));
    let lost = of(&rows, Kind::Dropped);
    assert!(lost.iter().all(|r| r.point == 2 && r.detail == DropReason::Dead as u8));
    let decided = count(&rows, Kind::Played) + count(&rows, Kind::Overdue) + lost.len();
    let sent = count(&rows, Kind::Sent);
    assert!((sent - 10..=sent).contains(&decided), "{decided} of {sent}");
}

#[test]
fn a_queue_that_is_monitored_stays_short() {
    // [Hudson 2001: monitoring] The queue keeps what the first samples met; monitoring takes the surplus out.
    let elastic = |threshold: u32| {
        let policy = json!({"kind": "queue", "threshold": threshold, "length": 2, "shortest_ns": MS / 2});
        let (_, rows, _) = played(policy, &format!("queue{threshold}"));
        let last = of(&rows, Kind::Played).into_iter().filter(|r| r.time_ns > 500 * MS);
        let ages: Vec<i64> = last.map(|r| r.value).collect();
        (ages.iter().sum::<i64>() / ages.len() as i64, count(&rows, Kind::Skipped))
    };
    let ((short, dropped), (long, kept)) = (elastic(5), elastic(1_000_000));
    assert!(dropped > kept && short < long, "{dropped} {kept}, {short} {long}");
}

#[test]
fn an_updateable_queue_gives_a_slow_device_the_newest_of_each_key() {
    // [Hudson 2001: updateable]
    let (_, rows, _) = played(json!({"kind": "updateable", "period_ns": 20 * MS}), "updateable");
    let shown = of(&rows, Kind::Played);
    assert!((48..=50).contains(&shown.len()), "{}", shown.len());
    assert!(shown.iter().all(|r| r.value < 40 * MS), "no request is older than a turn of the device");
    assert!(count(&rows, Kind::Skipped) > 900);
}

#[test]
fn commands_on_samples_that_are_not_shown_are_superseded_and_not_lost() {
    // [design: echo commands]
    let mut plan = chain();
    plan["flows"][0]["sink"] = json!({"kind": "count"});
    plan["flows"][0]["playout"] = json!({"kind": "updateable", "period_ns": 5 * MS});
    plan["probes"] = json!([{"flow": 0, "points": [5], "period_ns": 7 * MS, "reply_to": 0}]);
    let (_, rows) = simulate(&plan, "echoes");
    let (answered, superseded) = (count(&rows, Kind::Echo), count(&rows, Kind::EchoSuperseded));
    assert!(answered > 10 && superseded > 80, "{answered} {superseded}");
    assert!(answered + superseded >= 139, "of 143, but for those in flight at the end");
}

#[test]
fn a_policy_that_is_not_there_is_refused_by_name() {
    let mut plan = chain();
    plan["flows"][0]["playout"] = json!({"kind": "fixed", "window_ns": 5});
    let refused = refusal(plan);
    assert!(refused.contains("flows.kinematic.playout") && refused.contains("delay_ns"), "{refused}");
}

#[test]
fn a_clock_put_forward_takes_no_moment_back() {
    let mut plan = chain();
    plan["flows"][0]["sink"] = json!({"kind": "count"});
    plan["flows"][0]["playout"] = json!({"kind": "fixed", "delay_ns": 300 * MS});
    plan["events"] = json!([
        {"at_ns": 500 * MS, "name": "step", "action": {"kind": "clock", "node": 2, "step_ns": 200 * MS}}]);
    let (_, rows) = simulate(&plan, "forward");
    assert!(rows.windows(2).all(|w| w[0].time_ns <= w[1].time_ns), "rows are in the order of time");
    let shown = of(&rows, Kind::Played);
    assert!(shown.iter().any(|r| r.time_ns == 500 * MS), "what the step made late is shown at once");
}
