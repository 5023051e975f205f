//! Rows that samples leave, field by field: the analysis knows of a run what they say, and takes a row without its node or flow for
//! nobody's.

use crate::common::{node, plan, run, tap, World, MS};
use serde_json::{json, Value};
use tcps_core::{
    hook::State,
    ids::{ComponentId, FlowId, NodeId},
    record::{DropReason, Kind, Record},
    report::Visited,
    time::Time,
};

/// What a plan at node 1 leaves by a moment.
fn left(plan: &Value, until: Time) -> World {
    let mut world = World::default();
    run(&mut node(plan, 1), &mut world, until);
    world
}

fn row(time_ns: Time, kind: Kind, point: u16) -> Record {
    Record { flow: FlowId(0), node: NodeId(1), point, ..Record::new(time_ns, kind) }
}

/// Both components at node 1; a sample is for 2 ms on its way to the second.
fn delayed() -> Value {
    let mut plan = plan([1, 1]);
    let delay = json!({"kind": "constant", "span_ns": 2 * MS});
    plan["flows"][0]["path"][0]["steps"] = json!([{"kind": "work", "delay": delay}]);
    plan
}

#[test]
fn a_sample_that_a_dead_component_drops_has_its_age() {
    let (mut world, mut node) = (World::default(), node(&delayed(), 1));
    node.set_alive(ComponentId(1), false);
    run(&mut node, &mut world, 19 * MS);
    let lost = |index: u32, time_ns| Record {
        value: 2 * MS,
        index,
        detail: DropReason::Dead as u8,
        ..row(time_ns, Kind::Dropped, 1)
    };
    assert_eq!(world.of(Kind::Dropped), [lost(0, 2 * MS), lost(1, 12 * MS)]);
}

#[test]
fn an_echo_leaves_its_way_there_its_way_back_and_both() {
    let mut plan = delayed();
    plan["probes"] = json!([{"flow": 0, "points": [2, 1], "period_ns": 10 * MS, "reply_to": 1}]);
    let world = left(&plan, 19 * MS);
    for (kind, value) in [(Kind::EchoForward, 2 * MS), (Kind::EchoReturn, 0), (Kind::Echo, 2 * MS)] {
        let mut found = world.of(kind);
        found.sort_by_key(|r| r.index);
        let expected = found.clone().into_iter().zip([2, 1]).enumerate();
        let expected =
            expected.map(|(n, (r, point))| Record { value, index: n as u32, ..row(r.time_ns, kind, point) });
        assert_eq!(found, expected.collect::<Vec<_>>());
        assert_eq!(found.len(), 2);
    }
}

#[test]
fn what_a_newer_sample_replaces_is_told_with_its_command() {
    let mut plan = plan([1, 1]);
    plan["flows"][0]["path"][1]["steps"] =
        json!([{"kind": "predict", "run": {"kind": "builtin", "name": "zoh"}, "period_ns": 20 * MS}]);
    plan["probes"] = json!([{"flow": 0, "points": [3], "period_ns": 10 * MS, "reply_to": 1}]);
    let world = left(&plan, 39 * MS);
    let replaced = Record { index: 2, ..row(30 * MS, Kind::Superseded, 1) };
    assert_eq!(world.of(Kind::Superseded), [replaced]);
    let command = Record { value: 10 * MS, index: 2, ..row(30 * MS, Kind::EchoSuperseded, 3) };
    assert_eq!(world.of(Kind::EchoSuperseded), [command]);
    let output =
        |time_ns, index, value| Record { value, index, detail: 1, ..row(time_ns, Kind::Renumbered, 1) };
    assert_eq!(world.of(Kind::Renumbered), [output(0, 0, 0), output(20 * MS, 1, 1)]);
}

#[test]
fn a_verified_sample_says_whether_it_is_the_sources() {
    for (step, right) in [(json!({"kind": "work"}), 1), (tap("tap", "work", json!({"gives": [1.0, 2.0]})), 0)]
    {
        let mut plan = plan([1, 1]);
        plan["flows"][0]["sink"] = json!({"kind": "verify"});
        plan["flows"][0]["path"][1]["steps"] = json!([step]);
        let verified =
            |time_ns, index| Record { index, size: 8, detail: right, ..row(time_ns, Kind::Verified, 1) };
        assert_eq!(left(&plan, 19 * MS).of(Kind::Verified), [verified(0, 0), verified(10 * MS, 1)]);
    }
}

#[test]
fn values_at_a_point_are_told_one_by_one() {
    let mut plan = plan([1, 1]);
    plan["signals"] = json!([2]);
    plan["flows"][0]["path"][0]["steps"] = json!([tap("tap", "work", json!({"gives": [0.5, -2.0]}))]);
    let value = |detail, value: f64, index, time_ns| Record {
        value: value.to_bits() as i64,
        index,
        detail,
        ..row(time_ns, Kind::Signal, 2)
    };
    let expected =
        [value(0, 0.5, 0, 0), value(1, -2.0, 0, 0), value(0, 0.5, 1, 10 * MS), value(1, -2.0, 1, 10 * MS)];
    assert_eq!(left(&plan, 19 * MS).of(Kind::Signal), expected);
}

#[test]
fn a_hook_with_states_tells_the_first_and_each_other_one() {
    let mut plan = plan([1, 1]);
    plan["flows"][0]["path"][0]["steps"] = json!([tap("tap", "predict", json!({"states": true}))]);
    let live = State::Live as u8;
    let told = Record { value: 42, size: live.into(), detail: live, ..row(0, Kind::State, 0) };
    assert_eq!(left(&plan, 19 * MS).of(Kind::State), [told], "it does not change");
}

/// Where time went at a component is the sum over its samples.
#[test]
fn time_that_samples_wait_and_work_at_a_component_adds_up() {
    let visits = |at: usize, step: Value| {
        let mut plan = plan([1, 1]);
        plan["flows"][0]["start_ns"] = json!(4 * MS);
        plan["flows"][0]["path"][at]["steps"] = json!([step]);
        let (mut world, mut node) = (World::default(), node(&plan, 1));
        run(&mut node, &mut world, 40 * MS);
        node.report().visits.iter().map(|v| (v.0 .0, v.1 .0, v.2)).collect::<Vec<_>>()
    };
    let of = |samples, waiting_ns, working_ns| Visited { samples, waiting_ns, working_ns };
    let works = json!({"kind": "work", "cost": {"kind": "constant", "span_ns": 500}});
    assert_eq!(visits(0, works), [(0, 0, of(4, 0, 2000)), (1, 0, of(4, 0, 0))]);
    // It ticks when the first sample comes, and from then on just before the next one, which waits for its next tick.
    let ticks = json!({"kind": "predict", "run": {"kind": "builtin", "name": "zoh"}, "period_ns": 10 * MS});
    assert_eq!(visits(1, ticks), [(0, 0, of(4, 0, 0)), (1, 0, of(3, 20 * MS, 0))]);
}
