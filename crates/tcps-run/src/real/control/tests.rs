//! A node whose loop dies, and one that is steered.

use super::*;
use crate::assets::Disk;
use crate::os::{
    clock::monotonic_ns,
    ring::Consumer,
    wait::{Detach, NothingToDetach},
};
use std::{io::BufReader, os::unix::net::UnixStream, sync::atomic::AtomicUsize};
use tcps_core::{
    ids::NodeId,
    record::{Kind, Record, RECORD_BYTES},
    time::{Time, MS, SECOND},
};
use tcps_node::assets::Assets;
use tcps_plan::Need;

const PLANNED_NS: Time = 600 * SECOND;

/// A node whose second loop dies as soon as it runs.
#[derive(Default)]
struct Mortal(AtomicUsize);

struct Dying;

impl Detach for Dying {
    fn detached(&mut self, wait: &mut dyn FnMut()) {
        wait();
    }

    fn at_barrier(&mut self) {
        panic!("no such pose");
    }
}

impl Attach for Mortal {
    fn attached(&self, _: Need, body: &mut dyn FnMut(&mut dyn Assets, &mut dyn Detach)) {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            0 => body(&mut Disk, &mut NothingToDetach),
            _ => body(&mut Disk, &mut Dying),
        }
    }
}

fn two_sessions() -> Value {
    let component = |session: u16| json!({"name": "c", "kind": "x", "session": session, "node": 0});
    json!({
        "name": "p", "seed": 1, "duration_ns": PLANNED_NS, "sessions": ["left", "right"], "nodes": [{"name": "home"}],
        "components": [component(0), component(1)], "flows": [],
    })
}

#[test]
fn a_loop_that_dies_is_noticed_at_once_and_ends_the_node() {
    let ring = std::env::temp_dir().join(format!("tcps-control-{}", std::process::id()));
    let (input, mut say_to) = UnixStream::pair().unwrap();
    let (said, mut output) = UnixStream::pair().unwrap();
    writeln!(say_to, "{}", json!({"op": "prepare", "plan": two_sessions(), "node": 0, "ring": ring}))
        .unwrap();
    writeln!(say_to, "{}", json!({"op": "start", "at_ns": monotonic_ns()})).unwrap();
    let begun = monotonic_ns();
    assert!(serve(BufReader::new(input), &mut output, &Mortal::default()));
    assert!(monotonic_ns() - begun < PLANNED_NS / 10, "the other loop would go on for ten minutes");
    drop(output);
    let mut lines = BufReader::new(said).lines().map(|l| serde_json::from_str::<Value>(&l.unwrap()).unwrap());
    let (ready, done) = (lines.next().unwrap(), lines.next().unwrap());
    assert_eq!((&ready["op"], ready["loops"].as_array().map(Vec::len)), (&json!("ready"), Some(2)));
    assert_eq!(done["op"], "done");
    let reports = done["reports"].as_array().unwrap();
    let errors: Vec<&Value> = reports.iter().flat_map(|r| r["errors"].as_array().unwrap()).collect();
    assert_eq!(errors.len(), 1);
    let words = errors[0].as_str().unwrap();
    assert!(
        words.starts_with("the loop of session ")
            && words.ends_with(" at node home died: no such pose (please report this)")
    );
    assert_eq!(reports.iter().filter(|r| r["interrupted"] == true).count(), 1);
    assert_eq!(reports.iter().filter(|r| !r["nodes"].as_array().unwrap().is_empty()).count(), 1, "kept");
    for number in 0..2 {
        std::fs::remove_file(ring.with_extension(format!("{number}.ring"))).unwrap();
    }
}

struct Plain;

impl Attach for Plain {
    fn attached(&self, _: Need, body: &mut dyn FnMut(&mut dyn Assets, &mut dyn Detach)) {
        body(&mut Disk, &mut NothingToDetach);
    }
}

/// A hand that makes a sample a millisecond, at the first of two nodes.
fn a_hand() -> Value {
    let component = |name: &str, node: NodeId| json!({"name": name, "kind": "x", "session": 0, "node": node});
    json!({
        "name": "p", "seed": 1, "duration_ns": PLANNED_NS, "sessions": ["a"],
        "nodes": [{"name": "home"}, {"name": "away"}],
        "components": [component("hand", NodeId(0)), component("ear", NodeId(0)), component("far", NodeId(1))],
        "flows": [{"name": "k", "session": 0, "direction": "forward", "period_ns": MS, "codec": "raw",
                   "source": {"kind": "generated", "bytes": 12}, "sink": {"kind": "count"},
                   "path": [{"component": 0}, {"component": 1}]}],
    })
}

#[test]
fn a_node_lives_through_events_that_it_is_asked_for_while_it_runs() {
    let ring = std::env::temp_dir().join(format!("tcps-steered-{}", std::process::id()));
    let (input, mut say_to) = UnixStream::pair().unwrap();
    let (said, mut output) = UnixStream::pair().unwrap();
    let node = crate::threads::start(move || serve(BufReader::new(input), &mut output, &Plain)).unwrap();
    let mut lines = BufReader::new(said).lines();
    let mut talk = |line: Value| {
        writeln!(say_to, "{line}").unwrap();
        move |lines: &mut std::io::Lines<BufReader<UnixStream>>| -> Value {
            serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
        }
    };
    let ready = talk(json!({"op": "prepare", "plan": a_hand(), "node": 0, "ring": ring}))(&mut lines);
    assert_eq!(ready["op"], "ready", "{ready}");
    let _ = talk(json!({"op": "start", "at_ns": monotonic_ns()}));
    let flow = |flow: u16| json!({"kind": "flow", "flow": flow, "running": false});
    for (number, action, words) in [
        (0, flow(7), "flow 7, and there are 1"),
        (0, json!({"kind": "reroute"}), "found an action of the network at home; allowed: flow "),
        (0, json!({"kind": "component", "component": 2, "alive": false}), "found an action of away at home"),
        (0, json!({"kind": "jump"}), "unknown variant"),
        (-1, flow(0), "found \"number\": -1; allowed: 0 and more"),
    ] {
        let refused =
            talk(json!({"op": "event", "number": number, "name": "e", "action": action}))(&mut lines);
        let error = refused["error"].as_str().unwrap_or_default();
        assert!(refused["op"] == "refused" && error.contains(words), "{refused}");
    }
    std::thread::sleep(std::time::Duration::from_millis(100));
    let taken =
        talk(json!({"op": "event", "number": 5, "name": "hand rests", "action": flow(0)}))(&mut lines);
    assert_eq!(taken, json!({"op": "event", "number": 5}));
    std::thread::sleep(std::time::Duration::from_millis(200));
    let done = talk(json!({"op": "stop"}))(&mut lines);
    assert_eq!((&done["op"], &done["reports"][0]["errors"]), (&json!("done"), &json!([])));
    assert!(node.join().unwrap());
    let (file, mut bytes) = (ring.with_extension("0.ring"), Vec::new());
    Consumer::open(&file).unwrap().drain(&mut bytes);
    std::fs::remove_file(file).unwrap();
    let rows: Vec<Record> = bytes
        .chunks_exact(RECORD_BYTES)
        .map(|b| Record::from_bytes(b.try_into().unwrap()).unwrap())
        .collect();
    let event = rows.iter().find(|r| r.kind == Kind::Event).expect("it leaves a row");
    let sent = |late: bool| {
        rows.iter().filter(|r| r.kind == Kind::Sent && (r.time_ns > event.time_ns) == late).count()
    };
    assert_eq!((event.index, sent(true)), (5, 0), "the hand rests");
    assert!(sent(false) > 0, "it moved before");
}
