//! The loop: from ports into the network, and out again when the network says so.

use super::{
    account::{Account, Counted},
    repairs::Repairs,
    Accounts, Datagram, Delivery, Layers, Ports, Service, Taken, Tape,
};
use crate::os::{
    clock::{thread_cpu_ns, RunClock},
    socket::MAX_DATAGRAM,
    wait::{awake, privileges, Waiter, GAP_NS},
};
use hdrhistogram::Histogram;
use tcps_core::{
    ids::{LinkId, VertexId},
    record::DropReason,
    report::histogram,
    time::{Time, NEVER},
};
use tcps_net::{NetEvent, Packet, Passage, Spent};
use tcps_plan::{
    report::{RealSelf, Spread},
    Waiting,
};
use tcps_wire::pcapng::Seen;

/// Packets taken from a port before the others have their turn.
const BATCH: usize = 64;

/// Who runs an engine, and acts between packets.
pub trait EngineHost {
    /// Whether to go on.
    fn goes_on(&mut self, now: Time, network: &Layers) -> bool;
    /// When it has something to do.
    fn next(&self) -> Time {
        NEVER
    }
    /// Does what is due, each time that the engine has been awake; whether it touched the network.
    fn act(&mut self, between: Between<'_>) -> bool;
    /// A datagram is about to enter the network; an attacker may change its bytes.
    fn entered(&mut self, _datagram: &Datagram, _bytes: &mut [u8]) {}
    /// A datagram of an attacker that enters the network now, and where.
    fn shot(&mut self, _now: Time) -> Option<(VertexId, Datagram, Vec<u8>)> {
        None
    }
    /// The network has dropped a packet.
    fn dropped(&mut self, _at: Time, _packet: &Packet, _link: LinkId, _reason: DropReason) {}
    /// The network let a datagram out, and it was handed on or refused.
    fn arrived(&mut self, _datagram: &Datagram, _transit: &Transit) {}
    /// A link took a packet.
    fn passed(&mut self, _passage: &Passage) {}
    /// The engine has stalled.
    fn gap(&mut self, _now: Time, _late: Time) {}
}

/// How a datagram passed the network.
#[derive(Debug, Clone, Copy)]
pub struct Transit {
    /// When it entered.
    pub entered: Time,
    /// When the network let it out.
    pub left: Time,
    /// When it had gone out; absent: the kernel would not take it.
    pub sent: Option<Time>,
    /// Where its time went, if the network says so.
    pub spent: Spent,
}

/// An engine as its host may touch it.
pub struct Between<'a> {
    /// Run time.
    pub now: Time,
    /// Where the network is, which never goes back in time: now or later.
    pub latest: Time,
    /// The network.
    pub network: &'a mut Layers,
    /// Set against delivered.
    pub accounts: &'a mut Accounts,
    /// The services that its ports tell apart.
    pub services: &'a [Service],
    /// Clients that are known.
    pub clients: usize,
}

/// How an engine waits.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// In which way.
    pub waiting: Waiting,
    /// Length of the spin at the end of a hybrid wait.
    pub spin_ns: Time,
    /// Ask for SCHED_FIFO and locked memory.
    pub realtime: bool,
}

/// The loop, ready to run.
pub struct Engine<'a, H> {
    host: H,
    pace: Pace,
    start: Time,
    network: Layers,
    desk: Desk<'a>,
    /// What was read and has yet to enter: when it came, and its number in the pool.
    arrivals: Vec<(Time, u32)>,
    buffer: Vec<u8>,
    /// The network never goes back in time.
    latest: Time,
    late: Histogram<u64>,
    gaps: u64,
}

/// What is left of an engine.
pub struct Ended<H> {
    /// Whose it was.
    pub host: H,
    /// The network as it was last.
    pub network: Layers,
    /// Set against delivered.
    pub accounts: Accounts,
    /// What said when packets came in.
    pub stamps: &'static str,
    /// What the loop tells about itself.
    pub own: RealSelf,
    /// Its processor time.
    pub cpu_ns: Time,
    /// What went wrong with a capture, in words.
    pub untaped: Option<String>,
    /// The services that its ports told apart.
    pub services: Vec<Service>,
    /// Datagrams of each UDP door that came back, because nobody listens at its target.
    pub refused: Vec<u64>,
}

impl<'a, H: EngineHost> Engine<'a, H> {
    /// Between ports, with a network. Run time is 0 at `start` (CLOCK_MONOTONIC).
    pub fn new(
        host: H,
        ports: Box<dyn Ports + 'a>,
        network: Layers,
        accounts: Accounts,
        start: Time,
        pace: Pace,
    ) -> Self {
        let (clock, pool) = (RunClock::new(start), Pool::default());
        Self {
            host,
            pace,
            start,
            network,
            desk: Desk { ports, clock, start, pool, accounts, repairs: Repairs::default(), tape: None },
            arrivals: Vec::with_capacity(BATCH),
            buffer: vec![0; MAX_DATAGRAM],
            latest: 0,
            late: histogram(),
            gaps: 0,
        }
    }

    /// With a capture of all that comes and goes.
    pub fn taped(mut self, tape: Option<Tape>) -> Self {
        self.desk.tape = tape;
        self
    }

    /// Runs as long as its host goes on.
    pub fn run(mut self) -> Ended<H> {
        let (mut waiter, mut ports) = self.waiter();
        // What is there now is what is locked in memory.
        let mut privileges = privileges(self.pace.realtime);
        let _awake = awake(self.pace.realtime, &mut privileges);
        let processor = thread_cpu_ns();
        self.network.start(self.start);
        // Nobody reads a port before the start: what lies there would end every wait.
        let mut clock = Waiter::new(&[], self.pace.waiting, self.pace.spin_ns);
        while self.desk.clock.now() < 0 && self.host.goes_on(0, &self.network) {
            clock.wait(self.start);
        }
        while self.host.goes_on(self.desk.clock.now(), &self.network) {
            let due = self.network.poll_timeout().min(self.host.next());
            waiter.wait(due.saturating_add(self.start));
            // What came until now is read before the network moves on to now.
            let now = self.desk.clock.now();
            waiter.ready().filter(|port| *port < ports).for_each(|port| self.receive(port));
            self.network.listen();
            self.enter();
            if due <= now {
                self.woke(now, now - due);
            }
            self.advance(now);
            if self.host_acts(now) {
                // What a foreign network told before it answered wakes nobody any more.
                self.network.listen();
                self.advance(now);
            }
            self.attack(now);
            if self.desk.ports.changed(now) {
                (waiter, ports) = self.waiter();
            }
        }
        self.end(privileges, thread_cpu_ns() - processor)
    }

    /// Waits for ports, whose number is told, and for the network.
    fn waiter(&self) -> (Waiter, usize) {
        let mut all = self.desk.ports.descriptors();
        let ports = all.len();
        all.extend(self.network.descriptor());
        (Waiter::new(&all, self.pace.waiting, self.pace.spin_ns), ports)
    }

    fn woke(&mut self, now: Time, late: Time) {
        let _ = self.late.record(late as u64);
        if late > GAP_NS {
            self.gaps += 1;
            self.host.gap(now, late);
        }
    }

    fn host_acts(&mut self, now: Time) -> bool {
        let Self { host, network, desk, latest, .. } = self;
        let Desk { ports, accounts, .. } = desk;
        let (services, clients) = (ports.services(), ports.clients());
        host.act(Between { now, latest: *latest, network, accounts, services, clients })
    }

    fn receive(&mut self, port: usize) {
        for _ in 0..BATCH {
            match self.desk.ports.receive(port, &mut self.desk.clock, &mut self.buffer) {
                Taken::Empty => return,
                Taken::Stranger => {}
                Taken::Packet(e) => {
                    let in_flight = self.desk.post(e, &self.buffer[..e.len]);
                    self.arrivals.push((e.arrived, in_flight));
                }
            }
        }
    }

    /// Lets what was read into the network, in the order in which it came.
    fn enter(&mut self) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        arrivals.sort_by_key(|(arrived, _)| *arrived);
        for (arrived, payload) in arrivals.drain(..) {
            self.advance(arrived);
            let in_flight = &mut self.desk.pool.all[payload as usize];
            self.host.entered(&in_flight.datagram, &mut in_flight.bytes);
            let from = in_flight.datagram.from;
            self.send(from, payload);
        }
        self.arrivals = arrivals;
    }

    /// Lets a packet into the network at a vertex.
    fn send(&mut self, at: VertexId, payload: u32) {
        let in_flight = &mut self.desk.pool.all[payload as usize];
        in_flight.at = self.latest;
        let Datagram { to: dst, class, index, dscp, ecn, wire_bytes, arrived: sent_ns, .. } =
            in_flight.datagram;
        let packet = Packet { payload, class, index, dst, dscp, ecn, wire_bytes, sent_ns };
        self.network.send(self.latest, at, packet);
    }

    /// Lets what an attacker sends into the network.
    fn attack(&mut self, now: Time) {
        while let Some((at, datagram, bytes)) = self.host.shot(now) {
            self.advance(now);
            let payload = self.desk.post(datagram, &bytes);
            self.send(at, payload);
        }
    }

    fn advance(&mut self, until: Time) {
        let Self { host, network, desk, latest, .. } = self;
        *latest = until.max(*latest);
        network.advance(*latest, |event| desk.take(event, host));
        while let Some(passage) = network.poll_passage() {
            host.passed(&passage);
        }
    }

    fn end(self, privileges: Vec<String>, cpu_ns: Time) -> Ended<H> {
        let Desk { ports, accounts, clock, tape, .. } = self.desk;
        let troubles = ports.troubles();
        let own = RealSelf {
            ticks: self.late.len(),
            late_ns: Spread::of(&self.late),
            gaps_over_1ms: self.gaps,
            socket_drops: troubles.dropped,
            unsent: accounts.unsent(),
            strangers: troubles.strangers,
            unread: troubles.unread,
            clock_steps: clock.steps(),
            waiting: format!("{:?}", self.pace.waiting).to_lowercase(),
            privileges,
            ..RealSelf::default()
        };
        let services = ports.services().to_vec();
        let (stamps, untaped) = (ports.stamps(), tape.and_then(Tape::finish));
        Ended {
            host: self.host,
            network: self.network,
            accounts,
            stamps,
            own,
            cpu_ns,
            untaped,
            services,
            refused: troubles.refused,
        }
    }
}

/// Where packets come from and go to, and what is kept of them meanwhile.
struct Desk<'a> {
    ports: Box<dyn Ports + 'a>,
    clock: RunClock,
    start: Time,
    pool: Pool,
    accounts: Accounts,
    repairs: Repairs,
    tape: Option<Tape>,
}

impl Desk<'_> {
    /// Keeps a packet that came in.
    fn post(&mut self, datagram: Datagram, bytes: &[u8]) -> u32 {
        let counted = self.accounts.of(&datagram);
        let payload_bytes = self.ports.payload_bytes(&datagram);
        self.accounts.note(counted, |account| account.came(payload_bytes));
        if let Some(tape) = &mut self.tape {
            self.ports.tape(tape, self.start + datagram.arrived, &datagram, bytes, Seen::Coming);
        }
        self.pool.keep(datagram, counted, bytes)
    }

    /// Does what the network says.
    fn take(&mut self, event: NetEvent, host: &mut impl EngineHost) {
        let packet = match event {
            NetEvent::Duplicated { packet, .. } => {
                let in_flight = &mut self.pool.all[packet.payload as usize];
                in_flight.copies += 1;
                self.accounts.note(in_flight.counted, Account::copied);
                return;
            }
            NetEvent::Dropped { at, packet, link, reason } => {
                let in_flight = &self.pool.all[packet.payload as usize];
                self.accounts.note(in_flight.counted, |account| account.lost(reason));
                in_flight.datagram.segment.iter().for_each(|bytes| self.repairs.lost(bytes, at));
                host.dropped(at, &packet, link, reason);
                packet
            }
            NetEvent::Arrived { at, packet, spent } => {
                let sent = self.deliver(at, &packet);
                let in_flight = &self.pool.all[packet.payload as usize];
                host.arrived(&in_flight.datagram, &Transit { entered: in_flight.at, left: at, sent, spent });
                packet
            }
        };
        self.pool.let_go(packet.payload);
    }

    /// Hands a packet on; when it had gone out, if the kernel took it.
    fn deliver(&mut self, at: Time, packet: &Packet) -> Option<Time> {
        let in_flight = &mut self.pool.all[packet.payload as usize];
        if in_flight.datagram.ecn != packet.ecn {
            in_flight.datagram.ecn = packet.ecn;
            self.ports.mark(&mut in_flight.bytes);
        }
        let e = &in_flight.datagram;
        let sent = self.ports.deliver(e, &in_flight.bytes).then(|| self.clock.now());
        let delivery = Delivery {
            arrived: e.arrived,
            entered: in_flight.at,
            set: at,
            sent,
            bytes: self.ports.payload_bytes(e),
            rated_bytes: e.rated_bytes,
            wire_bytes: e.wire_bytes,
        };
        self.accounts.note(in_flight.counted, |account| account.left(delivery));
        let waited = sent.zip(e.segment.as_ref()).and_then(|(at, bytes)| self.repairs.came(bytes, at));
        waited
            .into_iter()
            .for_each(|ns| self.accounts.note(in_flight.counted, |account| account.repaired(ns)));
        if let (Some(sent), Some(tape)) = (sent, &mut self.tape) {
            self.ports.tape(tape, self.start + sent, e, &in_flight.bytes, Seen::Leaving);
        }
        sent
    }
}

/// Packets in flight, by number; the memory of those that are through is used again.
#[derive(Default)]
struct Pool {
    all: Vec<InFlight>,
    free: Vec<u32>,
}

/// A packet in flight.
#[derive(Default)]
struct InFlight {
    datagram: Datagram,
    /// When it entered the network, which never goes back in time: at its arrival or later.
    at: Time,
    counted: Counted,
    bytes: Vec<u8>,
    /// Copies that the network has made of it and that are in flight.
    copies: u16,
}

impl Pool {
    fn keep(&mut self, datagram: Datagram, counted: Counted, bytes: &[u8]) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.all.push(InFlight::default());
            self.all.len() as u32 - 1
        });
        let in_flight = &mut self.all[id as usize];
        (in_flight.datagram, in_flight.counted, in_flight.copies) = (datagram, counted, 0);
        in_flight.bytes.clear();
        in_flight.bytes.extend_from_slice(bytes);
        id
    }

    fn let_go(&mut self, id: u32) {
        let in_flight = &mut self.all[id as usize];
        match in_flight.copies.checked_sub(1) {
            Some(left) => in_flight.copies = left,
            None => self.free.push(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        background::BusyNetwork,
        carrier::Carrier,
        emu::{opposite, DoorKind, DoorPlan, UdpDoors, FAR, NEAR},
        os::clock::monotonic_ns,
    };
    use std::net::UdpSocket;
    use tcps_core::time::MS;

    struct Short;

    impl EngineHost for Short {
        fn goes_on(&mut self, now: Time, _: &Layers) -> bool {
            now < 10 * MS
        }

        fn act(&mut self, _: Between<'_>) -> bool {
            false
        }
    }

    #[test]
    fn what_comes_before_the_start_waits_and_keeps_no_core_busy() {
        let target = UdpSocket::bind("127.0.0.1:0").unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let plan =
            DoorPlan { name: "a".into(), kind: DoorKind::Udp, listen, target: target.local_addr().unwrap() };
        let doors = UdpDoors::bind(&[&plan]).unwrap();
        target.send_to(b"early", doors.addresses().unwrap()[0]).unwrap();
        let link = |name: &str, from| serde_json::json!({"name": name, "from": from, "to": opposite(from)});
        let spec = serde_json::json!({"vertices": ["near", "far"], "links": [link("there", NEAR), link("back", FAR)]});
        let network = BusyNetwork::of(
            &serde_json::from_value(spec).unwrap(),
            &["a".into()],
            1,
            &mut crate::assets::Disk,
        )
        .unwrap();
        let layers = Layers::new(Carrier::Built(Box::new(network)));
        let (accounts, start) = (Accounts::new([(0, NEAR, FAR)], true), monotonic_ns() + 400 * MS);
        let pace = Pace { waiting: Waiting::Timer, spin_ns: 0, realtime: false };
        let ended = Engine::new(Short, Box::new(doors), layers, accounts, start, pace).run();
        assert!(ended.cpu_ns < 100 * MS, "{} ns", ended.cpu_ns);
        let delivered = ended.accounts.iter().map(|(_, account)| account.told(true).delivered);
        assert_eq!(delivered.collect::<Vec<_>>(), [1]);
    }
}
