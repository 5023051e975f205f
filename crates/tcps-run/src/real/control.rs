//! The control of a node process: JSON lines on standard input and output.
//!
//! ```text
//! > {"op":"prepare","plan":{…},"node":1,"ring":"/dev/shm/…/node1"}         or  "node":null for the emulator
//!   and "taps":"/dev/shm/…/taps" where nodes have network namespaces: there they hand their devices to the emulator
//! < {"op":"ready","loops":[{"channels":{"0":"127.0.0.1:5000"},"aside":"127.0.0.1:5001"}],"rings":["…"]}   (or "gates":[…])
//! > {"op":"start","at_ns":123,"channels":{"0":"…"},"asides":{"0":"…"},"aside_senders":[[0,"…"],[0,"…"]]}
//! > {"op":"stop"}                                                          (or the end of input)
//! < {"op":"done","reports":[…]}
//! < {"op":"failed","error":"…"}
//! ```

use super::{
    emulator::{Emulator, Listeners},
    namespace,
    session::{Addresses, SessionLoop},
    wait::Detach,
};
use crate::{code::PythonCode, error::RunError, plan::Plan, report::Report};
use serde::Deserialize;
use serde_json::{json, Value};
use std::{
    collections::BTreeMap,
    io::{BufRead, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{channel, Receiver, Sender},
    },
};

/// Gives a thread what it needs for Python code, or what is needed without it.
pub trait Attach: Sync {
    /// Runs `body` in the calling thread; if it needs `python`, attached to the interpreter.
    fn attached(&self, python: bool, body: &mut dyn FnMut(&mut dyn PythonCode, &mut dyn Detach));
}

#[derive(Deserialize)]
struct Prepare {
    plan: Plan,
    node: Option<u16>,
    /// Rings are files with this name and a number.
    ring: PathBuf,
    /// Where nodes in network namespaces hand their devices to the emulator.
    taps: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Start {
    at_ns: i64,
    /// For a loop: peers per channel. For the emulator: listeners per "node:channel".
    #[serde(default)]
    channels: BTreeMap<String, SocketAddr>,
    /// Where datagrams outside channels go, per node.
    #[serde(default)]
    asides: BTreeMap<u16, SocketAddr>,
    /// Where they come from: a node sends from the socket of each of its loops.
    #[serde(default)]
    aside_senders: Vec<(u16, SocketAddr)>,
}

/// Serves one run; tells whether it went well.
pub fn serve(input: impl BufRead + Send + 'static, output: &mut dyn Write, attach: &dyn Attach) -> bool {
    let mut lines = Lines { input };
    let result = lines.next::<Prepare>("prepare").and_then(|p| match p.node {
        Some(node) => serve_node(p, node, lines, output, attach),
        None => serve_emulator(&p, lines, output),
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
    p: &Prepare,
    mut lines: Lines<I>,
    output: &mut dyn Write,
) -> Result<Vec<Report>, RunError> {
    let emulator = Emulator::prepare(&p.plan, &p.ring, p.taps.as_deref())?;
    let gates: Vec<Value> = emulator
        .gates()?
        .into_iter()
        .map(|(from, to, channel, address)| json!({"from": from, "to": to, "channel": channel, "address": address}))
        .collect();
    say(output, &json!({"op": "ready", "gates": gates, "rings": [p.ring]}));
    let start = lines.next::<Start>("start")?;
    let mut listeners = BTreeMap::new();
    for (key, address) in &start.channels {
        let (node, channel) = key.split_once(':').unwrap_or(("", ""));
        if let (Ok(node), Ok(channel)) = (node.parse(), channel.parse()) {
            listeners.insert((node, channel), *address);
        }
    }
    let peers = Listeners {
        channels: listeners,
        asides: start.asides,
        aside_senders: start.aside_senders.into_iter().collect(),
    };
    let relay = emulator.join(&p.plan, &peers, start.at_ns)?;
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    lines.until_stop(stop);
    Ok(vec![relay.run(&p.plan, stop)])
}

fn serve_node<I: BufRead + Send + 'static>(
    p: Prepare,
    node: u16,
    mut lines: Lines<I>,
    output: &mut dyn Write,
    attach: &dyn Attach,
) -> Result<Vec<Report>, RunError> {
    if let Some(taps) = &p.taps {
        namespace::enter(&p.plan.real, node, taps)?;
    }
    let groups = p.plan.loops(node);
    let rings: Vec<PathBuf> = (0..groups.len()).map(|i| p.ring.with_extension(format!("{i}.ring"))).collect();
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let plan = &p.plan;
    std::thread::scope(|scope| {
        let mut loops = Vec::new();
        for (sessions, ring) in groups.iter().zip(&rings) {
            let (to_loop, from_control) = channel();
            let (to_control, from_loop) = channel();
            scope.spawn(move || {
                run_loop(plan, node, sessions, ring, attach, &from_control, &to_control, stop)
            });
            loops.push((to_loop, from_loop));
        }
        let mut ready = Vec::new();
        for (_, from_loop) in &loops {
            match from_loop.recv() {
                Ok(FromLoop::Ready(v)) => ready.push(v),
                Ok(FromLoop::Failed(e)) => return Err(e),
                _ => return Err(RunError::new("a loop ended before it was ready")),
            }
        }
        say(output, &json!({"op": "ready", "loops": ready, "rings": rings}));
        let start = lines.next::<Start>("start")?;
        let channels = start.channels.iter().filter_map(|(c, a)| Some((c.parse().ok()?, *a))).collect();
        let aside_senders = start.aside_senders.iter().map(|&(n, a)| (a, n)).collect();
        let peers = Addresses { channels, asides: start.asides, aside_senders };
        lines.until_stop(stop);
        for (to_loop, _) in &loops {
            let _ = to_loop.send((peers.clone(), start.at_ns));
        }
        let mut reports = Vec::new();
        for (_, from_loop) in &loops {
            match from_loop.recv() {
                Ok(FromLoop::Done(r)) => reports.push(*r),
                _ => return Err(RunError::new("a loop ended without a report")),
            }
        }
        if p.taps.is_some() {
            let first = reports.first_mut().and_then(|r| r.nodes.first_mut()).and_then(|n| n.real.as_mut());
            first.into_iter().for_each(|real| real.socket_drops += namespace::drops());
        }
        Ok(reports)
    })
}

enum FromLoop {
    Ready(Value),
    Failed(RunError),
    Done(Box<Report>),
}

#[allow(clippy::too_many_arguments)]
fn run_loop(
    plan: &Plan,
    node: u16,
    sessions: &[u16],
    ring: &Path,
    attach: &dyn Attach,
    from_control: &Receiver<(Addresses, i64)>,
    to_control: &Sender<FromLoop>,
    stop: &AtomicBool,
) {
    attach.attached(plan.needs_python(node, sessions), &mut |python, detach| {
        let prepared =
            SessionLoop::prepare(plan, node, sessions, ring, python).and_then(|l| Ok((l.reached_at()?, l)));
        let session = match prepared {
            Ok(((channels, aside), l)) => {
                let _ = to_control.send(FromLoop::Ready(json!({"channels": channels, "aside": aside})));
                l
            }
            Err(e) => {
                let _ = to_control.send(FromLoop::Failed(e));
                return;
            }
        };
        let mut start = None;
        detach.detached(&mut || start = from_control.recv().ok());
        if let Some((peers, at_ns)) = start {
            let report = session.run(plan, peers, at_ns, stop, detach);
            let _ = to_control.send(FromLoop::Done(Box::new(report)));
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
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}
