//! Everything around the nodes of a virtual run: network, cores, recorder, and the datagrams in flight.

use super::ledger::{Ledger, Transit};
use crate::{
    attack::{Attacker, Passing, Shot},
    boundary::Boundary,
    carrier::Carrier,
    cpu::Cpu,
    network_rows,
    pcapng::{Capture, Datagram},
    recorder::Recorder,
};
use std::{collections::VecDeque, path::Path};
use tcps_core::{
    endpoint::{Again, Ecn, Transmit},
    ids::{ChannelId, FlowId, LinkId, NodeId, NONE},
    record::{DropReason, Record},
    sample::Meta,
    split::Parts,
    time::{NodeClock, Time},
};
use tcps_net::{Packet, Spent};
use tcps_node::{
    host::{Host, Spare, Started, Work},
    rounds::Rounds,
};
use tcps_plan::net::ASIDE_CLASS;
use tcps_plan::{
    attack::{is_forged, ACCEPTED, FOLLOWED, SENT},
    Level, Plan, RunError, OVERHEAD_BYTES,
};

/// Attackers' datagrams that were received and are remembered: more do not wait in an endpoint.
const MOST_ATTACKED: usize = 1 << 12;

/// A datagram in flight.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    pub from: NodeId,
    /// Channel, or `NONE` for an aside.
    pub channel: ChannelId,
    pub bytes: Vec<u8>,
    pub copies: u16,
    /// The flow that it was sent for, and the (first) sample in it.
    pub flow: FlowId,
    pub index: u32,
    pub again: Again,
    /// When it was sent, and when it entered the network.
    pub sent: Time,
    pub entered: Time,
    pub spent: Option<Spent>,
    /// What its IP header says of congestion.
    pub ecn: Ecn,
    /// The row of the attacker who sent or changed it.
    pub attack: Option<Record>,
}

impl InFlight {
    /// Its transit, if it had arrived in the socket and was taken at these moments.
    pub fn transit(&self, arrived: Time, taken: Time) -> Transit {
        let Self { sent, index, again, entered, spent, .. } = *self;
        Transit { sent, index, again, entered, arrived, taken, spent }
    }
}

/// Everything around the nodes.
pub(super) struct SimHost {
    pub network: Carrier,
    linked: bool,
    tells_packets: bool,
    /// Datagrams that need no network: to whom, and their number.
    pub direct: VecDeque<(NodeId, u32)>,
    pub flights: Vec<InFlight>,
    free: Vec<u32>,
    pub cpus: Vec<Cpu>,
    /// When a job or a turn ends at each of them.
    pub cores: Rounds,
    pub recorder: Recorder,
    pub capture: Option<Capture>,
    pub boundary: Boundary,
    pub attacker: Attacker,
    /// Clocks of nodes, without steps.
    clocks: Vec<NodeClock>,
    /// Datagrams that an attacker sent or changed and that were received: when, by the clock of their node.
    attacked: VecDeque<(ChannelId, Time, Record)>,
    spare: Spare,
    /// The node that is at work.
    pub at: NodeId,
    /// Where the time of samples went, and the datagram that a node is working on.
    pub ledger: Ledger,
    warmup_ns: Time,
    pub received: Option<(u32, Time)>,
    /// Whether that has completed its sample.
    pub completed: bool,
}

impl SimHost {
    /// An empty one around the nodes of a plan, that records into `records` and captures into `pcapng`.
    pub fn new(
        plan: &Plan,
        network: Carrier,
        records: Option<&Path>,
        pcapng: Option<&Path>,
    ) -> Result<Self, RunError> {
        let attacker = Attacker::new(plan, &|from, to| network.route(from, to))?;
        Ok(Self {
            attacker,
            clocks: plan.nodes.iter().map(|n| n.clock).collect(),
            attacked: VecDeque::new(),
            network,
            tells_packets: plan.records >= Level::Packets,
            linked: !plan.network.links.is_empty(),
            direct: VecDeque::new(),
            flights: Vec::new(),
            free: Vec::new(),
            cpus: plan.nodes.iter().map(|n| Cpu::new(n.cores, n.scheduling)).collect(),
            cores: Rounds::new(plan.nodes.len()),
            recorder: Recorder::new(records)?,
            capture: pcapng.map(|p| Capture::create(p, plan)).transpose()?,
            boundary: Boundary::new(plan),
            spare: Spare::default(),
            at: NodeId::NONE,
            ledger: Ledger::new(plan.flows.len(), plan.followed()),
            warmup_ns: plan.warmup_ns,
            received: None,
            completed: false,
        })
    }

    /// A run whose rows or packets are lost, or whose network ended, has no use: `finish` says why.
    pub fn cannot_write(&self) -> bool {
        self.recorder.failed()
            || self.capture.as_ref().is_some_and(Capture::failed)
            || self.network.failure().is_some()
    }

    fn post(&mut self, now: Time, channel: ChannelId, datagram: &Transmit, bytes: &[u8]) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.flights.push(InFlight::default());
            self.flights.len() as u32 - 1
        });
        let flight = &mut self.flights[id as usize];
        (flight.from, flight.channel, flight.copies) = (self.at, channel, 0);
        (flight.flow, flight.index, flight.again) = (datagram.flow, datagram.index, datagram.again);
        (flight.sent, flight.ecn, flight.attack) = (now, datagram.ecn, None);
        flight.bytes.clear();
        flight.bytes.extend_from_slice(bytes);
        id
    }

    /// Lets a packet into the network; tells when the first link, or a send call of measured length, has taken it.
    fn send(&mut self, now: Time, packet: Packet) -> Time {
        match self.boundary.leaves(now, self.at, &packet) {
            Some(taken) => taken,
            None => self.enter(now, packet),
        }
    }

    /// Lets a packet into the network; tells when the first link has taken it.
    pub fn enter(&mut self, now: Time, packet: Packet) -> Time {
        self.flights[packet.payload as usize].entered = now;
        if !self.attacker.is_idle() {
            self.hear(now, &packet);
        }
        if !self.linked {
            self.passed(&packet, Spent::default());
            self.direct.push_back((NodeId(packet.dst.0), packet.payload));
            return now;
        }
        self.network.send(now, self.at.into(), packet)
    }

    #[cold]
    fn hear(&mut self, now: Time, packet: &Packet) {
        let InFlight { channel, flow, bytes, attack, .. } = &mut self.flights[packet.payload as usize];
        let Packet { index, wire_bytes, dscp, .. } = *packet;
        let (from, to, flow) = (self.at, NodeId(packet.dst.0), *flow);
        let passing = Passing { from, to, channel: *channel, flow, index, wire_bytes, dscp };
        self.attacker.hear(now, &passing, bytes);
        while let Some(row) = self.attacker.poll_row() {
            let row = followed(row);
            *attack = (row.detail == FOLLOWED).then_some(row);
            self.recorder.push(&row);
        }
    }

    /// A datagram that an attacker sent or changed has been received.
    #[cold]
    pub fn receive_attack(&mut self, channel: ChannelId, arrived: Time, row: Record) {
        if self.attacked.len() == MOST_ATTACKED {
            self.attacked.pop_front();
        }
        let clock = self.clocks[row.node.index()];
        self.attacked.push_back((channel, clock.read(arrived), row));
    }

    /// A sample came out of a channel, perhaps with such a datagram.
    #[cold]
    fn accept(&mut self, now: Time, channel: ChannelId, meta: &Meta, received_ns: Time) {
        let is_one = |(c, at, row): &(ChannelId, Time, Record)| {
            *c == channel && *at == received_ns && row.flow == meta.flow && !is_forged(meta.index)
        };
        let Some(at) = self.attacked.iter().rposition(is_one) else { return };
        if let Some((_, _, row)) = self.attacked.remove(at) {
            self.recorder.push(&Record { time_ns: now, index: meta.index, detail: ACCEPTED, ..row });
        }
    }

    /// Lets a datagram of an attacker into the network, where packets of it count as those outside channels.
    pub fn shoot(&mut self, now: Time, shot: &Shot) {
        let Passing { from, to, channel, wire_bytes, dscp, .. } = shot.passing;
        self.at = from;
        let payload = self.post(now, channel, &Transmit::new(wire_bytes, FlowId::NONE, 0), &shot.bytes);
        let (row, flight) = (followed(shot.row), &mut self.flights[payload as usize]);
        (flight.entered, flight.attack) = (now, (row.detail == FOLLOWED).then_some(row));
        let (class, ecn, dst) = (ASIDE_CLASS, Ecn::NotCapable, to.into());
        let packet = Packet { payload, class, index: 0, dst, dscp, ecn, wire_bytes, sent_ns: now };
        self.network.send(now, shot.at, packet);
        self.recorder.push(&row);
    }

    /// A packet has passed the network.
    pub fn passed(&mut self, packet: &Packet, spent: Spent) {
        let known = matches!(self.network, Carrier::Built(_));
        let flight = &mut self.flights[packet.payload as usize];
        (flight.spent, flight.ecn) = (known.then_some(spent), packet.ecn);
    }

    /// A packet is gone.
    pub fn drop_packet(&mut self, at: Time, packet: &Packet, link: LinkId, reason: DropReason) {
        network_rows::dropped(at, packet, link, reason).iter().for_each(|row| self.recorder.push(row));
        let InFlight { channel, flow, index, sent, .. } = self.flights[packet.payload as usize];
        self.ledger.lose(channel, flow, index, sent);
        self.let_go(packet.payload);
    }

    /// Writes the rows of packets that links took, where packets have rows.
    pub fn record_hops(&mut self) {
        if self.tells_packets {
            self.record_passages();
        }
    }

    #[cold]
    fn record_passages(&mut self) {
        while let Some(passage) = self.network.poll_passage() {
            network_rows::hop(&passage).iter().for_each(|row| self.recorder.push(row));
        }
    }

    /// One copy of a datagram is done with.
    pub fn let_go(&mut self, flight: u32) {
        let l = &mut self.flights[flight as usize];
        match l.copies.checked_sub(1) {
            Some(left) => l.copies = left,
            None => self.free.push(flight),
        }
    }
}

/// The row of an attack; of genuine samples it will be told whether they were accepted, while forged ones have numbers that do.
fn followed(row: Record) -> Record {
    Record { detail: if row.point == NONE || is_forged(row.index) { SENT } else { FOLLOWED }, ..row }
}

impl Host for SimHost {
    fn transmit(
        &mut self,
        now: Time,
        channel: ChannelId,
        to: NodeId,
        bytes: &[u8],
        datagram: &Transmit,
    ) -> Time {
        let (dscp, ecn) = (datagram.dscp.unwrap_or_default(), datagram.ecn);
        let flight = self.post(now, channel, datagram, bytes);
        if let Some(capture) = &mut self.capture {
            capture.packet(now, &Datagram { from: self.at, to, channel, dscp, ecn, bytes });
        }
        self.send(
            now,
            Packet {
                payload: flight,
                class: datagram.flow.0,
                index: datagram.index,
                dst: to.into(),
                dscp,
                ecn,
                wire_bytes: datagram.wire_bytes,
                sent_ns: now,
            },
        )
    }

    fn aside(&mut self, now: Time, to: NodeId, bytes: &[u8]) {
        let (class, index, dscp, ecn) = (ASIDE_CLASS, 0, 0, Ecn::NotCapable);
        let wire_bytes = bytes.len() as u32 + OVERHEAD_BYTES;
        let flight = self.post(now, ChannelId::NONE, &Transmit::new(wire_bytes, FlowId(class), index), bytes);
        if let Some(capture) = &mut self.capture {
            capture.packet(now, &Datagram { from: self.at, to, channel: ChannelId::NONE, dscp, ecn, bytes });
        }
        let packet =
            Packet { payload: flight, class, index, dst: to.into(), dscp, ecn, wire_bytes, sent_ns: now };
        self.send(now, packet);
    }

    fn spare(&mut self) -> &mut Spare {
        &mut self.spare
    }

    fn record(&mut self, row: Record) {
        self.recorder.push(&row);
    }

    fn hand_over(&mut self, channel: ChannelId, meta: &Meta, parts: &Parts) {
        self.ledger.hand_over(channel, meta, parts);
    }

    fn delivered(&mut self, now: Time, channel: ChannelId, meta: &Meta, received_ns: Time) {
        if !self.attacked.is_empty() {
            self.accept(now, channel, meta, received_ns);
        }
    }

    fn take_over(&mut self, now: Time, channel: ChannelId, meta: &Meta, at_once: bool, parts: &mut Parts) {
        let received =
            self.received.filter(|_| at_once).map(|(l, arrived)| (&self.flights[l as usize], arrived));
        self.completed |= received.is_some_and(|(l, _)| (l.flow, l.index) == (meta.flow, meta.index));
        let transit = || received.map(|(flight, arrived)| flight.transit(arrived, now));
        self.ledger.take_over(now, channel, meta, transit, parts);
    }

    fn has_come(&mut self, flow: FlowId, parts: &Parts, clock: Time) {
        if parts.made >= self.warmup_ns {
            self.ledger.has_come(flow, parts, clock);
        }
    }

    fn work(&mut self, started: Started, job: u32, cost: Time, priority: i32) -> Work {
        let cpu = &mut self.cpus[self.at];
        cpu.submit(started.at, job, cost, priority);
        self.cores.set(self.at.index(), cpu.poll_timeout());
        Work::Later
    }

    fn start(&mut self, now: Time) -> Started {
        Started { at: now, processor: 0 }
    }

    fn used(&mut self, _started: Started) -> Time {
        0
    }
}
