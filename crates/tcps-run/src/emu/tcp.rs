//! TCP doors: connections end here and begin again towards the target, with delay and rate between. [design: kernel's TCP]
//!
//! ```text
//!  client ══ TCP ══► reader ─► pipe (rate, delay) ─► writer ══ TCP ══► target       and the same back
//! ```
//! Loss and reordering of segments cannot be emulated this way: the kernels at both ends mend them before anybody sees
//! them. What is counted as a packet is a segment of at most 1448 bytes.

use super::{
    lock,
    pipe::{Part, Pipe},
    unheard, Account, Delivery, DoorPlan, Row, FAR, NEAR,
};
use crate::assets::Disk;
use crate::{background::BusyNetwork, os::clock::monotonic_ns};
use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
        Arc, Mutex,
    },
    thread::{self, Builder, JoinHandle},
    time::Duration,
};
use tcps_core::{
    ids::VertexId,
    size::LINK_BYTES,
    time::{serialisation_ns, Time},
};
use tcps_plan::net::NetworkSpec;
use tcps_plan::RunError;

/// Payload of a segment on Ethernet with time stamps.
const SEGMENT: usize = 1448;
/// Headers of a segment on the wire: TCP with time stamps, IPv4, link. [model: wire size]
const HEADERS: u32 = 32 + 20 + LINK_BYTES;
/// Room of a pipe beside what its delay and rate keep in flight.
const ROOM: usize = 64 << 10;
const MOST_ROOM: usize = 16 << 20;
/// Most connections of a door at a time: each takes four descriptors and four threads.
const MOST: usize = 200;
/// How long to wait where a connection cannot be had, for lack of descriptors or threads.
const PAUSE: Duration = Duration::from_millis(10);
const CONNECT: Duration = Duration::from_secs(5);

/// What lies between, in one direction, for all connections together.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TcpLine {
    rate_bps: f64,
    delay_ns: Time,
    /// When it is free again.
    free: Time,
}

impl TcpLine {
    /// When a segment that comes now will have arrived.
    fn carry(&mut self, now: Time, bytes: usize) -> Time {
        self.free = self.free.max(now) + serialisation_ns(bytes as u32 + HEADERS, self.rate_bps);
        self.free + self.delay_ns
    }

    fn room(&self) -> usize {
        let under_way = self.rate_bps * self.delay_ns as f64 / 8e9;
        if under_way.is_finite() { ROOM + under_way as usize } else { MOST_ROOM }.min(MOST_ROOM)
    }
}

/// Both directions.
#[derive(Clone)]
pub struct Lines(Arc<[Mutex<TcpLine>; 2]>);

impl Lines {
    /// Delay and rate of the way that packets take: the sum of all delays, the smallest rate; an error where the network
    /// cannot be built or does not lead from one side to the other and back.
    pub fn of(spec: &NetworkSpec, seed: u64) -> Result<Self, RunError> {
        let network = BusyNetwork::of(spec, &[], seed, &mut Disk)?;
        let line = |from, to, words: &str| {
            let route = network.network().route(from, to);
            let none =
                || RunError::config(format!("network: no path leads {words}; add a link between them"));
            let route = route.ok_or_else(none)?;
            let links = || route.iter().map(|l| &spec.links[*l]);
            let delay_ns = links().map(|l| l.delay_ns).sum();
            let rate_bps = links().filter_map(|l| l.rate_bps).fold(f64::INFINITY, f64::min);
            Ok::<_, RunError>(Mutex::new(TcpLine { rate_bps, delay_ns, free: 0 }))
        };
        let there = line(NEAR, FAR, "from near to far")?;
        Ok(Self(Arc::new([there, line(FAR, NEAR, "from far to near")?])))
    }

    /// Neither delay nor a limited rate.
    pub fn direct() -> Self {
        Self(Arc::new(
            [(); 2].map(|()| Mutex::new(TcpLine { rate_bps: f64::INFINITY, delay_ns: 0, free: 0 })),
        ))
    }
}

/// A segment of a connection: it came in, or, if it was `sent`, went on.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    /// Side that it comes from.
    pub from: VertexId,
    /// Its number, of all from there.
    pub index: u32,
    /// Its bytes.
    pub bytes: u32,
    /// When it came (CLOCK_MONOTONIC).
    pub came: Time,
    /// When it went on.
    pub sent: Option<Time>,
}

/// Hears of the segments of a door.
pub type Note = Box<dyn Fn(Segment) + Send + Sync>;

/// A port whose connections are handed on.
pub struct TcpDoor {
    common: Arc<Common>,
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

/// What the threads of a door share.
struct Common {
    lines: Lines,
    name: String,
    accounts: [Mutex<Account>; 2],
    /// Segments that came from each side.
    came: [AtomicU32; 2],
    note: Option<Note>,
    refused: AtomicU64,
    unreached: AtomicU64,
    streams: Mutex<Vec<(TcpStream, Arc<AtomicBool>)>>,
    /// Connections that there are.
    open: AtomicUsize,
    stop: AtomicBool,
    begun: Time,
}

impl TcpDoor {
    /// Its socket: clients wait there until the door is made.
    pub fn listen(plan: &DoorPlan) -> Result<TcpListener, RunError> {
        TcpListener::bind(plan.listen).map_err(|e| unheard("TCP", plan.listen, &e))
    }

    /// Begins to accept; somebody may `note` its segments.
    pub fn over(
        listener: TcpListener,
        plan: &DoorPlan,
        lines: &Lines,
        note: Option<Note>,
    ) -> Result<Self, RunError> {
        let fail = |e: std::io::Error| RunError::system(format!("no TCP socket on {}", plan.listen), e);
        let address = listener.local_addr().map_err(fail)?;
        let common = Arc::new(Common {
            lines: lines.clone(),
            name: plan.name.clone(),
            accounts: [(); 2].map(|()| Mutex::new(Account::new(true))),
            came: Default::default(),
            note,
            refused: AtomicU64::new(0),
            unreached: AtomicU64::new(0),
            streams: Mutex::default(),
            open: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            begun: monotonic_ns(),
        });
        let (target, shared) = (plan.target, common.clone());
        let accepting = Builder::new().spawn(move || accept(&listener, target, &shared)).map_err(fail)?;
        Ok(Self { common, address, accepting })
    }

    /// Where clients come.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes delay and rate from lines of another network; what is in flight keeps its moment. All doors share the lines.
    pub fn set(&self, others: &Lines) {
        for (line, new) in self.common.lines.0.iter().zip(others.0.iter()) {
            let mut line = lock(line);
            *line = TcpLine { free: line.free, ..*lock(new) };
        }
    }

    /// Counts so far and delays of the last second.
    pub fn rows(&self) -> Vec<Row> {
        let now = monotonic_ns() - self.common.begun;
        self.common.accounts.iter().for_each(|a| lock(a).turn(now));
        self.common.rows(false)
    }

    /// Ends all connections, and lets the thread that accepts wait for one that never comes: its namespace cannot be
    /// reached from here.
    pub fn abandon(self) {
        self.hang_up();
    }

    fn hang_up(&self) {
        self.common.stop.store(true, Ordering::Relaxed);
        for (stream, _) in lock(&self.common.streams).iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Ends all connections; all counts.
    pub fn close(self) -> Vec<Row> {
        self.hang_up();
        // The thread that accepts sees the end at its next connection: this one.
        if TcpStream::connect_timeout(&reachable(self.address), CONNECT).is_ok() {
            let _ = self.accepting.join();
        }
        self.common.rows(true)
    }
}

impl Common {
    /// A part came from a side.
    fn came(&self, from: VertexId, part: &Part) {
        lock(&self.accounts[usize::from(from)]).came(part.bytes.len());
        self.noted(from, part, None);
    }

    /// A part went on, or the kernel did not take it.
    fn left(&self, from: VertexId, part: &Part, sent: Option<Time>) {
        let Part { came, due, bytes, .. } = part;
        let (bytes, rated_bytes) = (bytes.len(), bytes.len() as u32);
        let (arrived, wire_bytes) = (*came, rated_bytes + HEADERS);
        let delivery =
            Delivery { arrived, entered: arrived, set: *due, sent, bytes, rated_bytes, wire_bytes };
        lock(&self.accounts[usize::from(from)]).left(delivery);
        if sent.is_some() {
            self.noted(from, part, sent);
        }
    }

    fn noted(&self, from: VertexId, part: &Part, sent: Option<Time>) {
        if let Some(note) = &self.note {
            let (index, bytes, came) = (part.index, part.bytes.len() as u32, part.came);
            note(Segment { from, index, bytes, came, sent });
        }
    }

    fn rows(&self, whole: bool) -> Vec<Row> {
        let row = |(side, account): (_, &Mutex<Account>)| Row::of(&self.name, side, &lock(account), whole);
        let mut rows: Vec<Row> = VertexId::each(&self.accounts).map(row).collect();
        rows[0].refused = self.refused.load(Ordering::Relaxed);
        rows[0].unreached = self.unreached.load(Ordering::Relaxed);
        rows
    }
}

/// An address that reaches a listener, also one on all addresses.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            [127, 0, 0, 1].into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        });
    }
    address
}

/// Takes connections until the end; those beyond the most, or for which there is no thread, are closed and counted.
fn accept(listener: &TcpListener, target: SocketAddr, shared: &Arc<Common>) {
    for client in listener.incoming().take_while(|_| !shared.stop.load(Ordering::Relaxed)) {
        let Ok(client) = client else {
            thread::sleep(PAUSE);
            continue;
        };
        let common = shared.clone();
        let body = move || {
            serve(&client, target, &common);
            common.open.fetch_sub(1, Ordering::Relaxed);
        };
        let room = shared.open.fetch_add(1, Ordering::Relaxed) < MOST;
        if !room || Builder::new().spawn(body).is_err() {
            shared.open.fetch_sub(1, Ordering::Relaxed);
            shared.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Hands a connection on, both ways, until both are over.
fn serve(client: &TcpStream, target: SocketAddr, common: &Common) {
    let Ok(server) = TcpStream::connect_timeout(&target, CONNECT) else {
        common.unreached.fetch_add(1, Ordering::Relaxed);
        // The client sees its connection end, as it would if nobody listened.
        let _ = client.shutdown(Shutdown::Both);
        return;
    };
    let open = Arc::new(AtomicBool::new(true));
    {
        let mut streams = lock(&common.streams);
        // Who hangs up does so under this lock: either he sees these streams, or they see that he was here.
        if common.stop.load(Ordering::Relaxed) {
            return;
        }
        streams.retain(|(_, open)| open.load(Ordering::Relaxed));
        for stream in [client, &server] {
            let _ = stream.set_nodelay(true);
            streams.extend(stream.try_clone().ok().map(|s| (s, open.clone())));
        }
    }
    thread::scope(|scope| {
        if Builder::new().spawn_scoped(scope, || pump(&server, client, FAR, common)).is_ok() {
            pump(client, &server, NEAR, common);
        } else {
            break_off(client, &server);
        }
    });
    open.store(false, Ordering::Relaxed);
}

/// One direction of a connection.
fn pump(from: &TcpStream, to: &TcpStream, side: VertexId, common: &Common) {
    let pipe = Pipe::new();
    thread::scope(|scope| {
        let reading = Builder::new().spawn_scoped(scope, || {
            read(from, &pipe, side, common);
            pipe.end();
        });
        if reading.is_err() {
            return break_off(from, to);
        }
        write(to, &pipe, side, common);
        pipe.break_off();
        let _ = to.shutdown(Shutdown::Write);
        let _ = from.shutdown(Shutdown::Read);
    });
}

/// Ends a connection for which there is no thread.
fn break_off(one: &TcpStream, other: &TcpStream) {
    for stream in [one, other] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

fn read(mut from: &TcpStream, pipe: &Pipe, side: VertexId, common: &Common) {
    let (line, numbers) = (&common.lines.0[usize::from(side)], &common.came[usize::from(side)]);
    let (mut buffer, mut last) = ([0; 16 << 10], 0);
    while let Ok(got @ 1..) = from.read(&mut buffer) {
        let came = monotonic_ns();
        for bytes in buffer[..got].chunks(SEGMENT) {
            let (due, room) = {
                let mut line = lock(line);
                // None overtakes another of its connection, also where the delay has become smaller meanwhile.
                last = line.carry(came, bytes.len()).max(last);
                (last, line.room())
            };
            let index = numbers.fetch_add(1, Ordering::Relaxed);
            let part = Part { came, due, index, bytes: bytes.to_vec() };
            common.came(side, &part);
            if !pipe.put(part, room) {
                return;
            }
        }
    }
}

fn write(mut to: &TcpStream, pipe: &Pipe, side: VertexId, common: &Common) {
    while let Some(part) = pipe.take() {
        let sent = to.write_all(&part.bytes).is_ok().then(monotonic_ns);
        common.left(side, &part, sent);
        if sent.is_none() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::SECOND;

    #[test]
    fn a_line_sends_one_segment_after_the_other_and_then_delays_them() {
        let mut line = TcpLine { rate_bps: 8e6, delay_ns: 5000, free: 0 };
        // 922 B and 78 B of headers take 1 ms.
        assert_eq!(line.carry(0, 922), 1_000_000 + 5000);
        assert_eq!(line.carry(10, 922), 2_000_000 + 5000);
        assert_eq!(line.carry(SECOND, 922), SECOND + 1_000_000 + 5000);
    }

    #[test]
    fn connections_beyond_the_most_are_closed_and_counted_and_the_door_still_closes() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let (listen, target) = ("127.0.0.1:0".parse().unwrap(), server.local_addr().unwrap());
        let plan = DoorPlan { name: "a".into(), kind: crate::emu::DoorKind::Tcp, listen, target };
        let door = TcpDoor::over(TcpDoor::listen(&plan).unwrap(), &plan, &Lines::direct(), None).unwrap();
        door.common.open.store(MOST, Ordering::Relaxed);
        let mut client = TcpStream::connect(door.address()).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        assert!(client.read(&mut [0]).is_ok_and(|n| n == 0), "closed");
        // The count may come a moment after the end.
        let limit = monotonic_ns() + 20 * SECOND;
        while door.rows()[0].refused == 0 && monotonic_ns() < limit {
            thread::sleep(PAUSE);
        }
        assert_eq!(door.close()[0].refused, 1);
    }

    #[test]
    fn a_smaller_delay_is_no_error_of_what_waits_behind_an_earlier_segment() {
        let network = |delay_ns: Time| {
            let link = |name: &str, from: u16, to: u16| serde_json::json!({"name": name, "from": from, "to": to, "delay_ns": delay_ns});
            let links = [link("there", 0, 1), link("back", 1, 0)];
            serde_json::from_value::<NetworkSpec>(
                serde_json::json!({"vertices": ["near", "far"], "links": links}),
            )
            .unwrap()
        };
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let (listen, target) = ("127.0.0.1:0".parse().unwrap(), server.local_addr().unwrap());
        let plan = DoorPlan { name: "a".into(), kind: crate::emu::DoorKind::Tcp, listen, target };
        let lines = Lines::of(&network(SECOND), 1).unwrap();
        let door = TcpDoor::over(TcpDoor::listen(&plan).unwrap(), &plan, &lines, None).unwrap();
        let mut client = TcpStream::connect(door.address()).unwrap();
        client.write_all(b"a").unwrap();
        while door.rows()[0].told.packets == 0 {
            thread::sleep(PAUSE);
        }
        door.set(&Lines::of(&network(0), 1).unwrap());
        client.write_all(b"b").unwrap();
        let mut got = [0; 2];
        server.accept().unwrap().0.read_exact(&mut got).unwrap();
        let row = door.close().swap_remove(0);
        assert_eq!((got, row.told.delivered), (*b"ab", 2));
        let late = serde_json::to_value(&row.told.error_ns).unwrap();
        assert!(late["p99"].as_f64() < Some(5e8), "{late}");
    }

    #[test]
    fn delay_and_rate_are_those_of_the_whole_way() {
        let spec = serde_json::from_value(serde_json::json!({
            "vertices": ["near", "far", "middle"],
            "links": [
                {"name": "a", "from": 0, "to": 2, "delay_ns": 3, "rate_bps": 1e6, "outages": [[0, 5]]},
                {"name": "b", "from": 2, "to": 1, "delay_ns": 4, "rate_bps": 1e5},
                {"name": "c", "from": 1, "to": 0, "delay_ns": 9},
            ],
        }));
        let found = Lines::of(&spec.unwrap(), 1).unwrap().0;
        let found = [0, 1].map(|i| *lock(&found[i]));
        assert_eq!(found[0], TcpLine { rate_bps: 1e5, delay_ns: 7, free: 0 });
        assert_eq!(found[1], TcpLine { rate_bps: f64::INFINITY, delay_ns: 9, free: 0 });
        assert_eq!(found[1].room(), MOST_ROOM);
    }
}
