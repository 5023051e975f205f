//! The control of a node process: JSON lines on standard input and output.
//!
//! ```text
//! > {"op":"prepare","plan":{…},"node":1,"ring":"/dev/shm/…/node1"}         or  "node":null for the emulator
//!   and "taps":"/dev/shm/…/taps" where nodes have network namespaces: there they hand their devices to the emulator
//!   and "capture":"runs/…/node1" where datagrams are captured
//!   and "foreign":{"program":"…",…} for the emulator, where another program simulates the network
//!   and in its place, where links are between the switches of others: "places":{"3":{"namespace":"…","address":"…"}} for
//!   background traffic that is datagrams, "wires":{"0":["l0a","l0b"]} for links that are emulated between TAP devices
//! < {"op":"ready","loops":[{"channels":{"0":"127.0.0.1:5000"},"aside":"127.0.0.1:5001"}],"rings":["…"],"captures":["…"]}
//!   (or "gates":[{"node":1,"channel":0,"address":"…"}])
//! > {"op":"start","at_ns":123,"channels":{"0":"…"},"asides":{"0":["…"]},"aside_senders":[[0,"…"],[0,"…"]]}
//! > {"op":"stop"}                                                          (or the end of input)
//! < {"op":"done","reports":[…]}
//! < {"op":"failed","error":"…"}
//! ```

use super::{
    emulator::{Emulator, Listeners, WireSpec},
    namespace,
    replayer::{Places, Replayer},
    session::{Addresses, Files, SessionLoop},
    wait::Detach,
};
use crate::{
    carrier::ForeignSpec,
    code::PythonCode,
    error::RunError,
    plan::{Background, Need, Plan},
    report::Report,
};
use serde::Deserialize;
use serde_json::{json, Value};
use std::{
    collections::BTreeMap,
    io::{BufRead, Write},
    net::SocketAddr,
    panic::{catch_unwind, AssertUnwindSafe},
    path::PathBuf,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{channel, Receiver, Sender},
    },
};

/// Gives a thread what it needs for Python code, or what is needed without it.
pub trait Attach: Sync {
    /// Runs `body` in the calling thread; if the loop itself needs `python`, attached to the interpreter.
    fn attached(&self, python: Need, body: &mut dyn FnMut(&mut dyn PythonCode, &mut dyn Detach));
}

#[derive(Deserialize)]
struct Prepare {
    plan: Plan,
    node: Option<u16>,
    /// Rings are files with this name and a number.
    ring: PathBuf,
    /// Captures of loops are files with this name and a number; absent: none.
    capture: Option<PathBuf>,
    /// Where nodes in network namespaces hand their devices to the emulator.
    taps: Option<PathBuf>,
    /// For the emulator: the program that simulates the network in place of its own.
    foreign: Option<ForeignSpec>,
    /// Where links are between the switches of others: where background traffic begins and ends.
    places: Option<Places>,
    /// The same: links that are emulated all the same.
    wires: Option<WireSpec>,
}

#[derive(Deserialize)]
struct Start {
    at_ns: i64,
    /// For a loop: peers per channel. For the emulator: listeners per "node:channel".
    #[serde(default)]
    channels: BTreeMap<String, SocketAddr>,
    /// Where datagrams outside channels go, per node: to its loops, or its gate.
    #[serde(default)]
    asides: BTreeMap<u16, Vec<SocketAddr>>,
    /// Where they come from: a node sends from the socket of each of its loops.
    #[serde(default)]
    aside_senders: Vec<(u16, SocketAddr)>,
}

impl Start {
    /// Where nodes listen, for an emulator.
    fn listeners(self) -> Listeners {
        let mut channels = BTreeMap::new();
        for (key, address) in self.channels {
            let (node, channel) = key.split_once(':').unwrap_or(("", ""));
            if let (Ok(node), Ok(channel)) = (node.parse(), channel.parse()) {
                channels.insert((node, channel), address);
            }
        }
        let aside_senders = self.aside_senders.into_iter().collect();
        Listeners { channels, asides: self.asides, aside_senders }
    }
}

/// Serves one run; tells whether it went well.
pub fn serve(input: impl BufRead + Send + 'static, output: &mut dyn Write, attach: &dyn Attach) -> bool {
    let mut lines = Lines { input };
    let result = lines.next::<Prepare>("prepare").and_then(|p| match p.node {
        Some(node) if p.only_traffic(node) => serve_traffic(&p, node, lines, output),
        Some(node) => serve_node(p, node, lines, output, attach),
        None if p.places.is_some() || p.wires.is_some() => serve_beside(&p, lines, output),
        None => serve_emulator(p, lines, output),
    });
    match result {
        Ok(reports) => say(output, &json!({"op": "done", "reports": reports})),
        Err(e) => {
            say(output, &json!({"op": "failed", "error": e.to_string()}));
            return false;
        }
    }
    true
}

fn serve_emulator<I: BufRead + Send + 'static>(
    mut p: Prepare,
    mut lines: Lines<I>,
    output: &mut dyn Write,
) -> Result<Vec<Report>, RunError> {
    if p.plan.real.background == Background::Datagrams {
        p.plan.network.traffic.clear();
    }
    let emulator = Emulator::prepare(&p.plan, &p.ring, p.taps.as_deref(), p.foreign.as_ref())?;
    let gates: Vec<Value> = emulator
        .gates()?
        .into_iter()
        .map(|(node, channel, address)| json!({"node": node, "channel": channel, "address": address}))
        .collect();
    say(output, &json!({"op": "ready", "gates": gates, "rings": [p.ring]}));
    let start = lines.next::<Start>("start")?;
    let at_ns = start.at_ns;
    let relay = emulator.join(&p.plan, &start.listeners(), at_ns)?;
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    lines.until_stop(stop);
    Ok(vec![relay.run(&p.plan, stop)])
}

/// What is beside the switches of others: links that are emulated, background traffic that is datagrams, or both.
fn serve_beside<I: BufRead + Send + 'static>(
    p: &Prepare,
    mut lines: Lines<I>,
    output: &mut dyn Write,
) -> Result<Vec<Report>, RunError> {
    let alone = p.wires.as_ref().map(|w| (w.plan(&p.plan), w));
    let wired = |(alone, wires): &(Plan, &WireSpec)| Emulator::wired(&p.plan, alone, &p.ring, wires);
    let emulator = alone.as_ref().map(wired).transpose()?;
    let replayer = p.places.as_ref().map(|places| Replayer::bind(&p.plan, places)).transpose()?;
    let rings: Vec<&PathBuf> = emulator.iter().map(|_| &p.ring).collect();
    say(output, &json!({"op": "ready", "gates": [], "rings": rings}));
    let start = lines.next::<Start>("start")?;
    let at_ns = start.at_ns;
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    lines.until_stop(stop);
    std::thread::scope(|scope| {
        let traffic = replayer.map(|r| scope.spawn(move || r.run(&p.plan, at_ns, stop)));
        let mut reports = Vec::new();
        if let (Some(emulator), Some((alone, _))) = (emulator, &alone) {
            // Without links the run is over, for traffic as well.
            let failed = |_: &RunError| stop.store(true, Ordering::Relaxed);
            let relay = emulator.join(alone, &start.listeners(), at_ns).inspect_err(failed)?;
            reports.push(relay.run(alone, stop));
        }
        if let Some(thread) = traffic {
            let died = |_| RunError::new("the loop of background traffic died (please report this)");
            reports.push(thread.join().map_err(died)?);
        }
        Ok(reports)
    })
}

/// A node that has nothing but background traffic.
fn serve_traffic<I: BufRead + Send + 'static>(
    p: &Prepare,
    node: u16,
    mut lines: Lines<I>,
    output: &mut dyn Write,
) -> Result<Vec<Report>, RunError> {
    if let Some(taps) = &p.taps {
        namespace::enter(&p.plan, node, taps)?;
    }
    let replayer = Replayer::here(&p.plan, node)?;
    say(output, &json!({"op": "ready", "loops": [], "rings": [], "captures": []}));
    let start = lines.next::<Start>("start")?;
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    lines.until_stop(stop);
    Ok(vec![replayer.run(&p.plan, start.at_ns, stop)])
}

fn serve_node<I: BufRead + Send + 'static>(
    p: Prepare,
    node: u16,
    mut lines: Lines<I>,
    output: &mut dyn Write,
    attach: &dyn Attach,
) -> Result<Vec<Report>, RunError> {
    if let Some(taps) = &p.taps {
        namespace::enter(&p.plan, node, taps)?;
    }
    let groups = p.plan.loops(node);
    let files: Vec<Files> = (0..groups.len()).map(|i| p.files(i)).collect();
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    std::thread::scope(|scope| {
        let mut loops = Loops::new(stop, groups.len());
        for (number, (sessions, files)) in groups.iter().zip(&files).enumerate() {
            let (to_loop, from_control) = channel();
            let ways = Ways { from_control, to_control: loops.to_control.clone(), number, stop };
            let plan = &p.plan;
            scope.spawn(move || guarded(plan, node, sessions, files, attach, &ways));
            loops.to_loops.push(to_loop);
        }
        let ready = loops.ready()?;
        let rings: Vec<&PathBuf> = files.iter().map(|f| &f.ring).collect();
        let captures: Vec<&PathBuf> = files.iter().filter_map(|f| f.capture.as_ref()).collect();
        say(output, &json!({"op": "ready", "loops": ready, "rings": rings, "captures": captures}));
        let start = lines.next::<Start>("start")?;
        let channels = start.channels.iter().filter_map(|(c, a)| Some((c.parse().ok()?, *a))).collect();
        let aside_senders = start.aside_senders.iter().map(|&(n, a)| (a, n)).collect();
        let peers = Addresses { channels, asides: start.asides, aside_senders };
        lines.until_stop(stop);
        for to_loop in loops.to_loops.drain(..) {
            let _ = to_loop.send((peers.clone(), start.at_ns));
        }
        let mut reports = loops.reports();
        if p.taps.is_some() {
            let first = reports.first_mut().and_then(|r| r.nodes.first_mut()).and_then(|n| n.real.as_mut());
            first.into_iter().for_each(|real| real.socket_drops += namespace::drops());
        }
        Ok(reports)
    })
}

impl Prepare {
    /// Whether background traffic begins or ends at a node, and nothing else does.
    fn only_traffic(&self, node: u16) -> bool {
        let ends_here = self.plan.network.traffic.iter().any(|t| [t.from, t.to].contains(&node));
        self.plan.real.background == Background::Datagrams && ends_here && self.plan.loops(node).is_empty()
    }

    /// The files of a loop.
    fn files(&self, number: usize) -> Files {
        let capture = self.capture.as_ref().map(|path| path.with_extension(format!("{number}.pcapng")));
        Files { ring: self.ring.with_extension(format!("{number}.ring")), capture }
    }
}

/// What a loop says, with its number.
enum FromLoop {
    Ready(Value),
    /// It could not be built, or it died: then the others end as well.
    Failed(RunError),
    Done(Box<Report>),
}

/// The loops of a node as the control sees them.
struct Loops {
    to_loops: Vec<Sender<(Addresses, i64)>>,
    to_control: Sender<(usize, FromLoop)>,
    from_loops: Receiver<(usize, FromLoop)>,
    stop: &'static AtomicBool,
    count: usize,
}

impl Loops {
    fn new(stop: &'static AtomicBool, count: usize) -> Self {
        let (to_control, from_loops) = channel();
        Self { to_loops: Vec::new(), to_control, from_loops, stop, count }
    }

    /// The next word of any loop. The control holds a sender itself, so that the channel never closes; a loop always
    /// says something before it ends, see `guarded`.
    fn next(&self) -> Result<(usize, FromLoop), RunError> {
        self.from_loops.recv().map_err(|_| RunError::new("all loops ended without a word"))
    }

    /// What each loop says once its sockets are bound.
    fn ready(&self) -> Result<Vec<Value>, RunError> {
        let mut ready = vec![Value::Null; self.count];
        for _ in 0..self.count {
            match self.next()? {
                (number, FromLoop::Ready(value)) => ready[number] = value,
                (_, FromLoop::Failed(e)) => return Err(e),
                (_, FromLoop::Done(_)) => return Err(RunError::new("a loop ended before it was ready")),
            }
        }
        Ok(ready)
    }

    /// The reports of all loops. As soon as one dies, the others are stopped; what they report is kept.
    fn reports(&self) -> Vec<Report> {
        let mut reports = BTreeMap::new();
        while reports.len() < self.count {
            let (number, report) = match self.next() {
                Ok((number, FromLoop::Done(report))) => (number, *report),
                Ok((number, FromLoop::Failed(e))) => (number, self.died(&e)),
                Ok((_, FromLoop::Ready(_))) => continue,
                Err(_) => break,
            };
            reports.insert(number, report);
        }
        reports.into_values().collect()
    }

    fn died(&self, error: &RunError) -> Report {
        self.stop.store(true, Ordering::Relaxed);
        Report { interrupted: true, errors: vec![error.to_string()], ..Report::default() }
    }
}

/// How a loop and the control talk.
struct Ways {
    from_control: Receiver<(Addresses, i64)>,
    to_control: Sender<(usize, FromLoop)>,
    number: usize,
    stop: &'static AtomicBool,
}

impl Ways {
    fn say(&self, what: FromLoop) {
        let _ = self.to_control.send((self.number, what));
    }
}

/// Runs a loop; if it panics, the control learns of it at once and not when the other loops have ended.
fn guarded(plan: &Plan, node: u16, sessions: &[u16], files: &Files, attach: &dyn Attach, ways: &Ways) {
    let run = AssertUnwindSafe(|| run_loop(plan, node, sessions, files, attach, ways));
    if let Err(panic) = catch_unwind(run) {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let words = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no word");
        let names: Vec<&str> = sessions.iter().map(|&s| plan.sessions[usize::from(s)].as_str()).collect();
        ways.say(FromLoop::Failed(RunError::new(format!(
            "the loop of session {} at node {} died: {words}",
            names.join(", "),
            plan.nodes[usize::from(node)].name
        ))));
    }
}

fn run_loop(plan: &Plan, node: u16, sessions: &[u16], files: &Files, attach: &dyn Attach, ways: &Ways) {
    attach.attached(plan.needs_python(node, sessions), &mut |python, detach| {
        let prepared =
            SessionLoop::prepare(plan, node, sessions, files, python).and_then(|l| Ok((l.reached_at()?, l)));
        let session = match prepared {
            Ok(((channels, aside), l)) => {
                ways.say(FromLoop::Ready(json!({"channels": channels, "aside": aside})));
                l
            }
            Err(e) => return ways.say(FromLoop::Failed(e)),
        };
        let mut start = None;
        detach.detached(&mut || start = ways.from_control.recv().ok());
        if let Some((peers, at_ns)) = start {
            let report = session.run(plan, peers, at_ns, ways.stop, detach);
            ways.say(FromLoop::Done(Box::new(report)));
        }
    });
}

struct Lines<I> {
    input: I,
}

impl<I: BufRead + Send + 'static> Lines<I> {
    fn next<T: for<'a> Deserialize<'a>>(&mut self, op: &str) -> Result<T, RunError> {
        let mut line = String::new();
        let n = self.input.read_line(&mut line).map_err(|e| RunError::new(format!("control: {e}")))?;
        if n == 0 {
            return Err(RunError::new(format!("control: input ended before \"{op}\"")));
        }
        let value: Value = serde_json::from_str(&line).map_err(|e| RunError::new(format!("control: {e}")))?;
        if value["op"] != op {
            return Err(RunError::new(format!("control: \"{op}\" expected, got {}", value["op"])));
        }
        serde_json::from_value(value).map_err(|e| RunError::new(format!("control: {op}: {e}")))
    }

    /// Sets `stop` at the next line or the end of input: the orchestrator asks for it, or is gone.
    fn until_stop(mut self, stop: &'static AtomicBool) {
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = self.input.read_line(&mut line);
            stop.store(true, Ordering::Relaxed);
        });
    }
}

fn say(output: &mut dyn Write, line: &Value) {
    // If nobody listens any more, the end of input has said so already.
    let _ = output.write_all(format!("{line}\n").as_bytes()).and_then(|()| output.flush());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::NoPython;
    use crate::real::{clock::monotonic_ns, wait::NothingToDetach};
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
        fn attached(&self, _: Need, body: &mut dyn FnMut(&mut dyn PythonCode, &mut dyn Detach)) {
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => body(&mut NoPython, &mut NothingToDetach),
                _ => body(&mut NoPython, &mut Dying),
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
        let mut lines =
            BufReader::new(said).lines().map(|l| serde_json::from_str::<Value>(&l.unwrap()).unwrap());
        let (ready, done) = (lines.next().unwrap(), lines.next().unwrap());
        assert_eq!((&ready["op"], ready["loops"].as_array().map(Vec::len)), (&json!("ready"), Some(2)));
        assert_eq!(done["op"], "done");
        let reports = done["reports"].as_array().unwrap();
        let errors: Vec<&Value> = reports.iter().flat_map(|r| r["errors"].as_array().unwrap()).collect();
        assert_eq!(errors.len(), 1);
        let words = errors[0].as_str().unwrap();
        assert!(
            words.starts_with("the loop of session ") && words.ends_with(" at node home died: no such pose")
        );
        assert_eq!(reports.iter().filter(|r| r["interrupted"] == true).count(), 1);
        assert_eq!(reports.iter().filter(|r| !r["nodes"].as_array().unwrap().is_empty()).count(), 1, "kept");
        for number in 0..2 {
            std::fs::remove_file(ring.with_extension(format!("{number}.ring"))).unwrap();
        }
    }
}
