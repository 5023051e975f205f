//! Everything around the nodes of a virtual run: network, cores, recorder, and the datagrams on their way.

use super::ledger::{Ledger, Way};
use crate::{
    boundary::Boundary,
    carrier::Carrier,
    cpu::Cpu,
    network_rows,
    pcapng::{Capture, Datagram},
    recorder::Recorder,
};
use std::{collections::VecDeque, path::Path};
use tcps_core::{
    endpoint::Transmit,
    record::{DropReason, Record, NONE},
    sample::Meta,
    split::Parts,
    time::Time,
};
use tcps_net::{Packet, Spent};
use tcps_node::{
    outside::{Outside, Started, Work},
    rounds::Rounds,
};
use tcps_plan::net::ASIDE_CLASS;
use tcps_plan::{Plan, RunError, OVERHEAD_BYTES};

/// A datagram on its way.
#[derive(Debug, Default)]
pub(super) struct Letter {
    pub from: u16,
    /// Channel, or `NONE` for an aside.
    pub channel: u16,
    pub bytes: Vec<u8>,
    pub copies: u16,
    /// The flow that it was sent for, and the (first) sample in it.
    pub flow: u16,
    pub index: u32,
    /// When it was sent, and when it entered the network.
    pub sent: Time,
    pub entered: Time,
    pub spent: Option<Spent>,
}

impl Letter {
    /// Its way, if it had arrived in the socket and was taken at these moments.
    pub fn way(&self, arrived: Time, taken: Time) -> Way {
        Way { sent: self.sent, entered: self.entered, arrived, taken, spent: self.spent }
    }
}

/// Everything around the nodes.
pub(super) struct World {
    pub network: Carrier,
    linked: bool,
    /// Datagrams that need no network: to whom, and the letter.
    pub direct: VecDeque<(u16, u32)>,
    pub letters: Vec<Letter>,
    free: Vec<u32>,
    pub cpus: Vec<Cpu>,
    /// When a job or a turn ends at each of them.
    pub cores: Rounds,
    pub recorder: Recorder,
    pub capture: Option<Capture>,
    pub boundary: Boundary,
    /// The node that is at work.
    pub at: u16,
    /// Where the time of samples went, and the datagram that a node is working on.
    pub ledger: Ledger,
    pub received: Option<(u32, Time)>,
    /// Whether that has completed its sample.
    pub completed: bool,
}

impl World {
    /// An empty one around the nodes of a plan, that records into `records` and captures into `pcapng`.
    pub fn new(
        plan: &Plan,
        network: Carrier,
        records: Option<&Path>,
        pcapng: Option<&Path>,
    ) -> Result<Self, RunError> {
        Ok(Self {
            network,
            linked: !plan.network.links.is_empty(),
            direct: VecDeque::new(),
            letters: Vec::new(),
            free: Vec::new(),
            cpus: plan.nodes.iter().map(|n| Cpu::new(n.cores, n.scheduling)).collect(),
            cores: Rounds::new(plan.nodes.len()),
            recorder: Recorder::new(records)?,
            capture: pcapng.map(|p| Capture::create(p, plan)).transpose()?,
            boundary: Boundary::new(plan),
            at: NONE,
            ledger: Ledger::new(plan.flows.len()),
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

    fn post(&mut self, now: Time, channel: u16, datagram: &Transmit, bytes: &[u8]) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.letters.push(Letter::default());
            self.letters.len() as u32 - 1
        });
        let letter = &mut self.letters[id as usize];
        (letter.from, letter.channel, letter.copies) = (self.at, channel, 0);
        (letter.flow, letter.index) = (datagram.flow, datagram.index);
        letter.sent = now;
        letter.bytes.clear();
        letter.bytes.extend_from_slice(bytes);
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
        self.letters[packet.payload as usize].entered = now;
        if !self.linked {
            self.passed(packet.payload, Spent::default());
            self.direct.push_back((packet.dst, packet.payload));
            return now;
        }
        self.network.send(now, self.at, packet)
    }

    /// A packet has passed the network.
    pub fn passed(&mut self, letter: u32, spent: Spent) {
        let known = matches!(self.network, Carrier::Built(_));
        self.letters[letter as usize].spent = known.then_some(spent);
    }

    /// A packet is gone.
    pub fn drop_packet(&mut self, at: Time, packet: &Packet, link: u16, reason: DropReason) {
        network_rows::dropped(at, packet, link, reason).iter().for_each(|row| self.recorder.push(row));
        self.let_go(packet.payload);
    }

    /// One copy of a letter is done with.
    pub fn let_go(&mut self, letter: u32) {
        let l = &mut self.letters[letter as usize];
        match l.copies.checked_sub(1) {
            Some(left) => l.copies = left,
            None => self.free.push(letter),
        }
    }
}

impl Outside for World {
    fn transmit(
        &mut self,
        now: Time,
        channel: u16,
        to: u16,
        dscp: u8,
        bytes: &[u8],
        datagram: &Transmit,
    ) -> Time {
        let letter = self.post(now, channel, datagram, bytes);
        if let Some(capture) = &mut self.capture {
            capture.packet(now, &Datagram { from: self.at, to, channel, dscp, bytes });
        }
        self.send(
            now,
            Packet {
                payload: letter,
                class: datagram.flow,
                index: datagram.index,
                dst: to,
                dscp,
                wire_bytes: datagram.wire_bytes,
                sent_ns: now,
            },
        )
    }

    fn aside(&mut self, now: Time, to: u16, bytes: &[u8]) {
        let (class, index, dscp) = (ASIDE_CLASS, 0, 0);
        let wire_bytes = bytes.len() as u32 + OVERHEAD_BYTES;
        let letter = self.post(now, NONE, &Transmit { wire_bytes, flow: class, index }, bytes);
        if let Some(capture) = &mut self.capture {
            capture.packet(now, &Datagram { from: self.at, to, channel: NONE, dscp: 0, bytes });
        }
        self.send(now, Packet { payload: letter, class, index, dst: to, dscp, wire_bytes, sent_ns: now });
    }

    fn record(&mut self, row: Record) {
        self.recorder.push(&row);
    }

    fn hand_over(&mut self, channel: u16, meta: &Meta, parts: &Parts) {
        self.ledger.hand_over(channel, meta, parts);
    }

    fn take_over(&mut self, now: Time, channel: u16, meta: &Meta, at_once: bool, parts: &mut Parts) {
        let received =
            self.received.filter(|_| at_once).map(|(l, arrived)| (&self.letters[l as usize], arrived));
        self.completed |= received.is_some_and(|(l, _)| (l.flow, l.index) == (meta.flow, meta.index));
        let way = || received.map(|(letter, arrived)| letter.way(arrived, now));
        self.ledger.take_over(now, channel, meta, way, parts);
    }

    fn has_come(&mut self, flow: u16, parts: &Parts, clock: Time) {
        self.ledger.has_come(flow, parts, clock);
    }

    fn work(&mut self, started: Started, job: u32, cost: Time, priority: i32) -> Work {
        let cpu = &mut self.cpus[self.at as usize];
        cpu.submit(started.at, job, cost, priority);
        self.cores.set(self.at as usize, cpu.poll_timeout());
        Work::Later
    }

    fn start(&mut self, now: Time) -> Started {
        Started { at: now, processor: 0 }
    }

    fn used(&mut self, _started: Started) -> Time {
        0
    }
}
