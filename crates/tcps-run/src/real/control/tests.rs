//! A node whose loop dies.

use super::*;
use crate::assets::Disk;
use crate::os::{clock::monotonic_ns, wait::NothingToDetach};
use std::{io::BufReader, os::unix::net::UnixStream, sync::atomic::AtomicUsize};
use tcps_core::time::{Time, SECOND};

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
    assert!(words.starts_with("the loop of session ") && words.ends_with(" at node home died: no such pose"));
    assert_eq!(reports.iter().filter(|r| r["interrupted"] == true).count(), 1);
    assert_eq!(reports.iter().filter(|r| !r["nodes"].as_array().unwrap().is_empty()).count(), 1, "kept");
    for number in 0..2 {
        std::fs::remove_file(ring.with_extension(format!("{number}.ring"))).unwrap();
    }
}
