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

use super::{
    program::{ForeignSpec, Program},
    routes::routes,
    told::{ForeignSelf, JsonLine},
};
use crate::addresses;
use serde_json::json;
use std::{
    collections::{BTreeMap, VecDeque},
    os::fd::RawFd,
    time::Duration,
};
use tcps_core::{
    ids::{LinkId, TrafficId, VertexId},
    record::DropReason,
    time::{Time, NEVER},
};
use tcps_net::{NetEvent, Packet, Spent};
use tcps_plan::net::{LinkStats, QueueState, TrafficStats};
use tcps_plan::{Plan, RunError};

/// Longest time that the program may take for one answer: setting a network up, or the way to the next arrival.
const ANSWER: Duration = Duration::from_secs(120);
/// The same for what it knows at once while it keeps to the machine's clock: datagrams wait meanwhile.
const PROMPT: Duration = Duration::from_secs(1);
/// A packet's number has one bit less than 32: the program marks its own packets with it.
const LARGEST_NUMBER: u32 = 0x7fff_ffff;

/// The program and the packets that are with it.
pub struct Foreign {
    program: Program,
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
}

impl Foreign {
    /// Starts the program and has it build the network of a plan.
    pub fn launch(plan: &Plan, spec: &ForeignSpec, by_clock: bool) -> Result<Self, RunError> {
        let mut foreign = Self {
            program: Program::launch(spec)?,
            by_clock,
            most_lag_ns: spec.most_lag_ns,
            under_way: BTreeMap::new(),
            events: VecDeque::new(),
            reached: Time::MIN,
            links: plan.network.links.iter().map(|l| (l.name.clone(), l.rate_bps)).collect(),
            traffic: plan.network.traffic.iter().map(|t| t.name.clone()).collect(),
            queues: (Time::MIN, Vec::new()),
            done: None,
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
        if plan.real.frames {
            network["attach"]["nodes"] = addresses::ends(plan);
            network["attach"]["gateway"] = json!(addresses::gateway());
        }
        self.program.send(&json!({ "network": network }));
        self.program.flush();
        let ready = self.program.receive(ANSWER).and_then(|line| line.ready);
        match (ready, self.program.failure()) {
            (Some(_), None) => Ok(()),
            (_, Some(why)) => Err(RunError::world(why)),
            (None, None) => Err(RunError::world(format!(
                "{}: no answer while it set up the network",
                self.program.name()
            ))),
        }
    }

    /// Run time is 0 at `start_ns` (CLOCK_MONOTONIC).
    pub fn start(&mut self, start_ns: Time) {
        self.program.send(&json!({ "start_ns": start_ns }));
        self.program.flush();
    }

    /// When the next packet arrives or is dropped, if that is not after `limit`; the program goes there.
    pub fn next_before(&mut self, limit: Time) -> Time {
        while self.events.is_empty() && self.reached < limit && self.program.failure().is_none() {
            self.go(limit);
        }
        self.events.front().map_or(NEVER, NetEvent::at)
    }

    /// Lets the program go to `now` in virtual time.
    pub fn run_to(&mut self, now: Time) {
        while !self.by_clock && self.reached < now && self.program.failure().is_none() {
            self.go(now);
        }
    }

    /// Lets the program go to a moment, or to the first before it at which it has something to tell.
    fn go(&mut self, limit: Time) {
        self.program.send(&json!({ "until": limit }));
        self.program.flush();
        if let Some(line) = self.program.receive(ANSWER) {
            self.reached = line.at;
            self.take(line);
        }
    }

    /// Hands a packet over.
    pub fn send(&mut self, now: Time, from: VertexId, packet: Packet) {
        if packet.payload > LARGEST_NUMBER {
            return;
        }
        let Packet { payload, dst, wire_bytes, dscp, .. } = packet;
        self.under_way.insert(payload, packet);
        self.program.send(&json!({ "send": [payload, from, dst, wire_bytes, dscp, now] }));
        if self.by_clock {
            self.program.flush();
        }
    }

    /// The next arrival or drop.
    pub fn poll_event(&mut self) -> Option<NetEvent> {
        self.events.pop_front()
    }

    /// Stops or starts a background entry.
    pub fn set_traffic(&mut self, traffic: TrafficId, running: bool) {
        self.program.send(&json!({ "traffic": [traffic, running] }));
        if self.by_clock {
            self.program.flush();
        }
    }

    /// What waits at a link; all links are asked for at once.
    pub fn queue(&mut self, now: Time, link: LinkId) -> QueueState {
        if self.queues.0 != now {
            self.run_to(now);
            self.program.send(&json!({ "queues": 1 }));
            self.program.flush();
            let wait = if self.by_clock { PROMPT } else { ANSWER };
            self.queues = (now, self.answer(wait, |line| line.queues.take()).unwrap_or_default());
        }
        let (packets, bytes) = self.queues.1.get(link.index()).copied().unwrap_or_default();
        let rate_bps = self.links.get(link.index()).and_then(|l| l.1);
        let wait_ns = rate_bps.map_or(0, |rate| (bytes as f64 * 8e9 / rate) as Time);
        QueueState { packets, bytes, wait_ns }
    }

    /// Ends the program and returns its accounts of links and traffic.
    pub fn end(&mut self) -> (Vec<LinkStats>, Vec<TrafficStats>) {
        self.program.send(&json!({ "end": 1 }));
        self.program.flush();
        if let Some(done) = self.answer(ANSWER, |line| line.done.take()) {
            self.done = Some(ForeignSelf { name: self.program.name().into(), ..done });
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
        self.program.failure()
    }

    /// The descriptor that tells when it has something to say.
    pub fn descriptor(&self) -> RawFd {
        self.program.descriptor()
    }

    /// Reads what it has told, without waiting.
    pub fn listen(&mut self) {
        while self.program.failure().is_none() {
            match self.program.receive(Duration::ZERO) {
                Some(line) => self.take(line),
                None => return,
            }
        }
    }

    /// Reads lines until one holds what is asked for.
    fn answer<T>(&mut self, wait: Duration, of: impl Fn(&mut JsonLine) -> Option<T>) -> Option<T> {
        loop {
            let mut line = self.program.receive(wait)?;
            let found = of(&mut line);
            self.take(line);
            if found.is_some() {
                return found;
            }
        }
    }

    fn take(&mut self, line: JsonLine) {
        let at = line.at;
        for (number, link, reason) in line.dropped {
            let known = DropReason::ALL.iter().find(|r| **r as u8 == reason).copied();
            let Some(reason) = known else {
                self.program.fail(&format!("said that it dropped a packet for reason {reason}"));
                return;
            };
            if let Some(packet) = self.under_way.remove(&number) {
                self.events.push_back(NetEvent::Dropped { at, packet, link, reason });
            }
        }
        for number in line.arrived {
            if let Some(packet) = self.under_way.remove(&number) {
                self.events.push_back(NetEvent::Arrived { at, packet, spent: Spent::default() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt};
    use tcps_core::time::MS;

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
        Packet {
            payload,
            class: 0,
            index: payload,
            dst: VertexId(1),
            dscp: 0,
            ecn: Default::default(),
            wire_bytes: 100,
            sent_ns: 0,
        }
    }

    #[test]
    fn it_stops_where_something_arrives_and_tells_what_was_dropped() {
        let script = "echo '{\"ready\":\"x\"}'
            read a; read b; read until
            echo '{\"at\":5,\"arrived\":[0],\"dropped\":[[1,0,1],[9,0,1]]}'
            read until; echo '{\"at\":20,\"arrived\":[],\"dropped\":[]}'
            read end
            echo '{\"done\":{\"events\":3,\"moments\":0,\"traffic\":[],
            \"unsent\":2,\"strangers\":1,\"late_ns\":{\"mean\":0,\"p50\":0,\"p99\":0,\"p999\":0,\"max\":0},\"links\":[{\"packets\":1,\"bytes\":100,\"full\":1,
            \"lost\":0,\"dropped_bytes\":100,\"most_bytes\":100,\"most_packets\":1,\"busy_ns\":7}]}}' | tr -d '\\n'; echo";
        let spec = program("steps", script);
        let mut foreign = Foreign::launch(&plan(), &spec, false).unwrap();
        foreign.send(0, VertexId(0), packet(0));
        foreign.send(0, VertexId(0), packet(1));
        assert_eq!(foreign.next_before(20), 5);
        let dropped =
            NetEvent::Dropped { at: 5, packet: packet(1), link: LinkId(0), reason: DropReason::Full };
        assert_eq!(foreign.poll_event(), Some(dropped));
        assert_eq!(
            foreign.poll_event(),
            Some(NetEvent::Arrived { at: 5, packet: packet(0), spent: Spent::default() })
        );
        assert_eq!(foreign.poll_event(), None, "a packet that was never sent is nobody's");
        assert_eq!((foreign.next_before(20), foreign.next_before(20)), (NEVER, NEVER), "it is there already");
        let (links, _) = foreign.end();
        assert_eq!((links[0].packets, links[0].dropped_packets, links[0].offered_packets), (1, 1, 2));
        assert_eq!(links[0].drops[DropReason::Full as usize], 1);
        let own = foreign.itself().and_then(|f| f.node().real).unwrap();
        assert_eq!((own.unsent, own.strangers), (2, 1), "what its own devices could not hand on");
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
        foreign.send(0, VertexId(0), packet(0));
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
