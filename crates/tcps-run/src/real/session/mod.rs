//! The run-to-completion loop of one session at one node.

mod account;
mod outer;

use super::{events::Events, line::Lines, stream::Stream, worker::Crew};
use crate::{
    addresses, kernel_tcp,
    os::{
        capture::Capture,
        clock::thread_cpu_ns,
        ring::Producer,
        socket::{Socket, MAX_DATAGRAM},
        wait::{privileges, Detach, Waiter},
    },
};
use account::Account;
use outer::Outer;
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};
use tcps_core::{
    record::NONE,
    time::{Time, MS, NEVER},
};
use tcps_node::{assets::Assets, Node, HALT_NS};
use tcps_plan::{report::Report, Isolation, Places, Plan, RunError};
use tcps_transport::Side;

/// How long a loop goes on after the end, so that what is on its way arrives.
pub const DRAIN_NS: Time = 500 * MS;
/// How long it reads, after that, what is there already.
const LAST_NS: Time = 500 * MS;
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

/// Files that a loop leaves.
#[derive(Debug, Clone)]
pub struct Files {
    /// Its rows.
    pub ring: PathBuf,
    /// Its datagrams, if they are wanted.
    pub capture: Option<PathBuf>,
}

/// A loop that has its sockets and is ready to start.
pub struct SessionLoop {
    id: u16,
    node: Node,
    opened: Opened,
    /// Whether events leave their rows here.
    notes_events: bool,
    /// Names of its sessions, where its node has other loops.
    sessions: Vec<String>,
}

/// What a loop has opened before it knows its peers.
struct Opened {
    sockets: Sockets,
    ring: Producer,
    capture: Option<Capture>,
    crew: Crew,
    lines: Lines,
}

/// The sockets of a loop: one a channel, and one for everything else.
struct Sockets {
    all: Vec<Socket>,
    /// Channel of each socket, `NONE` for the last one.
    channels: Vec<u16>,
    /// Channels over the kernel's TCP.
    streams: Vec<Stream>,
}

/// What a loop waits for: its sockets, then its streams, its workers, and its lines.
struct Doors {
    waiter: Waiter,
    /// Channel of each socket.
    channels: Vec<u16>,
    first_stream: usize,
    first_line: usize,
}

impl SessionLoop {
    /// Builds the node and binds its sockets.
    pub fn prepare(
        plan: &Plan,
        id: u16,
        sessions: &[u16],
        files: &Files,
        assets: &mut dyn Assets,
    ) -> Result<Self, RunError> {
        let mut node = Node::new(plan, &Places::new(plan), id, Some(sessions), assets)?;
        let crew = Crew::new(node.take_workers())?;
        let name = |component: u16| plan.components[usize::from(component)].name.clone();
        let lines = Lines::open(node.boards(), name)?;
        let sockets = Sockets::bind(plan, id, sessions)?;
        let ring = Producer::create(&files.ring, RING_ROWS)?;
        let capture = files.capture.as_deref().map(|path| Capture::create(path, plan)).transpose()?;
        let several = plan.loops(id).len() > 1;
        let named = sessions.iter().filter(|_| several).map(|s| plan.sessions[usize::from(*s)].clone());
        Ok(Self {
            id,
            node,
            opened: Opened { sockets, ring, capture, crew, lines },
            notes_events: notes_events(plan, id, sessions),
            sessions: named.collect(),
        })
    }

    /// Where the loop can be reached: addresses of its channels, and that for everything else.
    pub fn reached_at(&self) -> Result<(BTreeMap<u16, SocketAddr>, Option<SocketAddr>), RunError> {
        let sockets = &self.opened.sockets;
        let mut channels: BTreeMap<_, _> =
            sockets.streams.iter().map(|s| (s.channel(), s.address())).collect();
        let mut aside = None;
        for (socket, &channel) in sockets.all.iter().zip(&sockets.channels) {
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
        let Self { id, mut node, mut opened, notes_events, sessions } = self;
        opened.lines.begin(start);
        let mut doors = Doors::of(&opened, plan);
        let mut world = Outer::new(plan, id, opened, peers, start);
        let mut events = Events::new(plan);
        let mut account = Account::new(sessions);
        let mut buffer = vec![0u8; MAX_DATAGRAM];
        detach.at_barrier();
        // What is there now is what is locked in memory.
        account.privileges = privileges(plan.real.realtime);
        let processor = thread_cpu_ns();
        let end = plan.duration_ns + DRAIN_NS;
        let mut last = NEVER;
        loop {
            world.ring.beat();
            let due = node.poll_timeout().min(events.next()).min(world.lines.due());
            detach.detached(&mut || doors.waiter.wait(due.saturating_add(start)));
            let mut idle = true;
            let mut closed = None;
            for i in doors.waiter.ready() {
                idle = false;
                if i >= doors.first_line {
                    let open = world.lines.readable(world.clock.now(), i - doors.first_line);
                    closed = (!open).then_some(i).or(closed);
                    continue;
                }
                if i >= doors.first_stream {
                    match i - doors.first_stream {
                        stream if stream < world.streams.len() => world.take_frames(&mut node, stream),
                        _ => world.collect(&mut node),
                    }
                    continue;
                }
                let Some(got) = world.sockets[i].receive(&mut buffer) else { continue };
                account.strangers +=
                    !world.take(&mut node, i, doors.channels[i], got, &buffer, &mut account) as u64;
            }
            closed.into_iter().for_each(|i| doors.waiter.forget(i));
            world.listen(&mut node);
            let now = world.clock.now();
            if due <= now {
                account.tick(now - due, now, id, &mut world.ring);
                events.apply(plan, now, &mut node, notes_events.then_some(&mut world.ring));
                node.handle_timeout(now, &mut world);
            }
            world.tend_streams(now);
            if last == NEVER && (stop.load(Ordering::Relaxed) || node.has_died()) {
                last = if node.halt() { now + HALT_NS } else { now };
            }
            // A loop that stood still at the end finds in its sockets what came meanwhile.
            if now >= last || (now >= end && (idle || now >= end + LAST_NS)) {
                break;
            }
        }
        account.report(plan, id, node, world, thread_cpu_ns() - processor, detach)
    }
}

impl Sockets {
    /// A socket for each channel of some sessions that ends at node `id`, and one for everything else.
    fn bind(plan: &Plan, id: u16, sessions: &[u16]) -> Result<Self, RunError> {
        let ip = addresses::address(&plan.real, id);
        let mut sockets = Self { all: Vec::new(), channels: Vec::new(), streams: Vec::new() };
        for (c, channel) in plan.channels.iter().enumerate() {
            if !(sessions.contains(&channel.session) && (channel.a == id || channel.b == id)) {
                continue;
            }
            if let Some(settings) = kernel_tcp::settings(channel) {
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
        Ok(sockets)
    }
}

impl Doors {
    /// The doors of a loop.
    fn of(opened: &Opened, plan: &Plan) -> Self {
        let Opened { sockets, crew, lines, .. } = opened;
        let streams = sockets.streams.iter().map(Stream::fd);
        let fds: Vec<_> =
            sockets.all.iter().map(Socket::fd).chain(streams).chain(crew.fd()).chain(lines.fds()).collect();
        let first_stream = sockets.all.len();
        Self {
            waiter: Waiter::new(&fds, plan.real.waiting, plan.real.spin_ns),
            channels: sockets.channels.clone(),
            first_stream,
            first_line: first_stream + sockets.streams.len() + usize::from(crew.fd().is_some()),
        }
    }
}

/// Events leave a row each: at the emulator, or without one in the first loop of all nodes.
fn notes_events(plan: &Plan, node: u16, sessions: &[u16]) -> bool {
    let emulated = !plan.network.links.is_empty() || plan.real.network == Isolation::Namespaces;
    let first = (0..plan.nodes.len() as u16).find_map(|n| Some((n, plan.loops(n).into_iter().next()?)));
    !emulated && first.is_some_and(|(n, first)| n == node && first == sessions)
}
