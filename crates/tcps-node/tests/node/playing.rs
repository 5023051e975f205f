//! Playout at the last component.

use crate::common::{node, plan, run, World, MS};
use serde_json::json;
use tcps_core::{
    ids::{FlowId, NodeId},
    record::{Kind, Record},
};

/// What a listener hears of a gap is counted by these rows: by flow, and behind which sample.
#[test]
fn a_tick_at_which_there_is_nothing_to_show_leaves_a_row_behind_the_sample_shown_last() {
    let mut plan = plan([0, 0]);
    let played = &mut plan["flows"][0];
    (played["playout"], played["period_ns"]) = (json!({"kind": "hold"}), json!(MS));
    (played["start_ns"], played["stop_ns"]) = (json!(5 * MS / 2), json!(5 * MS));
    let mut world = World::default();
    run(&mut node(&plan, 0), &mut world, 8 * MS);
    let shown: Vec<_> = world.of(Kind::Played).iter().map(|r| (r.index, r.time_ns / MS)).collect();
    assert_eq!(shown, [(0, 3), (1, 4), (2, 5)]);
    let row = |time_ns| Record {
        index: 2,
        flow: FlowId(0),
        point: 1,
        node: NodeId(0),
        ..Record::new(time_ns, Kind::Starved)
    };
    assert_eq!(world.of(Kind::Starved), [row(6 * MS), row(7 * MS)]);
}
