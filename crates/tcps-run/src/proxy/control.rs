//! The way to an emulated network that works in namespaces: lines of JSON over a Unix socket, each answered by one.
//!
//! ```text
//! > {"op":"snapshot"}                  < {"snapshot":{"t_s":3.1,"doors":[…],"clients":1}}
//! > {"op":"change","network":{…}}      < {"changed":true}   or   {"refused":"…"}
//! > {"op":"event","line":{…},"network":{…}}   <   the same
//! ```

use super::{change, shared::Shared, steer};
use crate::{emu::lock, threads};
use serde::Deserialize;
use serde_json::{json, Value};
use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::Arc,
    time::Duration,
};
use tcps_plan::RunError;

/// Longest line, in bytes: networks of thousands of links.
const LINE_BYTES: u64 = 1 << 20;
/// Talks at a time.
const TALKS: usize = 16;
/// Pause after a connection that could not be taken, such as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// What somebody asks.
#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    /// When run time was 0 (CLOCK_MONOTONIC).
    Start,
    /// Counts so far, rates and delays of the last second.
    Snapshot,
    /// Another network in the place of the present one, and the number of this event where that is recorded.
    Change { network: Value, event: Option<u32> },
    /// An event of the record's plan, and the network as it is after it.
    Event { line: Value, network: Value },
}

/// Answers whoever connects at `path`, up to 16 at a time, until this process ends.
pub(super) fn serve(path: &Path, seed: u64, shared: &Arc<Shared>) -> Result<(), RunError> {
    let fail = |e: std::io::Error| RunError::system(path.display(), e);
    let listener = UnixListener::bind(path).map_err(fail)?;
    let (shared, talks) = (shared.clone(), Arc::new(()));
    threads::start(move || {
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => welcome(stream, seed, &shared, &talks),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    })?;
    Ok(())
}

/// Answers one in a thread of its own, if there is room: every talk holds a share of `talks`.
fn welcome(stream: UnixStream, seed: u64, shared: &Arc<Shared>, talks: &Arc<()>) {
    if Arc::strong_count(talks) > TALKS {
        let _ = say(&stream, &json!({ "refused": format!("{TALKS} talks at a time") }));
        return;
    }
    let (shared, talk) = (shared.clone(), talks.clone());
    let talking = move || {
        // One that is gone has no more to ask.
        let _ = answer(&stream, seed, &shared);
        drop(talk);
    };
    // Without a thread the stream is closed.
    let _ = std::thread::Builder::new().spawn(talking);
}

fn answer(stream: &UnixStream, seed: u64, shared: &Shared) -> std::io::Result<()> {
    let (mut input, mut line) = (BufReader::new(stream), Vec::new());
    while input.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line)? > 0 {
        if line.len() as u64 == LINE_BYTES && !line.ends_with(b"\n") {
            return say(stream, &json!({ "refused": format!("a line of more than {LINE_BYTES} B") }));
        }
        say(stream, &reply(&line, seed, shared))?;
        line.clear();
    }
    Ok(())
}

fn say(mut stream: &UnixStream, said: &Value) -> std::io::Result<()> {
    stream.write_all(format!("{said}\n").as_bytes())
}

/// What is said to a line, whatever is in it.
fn reply(line: &[u8], seed: u64, shared: &Shared) -> Value {
    match serde_json::from_slice(line) {
        Ok(Request::Start) => json!({ "start_ns": shared.start }),
        Ok(Request::Snapshot) => json!({ "snapshot": &*lock(&shared.snapshot) }),
        Ok(Request::Change { network, event }) => answered(change(shared, network, seed, event)),
        Ok(Request::Event { line, network }) => answered(steer(shared, line, network, seed)),
        Err(e) => json!({ "refused": e.to_string() }),
    }
}

fn answered<T>(done: Result<T, RunError>) -> Value {
    match done {
        Ok(_) => json!({ "changed": true }),
        Err(e) => json!({ "refused": e.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::shared::Order;

    const SNAPSHOT: &[u8] = b"{\"op\":\"snapshot\"}\n";

    fn link(delay_ns: i64) -> Value {
        json!({"vertices": ["near", "far"], "links": [
            {"name": "there", "from": 0, "to": 1, "delay_ns": delay_ns}, {"name": "back", "from": 1, "to": 0},
        ]})
    }

    #[test]
    fn a_network_that_can_be_is_left_for_the_loop_and_one_that_cannot_is_refused() {
        let (shared, orders) = Shared::begin();
        let said = reply(json!({"op": "change", "network": link(5)}).to_string().as_bytes(), 1, &shared);
        assert_eq!(said, json!({"changed": true}));
        let Ok(Order::Change(spec, text, None)) = orders.try_recv() else { panic!("no change") };
        assert_eq!((spec.links[0].delay_ns, text), (5, link(5)));
        let slide = json!({"op": "event", "line": {"number": 0}, "network": link(7)}).to_string();
        assert_eq!(reply(slide.as_bytes(), 1, &shared), json!({"changed": true}));
        assert!(matches!(orders.try_recv(), Ok(Order::Event(_, text)) if text == link(7)));
        let apart = json!({"op": "change", "network": {"vertices": ["near", "far"]}}).to_string();
        let said = reply(apart.as_bytes(), 1, &shared);
        assert!(said["refused"].as_str().is_some_and(|why| why.contains("no path leads from near to far")));
        assert!(orders.try_recv().is_err());
    }

    /// A control of its own for a test.
    fn served(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("tcps-{name}-{}", std::process::id()));
        let shared = Arc::new(Shared::begin().0);
        lock(&shared.snapshot).t_s = 7.5;
        serve(&path, 1, &shared).unwrap();
        path
    }

    fn connected(path: &Path) -> UnixStream {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// The answer to a line.
    fn asked(stream: &UnixStream, line: &[u8]) -> Value {
        let mut said = String::new();
        // One that has heard enough does not take the rest.
        let _ = { stream }.write_all(line);
        BufReader::new(stream).read_line(&mut said).unwrap();
        serde_json::from_str(&said).unwrap()
    }

    #[test]
    fn nonsense_is_refused_and_the_talk_goes_on() {
        let path = served("nonsense");
        let stream = connected(&path);
        std::fs::remove_file(&path).unwrap();
        for nonsense in ["\n", "{\n", "{\"op\":\"stop\"}\n", "{\"op\":\"change\"}\n"] {
            assert!(asked(&stream, nonsense.as_bytes())["refused"].is_string(), "{nonsense}");
        }
        assert!(asked(&stream, b"\xff\xfe\n")["refused"].is_string(), "no text");
        assert_eq!(asked(&stream, SNAPSHOT)["snapshot"]["t_s"], 7.5);
    }

    #[test]
    fn one_that_says_nothing_holds_nobody_off() {
        let path = served("silent");
        let mut talks: Vec<UnixStream> = (0..TALKS).map(|_| connected(&path)).collect();
        for stream in talks.iter().rev() {
            assert_eq!(asked(stream, SNAPSHOT)["snapshot"]["t_s"], 7.5);
        }
        assert_eq!(asked(&connected(&path), b"")["refused"], "16 talks at a time");
        drop(talks.pop());
        let again = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            asked(&connected(&path), SNAPSHOT)["snapshot"].is_object()
        });
        assert!(again, "the place of one that went is free");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_line_has_an_end() {
        let path = served("endless");
        let stream = connected(&path);
        let said = asked(&stream, &vec![b' '; LINE_BYTES as usize]);
        assert_eq!(said["refused"], "a line of more than 1048576 B");
        let rest = { &stream }.read(&mut [0; 8]);
        assert!(matches!(rest, Ok(0)) || rest.is_err(), "the talk is over");
        std::fs::remove_file(&path).unwrap();
    }
}
