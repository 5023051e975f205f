//! Stages, and what their hooks are told.

use crate::common::{node, node_with, plan, refused, run, tap, Code, Saw, World, MS};
use serde_json::{json, Value};
use tcps_core::{
    ids::{ComponentId, FlowId, NodeId},
    record::{Kind, Record, StepKind},
    sample::PointId,
    time::Time,
};
use tcps_node::assets::{self, Shape};
use tcps_plan::CodePlan;

/// A node with these steps at its first component.
fn with_steps(steps: Value) -> Value {
    let mut plan = plan([0, 0]);
    plan["records"] = json!("events");
    plan["flows"][0]["path"][0]["steps"] = steps;
    plan
}

#[test]
fn a_call_leaves_a_row_of_its_stage_with_what_it_used() {
    let mut step = tap("tap", "predict", json!({}));
    step["cost"] = json!({"kind": "constant", "span_ns": 500});
    for (used, value, overruns) in [(499, 500, 0), (500, 500, 0), (501, 501, 1)] {
        let mut world = World { used, ..World::default() };
        let mut node = node(&with_steps(json!([step])), 0);
        run(&mut node, &mut world, 11 * MS);
        let row = |time_ns, index| Record {
            value,
            index,
            flow: FlowId(0),
            point: 0,
            node: NodeId(0),
            detail: StepKind::Predict as u8,
            ..Record::new(time_ns, Kind::Stage)
        };
        assert_eq!(world.of(Kind::Stage), [row(0, 0), row(10 * MS, 1)]);
        assert_eq!(node.report().stages[0].4.overruns, 2 * overruns, "longer than its cost: {used}");
    }
}

/// A gap marks a run as disturbed: a hook that works for long is none, one that is kept from its core is.
#[test]
fn a_call_that_stalls_leaves_a_gap_and_one_that_works_does_not() {
    let gaps = |passes: Time, used: Time| {
        let mut world = World { passes, used, ..World::default() };
        run(&mut node(&with_steps(json!([tap("tap", "predict", json!({}))])), 0), &mut world, 1);
        world.of(Kind::Gap).iter().map(|r| (r.value, r.node)).collect::<Vec<_>>()
    };
    assert_eq!(gaps(5 * MS, 4 * MS), [], "it stalled for a millisecond");
    assert_eq!(gaps(5 * MS, 4 * MS - 1), [(MS + 1, NodeId(0))]);
    assert_eq!(gaps(5 * MS, 0), [(5 * MS, NodeId(0))]);
}

/// A haptic hook that renders a force from the other side's values goes by the newest of them.
#[test]
fn a_hook_is_told_the_newest_values_of_the_other_direction() {
    let mut plan = with_steps(json!([tap("tap", "predict", json!({}))]));
    let path = json!([{"component": 1}, {"component": 0}]);
    let mut back = plan["flows"][0].clone();
    (back["name"], back["direction"], back["path"]) = (json!("haptic"), json!("backward"), path);
    back["start_ns"] = json!(5 * MS);
    plan["flows"].as_array_mut().expect("flows").push(back);
    let others = |plan: &Value| {
        let mut code = Code::default();
        run(&mut node_with(plan, 0, &mut code), &mut World::default(), 11 * MS);
        let other = |saw| match saw {
            Saw::Called { other, .. } => other,
            _ => panic!("it is only called"),
        };
        code.saw().into_iter().map(other).collect::<Vec<_>>()
    };
    assert_eq!(others(&plan), [vec![], vec![1.0, f64::from(0.6f32)]], "none yet, then those of 5 ms");
    plan["flows"][1]["codec"] = json!("raw");
    assert_eq!(others(&plan), vec![Vec::<f64>::new(); 2], "bytes that nothing has decoded are no values");
}

/// Python code frees what it holds there, and what it complains of at its end is in the report.
#[test]
fn a_hook_ends_with_the_run_and_when_its_component_begins_anew() {
    let mut code = Code::default();
    let mut node = node_with(&with_steps(json!([tap("tap", "predict", json!({}))])), 0, &mut code);
    node.set_alive(ComponentId(0), false);
    node.set_alive(ComponentId(0), true);
    assert_eq!(code.saw(), [Saw::Ended("tap".into())]);
    let ends = node.report().stages[0].4.ends.clone();
    assert_eq!(ends, ["tap has a file left open", "tap has a file left open"]);
    assert_eq!(code.saw().len(), 2);
}

/// What supervisor `a` goes on from when its component begins anew, with these stages behind it.
fn resumed(behind: &[Value], dies_ns: Time) -> Vec<Vec<f64>> {
    let mut supervisor = tap("a", "predict", json!({"gives": [1.0], "states": true}));
    supervisor["period_ns"] = json!(10 * MS);
    let steps: Vec<Value> = [supervisor].iter().chain(behind).cloned().collect();
    let (mut code, mut world) = (Code::default(), World::default());
    let mut node = node_with(&with_steps(json!(steps)), 0, &mut code);
    run(&mut node, &mut world, dies_ns);
    node.set_alive(ComponentId(0), false);
    node.set_alive(ComponentId(0), true);
    run(&mut node, &mut world, dies_ns + 9 * MS);
    node.set_alive(ComponentId(0), false);
    node.set_alive(ComponentId(0), true);
    let of_supervisor = |saw| match saw {
        Saw::Resumed { hook, values } if hook == "a" => Some(values),
        _ => None,
    };
    code.saw().into_iter().filter_map(of_supervisor).collect()
}

/// A supervisor that begins anew moves on from where the follower is. That is where the last stage before a device sent it,
/// which need not be where the supervisor did.
#[test]
fn a_supervisor_goes_on_from_what_reached_the_device_behind_it() {
    let force = || tap("force", "feedback", json!({"gives": [3.0]}));
    let limit = || tap("limit", "work", json!({"gives": [2.0]}));
    let twice = |v: f64| vec![vec![v]; 2];
    assert_eq!(resumed(&[], MS), twice(1.0), "nothing behind it");
    assert_eq!(resumed(&[limit()], MS), twice(2.0), "the end of the visit");
    assert_eq!(resumed(&[force()], MS), twice(1.0), "a device gives forces, which are no positions");
    assert_eq!(resumed(&[limit(), force()], MS), twice(2.0));
    assert_eq!(resumed(&[force(), limit()], MS), twice(1.0), "what is behind the device has not reached it");
    let mut slow = limit();
    slow["delay"] = json!({"kind": "constant", "span_ns": 4 * MS});
    assert_eq!(
        resumed(&[slow], MS),
        vec![Vec::<f64>::new(); 2],
        "a sample that its component's death has lost reaches nothing"
    );
}

/// A tick fills a gap, and a sample that is a little late is none: half a period is waited for it.
#[test]
fn a_stage_that_answers_on_arrival_waits_for_one_and_a_half_periods() {
    let mut plan = plan([0, 0]);
    (plan["flows"][0]["period_ns"], plan["flows"][0]["stop_ns"]) = (json!(14 * MS), json!(30 * MS));
    let zoh = json!({"kind": "predict", "run": {"kind": "builtin", "name": "zoh"}, "period_ns": 10 * MS, "on_arrival": true});
    plan["flows"][0]["path"][1]["steps"] = json!([zoh]);
    let mut world = World::default();
    run(&mut node(&plan, 0), &mut world, 70 * MS);
    let outputs: Vec<_> = world.of(Kind::Renumbered).iter().map(|r| (r.time_ns / MS, r.detail)).collect();
    assert_eq!(outputs, [(0, 1), (14, 1), (28, 1), (43, 0), (53, 0), (63, 0)]);
}

/// A loop that was away makes one output for all that it missed, and goes on at the ticks that it had.
#[test]
fn a_stage_whose_loop_was_late_goes_on_in_its_rhythm() {
    let mut plan = plan([0, 0]);
    plan["flows"][0]["stop_ns"] = json!(MS);
    let zoh = json!({"kind": "predict", "run": {"kind": "builtin", "name": "zoh"}, "period_ns": 10 * MS});
    plan["flows"][0]["path"][1]["steps"] = json!([zoh]);
    let (mut world, mut node) = (World::default(), node(&plan, 0));
    run(&mut node, &mut world, MS);
    node.handle_timeout(35 * MS, &mut world);
    run(&mut node, &mut world, 61 * MS);
    let outputs: Vec<_> = world.of(Kind::Renumbered).iter().map(|r| (r.time_ns / MS, r.index)).collect();
    assert_eq!(outputs, [(0, 0), (35, 1), (40, 2), (50, 3), (60, 4)]);
}

/// A robot takes one step for all that its loop missed, and goes on at the ticks that it had.
#[test]
fn a_robot_whose_loop_was_late_goes_on_in_its_rhythm() {
    let mut plan = plan([0, 0]);
    plan["flows"][0]["start_ns"] = json!(900 * MS);
    plan["components"][1]["robot"] =
        json!({"run": {"kind": "builtin", "name": "wall_mass"}, "period_ns": 10 * MS, "senses": 3});
    plan["signals"] = json!([PointId::held(ComponentId(1)).0]);
    let (mut world, mut node) = (World::default(), node(&plan, 0));
    run(&mut node, &mut world, MS);
    node.handle_timeout(35 * MS, &mut world);
    assert_eq!(node.poll_timeout(), 40 * MS);
    run(&mut node, &mut world, 61 * MS);
    let mut steps: Vec<_> = world.of(Kind::Signal).iter().map(|r| r.time_ns / MS).collect();
    steps.dedup();
    assert_eq!(steps, [0, 35, 40, 50, 60]);
    assert_eq!(node.report().missed_ticks, 2, "those of 10 and 20 ms; that of 30 ms came late");
}

/// On sockets a node goes on for a while after the end, for what is in flight.
#[test]
fn after_the_end_a_stage_passes_on_what_still_comes_if_it_answers_and_makes_nothing_up() {
    let outputs = |on_arrival: bool| {
        let mut plan = plan([0, 0]);
        (plan["flows"][0]["period_ns"], plan["duration_ns"]) = (json!(14 * MS), json!(50 * MS));
        let delay = json!({"kind": "constant", "span_ns": 40 * MS});
        plan["flows"][0]["path"][0]["steps"] = json!([{"kind": "work", "delay": delay}]);
        plan["flows"][0]["path"][1]["steps"] = json!([{"kind": "predict",
            "run": {"kind": "builtin", "name": "zoh"}, "period_ns": 10 * MS, "on_arrival": on_arrival}]);
        let mut world = World::default();
        run(&mut node(&plan, 0), &mut world, 500 * MS);
        world.of(Kind::Renumbered).iter().map(|r| r.time_ns / MS).collect::<Vec<_>>()
    };
    assert_eq!(outputs(true), [40, 54, 68, 82]);
    assert_eq!(outputs(false), [40]);
}

/// A recorder writes from its file; what is no whole row would shift all that follow.
#[test]
fn a_recording_that_holds_no_whole_rows_is_refused() {
    let found = |columns: u32, values: usize| {
        let mut plan = plan([0, 0]);
        plan["flows"][0]["source"] =
            json!({"kind": "values", "path": "p", "columns": columns, "repeat": "loop"});
        refused(&plan, &mut Code { file: vec![0; 8 * values], ..Code::default() })
    };
    assert!(found(2, 4).is_none());
    for (columns, values) in [(0, 4), (2, 0), (2, 1), (2, 3), (5, 4)] {
        let text = found(columns, values).unwrap_or_default();
        assert!(text.contains("flows.kinematic.source: p holds no rows"), "{columns} {values}: {text}");
    }
}

#[test]
fn frames_that_are_not_in_their_file_are_refused() {
    let found = |offsets: &[u64]| {
        let mut plan = plan([0, 0]);
        plan["flows"][0]["source"] = json!({"kind": "frames", "path": "p", "offsets": offsets});
        refused(&plan, &mut Code { file: vec![0; 8], ..Code::default() })
    };
    assert!(found(&[0, 3, 3, 8]).is_none());
    for offsets in [&[][..], &[0], &[3, 2], &[0, 9]] {
        assert!(found(offsets).is_some_and(|text| text.contains("offsets do not fit p")), "{offsets:?}");
    }
}

/// The agent of a supervisor is code of its own, which only the driver can get at; no other hook has one.
#[test]
fn the_parameters_of_a_supervisor_and_of_no_other_hook_name_an_agent() {
    let make = |name: &str, mut params: Value| {
        let agent = json!({"kind": "python", "name": "agent", "symbol": "Tap"});
        params["agent"] = agent;
        let code = json!({"kind": "builtin", "name": name, "params": params});
        let code: CodePlan = serde_json::from_value(code).expect("code");
        let hook = assets::hook(&code, Shape::of(StepKind::Predict), &mut Code::default());
        hook.map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(make("supervisor", json!({"action": "agent"})), Ok(()));
    let refused = make("zoh", json!({})).expect_err("it has none");
    assert!(refused.contains("'zoh': agent"), "{refused}");
}

#[test]
fn a_loop_that_is_late_by_a_millisecond_leaves_its_ticks_out() {
    let mut plan = plan([0, 0]);
    plan["flows"][0]["period_ns"] = json!(MS / 4);
    for (late, sent, missed) in [(MS - 1, vec![0, 1, 2, 3], 0), (MS, vec![4], 4)] {
        let (mut world, mut node) = (World::default(), node(&plan, 0));
        node.handle_timeout(late, &mut world);
        assert_eq!(world.of(Kind::Sent).iter().map(|r| r.index).collect::<Vec<_>>(), sent);
        assert_eq!(node.report().missed_ticks, missed);
        node.handle_timeout(late + 3 * MS, &mut world);
        assert_eq!(node.report().missed_ticks, missed + 11, "all pauses together");
    }
}
