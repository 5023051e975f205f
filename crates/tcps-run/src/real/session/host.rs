//! The world as a loop sees it: its sockets, clock and rows, and what runs beside it.

use super::{
    legs::Legs,
    opened::{Addresses, Opened, Sockets},
};
use crate::{
    addresses::asides::Asides,
    os::{
        capture::Capture,
        clock::{monotonic_ns, thread_cpu_ns, RunClock},
        ring::Producer,
        socket::{Received, Socket},
        wait::GAP_NS,
    },
    pcapng::Datagram,
    real::{line::Lines, stream::Stream, worker::Crew},
};
use hdrhistogram::Histogram;
use std::{collections::BTreeMap, net::SocketAddr};
use tcps_core::{
    endpoint::{Ecn, Transmit},
    ids::{ChannelId, FlowId, NodeId},
    record::Record,
    report::histogram,
    sample::Meta,
    split::{Part, Parts},
    time::{Time, NEVER},
};
use tcps_node::{
    host::{BoardEvent, BoardRequest, Host, Outcome, Spare, Started, Task, Work},
    Node,
};
use tcps_plan::Plan;
use tcps_wire::pcapng::Seen;

/// The world as a loop sees it.
pub(super) struct RealHost {
    id: NodeId,
    pub clock: RunClock,
    pub ring: Producer,
    pub capture: Option<Capture>,
    pub crew: Crew,
    /// What workers have done, on its way to the node.
    outcomes: Vec<Outcome>,
    pub lines: Lines,
    /// What boards have told, on its way to the node.
    board_events: Vec<(usize, BoardEvent)>,
    pub sockets: Vec<Socket>,
    pub streams: Vec<Stream>,
    /// A frame of a stream.
    frame: Vec<u8>,
    /// Socket, peer and its node, per channel.
    routes: Vec<Option<(usize, SocketAddr, NodeId)>>,
    asides: Asides,
    aside_senders: BTreeMap<SocketAddr, NodeId>,
    /// Datagrams that the kernel would not take.
    pub unsent: u64,
    /// How long the send calls took.
    pub send: Histogram<u64>,
    /// Where time went here, and when the kernel had the datagram that the node is given.
    pub legs: Legs,
    received: Option<Time>,
    spare: Spare,
    /// From the kernel's stamp of a datagram to the loop.
    pub stamp_to_loop: Histogram<u64>,
    /// When the loop last had nothing to do, when it then woke, and how long the datagrams that it found had waited.
    pub idle_since: Time,
    pub woken: Time,
    pub waited: Time,
}

impl RealHost {
    /// The world of a loop of node `id` that begins at `start`, with its peers in it.
    pub fn new(plan: &Plan, id: NodeId, opened: Opened, peers: Addresses, start: Time) -> Self {
        let Opened { sockets, ring, capture, crew, lines } = opened;
        let routes = routes(plan, id, &sockets, &peers);
        let mut streams = sockets.streams;
        streams.iter_mut().for_each(|s| {
            peers.channels.get(&s.channel()).into_iter().for_each(|peer| s.join(*peer));
        });
        Self {
            id,
            clock: RunClock::new(start),
            ring,
            capture,
            crew,
            outcomes: Vec::new(),
            lines,
            board_events: Vec::new(),
            sockets: sockets.all,
            streams,
            frame: Vec::new(),
            routes,
            asides: Asides::new(plan, peers.asides),
            aside_senders: peers.aside_senders,
            unsent: 0,
            send: histogram(),
            legs: Legs::new(plan, id),
            received: None,
            spare: Spare::default(),
            stamp_to_loop: histogram(),
            idle_since: NEVER,
            woken: NEVER,
            waited: 0,
        }
    }

    /// Hands a datagram to the node; false if it comes from a stranger.
    pub fn take(
        &mut self,
        node: &mut Node,
        socket: usize,
        channel: ChannelId,
        got: Received,
        buffer: &[u8],
    ) -> bool {
        let now = self.clock.now();
        let mut received = got.stamp_ns.map_or(now, |s| self.clock.of_stamp(s, now));
        let (woken, idle_since) = (self.woken, self.idle_since);
        let waited = |received: Time| woken - received.max(idle_since);
        if let Some(stamp) = got.stamp_ns.filter(|_| waited(received) > GAP_NS) {
            received = self.clock.of_stamp_anew(stamp, now); // the wall clock may have been set
        }
        self.waited = self.waited.max(waited(received));
        let _ = self.stamp_to_loop.record((now - received).max(0) as u64);
        let bytes = &buffer[..got.len];
        let known = match channel {
            ChannelId::NONE => self.aside_senders.get(&got.from).copied(),
            c => self.routes[usize::from(c)]
                .and_then(|(s, peer, n)| (s == socket && peer == got.from).then_some(n)),
        };
        let Some(from) = known else { return false };
        let datagram = Datagram { from, to: self.id, channel, dscp: got.dscp, ecn: got.ecn, bytes };
        self.capture.iter_mut().for_each(|c| c.packet(received, &datagram, datagram.to, Seen::Coming));
        match channel {
            ChannelId::NONE => node.handle_aside(now, from, received, bytes, self),
            _ => {
                self.received = Some(received);
                node.handle_datagram(now, channel, (received, got.ecn), bytes, self);
                self.received = None;
            }
        }
        true
    }

    /// Hands the bytes received on a stream to the node.
    pub fn take_frames(&mut self, node: &mut Node, stream: usize) {
        self.streams[stream].work(self.clock.now());
        let (channel, mut frame) = (self.streams[stream].channel(), std::mem::take(&mut self.frame));
        while self.streams[stream].next(self.clock.now(), &mut frame) {
            let now = self.clock.now();
            node.handle_datagram(now, channel, (now, Ecn::NotCapable), &frame, self);
        }
        self.frame = frame;
    }

    pub fn tend_streams(&mut self, now: Time) {
        for stream in &mut self.streams {
            for row in stream.tend(now) {
                self.ring.push(&Record { node: self.id, ..row });
            }
        }
    }

    /// Hands what workers have done to the node.
    pub fn collect(&mut self, node: &mut Node) {
        let mut outcomes = std::mem::take(&mut self.outcomes);
        self.crew.collect(&mut outcomes);
        for outcome in outcomes.drain(..) {
            node.finished(self.clock.now(), outcome, self);
        }
        self.outcomes = outcomes;
    }

    /// Does what is due on lines, and hands to the node what boards have told.
    pub fn listen(&mut self, node: &mut Node) {
        let due = self.lines.due();
        if due == NEVER || due > self.clock.now() {
            return;
        }
        let now = self.clock.now();
        let mut events = std::mem::take(&mut self.board_events);
        self.lines.work(now, &mut events);
        for (board, event) in events.drain(..) {
            node.handle_board(self.clock.now(), board, event, self);
        }
        self.board_events = events;
    }

    /// Sends a datagram, and notes how long that took.
    fn send(&mut self, socket: usize, peer: SocketAddr, datagram: &Datagram<'_>) {
        let begun = monotonic_ns();
        let at = self.clock.of_monotonic(begun);
        self.capture.iter_mut().for_each(|c| c.packet(at, datagram, datagram.from, Seen::Leaving));
        let begun = if self.capture.is_some() { monotonic_ns() } else { begun };
        let sent = self.sockets[socket].send(datagram.bytes, peer, datagram.ecn.tos(datagram.dscp));
        let _ = self.send.record((monotonic_ns() - begun).max(0) as u64);
        self.unsent += !sent as u64;
    }
}

/// Socket, peer and its node, per channel of node `id` that is no stream.
fn routes(
    plan: &Plan,
    id: NodeId,
    sockets: &Sockets,
    peers: &Addresses,
) -> Vec<Option<(usize, SocketAddr, NodeId)>> {
    let mut routes = vec![None; plan.channels.len()];
    for (i, &c) in sockets.channels.iter().enumerate().filter(|(_, c)| **c != ChannelId::NONE) {
        let ends = &plan.channels[c];
        let other = if ends.a == id { ends.b } else { ends.a };
        routes[usize::from(c)] = peers.channels.get(&c).map(|a| (i, *a, other));
    }
    routes
}

impl Host for RealHost {
    fn transmit(
        &mut self,
        now: Time,
        channel: ChannelId,
        to: NodeId,
        bytes: &[u8],
        datagram: &Transmit,
    ) -> Time {
        self.legs.transmit(now, channel, datagram, bytes);
        let (dscp, ecn) = (datagram.dscp.unwrap_or_default(), datagram.ecn);
        match self.routes[usize::from(channel)] {
            Some((s, peer, _)) => {
                self.send(s, peer, &Datagram { from: self.id, to, channel, dscp, ecn, bytes });
            }
            None => match self.streams.iter_mut().find(|s| s.channel() == channel) {
                Some(stream) => stream.send(now, bytes, (datagram.flow, datagram.index), dscp),
                None => self.unsent += 1,
            },
        }
        now
    }

    fn spare(&mut self) -> &mut Spare {
        &mut self.spare
    }

    fn hand_over(&mut self, channel: ChannelId, meta: &Meta, parts: &Parts) {
        self.legs.hand_over(channel, meta, parts);
    }

    fn take_over(&mut self, now: Time, _channel: ChannelId, _meta: &Meta, at_once: bool, parts: &mut Parts) {
        *parts = Parts::new(self.received.filter(|_| at_once).unwrap_or(now).min(now));
        parts.spend(Part::System, now);
    }

    fn has_come(&mut self, flow: FlowId, parts: &Parts, _clock: Time) {
        self.legs.has_come(flow, parts);
    }

    fn aside(&mut self, _now: Time, to: NodeId, bytes: &[u8]) {
        match self.asides.of(to, bytes) {
            Some(peer) => {
                let (channel, dscp, ecn) = (ChannelId::NONE, 0, Ecn::NotCapable);
                let datagram = Datagram { from: self.id, to, channel, dscp, ecn, bytes };
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

    fn board(&mut self, now: Time, board: usize, ride: &BoardRequest<'_>) -> Option<bool> {
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
