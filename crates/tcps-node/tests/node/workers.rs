//! Stages with a worker of their own.

use crate::common::{node_with, plan, run, tap, Code, World, MS};
use serde_json::json;
use tcps_core::{
    hook::Verdict,
    ids::{FlowId, NodeId},
    record::{DropReason, Kind, Record, StepKind},
};
use tcps_node::{
    assets::MOST_BYTES,
    host::{Outcome, Task},
    Node,
};

/// A node whose flow has a camera in a worker of its own, with its first picture in the worker.
fn pictured(world: &mut World) -> Node {
    let mut plan = plan([0, 0]);
    plan["records"] = json!("events");
    let mut camera = tap("camera", "capture", json!({}));
    camera["worker"] = json!({"queue": 2, "most_bytes": 1000});
    camera["cost"] = json!({"kind": "constant", "span_ns": 500});
    plan["flows"][0]["codec"] = json!("raw");
    plan["flows"][0]["path"][0]["steps"] = json!([camera]);
    let mut node = node_with(&plan, 0, &mut Code::default());
    assert_eq!(node.take_workers().len(), 1);
    run(&mut node, world, MS);
    node
}

fn outcome(task: &Task, verdict: Verdict, used_ns: i64) -> Outcome {
    Outcome { job: task.job, verdict, values: Vec::new(), bytes: vec![7; 5], used_ns, cost_ns: task.cost_ns }
}

/// The time that a codec takes is read from these rows: one without its stage is nobody's.
#[test]
fn a_call_of_a_worker_leaves_a_row_of_its_own_and_its_sample_goes_on() {
    for (used_ns, value, overruns) in [(700, 700, 1), (500, 500, 0), (300, 500, 0)] {
        let mut world = World::default();
        let mut node = pictured(&mut world);
        let (worker, task) = world.tasks.remove(0);
        assert_eq!((worker, task.index, task.cost_ns), (0, 0, Some(500)));
        assert!(world.of(Kind::Exit).is_empty(), "it is still there");
        node.finished(3 * MS, outcome(&task, Verdict::Emit, used_ns), &mut world);
        let row = Record {
            value,
            flow: FlowId(0),
            point: 0,
            node: NodeId(0),
            detail: StepKind::Capture as u8,
            ..Record::new(3 * MS, Kind::Stage)
        };
        assert_eq!(world.of(Kind::Stage), [row]);
        let delivered = world.of(Kind::Delivered);
        assert_eq!(delivered.iter().map(|r| (r.value, r.size)).collect::<Vec<_>>(), [(3 * MS, 5)]);
        let stats = &node.report().stages[0].4;
        assert_eq!((stats.calls, stats.overruns), (1, overruns), "longer than its cost: {used_ns}");
    }
}

#[test]
fn each_call_of_a_worker_is_told_with_the_number_of_its_sample() {
    let mut world = World::default();
    let mut node = pictured(&mut world);
    for (index, used_ns) in [(0, 900), (1, 700), (2, 800)] {
        let made = 10 * MS * i64::from(index);
        run(&mut node, &mut world, made + MS);
        let (_, task) = world.tasks.pop().expect("one at a time");
        assert_eq!((task.index, task.origin_ns), (index, made));
        node.finished(made + 3 * MS, outcome(&task, Verdict::Emit, used_ns), &mut world);
    }
    let rows: Vec<_> = world.of(Kind::Stage).iter().map(|r| (r.index, r.value)).collect();
    assert_eq!(rows, [(0, 900), (1, 700), (2, 800)]);
}

/// A picture that a worker has made is larger than any other sample; a stage in the loop passes it on whole.
#[test]
fn a_stage_in_the_loop_has_room_for_what_the_worker_before_it_gives() {
    let picture: Vec<u8> = (0..100_000).map(|n| (n % 251) as u8).collect();
    assert!(picture.len() > MOST_BYTES);
    let mut plan = plan([0, 0]);
    let mut camera = tap("camera", "capture", json!({}));
    camera["worker"] = json!({"queue": 2, "most_bytes": picture.len()});
    plan["flows"][0]["codec"] = json!("raw");
    plan["flows"][0]["path"][0]["steps"] = json!([camera, tap("codec", "code", json!({"copies": true}))]);
    let (mut world, mut node) = (World::default(), node_with(&plan, 0, &mut Code::default()));
    assert_eq!(node.take_workers().len(), 1);
    run(&mut node, &mut world, MS);
    let size = picture.len() as u32;
    let made = Outcome { bytes: picture, ..outcome(&world.tasks[0].1, Verdict::Emit, 1) };
    node.finished(MS, made, &mut world);
    assert_eq!(world.of(Kind::Delivered).iter().map(|r| r.size).collect::<Vec<_>>(), [size]);
}

#[test]
fn what_a_worker_does_not_give_out_has_one_fate() {
    let mut world = World::default();
    let mut node = pictured(&mut world);
    node.finished(MS, outcome(&world.tasks[0].1, Verdict::Nothing, 1), &mut world);
    assert_eq!(world.of(Kind::Suppressed).iter().map(|r| (r.index, r.point)).collect::<Vec<_>>(), [(0, 0)]);

    for (verdict, died) in [(Verdict::Failed("why".into()), 0), (Verdict::Dead("why".into()), 1)] {
        let mut world = World::default();
        let mut node = pictured(&mut world);
        node.finished(MS, outcome(&world.tasks[0].1, verdict, 1), &mut world);
        let dropped: Vec<_> = world.of(Kind::Dropped).iter().map(|r| (r.index, r.point, r.detail)).collect();
        assert_eq!(dropped, [(0, 0, DropReason::Hook as u8)]);
        assert_eq!(world.of(Kind::Died).len(), died);
        assert_eq!(node.has_died(), died == 1, "only without what is dead a run cannot go on");
        assert_eq!(node.report().stages[0].4.error.as_deref(), Some("why"));
    }

    let mut world = World { full: true, ..World::default() };
    pictured(&mut world);
    let dropped: Vec<_> = world.of(Kind::Dropped).iter().map(|r| (r.index, r.detail)).collect();
    assert_eq!(dropped, [(0, DropReason::Overload as u8)], "no room");
}

#[test]
fn what_is_wrong_with_the_end_of_a_worker_is_told_of_its_stage() {
    let mut plan = plan([0, 0]);
    let stage = |name: &str, kind: &str| {
        let mut stage = tap(name, kind, json!({}));
        stage["worker"] = json!({"queue": 2, "most_bytes": 1000});
        stage
    };
    plan["flows"][0]["codec"] = json!("raw");
    plan["flows"][0]["path"][0]["steps"] = json!([stage("camera", "capture"), stage("codec", "code")]);
    let mut node = node_with(&plan, 0, &mut Code::default());
    assert_eq!(node.take_workers().len(), 2);
    node.ended(1, vec!["why".into()]);
    let ends: Vec<_> = node.report().stages.iter().map(|s| (s.3.clone(), s.4.ends.clone())).collect();
    assert_eq!(ends, [("camera:Tap".into(), vec![]), ("codec:Tap".into(), vec!["why".to_owned()])]);
}
