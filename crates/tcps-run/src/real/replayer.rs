//! Background traffic as real datagrams, for worlds whose links are the kernel's: a socket at every place where an entry
//! begins or ends, each in a network namespace of its own.
//!
//! ```text
//!  namespace of vertex 0: socket ── 500 B every 8 ms ──► links of the kernel ──► socket :namespace of vertex 5
//! ```
//! Where every end has a process of its own (`Replayer::here`), each sends what begins there and counts what ends there.
//!
//! When packets come and how large they are is said by the models of `tcps-net`, with the same random streams as in the
//! built-in network.

#![expect(unsafe_code, reason = "network namespaces are entered by a call of the kernel")]

use super::session::DRAIN_NS;
use crate::{
    addresses,
    os::{
        clock::RunClock,
        socket::{Socket, MAX_DATAGRAM},
        wait::Waiter,
    },
};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    fs::File,
    net::{IpAddr, SocketAddr},
    os::fd::AsRawFd,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};
use tcps_core::{
    ids::{NodeId, VertexId},
    size::STACK_BYTES,
    time::{Time, NEVER},
};
use tcps_net::traffic::{self, Arrivals};
use tcps_net::ForeignCode;
use tcps_plan::net::{TrafficSpec, TrafficStats};
use tcps_plan::{report::Report, Plan, RunError};

/// Where every process that has one end listens.
const PORT: u16 = 47_000;
/// Bytes at the front of a payload that say which entry it is of.
const MARK_BYTES: usize = 2;

/// Where the vertices of a network are.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Places(BTreeMap<VertexId, Place>);

/// A vertex that traffic begins or ends at.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    /// File of its network namespace, such as `/proc/7/ns/net`.
    namespace: PathBuf,
    address: IpAddr,
}

/// All entries of a plan between their sockets.
pub struct Replayer {
    sockets: Vec<Socket>,
    entries: Vec<Entry>,
}

struct Entry {
    from: usize,
    to: SocketAddr,
    dscp: u8,
    start_ns: Time,
    stop_ns: Time,
    arrivals: Box<dyn Arrivals>,
    due: (Time, u32),
    stats: TrafficStats,
}

impl Replayer {
    /// Binds a socket in the namespace of every place.
    pub fn bind(plan: &Plan, places: &Places, code: &mut dyn ForeignCode) -> Result<Self, RunError> {
        let home = open(&PathBuf::from("/proc/thread-self/ns/net"))?;
        let (mut sockets, mut number) = (Vec::new(), BTreeMap::new());
        for (vertex, place) in &places.0 {
            enter(&open(&place.namespace)?)?;
            let bound = Socket::bind(place.address);
            enter(&home)?;
            number.insert(*vertex, sockets.len());
            sockets.push(bound?);
        }
        let mut entries = Vec::new();
        for spec in &plan.network.traffic {
            let at = |vertex: VertexId| {
                let unknown =
                    || RunError::config(format!("traffic.{}: no place for vertex {vertex}", spec.name));
                number.get(&vertex).copied().ok_or_else(unknown)
            };
            let mut entry = Entry::new(plan, spec, at(spec.from)?, sockets[at(spec.to)?].address()?, code)?;
            entry.advance();
            entries.push(entry);
        }
        Ok(Self { sockets, entries })
    }

    /// What begins or ends at a node of the plan, by a socket of this thread's network namespace.
    pub fn here(plan: &Plan, node: NodeId, code: &mut dyn ForeignCode) -> Result<Self, RunError> {
        let at = |VertexId(node)| SocketAddr::new(addresses::address(&plan.real, NodeId(node)), PORT);
        let here = VertexId::from(node);
        let mut entry = |spec: &TrafficSpec| {
            let mut entry = Entry::new(plan, spec, 0, at(spec.to), code)?;
            if spec.from == here {
                entry.advance();
            }
            Ok(entry)
        };
        Ok(Self {
            sockets: vec![Socket::bind_to(at(here))?],
            entries: plan.network.traffic.iter().map(&mut entry).collect::<Result<_, RunError>>()?,
        })
    }

    /// Sends and receives to the end of the plan or until `stop`. Run time is 0 at `start` (CLOCK_MONOTONIC).
    pub fn run(mut self, plan: &Plan, start: Time, stop: &AtomicBool) -> Report {
        let clock = RunClock::new(start);
        let descriptors: Vec<_> = self.sockets.iter().map(Socket::fd).collect();
        let mut waiter = Waiter::new(&descriptors, plan.real.waiting, 0);
        let mut buffer = vec![0; MAX_DATAGRAM];
        while !stop.load(Ordering::Relaxed) && clock.now() < plan.duration_ns + DRAIN_NS {
            let due = self.entries.iter().map(|e| e.due.0).min().unwrap_or(NEVER);
            waiter.wait(due.saturating_add(start));
            waiter.ready().collect::<Vec<_>>().into_iter().for_each(|s| self.receive(s, &mut buffer));
            let now = clock.now();
            for i in 0..self.entries.len() {
                while self.entries[i].due.0 <= now {
                    self.send(i, &mut buffer);
                }
            }
        }
        self.report()
    }

    fn send(&mut self, i: usize, buffer: &mut [u8]) {
        let entry = &mut self.entries[i];
        let payload = (entry.due.1.saturating_sub(STACK_BYTES) as usize).clamp(MARK_BYTES, buffer.len());
        buffer[..MARK_BYTES].copy_from_slice(&(i as u16).to_be_bytes());
        entry.stats.packets += 1;
        entry.stats.bytes += u64::from(STACK_BYTES) + payload as u64;
        // What the kernel does not take is missing where it should arrive.
        self.sockets[entry.from].send(&buffer[..payload], entry.to, entry.dscp << 2);
        entry.advance();
    }

    fn receive(&mut self, socket: usize, buffer: &mut [u8]) {
        while let Some(got) = self.sockets[socket].receive(buffer) {
            let mark = buffer[..got.len].first_chunk::<MARK_BYTES>().copied().map(u16::from_be_bytes);
            if let Some(entry) = mark.and_then(|m| self.entries.get_mut(usize::from(m))) {
                entry.stats.delivered_packets += 1;
            }
        }
    }

    /// What has not arrived was dropped: by a link, or by the kernel before it.
    fn report(self) -> Report {
        let mut stats: Vec<TrafficStats> = self.entries.into_iter().map(|e| e.stats).collect();
        for s in &mut stats {
            s.dropped_packets = s.packets.saturating_sub(s.delivered_packets);
        }
        let mut report = Report::default();
        report.accounts(Vec::new(), stats);
        report
    }
}

impl Entry {
    /// An entry that has nothing due yet.
    fn new(
        plan: &Plan,
        spec: &TrafficSpec,
        from: usize,
        to: SocketAddr,
        code: &mut dyn ForeignCode,
    ) -> Result<Self, RunError> {
        let arrivals = traffic::build(&plan.network, spec, plan.seed, code);
        Ok(Self {
            from,
            to,
            dscp: spec.dscp,
            start_ns: spec.start_ns,
            stop_ns: spec.stop_ns.unwrap_or(NEVER).min(plan.duration_ns),
            arrivals: arrivals.map_err(RunError::from)?,
            due: (NEVER, 0),
            stats: TrafficStats { name: spec.name.clone(), ..TrafficStats::default() },
        })
    }

    fn advance(&mut self) {
        let next = self.arrivals.next().map(|(t, bytes)| (self.start_ns.saturating_add(t), bytes));
        self.due = next.filter(|n| n.0 < self.stop_ns).unwrap_or((NEVER, 0));
    }
}

fn open(path: &PathBuf) -> Result<File, RunError> {
    File::open(path).map_err(|e| RunError::system(path.display(), e))
}

/// Moves this thread into a network namespace; sockets that it opens are in it for good.
fn enter(namespace: &File) -> Result<(), RunError> {
    // SAFETY: a plain system call on an open descriptor.
    match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(RunError::world(format!(
            "cannot enter a network namespace ({}); it needs root (CAP_SYS_ADMIN)",
            std::io::Error::last_os_error()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets::Disk;
    use crate::{os::clock::monotonic_ns, threads::scoped};
    use serde_json::json;
    use tcps_core::time::MS;

    /// Two entries between two places; both are where this test is, which needs no right to go anywhere else.
    #[test]
    fn packets_come_at_their_rate_and_are_counted_where_they_end() {
        let cbr = |name: &str, from: u16, to: u16| {
            json!({"name": name, "from": from, "to": to, "start_ns": 0,
                "model": {"kind": "cbr", "rate_bps": 400e3, "packet_bytes": 100}})
        };
        let plan: Plan = serde_json::from_value(json!({
            "name": "p", "seed": 1, "duration_ns": 100 * MS, "sessions": ["a"], "components": [], "flows": [],
            "nodes": [{"name": "a"}, {"name": "b"}],
            "network": {"vertices": ["a", "b"], "traffic": [cbr("x", 0, 1), cbr("y", 1, 0)], "links": []},
        }))
        .unwrap();
        let place = json!({"namespace": "/proc/self/ns/net", "address": "127.0.0.1"});
        let places: Places = serde_json::from_value(json!({"0": place, "1": place})).unwrap();
        let replayer = match Replayer::bind(&plan, &places, &mut Disk) {
            Ok(r) => r,
            Err(e) if e.to_string().contains("needs root") => return eprintln!("skipped: {e}"),
            Err(e) => panic!("{e}"),
        };
        let report =
            serde_json::to_value(replayer.run(&plan, monotonic_ns(), &AtomicBool::new(false))).unwrap();
        for traffic in report["traffic"].as_array().unwrap() {
            // 100 B at 400 kbit/s: one every 2 ms.
            assert_eq!((&traffic["packets"], &traffic["bytes"]), (&json!(50), &json!(5000)));
            assert_eq!((&traffic["delivered_packets"], &traffic["dropped_packets"]), (&json!(50), &json!(0)));
        }
    }

    /// Both ends are on loopback, which has as many addresses as are wanted.
    #[test]
    fn every_end_sends_what_begins_there_and_counts_what_ends_there() {
        let plan: Plan = serde_json::from_value(json!({
            "name": "p", "seed": 1, "duration_ns": 100 * MS, "sessions": ["a"], "components": [], "flows": [],
            "nodes": [{"name": "a"}, {"name": "b"}],
            "real": {"addresses": ["127.0.0.2", "127.0.0.3"], "background": "datagrams"},
            "network": {"vertices": ["a", "b"], "links": [], "traffic": [{"name": "x", "from": 0, "to": 1,
                "start_ns": 0, "model": {"kind": "cbr", "rate_bps": 400e3, "packet_bytes": 100}}]},
        }))
        .unwrap();
        let start = monotonic_ns();
        let told = std::thread::scope(|scope| {
            let ends: Vec<Replayer> =
                (0..2).map(|node| Replayer::here(&plan, NodeId(node), &mut Disk).unwrap()).collect();
            let plan = &plan;
            let run =
                |r: Replayer| scoped(scope, move || r.run(plan, start, &AtomicBool::new(false))).unwrap();
            let running: Vec<_> = ends.into_iter().map(run).collect();
            running.into_iter().map(|r| serde_json::to_value(r.join().unwrap()).unwrap()).collect::<Vec<_>>()
        });
        let of = |end: usize, key: &str| told[end]["traffic"][0][key].clone();
        assert_eq!((of(0, "packets"), of(0, "delivered_packets")), (json!(50), json!(0)));
        assert_eq!((of(1, "packets"), of(1, "delivered_packets")), (json!(0), json!(50)));
    }

    #[test]
    fn an_entry_without_a_place_is_refused() {
        let plan: Plan = serde_json::from_value(json!({
            "name": "p", "seed": 1, "duration_ns": MS, "sessions": ["a"], "components": [], "flows": [], "nodes": [],
            "network": {"vertices": ["a", "b"], "links": [], "traffic": [{"name": "x", "from": 0, "to": 1,
                "model": {"kind": "cbr", "rate_bps": 1e3, "packet_bytes": 100}}]},
        }))
        .unwrap();
        let why =
            Replayer::bind(&plan, &Places(BTreeMap::new()), &mut Disk).map(|_| ()).unwrap_err().to_string();
        assert_eq!(why, "traffic.x: no place for vertex 0");
    }
}
