//! Genuine samples of a flow in whose name somebody else sends.

use super::*;
use crate::flow::BEHIND_FORGED;
use tcps_plan::attack::FIRST_FORGED;

/// The forged samples `of`, sent to srv and delivered.
fn forge(tape: &mut Tape, of: std::ops::Range<u32>) {
    for k in of {
        let (index, at) = (FIRST_FORGED + k, 100 * MS + Time::from(k) * MS);
        let row = tape.row(at, Kind::Attack, index, 1);
        (row.point, row.node) = (entry(1), NodeId(1));
        tape.row(at + 1, Kind::Enter, index, 1).point = entry(1);
        for late in [3, 4] {
            let row = tape.row(at + late, Kind::Delivered, index, late); // and a copy
            (row.point, row.size) = (entry(2), 24);
        }
    }
}

fn attacked(duration_ns: Time, extra: Value) -> Plan {
    let what = json!({"kind": "forge", "flow": 0, "period_ns": MS});
    let action = json!({"kind": "attack", "link": 0, "duration_ns": 50 * MS, "what": what});
    let events = json!([{"at_ns": 5, "name": "none", "action": {"kind": "reroute"}}, {"at_ns": 100 * MS, "name": "f", "action": action}]);
    let mut plan = plan(duration_ns, extra);
    plan.events = serde_json::from_value(events).unwrap();
    plan
}

#[test]
fn forged_samples_are_none_of_the_flow_and_genuine_ones_behind_them_are_lost_for_that() {
    let plan = attacked(3 * SECOND, json!({}));
    let mut tape = Tape::default();
    forge(&mut tape, 0..50);
    for i in 0..3_000u32 {
        match i {
            // Three of them in two fragments, at the second channel.
            110..=119 | 2_990..=2_994 => {
                tape.sent(i);
                for _ in 0..=u32::from((110..113).contains(&i)) {
                    tape.row(Time::from(i) * MS + 2, Kind::Duplicate, i, 0).node = NodeId(2);
                }
            }
            // A fragment came twice, and then the sample.
            130 => {
                tape.row(130 * MS + 1, Kind::Duplicate, i, 0).node = NodeId(2);
                tape.whole(i, [MS, MS, MS]);
            }
            // A copy of what arrived.
            140 => {
                tape.whole(i, [MS, MS, MS]);
                tape.row(144 * MS, Kind::Duplicate, i, 0).node = NodeId(2);
            }
            _ => tape.whole(i, [MS, MS, MS]),
        }
    }
    // Of forged ones nothing else counts either.
    for kind in [Kind::Duplicate, Kind::Superseded, Kind::Played] {
        tape.row(150 * MS, kind, FIRST_FORGED, 7);
    }
    let a = tape.analyse(&plan, &Options::default());
    let f = &a.flows[0];
    assert_eq!((f.sent, f.delivered, f.lost, f.in_flight, f.forged), (3_000, 2_985, 10, 5, 50));
    assert_eq!((f.duplicated, f.duplicates_dropped, f.superseded, a.strange_rows), (2, 2, 0, 0));
    let found: Vec<_> = f.drops.iter().map(|d| (d.at.as_str(), d.reason, d.packets)).collect();
    assert_eq!(found, [("c1", BEHIND_FORGED, 15)], "also those that count as in flight");
    let delay = f.delay_ns.as_ref().unwrap();
    assert_eq!((delay.n, delay.min, delay.max), (2_985, 3e6, 3e6));
    let [effect] = &a.effects[..] else { panic!("{:?}", a.effects) };
    assert_eq!((effect.sent, effect.accepted, effect.channel.as_deref()), (50, Some(50), Some("c0")));
    assert_eq!((effect.to["n1"], effect.component.as_deref()), (50, Some("srv")));
}

/// Without an attack a copy is a copy, whatever has come of it.
#[test]
fn copies_are_copies_where_nobody_attacks() {
    let mut tape = Tape::default();
    (0..2_000).for_each(|i| tape.sent(i));
    tape.row(SECOND, Kind::Duplicate, 5, 0).node = NodeId(2);
    let f = tape.analyse(&plan(2 * SECOND, json!({})), &Options::default()).flows.remove(0);
    assert_eq!((f.duplicates_dropped, f.drops.len(), f.forged), (1, 0, 0));
}

/// A supervisor gives samples of its own: those that it makes of forged ones are forged.
#[test]
fn what_a_periodic_stage_makes_of_forged_samples_is_none_of_the_flow() {
    let stage =
        json!({"kind": "predict", "period_ns": MS, "run": {"kind": "builtin", "name": "hold", "params": {}}});
    let mut plan = attacked(2 * SECOND, json!({}));
    plan.flows[0].path[1].steps = serde_json::from_value(json!([stage])).unwrap();
    let mut tape = Tape::default();
    for i in 0..2_000u32 {
        let at = Time::from(i) * MS;
        let is_forged = (100..150).contains(&i);
        tape.sent(i);
        let (source, new) = match i {
            100 => (FIRST_FORGED, 1),
            101..150 => (FIRST_FORGED, 0), // again and again
            _ => (i, 1),
        };
        if i == 100 {
            let row = tape.row(at - 1, Kind::Attack, FIRST_FORGED, 1);
            (row.point, row.node) = (entry(1), NodeId(1));
        }
        tape.row(at + 1, Kind::Enter, i, 1).point = entry(1);
        let row = tape.row(at + 2, Kind::Renumbered, i, source.into());
        (row.point, row.detail) = (1, new);
        tape.row(at + 3, Kind::Exit, i, 3).point = exit(1);
        let row = tape.row(at + 4, Kind::Delivered, i, if is_forged { 99 * MS } else { 4 });
        (row.point, row.size) = (entry(2), 24);
    }
    let a = tape.analyse(&plan, &Options::default());
    let f = &a.flows[0];
    assert_eq!((f.sent, f.delivered, f.forged, f.repeated), (2_000, 1_950, 1, 0), "{f:?}");
    assert_eq!(f.delay_ns.as_ref().unwrap().max, 4.0);
    assert_eq!(f.lost, 50, "nothing was made of them");
}

/// A step of the clock's estimate is a lie's where an attacker has told one that is as large.
#[test]
fn steps_of_clocks_after_a_lie_and_no_larger_are_told_apart() {
    let what = json!({"kind": "clock_lie", "offset_ns": -20 * MS});
    let action = json!({"kind": "attack", "link": 0, "duration_ns": SECOND, "what": what});
    let lie = json!([{"at_ns": 0, "name": "lie", "action": action}]);
    let steps = |events: Value, leap_ns: i64| {
        let plan = plan(2 * SECOND, json!({"events": events}));
        let mut tape = Tape::default();
        let row = tape.row(5 * MS, Kind::Attack, 3, 0);
        (row.node, row.flow) = (NodeId(1), FlowId::NONE);
        for (at, value) in [(10, 0), (20, leap_ns)] {
            let row = tape.row(at * MS, Kind::Sync, 9, value);
            (row.node, row.point, row.size) = (NodeId(1), 0, 100);
        }
        let [clock] = &tape.analyse(&plan, &Options::default()).clocks[..] else { panic!() };
        (clock.step_max_ns, clock.step_by_lies_max_ns)
    };
    assert_eq!(steps(lie.clone(), 20 * MS), (0, 20_000_000 - 200));
    assert_eq!(steps(lie, 21 * MS), (21_000_000 - 200, 0));
    assert_eq!(steps(json!([]), 20 * MS), (20_000_000 - 200, 0));
}
