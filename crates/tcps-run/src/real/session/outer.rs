//! The world as a loop sees it: its sockets, clock and rows, and what runs beside it.

use super::{Account, Addresses, Opened, Sockets};
use crate::{
    addresses::asides::Asides,
    os::{
        capture::Capture,
        clock::{monotonic_ns, thread_cpu_ns, RunClock},
        ring::Producer,
        socket::{Received, Socket},
    },
    pcapng::Datagram,
    real::{line::Lines, stream::Stream, worker::Crew},
};
use hdrhistogram::Histogram;
use std::{collections::BTreeMap, net::SocketAddr};
use tcps_core::{
    endpoint::Transmit,
    record::{Record, NONE},
    report::histogram,
    time::{Time, NEVER},
};
use tcps_node::{
    outside::{News, Outcome, Outside, Ride, Started, Task, Work},
    Node,
};
use tcps_plan::Plan;
use tcps_wire::pcapng::Seen;

/// The world as a loop sees it.
pub(super) struct Outer {
    id: u16,
    pub clock: RunClock,
    pub ring: Producer,
    pub capture: Option<Capture>,
    pub crew: Crew,
    /// What workers have done, on its way to the node.
    outcomes: Vec<Outcome>,
    pub lines: Lines,
    /// What boards have told, on its way to the node.
    news: Vec<(usize, News)>,
    pub sockets: Vec<Socket>,
    pub streams: Vec<Stream>,
    /// A frame of a stream.
    frame: Vec<u8>,
    /// Socket, peer and its node, per channel.
    routes: Vec<Option<(usize, SocketAddr, u16)>>,
    asides: Asides,
    aside_senders: BTreeMap<SocketAddr, u16>,
    /// Datagrams that the kernel would not take.
    pub unsent: u64,
    /// How long the send calls took.
    pub send: Histogram<u64>,
}

impl Outer {
    /// The world of a loop of node `id` that begins at `start`, with its peers in it.
    pub fn new(plan: &Plan, id: u16, opened: Opened, peers: Addresses, start: Time) -> Self {
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
            news: Vec::new(),
            sockets: sockets.all,
            streams,
            frame: Vec::new(),
            routes,
            asides: Asides::new(plan, peers.asides),
            aside_senders: peers.aside_senders,
            unsent: 0,
            send: histogram(),
        }
    }

    /// Hands a datagram to the node; false if it comes from a stranger.
    pub fn take(
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
    pub fn take_frames(&mut self, node: &mut Node, stream: usize) {
        self.streams[stream].work(self.clock.now());
        let (channel, mut frame) = (self.streams[stream].channel(), std::mem::take(&mut self.frame));
        while self.streams[stream].next(self.clock.now(), &mut frame) {
            let now = self.clock.now();
            node.handle_datagram(now, channel, now, &frame, self);
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

/// Socket, peer and its node, per channel of node `id` that is no stream.
fn routes(
    plan: &Plan,
    id: u16,
    sockets: &Sockets,
    peers: &Addresses,
) -> Vec<Option<(usize, SocketAddr, u16)>> {
    let mut routes = vec![None; plan.channels.len()];
    for (i, &c) in sockets.channels.iter().enumerate().filter(|(_, c)| **c != NONE) {
        let ends = &plan.channels[c as usize];
        let other = if ends.a == id { ends.b } else { ends.a };
        routes[c as usize] = peers.channels.get(&c).map(|a| (i, *a, other));
    }
    routes
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
