//! The way to an emulated network that works in namespaces: lines of JSON over a Unix socket, each answered by one.
//!
//! ```text
//! > {"op":"snapshot"}                  < {"snapshot":{"t_s":3.1,"doors":[…],"clients":1}}
//! > {"op":"change","network":{…}}      < {"changed":true}   or   {"refused":"…"}
//! ```

use super::{change, lock, Shared};
use crate::error::RunError;
use serde::Deserialize;
use serde_json::{json, Value};
use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::Arc,
};

/// What somebody asks.
#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    /// Counts so far, rates and delays of the last second.
    Snapshot,
    /// Another network in the place of the present one.
    Change { network: Value },
}

/// Answers whoever connects at `path`, one after the other, until this process ends.
pub(super) fn serve(path: &Path, seed: u64, shared: &Arc<Shared>) -> Result<(), RunError> {
    let fail = |e: std::io::Error| RunError::new(format!("{}: {e}", path.display()));
    let listener = UnixListener::bind(path).map_err(fail)?;
    let shared = shared.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // One that is gone is followed by the next.
            let _ = answer(&stream, seed, &shared);
        }
    });
    Ok(())
}

fn answer(stream: &UnixStream, seed: u64, shared: &Shared) -> std::io::Result<()> {
    let mut out = stream;
    for line in BufReader::new(stream).lines() {
        let said = reply(&line?, seed, shared);
        out.write_all(format!("{said}\n").as_bytes())?;
    }
    Ok(())
}

/// What is said to a line, whatever is in it.
fn reply(line: &str, seed: u64, shared: &Shared) -> Value {
    match serde_json::from_str(line) {
        Ok(Request::Snapshot) => json!({ "snapshot": &*lock(&shared.snapshot) }),
        Ok(Request::Change { network }) => match change(shared, network, seed) {
            Ok(()) => json!({ "changed": true }),
            Err(e) => json!({ "refused": e.to_string() }),
        },
        Err(e) => json!({ "refused": e.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(delay_ns: i64) -> Value {
        json!({"vertices": ["near", "far"], "links": [
            {"name": "there", "from": 0, "to": 1, "delay_ns": delay_ns}, {"name": "back", "from": 1, "to": 0},
        ]})
    }

    #[test]
    fn a_network_that_can_be_is_left_for_the_loop_and_one_that_cannot_is_refused() {
        let shared = Shared::default();
        let said = reply(&json!({"op": "change", "network": link(5)}).to_string(), 1, &shared);
        assert_eq!(said, json!({"changed": true}));
        let (spec, text) = lock(&shared.change).take().unwrap();
        assert_eq!((spec.links[0].delay_ns, text), (5, link(5)));
        let apart = json!({"op": "change", "network": {"vertices": ["near", "far"]}}).to_string();
        let said = reply(&apart, 1, &shared);
        assert!(said["refused"].as_str().is_some_and(|why| why.contains("no way leads from near to far")));
        assert!(lock(&shared.change).is_none());
    }

    #[test]
    fn nonsense_is_refused_and_the_talk_goes_on() {
        let path = std::env::temp_dir().join(format!("tcps-control-{}", std::process::id()));
        let shared = Arc::new(Shared::default());
        lock(&shared.snapshot).t_s = 7.5;
        serve(&path, 1, &shared).unwrap();
        let stream = UnixStream::connect(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut lines = BufReader::new(&stream).lines();
        for nonsense in ["", "{", "{\"op\":\"stop\"}", "{\"op\":\"change\"}"] {
            (&stream).write_all(format!("{nonsense}\n").as_bytes()).unwrap();
            let said: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            assert!(said["refused"].is_string(), "{nonsense}");
        }
        (&stream).write_all(b"{\"op\":\"snapshot\"}\n").unwrap();
        let said: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(said["snapshot"]["t_s"], 7.5);
    }
}
