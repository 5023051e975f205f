//! The user-space emulator: the network of the scenario between UDP sockets, without root.
//!
//! ```text
//!  node a ──► gate a ─┐                        ┌─► gate b ──► node b
//!                     └─► tcps-net, real clock ─┘
//! ```
//! A datagram enters the network at its kernel stamp, not when this loop wakes up, and leaves when the network says
//! so. How far the two differ is measured for every packet: set against delivered.

use super::{
    clock::{monotonic_ns, thread_cpu_ns, RunClock},
    ring::Producer,
    session::{Events, DRAIN_NS},
    socket::{Socket, MAX_DATAGRAM},
    wait::{privileges, Waiter},
};
use crate::{
    error::RunError,
    node::histogram,
    plan::{Action, Plan, OVERHEAD_BYTES},
    report::{Emulated, NodeSelf, RealSelf, Report, Spread},
    virtual_time::ASIDE_CLASS,
};
use hdrhistogram::Histogram;
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};
use tcps_core::{
    record::{Kind, Record},
    time::{Time, NEVER},
};
use tcps_net::{LinkChange, NetEvent, Network, Packet};
use tcps_wire::header;

const RING_ROWS: u64 = 1 << 15;

/// A way into the network: what arrives here goes to node `to`.
struct Gate {
    socket: Socket,
    from: u16,
    to: u16,
    /// Channel, or nothing for datagrams outside channels.
    channel: Option<u16>,
    /// The gate at the other side, and where its node listens.
    exit: usize,
    peer: Option<SocketAddr>,
}

/// The emulator with its sockets, ready to start.
pub struct Emulator {
    gates: Vec<Gate>,
    network: Network,
    ring: Producer,
}

/// A datagram in the network.
#[derive(Default)]
struct Letter {
    gate: usize,
    arrived: Time,
    bytes: Vec<u8>,
    copies: u16,
}

/// Set against delivered, for one ordered pair of nodes.
struct Journey {
    set: Histogram<u64>,
    delivered: Histogram<u64>,
    error: Histogram<u64>,
    entered: u64,
    lost: u64,
}

impl Emulator {
    /// Builds the network and binds a gate for each side of each channel and for each ordered pair of nodes.
    pub fn prepare(plan: &Plan, ring: &Path) -> Result<Self, RunError> {
        let names: Vec<String> = plan.flows.iter().map(|f| f.name.clone()).collect();
        let network = Network::new(&plan.network, &names, plan.seed).map_err(|e| RunError::new(e.to_string()))?;
        let mut gates = Vec::new();
        let mut pair = |from, to, channel| -> Result<(), RunError> {
            for (from, to) in [(from, to), (to, from)] {
                let socket = Socket::bind(plan.real.ipv6)?;
                // Gates come in pairs; a datagram leaves through the other one of its pair.
                let exit = gates.len() ^ 1;
                gates.push(Gate { socket, from, to, channel, exit, peer: None });
            }
            Ok(())
        };
        for (id, c) in plan.channels.iter().enumerate() {
            pair(c.a, c.b, Some(id as u16))?;
        }
        let nodes = plan.nodes.len() as u16;
        for a in 0..nodes {
            for b in a + 1..nodes {
                pair(a, b, None)?;
            }
        }
        Ok(Self { gates, network, ring: Producer::create(ring, RING_ROWS)? })
    }

    /// Where node `from` reaches node `to`: (from, to, channel, address) per gate.
    pub fn gates(&self) -> Result<Vec<(u16, u16, Option<u16>, SocketAddr)>, RunError> {
        self.gates.iter().map(|g| Ok((g.from, g.to, g.channel, g.socket.address()?))).collect()
    }

    /// Tells where nodes listen: per (node, channel), and per node for everything else.
    pub fn connect(&mut self, channels: &BTreeMap<(u16, u16), SocketAddr>, asides: &BTreeMap<u16, SocketAddr>) {
        for g in &mut self.gates {
            g.peer = match g.channel {
                Some(c) => channels.get(&(g.from, c)).copied(),
                None => asides.get(&g.from).copied(),
            };
        }
    }

    /// Runs from `start` (CLOCK_MONOTONIC) to the end of the plan or until `stop`.
    pub fn run(self, plan: &Plan, start: Time, stop: &AtomicBool) -> Report {
        let privileges = privileges(plan.real.realtime);
        let fds: Vec<_> = self.gates.iter().map(|g| g.socket.fd()).collect();
        let mut waiter = Waiter::new(&fds, plan.real.waiting, plan.real.spin_ns);
        let mut relay = Relay::new(self, plan, start);
        let mut events = Events::new(plan);
        let mut late = histogram();
        let processor = thread_cpu_ns();
        while monotonic_ns() < start && !stop.load(Ordering::Relaxed) {
            waiter.wait(start);
        }
        while !stop.load(Ordering::Relaxed) && relay.clock.now() < plan.duration_ns + DRAIN_NS {
            let due = relay.network.poll_timeout().unwrap_or(NEVER).min(events.next()).min(relay.probe_at);
            waiter.wait(due.saturating_add(start));
            for gate in waiter.ready() {
                relay.receive(plan, gate);
            }
            let now = relay.clock.now();
            if due <= now {
                let _ = late.record((now - due) as u64);
            }
            while let Some(i) = events.due(now) {
                relay.apply(&plan.events[i].action, i, now);
            }
            relay.advance(now);
            relay.probe_queues(plan, now);
        }
        relay.report(late, privileges, thread_cpu_ns() - processor, plan)
    }
}

struct Relay {
    clock: RunClock,
    gates: Vec<Gate>,
    network: Network,
    ring: Producer,
    letters: Vec<Letter>,
    free: Vec<u32>,
    paths: BTreeMap<(u16, u16), Journey>,
    buffer: Vec<u8>,
    /// The network never goes back in time.
    latest: Time,
    probe_at: Time,
    errors: Vec<String>,
}

impl Relay {
    fn new(emulator: Emulator, plan: &Plan, start: Time) -> Self {
        Self {
            clock: RunClock::new(start),
            gates: emulator.gates,
            network: emulator.network,
            ring: emulator.ring,
            letters: Vec::new(),
            free: Vec::new(),
            paths: BTreeMap::new(),
            buffer: vec![0; MAX_DATAGRAM],
            latest: 0,
            probe_at: if plan.queue_probe_ns.is_some() { 0 } else { NEVER },
            errors: Vec::new(),
        }
    }

    fn receive(&mut self, plan: &Plan, gate: usize) {
        let g = &mut self.gates[gate];
        let Some(got) = g.socket.receive(&mut self.buffer) else { return };
        let now = self.clock.now();
        let arrived = got.stamp_ns.map_or(now, |s| self.clock.of_stamp(s, now));
        let bytes = &self.buffer[..got.len];
        let (class, index, wire_bytes) = account(plan, g, bytes);
        let id = self.free.pop().unwrap_or_else(|| {
            self.letters.push(Letter::default());
            self.letters.len() as u32 - 1
        });
        let letter = &mut self.letters[id as usize];
        (letter.gate, letter.arrived, letter.copies) = (gate, arrived, 0);
        letter.bytes.clear();
        letter.bytes.extend_from_slice(bytes);
        let path = self.paths.entry((g.from, g.to)).or_insert_with(Journey::new);
        path.entered += 1;
        let packet = Packet { payload: id, class, index, dst: g.to, dscp: 0, wire_bytes, sent_ns: arrived };
        let from = g.from;
        self.latest = self.latest.max(arrived);
        self.advance_network(self.latest);
        self.network.send(self.latest, from, packet);
        self.drain();
    }

    fn advance(&mut self, now: Time) {
        self.latest = self.latest.max(now);
        self.advance_network(self.latest);
        self.drain();
    }

    fn advance_network(&mut self, until: Time) {
        while let Some(t) = self.network.poll_timeout().filter(|t| *t <= until) {
            self.network.handle_timeout(t);
            self.drain();
        }
    }

    fn drain(&mut self) {
        while let Some(event) = self.network.poll_event() {
            match event {
                NetEvent::Arrived { at, packet, corrupted } => self.deliver(at, packet, corrupted),
                NetEvent::Duplicated { packet, .. } => self.letters[packet.payload as usize].copies += 1,
                NetEvent::Dropped { at, packet, link, reason } => {
                    let l = &self.letters[packet.payload as usize];
                    let g = &self.gates[l.gate];
                    self.paths.entry((g.from, g.to)).or_insert_with(Journey::new).lost += 1;
                    if packet.class != ASIDE_CLASS {
                        let row = Record {
                            value: at - packet.sent_ns,
                            index: packet.index,
                            size: packet.wire_bytes,
                            flow: packet.class,
                            point: link,
                            detail: reason as u8,
                            ..Record::new(at, Kind::Dropped)
                        };
                        self.ring.push(&row);
                    }
                    self.let_go(packet.payload);
                }
            }
        }
    }

    fn deliver(&mut self, at: Time, packet: Packet, corrupted: bool) {
        let letter = &mut self.letters[packet.payload as usize];
        let (arrived, gate) = (letter.arrived, letter.gate);
        if corrupted && !letter.bytes.is_empty() {
            let bit = packet.index as usize % (letter.bytes.len() * 8);
            letter.bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let g = &self.gates[gate];
        let exit = &self.gates[g.exit];
        if let Some(peer) = exit.peer {
            exit.socket.send(&self.letters[packet.payload as usize].bytes, peer);
        }
        let sent = self.clock.now();
        let path = self.paths.entry((g.from, g.to)).or_insert_with(Journey::new);
        let _ = path.set.record((at - arrived).max(0) as u64);
        let _ = path.delivered.record((sent - arrived).max(0) as u64);
        let _ = path.error.record((sent - at).max(0) as u64);
        self.let_go(packet.payload);
    }

    fn let_go(&mut self, id: u32) {
        let l = &mut self.letters[id as usize];
        match l.copies.checked_sub(1) {
            Some(left) => l.copies = left,
            None => self.free.push(id),
        }
    }

    fn apply(&mut self, action: &Action, number: usize, now: Time) {
        self.advance_network(now);
        match action {
            Action::Link { links, rate_bps, delay_ns, loss, up } => {
                let change = LinkChange { rate_bps: *rate_bps, delay_ns: *delay_ns, loss: *loss, up: *up };
                for link in links {
                    if let Err(e) = self.network.change_link(now, *link, &change) {
                        self.errors.push(format!("events.{number}: {e}"));
                    }
                }
            }
            Action::Reroute => self.network.reroute(now),
            Action::Traffic { traffic, running } => {
                traffic.iter().for_each(|t| self.network.set_traffic(now, *t, *running));
            }
            Action::Flow { .. } | Action::Component { .. } => {}
        }
        self.ring.push(&Record { index: number as u32, ..Record::new(now, Kind::Event) });
    }

    fn probe_queues(&mut self, plan: &Plan, now: Time) {
        if now < self.probe_at {
            return;
        }
        for (id, link) in plan.network.links.iter().enumerate() {
            if link.rate_bps.is_some() || link.opportunities_ns.is_some() {
                let q = self.network.queue(now, id as u16);
                let value = q.wait_ns;
                let (index, size, point) = (q.packets as u32, q.bytes as u32, id as u16);
                self.ring.push(&Record { value, index, size, point, ..Record::new(now, Kind::Queue) });
            }
        }
        let period = plan.queue_probe_ns.unwrap_or(NEVER).max(1);
        self.probe_at += period * ((now - self.probe_at) / period + 1);
    }

    fn report(self, late: Histogram<u64>, privileges: Vec<String>, cpu_ns: Time, plan: &Plan) -> Report {
        let mut report = Report::default();
        report.network(&self.network);
        report.errors = self.errors;
        let name = |n: u16| plan.nodes[n as usize].name.as_str();
        report.emulator = self
            .paths
            .iter()
            .map(|((from, to), p)| Emulated::new(name(*from), name(*to), (&p.set, &p.delivered, &p.error), p.entered, p.lost))
            .collect();
        report.nodes.push(NodeSelf {
            name: "emulator".into(),
            cores: 1,
            busy_s: cpu_ns as f64 / 1e9,
            real: Some(RealSelf {
                ticks: late.len(),
                late_ns: Spread::of(&late),
                ring_overflows: self.ring.lost(),
                socket_drops: self.gates.iter().map(|g| g.socket.drops() as u64).sum(),
                clock_steps: self.clock.steps(),
                waiting: format!("{:?}", plan.real.waiting).to_lowercase(),
                privileges,
                ..RealSelf::default()
            }),
            ..NodeSelf::default()
        });
        report
    }
}

impl Journey {
    fn new() -> Self {
        Self { set: histogram(), delivered: histogram(), error: histogram(), entered: 0, lost: 0 }
    }
}

/// Flow, sample and wire size of a datagram at a gate.
fn account(plan: &Plan, gate: &Gate, bytes: &[u8]) -> (u16, u32, u32) {
    let parsed = header::Packet::new_checked(bytes).ok().and_then(|p| header::Repr::parse(&p).ok());
    match (gate.channel, parsed) {
        (Some(c), Some(h)) => (h.flow, h.index, plan.accounted_bytes(c, bytes.len(), h.payload_bytes())),
        _ => (ASIDE_CLASS, 0, bytes.len() as u32 + OVERHEAD_BYTES),
    }
}
