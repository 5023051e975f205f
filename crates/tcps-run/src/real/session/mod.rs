//! The run-to-completion loop of one session at one node.

mod account;
mod host;
mod legs;
mod opened;

pub use opened::Addresses;

use super::{line::Lines, stream::Stream, worker::Crew};
use crate::{
    events::{Events, Steered},
    os::{
        capture::Capture,
        clock::thread_cpu_ns,
        ring::Producer,
        socket::{Socket, MAX_DATAGRAM},
        wait::{privileges, Detach, Waiter, LONGEST},
    },
};
use account::Account;
use host::RealHost;
use opened::{Opened, Sockets};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::Receiver,
    },
};
use tcps_core::{
    ids::{ChannelId, ComponentId, NodeId, SessionId},
    time::{Time, MS, NEVER},
};
use tcps_node::{assets::Assets, secrets::Secrets, Node, HALT_NS};
use tcps_plan::{report::Report, Isolation, Places, Plan, RunError};

/// How long a loop goes on after the end, so that what is on its way arrives.
pub const DRAIN_NS: Time = 500 * MS;
/// How long it reads, after that, what is there already.
const LAST_NS: Time = 500 * MS;
/// Rows a ring holds: over a second of 64,000 rows/s.
const RING_ROWS: u64 = 1 << 16;

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
    id: NodeId,
    node: Node,
    opened: Opened,
    /// Whether events leave their rows here.
    notes_events: bool,
    /// Names of its sessions, where its node has other loops.
    sessions: Vec<String>,
}

/// What a loop waits for: its sockets, then its streams, its workers, and its lines.
struct Doors {
    waiter: Waiter,
    /// Channel of each socket.
    channels: Vec<ChannelId>,
    first_stream: usize,
    first_line: usize,
}

impl SessionLoop {
    /// Builds the node and binds its sockets.
    pub fn prepare(
        plan: &Plan,
        id: NodeId,
        sessions: &[SessionId],
        files: &Files,
        assets: &mut dyn Assets,
        secrets: &mut dyn Secrets,
    ) -> Result<Self, RunError> {
        let mut node = Node::new(plan, &Places::new(plan), id, Some(sessions), assets, secrets)?;
        let crew = Crew::new(node.take_workers())?;
        let name = |component: ComponentId| plan.components[component].name.clone();
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
    pub fn reached_at(&self) -> Result<(BTreeMap<ChannelId, SocketAddr>, Option<SocketAddr>), RunError> {
        let sockets = &self.opened.sockets;
        let mut channels: BTreeMap<_, _> =
            sockets.streams.iter().map(|s| (s.channel(), s.address())).collect();
        let mut aside = None;
        for (socket, &channel) in sockets.all.iter().zip(&sockets.channels) {
            match channel {
                ChannelId::NONE => aside = Some(socket.address()?),
                c => {
                    channels.insert(c, socket.address()?);
                }
            }
        }
        Ok((channels, aside))
    }

    /// Runs from `start` (CLOCK_MONOTONIC) to the end of the plan or until `stop`, steered by what comes in the meantime.
    pub fn run(
        self,
        plan: &Plan,
        peers: Addresses,
        start: Time,
        stop: &AtomicBool,
        steering: &Receiver<Steered>,
        detach: &mut dyn Detach,
    ) -> Report {
        let Self { id, mut node, mut opened, notes_events, sessions } = self;
        opened.lines.begin(start);
        let mut doors = Doors::of(&opened, plan);
        let mut world = RealHost::new(plan, id, opened, peers, start);
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
            steering.try_iter().for_each(|steered| events.take(world.clock.now(), steered));
            let due = node.poll_timeout().min(events.next()).min(world.lines.due());
            (world.idle_since, world.waited) = (world.clock.now(), 0);
            detach.detached(&mut || doors.waiter.wait(due.saturating_add(start)));
            world.woken = world.clock.now();
            let idle = doors.open(&mut node, &mut world, &mut account, &mut buffer);
            world.listen(&mut node);
            let now = world.clock.now();
            // What comes on streams has no stamp: it may have come when the longest sleep should have ended.
            let overslept = if idle { 0 } else { world.woken - world.idle_since - LONGEST };
            let late = world.waited.max(overslept).max(now.saturating_sub(due));
            account.gap(late, now, id, &mut world.ring);
            if due <= now {
                account.tick(now - due);
                events.apply(plan, now, &mut node, &mut world.ring, notes_events);
                node.handle_timeout(now, &mut world);
            }
            world.tend_streams(now);
            if last == NEVER && (stop.load(Ordering::Relaxed) || node.has_died()) {
                last = if node.halt() { now + HALT_NS } else { now };
            }
            // A loop that stalled at the end finds in its sockets what came meanwhile.
            if now >= last || (now >= end && (idle || now >= end + LAST_NS)) {
                break;
            }
        }
        account.report(plan, id, node, world, thread_cpu_ns() - processor, detach)
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

    /// Hands over the datagrams received at each; whether there were none.
    fn open(
        &mut self,
        node: &mut Node,
        world: &mut RealHost,
        account: &mut Account,
        buffer: &mut [u8],
    ) -> bool {
        let (mut idle, mut closed) = (true, None);
        for i in self.waiter.ready() {
            idle = false;
            if i >= self.first_line {
                let open = world.lines.readable(world.clock.now(), i - self.first_line);
                closed = (!open).then_some(i).or(closed);
            } else if i >= self.first_stream {
                match i - self.first_stream {
                    stream if stream < world.streams.len() => world.take_frames(node, stream),
                    _ => world.collect(node),
                }
            } else if let Some(got) = world.sockets[i].receive(buffer) {
                account.strangers += !world.take(node, i, self.channels[i], got, buffer) as u64;
            }
        }
        closed.into_iter().for_each(|i| self.waiter.forget(i));
        idle
    }
}

/// Events leave a row each: at the emulator, or without one in the first loop of all nodes.
fn notes_events(plan: &Plan, node: NodeId, sessions: &[SessionId]) -> bool {
    let emulated = !plan.network.links.is_empty() || plan.real.network == Isolation::Namespaces;
    let first =
        (0..plan.nodes.len() as u16).map(NodeId).find_map(|n| Some((n, plan.loops(n).into_iter().next()?)));
    !emulated && first.is_some_and(|(n, first)| n == node && first == sessions)
}
