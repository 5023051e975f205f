//! The control of a node process: JSON lines on standard input and output.
//!
//! ```text
//! > {"op":"prepare","plan":{…},"node":1,"ring":"/dev/shm/…/node1"}         or  "node":null for the emulator
//!   and "taps":"/dev/shm/…/taps" where nodes have network namespaces: there they hand their devices to the emulator
//!   and "capture":"runs/…/node1" where datagrams are captured
//!   and "secrets":{"0":"…","asides":"…"} where channels are secured: the pre-shared keys of those that end there
//!   and "foreign":{"program":"…",…} for the emulator, where another program simulates the network
//!   and in its place, where links are between Mininet's switches: "places":{"3":{"namespace":"…","address":"…"}} for
//!   background traffic that is datagrams, "wires":{"0":["l0a","l0b"]} for links that are emulated between TAP devices
//! < {"op":"ready","loops":[{"channels":{"0":"127.0.0.1:5000"},"aside":"127.0.0.1:5001"}],"rings":["…"],"captures":["…"]}
//!   (or "gates":[{"node":1,"channel":0,"address":"…"}])
//! > {"op":"start","at_ns":123,"channels":{"0":"…"},"asides":{"0":["…"]},"aside_senders":[[0,"…"],[0,"…"]]}
//! > {"op":"event","number":3,"name":"hand rests","at_ns":1000,"action":{"kind":"flow","flow":0,"running":false}}
//!   any time before the stop: a node lives through it as through an event of its plan, at once where there is no "at_ns",
//!   and its row has the number; so does the emulator, of links, routes and background traffic
//! < {"op":"event","number":3}                                             or {"op":"refused","number":3,"error":"…"}
//!   from a node; what the emulator refuses is among the errors of its report
//! > {"op":"stop"}                                                          (or the end of input)
//! < {"op":"done","reports":[…]}
//! < {"op":"failed","kind":"world","error":"…"}                            as `RunError::report` has it
//! ```

mod attach;
mod loops;
mod words;

pub use attach::Attach;

use super::{emulator::Emulator, replayer::Replayer, session::Files};
use crate::{os::namespace, threads::scoped};
use loops::{guarded, Loops};
use serde_json::{json, Value};
use std::{
    io::{BufRead, Write},
    path::PathBuf,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::channel,
    },
};
use tcps_core::ids::NodeId;
use tcps_plan::{report::Report, Background, RunError};
use words::{say, Lines, Prepare, Start};

/// Serves one run; tells whether it went well.
pub fn serve(input: impl BufRead + Send + 'static, output: &mut dyn Write, attach: &dyn Attach) -> bool {
    let mut lines = Lines { input };
    let result = lines.next::<Prepare>("prepare").and_then(|p| match p.node {
        Some(node) if p.only_traffic(node) => serve_traffic(&p, node, lines, output, attach),
        Some(node) => serve_node(p, node, lines, output, attach),
        None if p.places.is_some() || p.wires.is_some() => serve_beside(&p, lines, output, attach),
        None => serve_emulator(p, lines, output, attach),
    });
    match result {
        Ok(mut reports) => {
            reports.iter_mut().take(1).for_each(|report| report.code = attach.costs());
            say(output, &json!({"op": "done", "reports": reports}));
        }
        Err(e) => {
            let mut failed = json!(e.report());
            failed["op"] = "failed".into();
            say(output, &failed);
            return false;
        }
    }
    true
}

fn serve_emulator<I: BufRead + Send + 'static>(
    mut p: Prepare,
    mut lines: Lines<I>,
    output: &mut dyn Write,
    attach: &dyn Attach,
) -> Result<Vec<Report>, RunError> {
    if p.plan.real.background == Background::Datagrams {
        p.plan.network.traffic.clear();
    }
    let emulator =
        Emulator::prepare(&p.plan, &p.ring, p.taps.as_deref(), p.foreign.as_ref(), &mut *attach.code())?;
    let gates: Vec<Value> = emulator
        .gates()?
        .into_iter()
        .map(|(node, channel, address)| json!({"node": node, "channel": channel, "address": address}))
        .collect();
    say(output, &json!({"op": "ready", "gates": gates, "rings": [p.ring]}));
    let start = lines.next::<Start>("start")?;
    let at_ns = start.at_ns;
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let (steer, steering) = channel();
    lines.until_stop(stop, move |event| drop(steer.send(event)))?;
    Ok(vec![emulator.run(&start.listeners(), at_ns, stop, steering)?])
}

/// What runs beside Mininet's switches: links that are emulated, background traffic that is datagrams, or both.
fn serve_beside<I: BufRead + Send + 'static>(
    p: &Prepare,
    mut lines: Lines<I>,
    output: &mut dyn Write,
    attach: &dyn Attach,
) -> Result<Vec<Report>, RunError> {
    let alone = p.wires.as_ref().map(|w| (w.plan(&p.plan), w));
    let emulator = match &alone {
        Some((alone, wires)) => Some(Emulator::wired(&p.plan, alone, &p.ring, wires, &mut *attach.code())?),
        None => None,
    };
    let replayer =
        p.places.as_ref().map(|places| Replayer::bind(&p.plan, places, &mut *attach.code())).transpose()?;
    let rings: Vec<&PathBuf> = emulator.iter().map(|_| &p.ring).collect();
    say(output, &json!({"op": "ready", "gates": [], "rings": rings}));
    let start = lines.next::<Start>("start")?;
    let at_ns = start.at_ns;
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let (steer, steering) = channel();
    lines.until_stop(stop, move |event| drop(steer.send(event)))?;
    std::thread::scope(|scope| {
        let traffic = replayer.map(|r| scoped(scope, move || r.run(&p.plan, at_ns, stop))).transpose()?;
        let mut reports = Vec::new();
        if let Some(emulator) = emulator {
            // Without links the run is over, for traffic as well.
            let failed = |_: &RunError| stop.store(true, Ordering::Relaxed);
            reports.push(emulator.run(&start.listeners(), at_ns, stop, steering).inspect_err(failed)?);
        }
        if let Some(thread) = traffic {
            let died = |_| RunError::bug("the loop of background traffic died");
            reports.push(thread.join().map_err(died)?);
        }
        Ok(reports)
    })
}

/// A node that has nothing but background traffic.
fn serve_traffic<I: BufRead + Send + 'static>(
    p: &Prepare,
    node: NodeId,
    mut lines: Lines<I>,
    output: &mut dyn Write,
    attach: &dyn Attach,
) -> Result<Vec<Report>, RunError> {
    if let Some(taps) = &p.taps {
        namespace::enter(&p.plan, node, taps)?;
    }
    let replayer = Replayer::here(&p.plan, node, &mut *attach.code())?;
    say(output, &json!({"op": "ready", "loops": [], "rings": [], "captures": []}));
    let start = lines.next::<Start>("start")?;
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    lines.until_stop(stop, drop)?;
    Ok(vec![replayer.run(&p.plan, start.at_ns, stop)])
}

fn serve_node<I: BufRead + Send + 'static>(
    p: Prepare,
    node: NodeId,
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
        let mut loops = Loops::new(stop);
        for (sessions, files) in groups.iter().zip(&files) {
            let (plan, ways) = (&p.plan, loops.ways());
            let secrets = &p.secrets;
            scoped(scope, move || guarded(plan, node, sessions, files, secrets, attach, &ways))?;
        }
        let ready = loops.ready()?;
        let rings: Vec<&PathBuf> = files.iter().map(|f| &f.ring).collect();
        let captures: Vec<&PathBuf> = files.iter().filter_map(|f| f.capture.as_ref()).collect();
        say(output, &json!({"op": "ready", "loops": ready, "rings": rings, "captures": captures}));
        let start = lines.next::<Start>("start")?;
        lines.until_stop(stop, loops.asks())?;
        let at_ns = start.at_ns;
        loops.start(&start.peers(), at_ns);
        let mut reports = loops.reports(&p.plan, node, output);
        if p.taps.is_some() {
            let first = reports.first_mut().and_then(|r| r.nodes.first_mut()).and_then(|n| n.real.as_mut());
            first.into_iter().for_each(|real| real.socket_drops += namespace::drops());
        }
        Ok(reports)
    })
}

#[cfg(test)]
mod tests;
