//! A network that another program simulates: it is told what enters, and tells what leaves or is dropped.
//!
//! ```text
//!  this process ── {"send":[7,0,2,86,46,5000]} ─────────────────────► program (ns3/ of this project)
//!               ── {"until":6000000} ───────────────────────────────►
//!               ◄─ {"at":5000700,"arrived":[7],"dropped":[[8,0,1]]} ──
//! ```
//! Packets are numbers there: their bytes stay here. In virtual time the program goes no further than it is told and
//! stops at the first moment at which something arrives, so that nothing that a node does can come too late. On the
//! machine's clock it keeps time itself and says when it cannot.

use super::lines::Lines;
use crate::{
    error::RunError,
    plan::Plan,
    report::{NodeSelf, RealSelf, Spread},
};
use serde::Deserialize;
use serde_json::{json, Value};
use std::{
    collections::{BTreeMap, VecDeque},
    io::{BufRead, BufReader, BufWriter, Read, Write},
    os::fd::RawFd,
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    thread::{self, JoinHandle},
    time::Duration,
};
use tcps_core::{
    record::DropReason,
    time::{Time, MS, NEVER},
};
use tcps_net::{topology::NO_LINK, LinkStats, NetEvent, Network, Packet, QueueState, TrafficStats};

/// Longest time that the program may take for one answer: setting a network up, or the way to the next arrival.
const ANSWER: Duration = Duration::from_secs(120);
/// The same for what it knows at once while it keeps to the machine's clock: datagrams wait meanwhile.
const PROMPT: Duration = Duration::from_secs(1);
/// A packet's number has one bit less than 32: the program marks its own packets with it.
const LARGEST_NUMBER: u32 = 0x7fff_ffff;

/// Which program simulates the network.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForeignSpec {
    /// The program's file.
    pub program: PathBuf,
    /// What the program is called in messages.
    pub name: String,
    /// Links and traffic of the plan as JSON, in its own numbering.
    pub network: Value,
    /// On the machine's clock: how late it may be before the run ends.
    pub most_lag_ns: Time,
}

/// What the program tells about itself.
#[derive(Debug, Clone, Deserialize)]
pub struct ForeignSelf {
    /// What the program is called.
    #[serde(default)]
    pub name: String,
    /// Events that it worked off.
    pub events: u64,
    /// Moments at which it was due on the machine's clock.
    pub moments: u64,
    /// How late it was at them.
    pub late_ns: Spread,
    links: Vec<LinkAccount>,
    traffic: Vec<TrafficAccount>,
}

impl ForeignSelf {
    /// As a node among others: how late it was on the machine's clock.
    pub fn node(&self) -> NodeSelf {
        let real = RealSelf { ticks: self.moments, late_ns: self.late_ns.clone(), ..RealSelf::default() };
        NodeSelf { name: self.name.clone(), cores: 1, real: Some(real), ..NodeSelf::default() }
    }
}

#[derive(Debug, Clone, Deserialize)]
struct LinkAccount {
    packets: u64,
    bytes: u64,
    full: u64,
    lost: u64,
    dropped_bytes: u64,
    most_bytes: u64,
    most_packets: u64,
    busy_ns: Time,
}

#[derive(Debug, Clone, Deserialize)]
struct TrafficAccount {
    packets: u64,
    bytes: u64,
    delivered: u64,
    dropped: u64,
}

/// A line of the program.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    at: Time,
    arrived: Vec<u32>,
    /// Number, link, reason.
    dropped: Vec<(u32, u16, u8)>,
    ready: Option<String>,
    queues: Option<Vec<(u64, u64)>>,
    done: Option<ForeignSelf>,
    failed: Option<String>,
    overload_ns: Option<Time>,
}

/// The program and the packets that are with it.
pub struct Foreign {
    name: String,
    child: Child,
    input: BufWriter<ChildStdin>,
    lines: Lines,
    /// Reads all that it says on stderr, so that it never waits for a reader, and keeps the last line.
    last_line: Option<JoinHandle<String>>,
    by_clock: bool,
    most_lag_ns: Time,
    under_way: BTreeMap<u32, Packet>,
    events: VecDeque<NetEvent>,
    /// How far it has gone.
    reached: Time,
    links: Vec<(String, Option<f64>)>,
    traffic: Vec<String>,
    queues: (Time, Vec<(u64, u64)>),
    done: Option<ForeignSelf>,
    failure: Option<String>,
}

impl Foreign {
    /// Starts the program and has it build the network of a plan.
    pub fn launch(plan: &Plan, spec: &ForeignSpec, by_clock: bool) -> Result<Self, RunError> {
        let started = Command::new(&spec.program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child =
            started.map_err(|e| RunError::new(format!("{}: {}: {e}", spec.name, spec.program.display())))?;
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(RunError::new(format!("{}: no pipe to it", spec.name)));
        };
        let mut foreign = Self {
            name: spec.name.clone(),
            child,
            input: BufWriter::new(input),
            lines: Lines::new(output),
            last_line: Some(thread::spawn(move || last_line(errors))),
            by_clock,
            most_lag_ns: spec.most_lag_ns,
            under_way: BTreeMap::new(),
            events: VecDeque::new(),
            reached: Time::MIN,
            links: plan.network.links.iter().map(|l| (l.name.clone(), l.rate_bps)).collect(),
            traffic: plan.network.traffic.iter().map(|t| t.name.clone()).collect(),
            queues: (Time::MIN, Vec::new()),
            done: None,
            failure: None,
        };
        foreign.build(plan, spec)?;
        Ok(foreign)
    }

    fn build(&mut self, plan: &Plan, spec: &ForeignSpec) -> Result<(), RunError> {
        let mut network = spec.network.clone();
        network["vertices"] = json!(plan.network.vertices.len());
        network["routes"] = routes(plan)?;
        network["seed"] = json!(plan.seed);
        network["end_ns"] = json!(plan.duration_ns);
        network["by_clock"] = json!(self.by_clock);
        network["most_lag_ns"] = json!(self.most_lag_ns);
        self.tell(&json!({ "network": network }));
        self.flush();
        let ready = self.hear(ANSWER).and_then(|line| line.ready);
        match (ready, self.failure.take()) {
            (Some(_), None) => Ok(()),
            (_, Some(why)) => Err(RunError::new(why)),
            (None, None) => Err(RunError::new(format!("{}: no word while it set the network up", self.name))),
        }
    }

    /// Run time is 0 at `start_ns` (CLOCK_MONOTONIC).
    pub fn start(&mut self, start_ns: Time) {
        self.tell(&json!({ "start_ns": start_ns }));
        self.flush();
    }

    /// When the next packet arrives or is dropped, if that is not after `limit`; the program goes there.
    pub fn next_before(&mut self, limit: Time) -> Time {
        while self.events.is_empty() && self.reached < limit && self.failure.is_none() {
            self.go(limit);
        }
        self.events.front().map_or(NEVER, NetEvent::at)
    }

    /// Lets the program go to `now` in virtual time.
    pub fn run_to(&mut self, now: Time) {
        while !self.by_clock && self.reached < now && self.failure.is_none() {
            self.go(now);
        }
    }

    /// Lets the program go to a moment, or to the first before it at which it has something to tell.
    fn go(&mut self, limit: Time) {
        self.tell(&json!({ "until": limit }));
        self.flush();
        if let Some(line) = self.hear(ANSWER) {
            self.reached = line.at;
            self.take(line);
        }
    }

    /// Hands a packet over.
    pub fn send(&mut self, now: Time, from: u16, packet: Packet) {
        if packet.payload > LARGEST_NUMBER {
            return;
        }
        let Packet { payload, dst, wire_bytes, dscp, .. } = packet;
        self.under_way.insert(payload, packet);
        self.tell(&json!({ "send": [payload, from, dst, wire_bytes, dscp, now] }));
        if self.by_clock {
            self.flush();
        }
    }

    /// The next arrival or drop.
    pub fn poll_event(&mut self) -> Option<NetEvent> {
        self.events.pop_front()
    }

    /// Stops or starts a background entry.
    pub fn set_traffic(&mut self, traffic: u16, running: bool) {
        self.tell(&json!({ "traffic": [traffic, running] }));
        if self.by_clock {
            self.flush();
        }
    }

    /// What waits at a link; all links are asked for at once.
    pub fn queue(&mut self, now: Time, link: u16) -> QueueState {
        if self.queues.0 != now {
            self.run_to(now);
            self.tell(&json!({ "queues": 1 }));
            self.flush();
            let wait = if self.by_clock { PROMPT } else { ANSWER };
            self.queues = (now, self.answer(wait, |line| line.queues.take()).unwrap_or_default());
        }
        let (packets, bytes) = self.queues.1.get(usize::from(link)).copied().unwrap_or_default();
        let rate_bps = self.links.get(usize::from(link)).and_then(|l| l.1);
        let wait_ns = rate_bps.map_or(0, |rate| (bytes as f64 * 8e9 / rate) as Time);
        QueueState { packets, bytes, wait_ns }
    }

    /// Ends the program and returns its accounts of links and traffic.
    pub fn end(&mut self) -> (Vec<LinkStats>, Vec<TrafficStats>) {
        self.tell(&json!({ "end": 1 }));
        self.flush();
        if let Some(done) = self.answer(ANSWER, |line| line.done.take()) {
            self.done = Some(ForeignSelf { name: self.name.clone(), ..done });
        }
        let Some(done) = &self.done else { return (Vec::new(), Vec::new()) };
        let links = done.links.iter().zip(&self.links).map(|(a, (name, _))| a.stats(name)).collect();
        let traffic = done.traffic.iter().zip(&self.traffic).map(|(a, name)| a.stats(name)).collect();
        (links, traffic)
    }

    /// What it tells about itself, after its end.
    pub fn itself(&self) -> Option<&ForeignSelf> {
        self.done.as_ref()
    }

    /// Why it does not go on.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// The descriptor that tells when it has something to say.
    pub fn descriptor(&self) -> RawFd {
        self.lines.descriptor()
    }

    /// Reads what it has told, without waiting.
    pub fn listen(&mut self) {
        while self.failure.is_none() {
            match self.hear(Duration::ZERO) {
                Some(line) => self.take(line),
                None => return,
            }
        }
    }

    /// Reads lines until one holds what is asked for.
    fn answer<T>(&mut self, wait: Duration, of: impl Fn(&mut Line) -> Option<T>) -> Option<T> {
        loop {
            let mut line = self.hear(wait)?;
            let found = of(&mut line);
            self.take(line);
            if found.is_some() {
                return found;
            }
        }
    }

    /// The next line; nothing if none came in time, or if the program has failed.
    fn hear(&mut self, wait: Duration) -> Option<Line> {
        if self.failure.is_some() {
            return None;
        }
        let Some(text) = self.lines.next(wait) else {
            if self.lines.ended() {
                let why = self.last_words();
                self.failure = Some(why);
            } else if wait > Duration::ZERO {
                self.failure = Some(format!("{}: no answer for {} s", self.name, wait.as_secs()));
            }
            return None;
        };
        match serde_json::from_str::<Line>(&text) {
            Ok(Line { failed: Some(why), .. }) => self.failure = Some(format!("{}: {why}", self.name)),
            Ok(Line { overload_ns: Some(late), at, .. }) => self.failure = Some(self.overload(late, at)),
            Ok(line) => return Some(line),
            Err(e) => self.failure = Some(format!("{} said {text:?}: {e}", self.name)),
        }
        None
    }

    fn overload(&self, late_ns: Time, at: Time) -> String {
        format!(
            "{} was {:.1} ms behind the clock at {:.3} s (allowed: {:.0} ms): this machine cannot simulate this network \
             in real time; a smaller network, less traffic, or the virtual world",
            self.name,
            late_ns as f64 / MS as f64,
            at as f64 / 1e9,
            self.most_lag_ns as f64 / MS as f64,
        )
    }

    /// What an ended program has said last.
    fn last_words(&mut self) -> String {
        // Without a word its status says what there is to say.
        let said = self.last_line.take().and_then(|t| t.join().ok()).unwrap_or_default();
        let last = if said.is_empty() { "no word" } else { &said };
        let status = self.child.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
        format!("{} ended ({status}): {last}", self.name)
    }

    fn take(&mut self, line: Line) {
        let at = line.at;
        for (number, link, reason) in line.dropped {
            let known = DropReason::ALL.iter().find(|r| **r as u8 == reason).copied();
            let Some(reason) = known else {
                self.failure =
                    Some(format!("{} said that it dropped a packet for reason {reason}", self.name));
                return;
            };
            if let Some(packet) = self.under_way.remove(&number) {
                self.events.push_back(NetEvent::Dropped { at, packet, link, reason });
            }
        }
        for number in line.arrived {
            if let Some(packet) = self.under_way.remove(&number) {
                self.events.push_back(NetEvent::Arrived { at, packet });
            }
        }
    }

    /// Writes a line; a program that is gone is noticed by its silence.
    fn tell(&mut self, line: &Value) {
        let _ = writeln!(self.input, "{line}");
    }

    fn flush(&mut self) {
        let _ = self.input.flush();
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // It ends with its input; one that does not is ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The last line that is not empty, once there are no more.
fn last_line(errors: impl Read) -> String {
    let (mut errors, mut line, mut last) = (BufReader::new(errors), Vec::new(), String::new());
    while errors.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() {
            last = text.trim().into();
        }
        line.clear();
    }
    last
}

impl LinkAccount {
    fn stats(&self, name: &str) -> LinkStats {
        let dropped = self.full + self.lost;
        let mut stats = LinkStats {
            name: name.into(),
            offered_packets: self.packets + dropped,
            offered_bytes: self.bytes + self.dropped_bytes,
            packets: self.packets,
            bytes: self.bytes,
            dropped_packets: dropped,
            dropped_bytes: self.dropped_bytes,
            max_queue_bytes: self.most_bytes,
            max_queue_packets: self.most_packets,
            busy_ns: self.busy_ns,
            ..LinkStats::default()
        };
        stats.drops[DropReason::Full as usize] = self.full;
        stats.drops[DropReason::Loss as usize] = self.lost;
        stats
    }
}

impl TrafficAccount {
    fn stats(&self, name: &str) -> TrafficStats {
        let Self { packets, bytes, delivered: delivered_packets, dropped: dropped_packets } = *self;
        TrafficStats { name: name.into(), packets, bytes, delivered_packets, dropped_packets }
    }
}

/// The number of the next link from every vertex towards every vertex, as the built-in network chooses it; 65535 where none
/// leads there.
pub fn routes(plan: &Plan) -> Result<Value, RunError> {
    let mut spec = plan.network.clone();
    spec.links.iter_mut().for_each(|l| l.radio = None);
    let names: Vec<String> = plan.flows.iter().map(|f| f.name.clone()).collect();
    let network = Network::new(&spec, &names, plan.seed).map_err(|e| RunError::new(e.to_string()))?;
    let vertices = spec.vertices.len() as u16;
    let first =
        |v: u16, d: u16| network.route(v, d).and_then(|path| path.first().copied()).unwrap_or(NO_LINK);
    let table: Vec<Vec<u16>> = (0..vertices).map(|v| (0..vertices).map(|d| first(v, d)).collect()).collect();
    Ok(json!(table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt};

    fn plan() -> Plan {
        serde_json::from_value(json!({
            "name": "p", "seed": 1, "duration_ns": 1000 * MS, "sessions": ["a"], "components": [], "flows": [],
            "nodes": [{"name": "a"}, {"name": "b"}],
            "network": {"vertices": ["a", "b", "r"], "links": [
                {"name": "l1", "from": 0, "to": 2, "rate_bps": 8e6}, {"name": "l2", "from": 2, "to": 1},
            ]},
        }))
        .unwrap()
    }

    /// A program that answers as the script says.
    fn program(name: &str, script: &str) -> ForeignSpec {
        let program = std::env::temp_dir().join(format!("tcps-foreign-{name}-{}", std::process::id()));
        fs::write(&program, format!("#!/bin/sh\nread first\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        ForeignSpec { program, name: "the other".into(), network: json!({}), most_lag_ns: 50 * MS }
    }

    fn packet(payload: u32) -> Packet {
        Packet { payload, class: 0, index: payload, dst: 1, dscp: 0, wire_bytes: 100, sent_ns: 0 }
    }

    #[test]
    fn routes_are_those_of_the_built_in_network() {
        assert_eq!(
            routes(&plan()).unwrap(),
            json!([[NO_LINK, 0, 0], [NO_LINK, NO_LINK, NO_LINK], [NO_LINK, 1, NO_LINK]])
        );
    }

    #[test]
    fn it_stops_where_something_arrives_and_tells_what_was_dropped() {
        let script = "echo '{\"ready\":\"x\"}'
            read a; read b; read until
            echo '{\"at\":5,\"arrived\":[0],\"dropped\":[[1,0,1],[9,0,1]]}'
            read until; echo '{\"at\":20,\"arrived\":[],\"dropped\":[]}'
            read end
            echo '{\"done\":{\"events\":3,\"moments\":0,\"traffic\":[],
            \"late_ns\":{\"mean\":0,\"p50\":0,\"p99\":0,\"p999\":0,\"max\":0},\"links\":[{\"packets\":1,\"bytes\":100,\"full\":1,
            \"lost\":0,\"dropped_bytes\":100,\"most_bytes\":100,\"most_packets\":1,\"busy_ns\":7}]}}' | tr -d '\\n'; echo";
        let spec = program("steps", script);
        let mut foreign = Foreign::launch(&plan(), &spec, false).unwrap();
        foreign.send(0, 0, packet(0));
        foreign.send(0, 0, packet(1));
        assert_eq!(foreign.next_before(20), 5);
        let dropped = NetEvent::Dropped { at: 5, packet: packet(1), link: 0, reason: DropReason::Full };
        assert_eq!(foreign.poll_event(), Some(dropped));
        assert_eq!(foreign.poll_event(), Some(NetEvent::Arrived { at: 5, packet: packet(0) }));
        assert_eq!(foreign.poll_event(), None, "a packet that was never sent is nobody's");
        assert_eq!((foreign.next_before(20), foreign.next_before(20)), (NEVER, NEVER), "it is there already");
        let (links, _) = foreign.end();
        assert_eq!((links[0].packets, links[0].dropped_packets, links[0].offered_packets), (1, 1, 2));
        assert_eq!(links[0].drops[DropReason::Full as usize], 1);
        fs::remove_file(spec.program).unwrap();
    }

    #[test]
    fn a_program_that_dies_or_cannot_says_why() {
        let dies = program("dies", "echo 'msg=no such module' >&2; exit 3");
        let why = Foreign::launch(&plan(), &dies, false).map(|_| ()).unwrap_err().to_string();
        assert!(
            why.starts_with("the other ended (exit status: 3)") && why.ends_with("no such module"),
            "{why}"
        );
        let cannot = program("cannot", "echo '{\"failed\":\"a link leads to no vertex\"}'");
        let why = Foreign::launch(&plan(), &cannot, false).map(|_| ()).unwrap_err().to_string();
        assert_eq!(why, "the other: a link leads to no vertex");
        let missing = ForeignSpec { program: "/no/such/program".into(), ..cannot.clone() };
        assert!(Foreign::launch(&plan(), &missing, false).is_err());
        for spec in [dies, cannot] {
            fs::remove_file(spec.program).unwrap();
        }
    }

    #[test]
    fn a_program_that_says_much_on_stderr_goes_on_and_its_last_line_is_kept() {
        let script =
            "i=0; while [ $i -lt 4000 ]; do echo 'a warning of some forty bytes, again and again' >&2;
            i=$((i+1)); done; echo '{\"ready\":\"x\"}'; read until; echo 'no more' >&2; exit 1";
        let spec = program("loud", script);
        let mut foreign = Foreign::launch(&plan(), &spec, false).unwrap();
        assert_eq!(foreign.next_before(10), NEVER);
        assert_eq!(foreign.failure(), Some("the other ended (exit status: 1): no more"));
        fs::remove_file(spec.program).unwrap();
    }

    #[test]
    fn a_reason_that_there_is_not_is_a_failure() {
        let script =
            "echo '{\"ready\":\"x\"}'; read send; read until; echo '{\"at\":5,\"dropped\":[[0,0,99]]}'";
        let spec = program("reason", script);
        let mut foreign = Foreign::launch(&plan(), &spec, false).unwrap();
        foreign.send(0, 0, packet(0));
        assert_eq!(foreign.next_before(10), NEVER);
        assert!(foreign.failure().is_some_and(|why| why.ends_with("reason 99")));
        fs::remove_file(spec.program).unwrap();
    }

    #[test]
    fn overload_ends_it_with_how_late_it_was() {
        let spec = program(
            "late",
            "echo '{\"ready\":\"x\"}'; read start; echo '{\"overload_ns\":60000000,\"at\":3000000000}'",
        );
        let mut foreign = Foreign::launch(&plan(), &spec, true).unwrap();
        foreign.start(0);
        while foreign.failure().is_none() {
            foreign.listen();
        }
        let why = foreign.failure().unwrap_or_default();
        assert!(why.contains("60.0 ms behind the clock at 3.000 s (allowed: 50 ms)"), "{why}");
        fs::remove_file(spec.program).unwrap();
    }

    #[test]
    fn nonsense_is_a_failure_not_a_panic() {
        let spec = program("nonsense", "echo '{\"ready\":\"x\"}'; read until; echo '{\"at\":\"soon\"}'");
        let mut foreign = Foreign::launch(&plan(), &spec, false).unwrap();
        assert_eq!(foreign.next_before(10), NEVER);
        assert!(foreign.failure().is_some_and(|why| why.contains("soon")));
        fs::remove_file(spec.program).unwrap();
    }
}
