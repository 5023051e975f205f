//! Boards at their node.

use crate::common::{node, plan, run, World, MS};
use serde_json::{json, Value};
use tcps_core::record::{DropReason, Kind};
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
