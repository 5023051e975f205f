//! The loop of the emulator: from ports into the network, and out again when the network says so.

use super::{journey::Journey, Entered, Ports, Taken};
use crate::{
    carrier::Carrier,
    network_rows,
    os::{
        clock::{monotonic_ns, thread_cpu_ns, RunClock},
        ring::Producer,
        socket::MAX_DATAGRAM,
        wait::{awake, privileges, Waiter, GAP_NS},
    },
    plan::{Action, Plan},
    real::{events::Events, session::DRAIN_NS},
    report::{NodeSelf, RealSelf, Report, Spread},
};
use hdrhistogram::Histogram;
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};
use tcps_core::{
    record::{Kind, Record},
    report::histogram,
    time::{Time, NEVER},
};
use tcps_net::{LinkChange, NetEvent, Packet};

/// Datagrams taken from a port before the others have their turn.
const BATCH: usize = 64;

/// A datagram in the network.
#[derive(Default)]
struct Letter {
    from: u16,
    exit: usize,
    arrived: Time,
    /// When it entered the network, which never goes back in time: at its arrival or later.
    entered: Time,
    bytes: Vec<u8>,
    copies: u16,
}

/// The emulator with its nodes joined, ready to start.
pub struct Relay {
    start: Time,
    clock: RunClock,
    ports: Box<dyn Ports>,
    network: Carrier,
    /// Without links all nodes reach each other at once.
    linked: bool,
    ring: Producer,
    letters: Vec<Letter>,
    free: Vec<u32>,
    paths: BTreeMap<(u16, u16), Journey>,
    buffer: Vec<u8>,
    /// What was read and has yet to enter, with its letter.
    arrivals: Vec<(Entered, u32)>,
    /// The network never goes back in time.
    latest: Time,
    probe_at: Time,
    /// When background traffic stops: at the end of the plan, though the loop goes on.
    traffic_end: Time,
    traffic: u16,
    errors: Vec<String>,
    late: Histogram<u64>,
    gaps: u64,
}

impl Relay {
    pub(super) fn new(
        ports: Box<dyn Ports>,
        network: Carrier,
        ring: Producer,
        plan: &Plan,
        start: Time,
    ) -> Self {
        Self {
            start,
            clock: RunClock::new(start),
            ports,
            network,
            linked: !plan.network.links.is_empty(),
            ring,
            letters: Vec::new(),
            free: Vec::new(),
            paths: BTreeMap::new(),
            buffer: vec![0; MAX_DATAGRAM],
            arrivals: Vec::with_capacity(BATCH),
            latest: 0,
            probe_at: if plan.queue_probe_ns.is_some() { 0 } else { NEVER },
            traffic_end: plan.duration_ns,
            traffic: plan.network.traffic.len() as u16,
            errors: Vec::new(),
            late: histogram(),
            gaps: 0,
        }
    }

    /// Runs to the end of the plan or until `stop`.
    pub fn run(mut self, plan: &Plan, stop: &AtomicBool) -> Report {
        let ports = self.ports.descriptors();
        let all: Vec<_> = ports.iter().copied().chain(self.network.descriptor()).collect();
        let mut waiter = Waiter::new(&all, plan.real.waiting, plan.real.spin_ns);
        let mut events = Events::new(plan);
        for c in &plan.channels {
            for pair in [(c.a, c.b), (c.b, c.a)] {
                self.paths.entry(pair).or_insert_with(Journey::new);
            }
        }
        // What is there now is what is locked in memory.
        let mut privileges = privileges(plan.real.realtime);
        let _awake = awake(plan.real.realtime, &mut privileges);
        let processor = thread_cpu_ns();
        self.network.start(self.start);
        while monotonic_ns() < self.start && !stop.load(Ordering::Relaxed) {
            waiter.wait(self.start);
        }
        while !stop.load(Ordering::Relaxed)
            && self.clock.now() < plan.duration_ns + DRAIN_NS
            && self.network.failure().is_none()
        {
            self.ring.beat();
            let due = self.network.poll_timeout().unwrap_or(NEVER).min(events.next()).min(self.probe_at);
            waiter.wait(due.saturating_add(self.start));
            // What came until now is read before the network moves on to now.
            let now = self.clock.now();
            waiter.ready().filter(|port| *port < ports.len()).for_each(|port| self.receive(plan, port));
            self.network.listen();
            self.enter();
            if due <= now {
                self.tick(now - due, now, plan);
            }
            while let Some(i) = events.due(now) {
                self.apply(&plan.events[i].action, i, now);
            }
            self.advance(now);
            self.probe_queues(plan, now);
        }
        self.report(privileges, thread_cpu_ns() - processor, plan)
    }

    fn tick(&mut self, late: Time, now: Time, plan: &Plan) {
        let _ = self.late.record(late as u64);
        if late > GAP_NS {
            self.gaps += 1;
            // The emulator comes after the nodes.
            let node = plan.nodes.len() as u16;
            self.ring.push(&Record { value: late, node, ..Record::new(now, Kind::Gap) });
        }
    }

    fn receive(&mut self, plan: &Plan, port: usize) {
        for _ in 0..BATCH {
            match self.ports.receive(plan, port, &mut self.clock, &mut self.buffer) {
                Taken::Empty => return,
                Taken::Stranger => {}
                Taken::Packet(e) => {
                    let letter = self.post(&e);
                    self.arrivals.push((e, letter));
                }
            }
        }
    }

    /// Lets what was read into the network, in the order in which it came.
    fn enter(&mut self) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        arrivals.sort_by_key(|(e, _)| e.arrived);
        for (e, payload) in arrivals.drain(..) {
            let Entered { from, to: dst, class, index, dscp, wire_bytes, arrived, .. } = e;
            let packet = Packet { payload, class, index, dst, dscp, wire_bytes, sent_ns: arrived };
            if !self.linked {
                self.deliver(arrived, packet);
                continue;
            }
            self.latest = self.latest.max(arrived);
            self.letters[payload as usize].entered = self.latest;
            self.advance_network(self.latest);
            self.network.send(self.latest, from, packet);
            self.drain();
        }
        self.arrivals = arrivals;
    }

    /// Keeps what the buffer holds.
    fn post(&mut self, e: &Entered) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.letters.push(Letter::default());
            self.letters.len() as u32 - 1
        });
        let letter = &mut self.letters[id as usize];
        (letter.from, letter.exit, letter.copies) = (e.from, e.exit, 0);
        (letter.arrived, letter.entered) = (e.arrived, e.arrived);
        letter.bytes.clear();
        letter.bytes.extend_from_slice(&self.buffer[..e.len]);
        id
    }

    fn advance(&mut self, now: Time) {
        self.latest = self.latest.max(now);
        self.advance_network(self.latest);
        self.drain();
    }

    fn advance_network(&mut self, until: Time) {
        if self.traffic_end <= until {
            let end = std::mem::replace(&mut self.traffic_end, NEVER);
            self.advance_network(end);
            (0..self.traffic).for_each(|t| self.network.set_traffic(end, t, false));
        }
        while let Some(t) = self.network.poll_timeout().filter(|t| *t <= until) {
            self.network.handle_timeout(t);
            self.drain();
        }
    }

    fn drain(&mut self) {
        while let Some(event) = self.network.poll_event() {
            match event {
                NetEvent::Arrived { at, packet } => self.deliver(at, packet),
                NetEvent::Duplicated { packet, .. } => self.letters[packet.payload as usize].copies += 1,
                NetEvent::Dropped { at, packet, link, reason } => {
                    let from = self.letters[packet.payload as usize].from;
                    self.paths.entry((from, packet.dst)).or_insert_with(Journey::new).lose();
                    let row = network_rows::dropped(at, &packet, link, reason);
                    row.iter().for_each(|row| self.ring.push(row));
                    self.let_go(packet.payload);
                }
            }
        }
    }

    fn deliver(&mut self, at: Time, packet: Packet) {
        let letter = &self.letters[packet.payload as usize];
        let (arrived, from, exit) = (letter.arrived, letter.from, letter.exit);
        let set = (at - letter.entered).max(0);
        let went = self.ports.deliver(exit, packet.dst, packet.dscp, &letter.bytes);
        let sent = went.then(|| self.clock.now());
        let path = self.paths.entry((from, packet.dst)).or_insert_with(Journey::new);
        path.leaves(at, packet.wire_bytes);
        path.left(set, arrived, sent, packet.wire_bytes);
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
                let running = *running && self.traffic_end != NEVER;
                traffic.iter().for_each(|t| self.network.set_traffic(now, *t, running));
            }
            Action::Flow { .. } | Action::Component { .. } | Action::Clock { .. } => {}
        }
        self.ring.push(&Record { index: number as u32, ..Record::new(now, Kind::Event) });
    }

    fn probe_queues(&mut self, plan: &Plan, now: Time) {
        if now < self.probe_at {
            return;
        }
        for link in network_rows::queued_links(plan) {
            let found = self.network.queue(now, link);
            self.ring.push(&network_rows::queue(now, link, found));
        }
        let period = plan.queue_probe_ns.unwrap_or(NEVER).max(1);
        self.probe_at += period * ((now - self.probe_at) / period + 1);
        // What a foreign network told before it answered wakes nobody any more.
        self.network.listen();
        self.drain();
    }

    fn report(mut self, privileges: Vec<String>, cpu_ns: Time, plan: &Plan) -> Report {
        let mut report = Report::default();
        let (links, traffic) = self.network.accounts();
        let carried = (0..).zip(links).filter(|(number, _)| self.ports.carries(*number));
        report.accounts(carried.map(|(_, link)| link).collect(), traffic);
        report.errors = self.errors;
        report.errors.extend(self.network.failure().map(str::to_owned));
        report.interrupted = self.network.failure().is_some();
        report.nodes.extend(self.network.itself().map(|f| f.node()));
        let troubles = self.ports.troubles();
        let name = |vertex: u16| self.ports.name(plan, vertex);
        let stamps = self.ports.stamps();
        for ((from, to), p) in self.paths.iter().filter(|(_, p)| p.decided() > 0) {
            report.emulator.push(p.report(stamps, name(*from), name(*to)));
        }
        report.nodes.push(NodeSelf {
            name: "emulator".into(),
            cores: 1,
            busy_s: cpu_ns as f64 / 1e9,
            real: Some(RealSelf {
                ticks: self.late.len(),
                late_ns: Spread::of(&self.late),
                gaps_over_1ms: self.gaps,
                ring_overflows: self.ring.lost(),
                socket_drops: troubles.dropped,
                unsent: troubles.unsent,
                strangers: troubles.strangers,
                unread: troubles.unread,
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
