//! The run-to-completion loop of one session at one node.

use super::{
    asides::Asides,
    capture::Capture,
    clock::{monotonic_ns, thread_cpu_ns, RunClock},
    line::Lines,
    namespace,
    ring::Producer,
    socket::{Received, Socket, MAX_DATAGRAM},
    stream::Stream,
    wait::{privileges, Detach, Waiter},
    worker::Crew,
};
use crate::{
    code::PythonCode,
    error::RunError,
    node::{histogram, Node},
    outside::{News, Outcome, Outside, Ride, Started, Task, Work},
    pcapng::Datagram,
    plan::{Isolation, Plan},
    report::{quantiles, Boundary, RealSelf, Report, Spread},
};
use hdrhistogram::Histogram;
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};
use tcps_core::{
    endpoint::Transmit,
    record::{Kind, Record, NONE},
    time::{Time, MS, NEVER},
};
use tcps_transport::Side;
use tcps_wire::pcapng::Seen;

/// How long a loop goes on after the end, so that what is on its way arrives.
pub const DRAIN_NS: Time = 500 * MS;
/// How long it reads, after that, what is there already.
const LAST_NS: Time = 500 * MS;
/// A pause that marks the run as disturbed.
pub(crate) const GAP_NS: Time = MS;
/// Rows a ring holds: over a second of 64,000 rows/s.
const RING_ROWS: u64 = 1 << 16;

/// Sockets of a loop by what they are for.
#[derive(Debug, Default, Clone)]
pub struct Addresses {
    /// Peer (or gate) per channel.
    pub channels: BTreeMap<u16, SocketAddr>,
    /// Peers (or the gate) for datagrams outside channels, per node, in the order of its loops.
    pub asides: BTreeMap<u16, Vec<SocketAddr>>,
    /// Node behind each address that such datagrams come from: every loop of a peer, or its gate.
    pub aside_senders: BTreeMap<SocketAddr, u16>,
}

/// A loop that has its sockets and is ready to start.
pub struct SessionLoop {
    id: u16,
    node: Node,
    sockets: Sockets,
    ring: Producer,
    capture: Option<Capture>,
    crew: Crew,
    lines: Lines,
    /// Whether events leave their rows here.
    notes_events: bool,
    /// Names of its sessions, where its node has other loops.
    sessions: Vec<String>,
}

/// Files that a loop leaves.
#[derive(Debug, Clone)]
pub struct Files {
    /// Its rows.
    pub ring: PathBuf,
    /// Its datagrams, if they are wanted.
    pub capture: Option<PathBuf>,
}

/// The sockets of a loop: one a channel, and one for everything else.
struct Sockets {
    all: Vec<Socket>,
    /// Channel of each socket, `NONE` for the last one.
    channels: Vec<u16>,
    /// Channels over the kernel's TCP.
    streams: Vec<Stream>,
}

/// The world as a loop sees it.
struct Outer {
    id: u16,
    clock: RunClock,
    ring: Producer,
    capture: Option<Capture>,
    crew: Crew,
    /// What workers have done, on its way to the node.
    outcomes: Vec<Outcome>,
    lines: Lines,
    /// What boards have told, on its way to the node.
    news: Vec<(usize, News)>,
    sockets: Vec<Socket>,
    streams: Vec<Stream>,
    /// A frame of a stream.
    frame: Vec<u8>,
    /// Socket, peer and its node, per channel.
    routes: Vec<Option<(usize, SocketAddr, u16)>>,
    asides: Asides,
    aside_senders: BTreeMap<SocketAddr, u16>,
    unsent: u64,
    /// How long the send calls took.
    send: Histogram<u64>,
}

impl SessionLoop {
    /// Builds the node and binds its sockets.
    pub fn prepare(
        plan: &Plan,
        id: u16,
        sessions: &[u16],
        files: &Files,
        python: &mut dyn PythonCode,
    ) -> Result<Self, RunError> {
        let mut node = Node::new(plan, id, Some(sessions), python)?;
        let crew = Crew::new(node.take_workers())?;
        let name = |component: u16| plan.components[usize::from(component)].name.clone();
        let lines = Lines::open(node.boards(), name)?;
        let ip = namespace::address(&plan.real, id);
        let mut sockets = Sockets { all: Vec::new(), channels: Vec::new(), streams: Vec::new() };
        for (c, channel) in plan.channels.iter().enumerate() {
            if !(sessions.contains(&channel.session) && (channel.a == id || channel.b == id)) {
                continue;
            }
            if let Some(settings) = channel.kernel_tcp() {
                let side = if channel.a == id { Side::A } else { Side::B };
                let stream = Stream::prepare(c as u16, side, ip, settings?, plan.duration_ns)?;
                sockets.streams.push(stream);
            } else {
                sockets.all.push(Socket::bind(ip)?);
                sockets.channels.push(c as u16);
            }
        }
        sockets.all.push(Socket::bind(ip)?);
        sockets.channels.push(NONE);
        let notes_events = notes_events(plan, id, sessions);
        let ring = Producer::create(&files.ring, RING_ROWS)?;
        let capture = files.capture.as_deref().map(|path| Capture::create(path, plan)).transpose()?;
        let several = plan.loops(id).len() > 1;
        let named = sessions.iter().filter(|_| several).map(|s| plan.sessions[usize::from(*s)].clone());
        let sessions = named.collect();
        Ok(Self { id, node, sockets, ring, capture, crew, lines, notes_events, sessions })
    }

    /// Where the loop can be reached: addresses of its channels, and that for everything else.
    pub fn reached_at(&self) -> Result<(BTreeMap<u16, SocketAddr>, Option<SocketAddr>), RunError> {
        let mut channels: BTreeMap<_, _> =
            self.sockets.streams.iter().map(|s| (s.channel(), s.address())).collect();
        let mut aside = None;
        for (socket, &channel) in self.sockets.all.iter().zip(&self.sockets.channels) {
            match channel {
                NONE => aside = Some(socket.address()?),
                c => {
                    channels.insert(c, socket.address()?);
                }
            }
        }
        Ok((channels, aside))
    }

    /// Runs from `start` (CLOCK_MONOTONIC) to the end of the plan or until `stop`.
    pub fn run(
        self,
        plan: &Plan,
        peers: Addresses,
        start: Time,
        stop: &AtomicBool,
        detach: &mut dyn Detach,
    ) -> Report {
        let Self { id, mut node, sockets, ring, capture, crew, mut lines, notes_events, sessions } = self;
        lines.begin(start);
        let streams = sockets.streams.iter().map(Stream::fd);
        let fds: Vec<_> =
            sockets.all.iter().map(Socket::fd).chain(streams).chain(crew.fd()).chain(lines.fds()).collect();
        let first_stream = sockets.all.len();
        let first_line = first_stream + sockets.streams.len() + usize::from(crew.fd().is_some());
        let mut waiter = Waiter::new(&fds, plan.real.waiting, plan.real.spin_ns);
        let mut routes = vec![None; plan.channels.len()];
        for (i, &c) in sockets.channels.iter().enumerate().filter(|(_, c)| **c != NONE) {
            let ends = &plan.channels[c as usize];
            let other = if ends.a == id { ends.b } else { ends.a };
            routes[c as usize] = peers.channels.get(&c).map(|a| (i, *a, other));
        }
        let mut world = Outer {
            id,
            clock: RunClock::new(start),
            ring,
            capture,
            crew,
            outcomes: Vec::new(),
            lines,
            news: Vec::new(),
            sockets: sockets.all,
            streams: sockets.streams,
            frame: Vec::new(),
            routes,
            asides: Asides::new(plan, peers.asides),
            aside_senders: peers.aside_senders,
            unsent: 0,
            send: histogram(),
        };
        world.streams.iter_mut().for_each(|s| {
            peers.channels.get(&s.channel()).into_iter().for_each(|peer| s.join(*peer));
        });
        let mut events = Events::new(plan);
        let mut account = Account { sessions, ..Account::default() };
        let mut buffer = vec![0u8; MAX_DATAGRAM];
        detach.at_barrier();
        // What is there now is what is locked in memory.
        account.privileges = privileges(plan.real.realtime);
        let processor = thread_cpu_ns();
        let end = plan.duration_ns + DRAIN_NS;
        loop {
            let due = node.poll_timeout().min(events.next()).min(world.lines.due());
            detach.detached(&mut || waiter.wait(due.saturating_add(start)));
            let mut idle = true;
            let mut closed = None;
            for i in waiter.ready() {
                idle = false;
                if i >= first_line {
                    let open = world.lines.readable(world.clock.now(), i - first_line);
                    closed = (!open).then_some(i).or(closed);
                    continue;
                }
                if i >= first_stream {
                    match i - first_stream {
                        stream if stream < world.streams.len() => world.take_frames(&mut node, stream),
                        _ => world.collect(&mut node),
                    }
                    continue;
                }
                let Some(got) = world.sockets[i].receive(&mut buffer) else { continue };
                account.strangers +=
                    !world.take(&mut node, i, sockets.channels[i], got, &buffer, &mut account) as u64;
            }
            closed.into_iter().for_each(|i| waiter.forget(i));
            world.listen(&mut node);
            let now = world.clock.now();
            if due <= now {
                account.tick(now - due, now, id, &mut world.ring);
                events.apply(plan, now, &mut node, notes_events.then_some(&mut world.ring));
                node.handle_timeout(now, &mut world);
            }
            world.tend_streams(now);
            // A loop that stood still at the end finds in its sockets what came meanwhile.
            if stop.load(Ordering::Relaxed) || (now >= end && (idle || now >= end + LAST_NS)) {
                break;
            }
        }
        account.report(plan, id, node, world, thread_cpu_ns() - processor, detach)
    }
}

/// Events leave a row each: at the emulator, or without one in the first loop of all nodes.
fn notes_events(plan: &Plan, node: u16, sessions: &[u16]) -> bool {
    let emulated = !plan.network.links.is_empty() || plan.real.network == Isolation::Namespaces;
    let first = (0..plan.nodes.len() as u16).find_map(|n| Some((n, plan.loops(n).into_iter().next()?)));
    !emulated && first.is_some_and(|(n, first)| n == node && first == sessions)
}

impl Outer {
    /// Hands a datagram to the node; false if it comes from a stranger.
    fn take(
        &mut self,
        node: &mut Node,
        socket: usize,
        channel: u16,
        got: Received,
        buffer: &[u8],
        account: &mut Account,
    ) -> bool {
        let now = self.clock.now();
        let received = got.stamp_ns.map_or(now, |s| self.clock.of_stamp(s, now));
        let _ = account.stamp_to_loop.record((now - received).max(0) as u64);
        let bytes = &buffer[..got.len];
        let known = match channel {
            NONE => self.aside_senders.get(&got.from).copied(),
            c => self.routes[c as usize]
                .and_then(|(s, peer, n)| (s == socket && peer == got.from).then_some(n)),
        };
        let Some(from) = known else { return false };
        let datagram = Datagram { from, to: self.id, channel, dscp: got.dscp, bytes };
        self.capture.iter_mut().for_each(|c| c.packet(received, &datagram, datagram.to, Seen::Coming));
        match channel {
            NONE => node.handle_aside(now, from, received, bytes, self),
            _ => node.handle_datagram(now, channel, received, bytes, self),
        }
        true
    }

    /// Hands what has come on a stream to the node.
    fn take_frames(&mut self, node: &mut Node, stream: usize) {
        self.streams[stream].work(self.clock.now());
        let (channel, mut frame) = (self.streams[stream].channel(), std::mem::take(&mut self.frame));
        while self.streams[stream].next(self.clock.now(), &mut frame) {
            let now = self.clock.now();
            node.handle_datagram(now, channel, now, &frame, self);
        }
        self.frame = frame;
    }

    fn tend_streams(&mut self, now: Time) {
        for stream in &mut self.streams {
            for row in stream.tend(now) {
                self.ring.push(&Record { node: self.id, ..row });
            }
        }
    }

    /// Hands what workers have done to the node.
    fn collect(&mut self, node: &mut Node) {
        let mut outcomes = std::mem::take(&mut self.outcomes);
        self.crew.collect(&mut outcomes);
        for outcome in outcomes.drain(..) {
            node.finished(self.clock.now(), outcome, self);
        }
        self.outcomes = outcomes;
    }

    /// Does what is due on lines, and hands to the node what boards have told.
    fn listen(&mut self, node: &mut Node) {
        let due = self.lines.due();
        if due == NEVER || due > self.clock.now() {
            return;
        }
        let now = self.clock.now();
        let mut news = std::mem::take(&mut self.news);
        self.lines.work(now, &mut news);
        for (board, news) in news.drain(..) {
            node.hear(self.clock.now(), board, news, self);
        }
        self.news = news;
    }

    /// Sends a datagram, and notes how long that took.
    fn send(&mut self, socket: usize, peer: SocketAddr, datagram: &Datagram<'_>) {
        let begun = monotonic_ns();
        let at = self.clock.of_monotonic(begun);
        self.capture.iter_mut().for_each(|c| c.packet(at, datagram, datagram.from, Seen::Leaving));
        let begun = if self.capture.is_some() { monotonic_ns() } else { begun };
        let sent = self.sockets[socket].send(datagram.bytes, peer, datagram.dscp);
        let _ = self.send.record((monotonic_ns() - begun).max(0) as u64);
        self.unsent += !sent as u64;
    }
}

impl Outside for Outer {
    fn transmit(
        &mut self,
        now: Time,
        channel: u16,
        to: u16,
        dscp: u8,
        bytes: &[u8],
        datagram: &Transmit,
    ) -> Time {
        match self.routes[channel as usize] {
            Some((s, peer, _)) => {
                self.send(s, peer, &Datagram { from: self.id, to, channel, dscp, bytes });
            }
            None => match self.streams.iter_mut().find(|s| s.channel() == channel) {
                Some(stream) => stream.send(now, bytes, datagram.index, dscp),
                None => self.unsent += 1,
            },
        }
        now
    }

    fn aside(&mut self, _now: Time, to: u16, bytes: &[u8]) {
        match self.asides.of(to, bytes) {
            Some(peer) => {
                let datagram = Datagram { from: self.id, to, channel: NONE, dscp: 0, bytes };
                self.send(self.sockets.len() - 1, peer, &datagram);
            }
            None => self.unsent += 1,
        }
    }

    fn record(&mut self, row: Record) {
        self.ring.push(&row);
    }

    fn work(&mut self, started: Started, _job: u32, cost: Time, _priority: i32) -> Work {
        while thread_cpu_ns() - started.processor < cost {
            std::hint::spin_loop();
        }
        Work::Done(self.clock.now())
    }

    fn delegate(&mut self, worker: u16, task: Task) -> Result<(), Task> {
        self.crew.give(worker, task)
    }

    fn board(&mut self, now: Time, board: usize, ride: &Ride<'_>) -> Option<bool> {
        self.lines.send(now, board, ride)
    }

    fn start(&mut self, now: Time) -> Started {
        Started { at: now, processor: thread_cpu_ns() }
    }

    fn used(&mut self, started: Started) -> Time {
        thread_cpu_ns() - started.processor
    }

    fn now(&self, _now: Time) -> Time {
        self.clock.now()
    }
}

/// Scenario events that concern nodes, in order.
pub(super) struct Events {
    order: Vec<usize>,
    times: Vec<Time>,
}

impl Events {
    /// The events of a plan.
    pub(super) fn new(plan: &Plan) -> Self {
        let mut order: Vec<usize> = (0..plan.events.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse((plan.events[i].at_ns, i)));
        let times = order.iter().map(|&i| plan.events[i].at_ns).collect();
        Self { order, times }
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Time {
        self.times.last().copied().unwrap_or(tcps_core::time::NEVER)
    }

    /// The number of the next one that is due.
    pub(super) fn due(&mut self, now: Time) -> Option<usize> {
        if self.next() > now {
            return None;
        }
        self.times.pop();
        self.order.pop()
    }

    fn apply(&mut self, plan: &Plan, now: Time, node: &mut Node, mut ring: Option<&mut Producer>) {
        use crate::plan::Action;
        while let Some(i) = self.due(now) {
            match &plan.events[i].action {
                Action::Flow { flow, running } => node.set_running(now, *flow, *running),
                Action::Component { component, alive } => node.set_alive(*component, *alive),
                Action::Clock { node: whose, step_ns } => node.step_clock(*whose, *step_ns),
                Action::Link { .. } | Action::Reroute | Action::Traffic { .. } => {}
            }
            if let Some(ring) = &mut ring {
                ring.push(&Record { index: i as u32, ..Record::new(now, Kind::Event) });
            }
        }
    }
}

/// What a loop notes about itself.
struct Account {
    sessions: Vec<String>,
    late: Histogram<u64>,
    stamp_to_loop: Histogram<u64>,
    ticks: u64,
    gaps: u64,
    strangers: u64,
    privileges: Vec<String>,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            sessions: Vec::new(),
            late: histogram(),
            stamp_to_loop: histogram(),
            ticks: 0,
            gaps: 0,
            strangers: 0,
            privileges: Vec::new(),
        }
    }
}

impl Account {
    fn tick(&mut self, late: Time, now: Time, node: u16, ring: &mut Producer) {
        self.ticks += 1;
        let _ = self.late.record(late.max(0) as u64);
        if late > GAP_NS {
            self.gaps += 1;
            ring.push(&Record { value: late, node, ..Record::new(now, Kind::Gap) });
        }
    }

    fn report(
        self,
        plan: &Plan,
        id: u16,
        mut node: Node,
        mut world: Outer,
        cpu_ns: Time,
        detach: &mut dyn Detach,
    ) -> Report {
        // A worker may need the interpreter to come to its end.
        detach.detached(&mut || world.crew.end());
        let mut report = Report::default();
        let (name, mut told) = (&plan.nodes[id as usize].name, node.report());
        for stream in &mut world.streams {
            let own = told.endpoints.iter_mut().find(|(channel, ..)| *channel == stream.channel());
            own.into_iter().for_each(|(_, stats, _)| stream.add_to(stats));
        }
        let fault = world.capture.take().and_then(Capture::finish);
        report.errors.extend(fault.map(|what| format!("node {name}: {what}")));
        for (number, (_, line)) in told.boards.iter_mut().enumerate() {
            *line = world.lines.end(number, std::mem::take(line));
        }
        report.node(plan, id, told);
        world.streams.iter().for_each(|s| report.connections(plan, s.channel(), s.account()));
        crate::report::true_clock_errors(plan, &mut report);
        if let Some(n) = report.nodes.last_mut() {
            n.busy_s = cpu_ns as f64 / 1e9;
            n.real = Some(RealSelf {
                sessions: self.sessions,
                ticks: self.ticks,
                late_ns: Spread::of(&self.late),
                gaps_over_1ms: self.gaps,
                ring_overflows: world.ring.lost(),
                socket_drops: world.sockets.iter().map(|s| s.drops() as u64).sum(),
                strangers: self.strangers,
                unsent: world.unsent,
                clock_steps: world.clock.steps(),
                stamp_to_loop_ns: Spread::of(&self.stamp_to_loop),
                send_ns: Spread::of(&world.send),
                interpreter_wait_ns: detach.interpreter_waits().map(Spread::of),
                waiting: format!("{:?}", plan.real.waiting).to_lowercase(),
                privileges: self.privileges,
                quantiles_ns: Some(Boundary {
                    wakeup: quantiles(&self.late),
                    send: quantiles(&world.send),
                    receive: quantiles(&self.stamp_to_loop),
                }),
            });
        }
        report
    }
}
