//! Boards at their node.

use crate::common::{node, plan, run, World, MS};
use serde_json::{json, Value};
use tcps_core::{
    hook::State,
    ids::{FlowId, NodeId},
    record::{DropReason, Kind, Record},
};
use tcps_node::host::BoardEvent;
use tcps_wire::board::{Role, MAX_PAYLOAD};

/// A plan whose flows `(direction, codec, bytes)` come to a component with a board.
fn with_board(kind: &str, flows: &[(&str, &str, usize)]) -> Value {
    let mut plan = plan([0, 0]);
    plan["components"][1]["kind"] = json!(kind);
    plan["components"][1]["board"] =
        json!({"rate_bps": 1e6, "watchdog_ms": 0, "safe": "hold", "work_us": 10});
    let made = flows.iter().enumerate().map(|(n, (direction, codec, bytes))| {
        let mut flow = plan["flows"][0].clone();
        (flow["name"], flow["direction"], flow["codec"]) =
            (json!(format!("f{n}")), json!(direction), json!(codec));
        flow["source"]["bytes"] = json!(bytes);
        flow
    });
    plan["flows"] = made.collect();
    plan
}

/// A driver tells a board its roles before the first sample: two flows that drove it would have one actuator obey both.
#[test]
fn a_board_is_driven_by_the_first_flow_that_commands_it_and_relays_the_others() {
    let flows = [
        ("forward", "f32", 8),
        ("backward", "f32", 8),
        ("forward", "f32", 8),
        ("backward", "f32", 8),
        ("forward", "raw", 8),
        ("backward", "f64", 8),
    ];
    use Role::{Capture, Drive, Relay, Sense};
    for (kind, roles) in [
        ("ss-embsys", [Drive, Sense, Relay, Sense, Relay, Relay]),
        ("ms-embsys", [Capture, Drive, Capture, Relay, Relay, Relay]),
    ] {
        let node = node(&with_board(kind, &flows), 0);
        let [board] = node.boards() else { panic!("one board") };
        assert_eq!(board.component.0, 1);
        let found: Vec<_> = board.channels.iter().map(|c| (c.0 .0, c.1)).collect();
        assert_eq!(found, (0..).zip(roles).collect::<Vec<_>>(), "{kind}");
    }
}

/// A frame of the line has no room for more: the sample is dropped where it is too large, and not cut.
#[test]
fn a_sample_goes_to_a_board_as_long_as_it_fits_into_a_frame() {
    for (bytes, dropped) in [(MAX_PAYLOAD, 0), (MAX_PAYLOAD + 1, 1), (MAX_PAYLOAD + 100, 1)] {
        let mut world = World::default();
        let mut node = node(&with_board("ss-embsys", &[("forward", "raw", bytes)]), 0);
        run(&mut node, &mut world, 9 * MS);
        let told: Vec<_> = world.of(Kind::Dropped).iter().map(|r| (r.index, r.point, r.detail)).collect();
        assert_eq!(told, vec![(0, 1, DropReason::Malformed as u8); dropped], "{bytes}");
        let line = node.report().boards[0].1.clone();
        assert_eq!((line.sent, line.answered), (1 - dropped as u64, 1 - dropped as u64), "{bytes}");
    }
}

/// How long an arm stood in its safe output is read from these rows.
#[test]
fn outputs_that_go_safe_and_are_driven_again_are_told_of_the_flow_that_drives() {
    for (safe, stopped) in [(json!("hold"), State::Hold), (json!({"values": [0.0, 0.0]}), State::SafeStop)] {
        let mut plan = with_board("ss-embsys", &[("forward", "raw", 8), ("forward", "f32", 8)]);
        plan["components"][1]["board"]["watchdog_ms"] = json!(5);
        plan["components"][1]["board"]["safe"] = safe;
        plan["flows"][1]["period_ns"] = json!(2 * MS);
        let (mut world, mut node) = (World::default(), node(&plan, 0));
        run(&mut node, &mut world, 5 * MS);
        for running in [false, true] {
            let now = if running { 21 * MS } else { 5 * MS };
            node.set_running(now, FlowId(1), running);
            run(&mut node, &mut world, now + 15 * MS);
        }
        let told = world.of(Kind::State);
        let row = |at: usize, value, from: State, to: State| Record {
            value,
            size: from as u32,
            detail: to as u8,
            flow: FlowId(1),
            point: 1,
            node: NodeId(0),
            ..Record::new(told[at].time_ns, Kind::State)
        };
        let expected = [row(0, 5 * MS, State::Normal, stopped), row(1, 0, stopped, State::Normal)];
        assert_eq!(told, expected);
        assert_eq!(
            told.iter().map(|r| r.time_ns / MS).collect::<Vec<_>>(),
            [9, 22],
            "after 4 ms, and from 22 ms on"
        );
        assert_eq!(node.report().boards[0].1.safe, 1);
    }
}

/// On sockets a board is firmware behind a line: what it says becomes of samples is what becomes of them.
#[test]
fn what_a_board_behind_a_line_tells_is_the_fate_of_samples() {
    let mut plan = with_board("ss-embsys", &[("forward", "f32", 8)]);
    let arm = json!({"name": "arm", "kind": "ss-robot", "session": 0, "node": 0});
    plan["components"].as_array_mut().expect("components").push(arm);
    plan["flows"][0]["path"].as_array_mut().expect("a path").push(json!({"component": 2}));
    let (mut world, mut node) = (World { lines: true, ..World::default() }, node(&plan, 0));
    run(&mut node, &mut world, 21 * MS);
    let jobs: Vec<u32> = world.rides.iter().map(|r| r.0).collect();
    assert_eq!(world.rides, jobs.iter().map(|job| (*job, 0, 0)).collect::<Vec<_>>());
    assert_eq!((jobs.len(), world.of(Kind::Delivered).len()), (3, 0), "they are still there");

    let bytes = vec![1; 12];
    let answered = BoardEvent::Answered { job: jobs[1], entry_ns: 22 * MS, exit_ns: 23 * MS, bytes };
    node.handle_board(24 * MS, 0, answered, &mut world);
    for job in [jobs[0], jobs[2]] {
        node.handle_board(25 * MS, 0, BoardEvent::Lost { job }, &mut world);
    }
    node.handle_board(26 * MS, 0, BoardEvent::Safe(vec![0; 8]), &mut world);

    let at = |kind, point| {
        let rows = world.of(kind).into_iter().filter(move |r| r.point == point);
        rows.map(|r| (r.time_ns / MS, r.index, r.value / MS)).collect::<Vec<_>>()
    };
    assert_eq!(at(Kind::Enter, 2), [(24, 1, 12)], "written now, of a sample of 10 ms that entered at 22 ms");
    assert_eq!(at(Kind::Exit, 3), [(24, 1, 13)]);
    assert_eq!(at(Kind::Delivered, 4), [(24, 1, 14)], "it goes on to the arm");
    assert_eq!(world.of(Kind::Delivered)[0].size, 12, "as the board has given it out");
    let dropped: Vec<_> = world.of(Kind::Dropped).iter().map(|r| (r.index, r.point, r.detail)).collect();
    assert_eq!(dropped, [(0, 1, DropReason::Line as u8), (2, 1, DropReason::Line as u8)]);
    assert_eq!(world.of(Kind::State).iter().map(|r| r.time_ns / MS).collect::<Vec<_>>(), [26]);
    let line = &node.report().boards[0].1;
    assert_eq!((line.sent, line.answered, line.lost, line.safe), (3, 1, 2, 1));
}
