//! The words between the control and who started it: lines of JSON.

use crate::{
    carrier::ForeignSpec,
    emu::{Listeners, WireSpec},
    real::{
        replayer::Places,
        secrets::PreShared,
        session::{Addresses, Files},
    },
    threads,
};
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    io::{BufRead, Write},
    net::SocketAddr,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};
use tcps_core::ids::{ChannelId, NodeId};
use tcps_plan::{Background, Plan, RunError};

/// What is to be prepared.
#[derive(Deserialize)]
pub(super) struct Prepare {
    pub plan: Plan,
    pub node: Option<NodeId>,
    /// Rings are files with this name and a number.
    pub ring: PathBuf,
    /// Captures of loops are files with this name and a number; absent: none.
    pub capture: Option<PathBuf>,
    /// Where nodes in network namespaces hand their devices to the emulator.
    pub taps: Option<PathBuf>,
    /// For the emulator: the program that simulates the network in place of its own.
    pub foreign: Option<ForeignSpec>,
    /// Where links are between Mininet's switches: where background traffic begins and ends.
    pub places: Option<Places>,
    /// The same: links that are emulated all the same.
    pub wires: Option<WireSpec>,
    /// Keys of secured channels.
    #[serde(default)]
    pub secrets: PreShared,
}

impl Prepare {
    /// Whether background traffic begins or ends at a node, and nothing else does.
    pub fn only_traffic(&self, node: NodeId) -> bool {
        let ends_here = self.plan.network.traffic.iter().any(|t| [t.from, t.to].contains(&node.into()));
        self.plan.real.background == Background::Datagrams && ends_here && self.plan.loops(node).is_empty()
    }

    /// The files of a loop.
    pub fn files(&self, number: usize) -> Files {
        let capture = self.capture.as_ref().map(|path| path.with_extension(format!("{number}.pcapng")));
        Files { ring: self.ring.with_extension(format!("{number}.ring")), capture }
    }
}

/// The start of a run, with what is known by then.
#[derive(Deserialize)]
pub(super) struct Start {
    pub at_ns: i64,
    /// For a loop: peers per channel. For the emulator: listeners per "node:channel".
    #[serde(default)]
    pub channels: BTreeMap<String, SocketAddr>,
    /// Where datagrams outside channels go, per node: to its loops, or its gate.
    #[serde(default)]
    pub asides: BTreeMap<NodeId, Vec<SocketAddr>>,
    /// Where they come from: a node sends from the socket of each of its loops.
    #[serde(default)]
    pub aside_senders: Vec<(NodeId, SocketAddr)>,
}

impl Start {
    /// The peers of a loop.
    pub fn peers(self) -> Addresses {
        let channels =
            self.channels.iter().filter_map(|(c, a)| Some((ChannelId(c.parse().ok()?), *a))).collect();
        let aside_senders = self.aside_senders.iter().map(|&(n, a)| (a, n)).collect();
        Addresses { channels, asides: self.asides, aside_senders }
    }

    /// Where nodes listen, for an emulator.
    pub fn listeners(self) -> Listeners {
        let mut channels = BTreeMap::new();
        for (key, address) in self.channels {
            let (node, channel) = key.split_once(':').unwrap_or(("", ""));
            if let (Ok(node), Ok(channel)) = (node.parse(), channel.parse()) {
                channels.insert((NodeId(node), ChannelId(channel)), address);
            }
        }
        let aside_senders = self.aside_senders.into_iter().collect();
        Listeners { channels, asides: self.asides, aside_senders }
    }
}

/// The lines that come in.
pub(super) struct Lines<I> {
    pub input: I,
}

impl<I: BufRead + Send + 'static> Lines<I> {
    /// The next line, which must be a word of the kind `op`.
    pub fn next<T: for<'a> Deserialize<'a>>(&mut self, op: &str) -> Result<T, RunError> {
        let mut line = String::new();
        let n = self.input.read_line(&mut line).map_err(|e| RunError::world(format!("control: {e}")))?;
        if n == 0 {
            return Err(RunError::world(format!("control: input ended before \"{op}\"")));
        }
        let value: Value =
            serde_json::from_str(&line).map_err(|e| RunError::world(format!("control: {e}")))?;
        if value["op"] != op {
            return Err(RunError::world(format!("control: \"{op}\" expected, got {}", value["op"])));
        }
        serde_json::from_value(value).map_err(|e| RunError::world(format!("control: {op}: {e}")))
    }

    /// Sets `stop` at the next line or the end of input: the orchestrator asks for it, or is gone. Events that it asks for
    /// before that are given to `steer`.
    pub fn until_stop(
        mut self,
        stop: &'static AtomicBool,
        steer: impl Fn(Value) + Send + 'static,
    ) -> Result<(), RunError> {
        threads::start(move || {
            let mut line = String::new();
            while self.input.read_line(&mut line).is_ok() {
                match serde_json::from_str::<Value>(&line) {
                    Ok(asked) if asked["op"] == "event" => steer(asked),
                    _ => break,
                }
                line.clear();
            }
            stop.store(true, Ordering::Relaxed);
        })?;
        Ok(())
    }
}

/// Says a line.
pub(super) fn say(output: &mut dyn Write, line: &Value) {
    // If nobody listens any more, the end of input has said so already.
    let _ = output.write_all(format!("{line}\n").as_bytes()).and_then(|()| output.flush());
}
