//! What an engine records of its network and lets happen to it: of a scenario between real nodes, and of a proxy.

mod transits;

use crate::{
    attack::{self, Attacker, Passing, UNKNOWN},
    carrier::Carrier,
    emu::{Between, Carries, Datagram, Layers, Transit},
    events::{asked, Events, Steered},
    network_rows,
    os::ring::Producer,
};
use serde_json::Value;
use std::{borrow::Cow, collections::BTreeMap, path::Path};
use tcps_core::{
    endpoint::Ecn,
    ids::{ChannelId, ComponentId, FlowId, LinkId, NodeId, VertexId},
    record::{DropReason, Kind, Record},
    sample::PointId,
    time::{Time, NEVER},
};
use tcps_net::{Packet, Passage};
use tcps_plan::{
    net::ASIDE_CLASS,
    report::{NodeSelf, RealSelf, Report},
    Action, EventPlan, Plan, RunError,
};
use transits::Transits;

/// Room of a ring, which is emptied twenty times a second.
const RING_ROWS: u64 = 1 << 15;

/// Makes a ring for rows.
pub fn ring(path: &Path) -> Result<Producer, RunError> {
    Producer::create(path, RING_ROWS)
}

/// The rows of a network on the machine's clock, its events, and sums of where time went.
pub struct Recording<'a> {
    plan: Cow<'a, Plan>,
    ring: Producer,
    events: Events,
    probe_at: Time,
    transits: Transits,
    /// Absent where it could not read what passes.
    attacker: Option<Attacker>,
    /// The newest datagram of each channel and sender that it heard.
    heard: BTreeMap<(ChannelId, NodeId), Datagram>,
    /// What failed, in words.
    pub errors: Vec<String>,
}

impl<'a> Recording<'a> {
    /// Of a plan, with rows in a ring; queues are sampled from a moment on.
    pub fn new(plan: Cow<'a, Plan>, ring: Producer, probes_from: Time) -> Self {
        let probe_at = plan.queue_probe_ns.map_or(NEVER, |_| probes_from);
        let (events, transits) = (Events::new(&plan), Transits::new(&plan));
        let (heard, errors) = (BTreeMap::new(), Vec::new());
        Self { plan, ring, events, probe_at, transits, attacker: None, heard, errors }
    }

    /// With somebody who attacks.
    pub fn attacked(self, attacker: Option<Attacker>) -> Self {
        Self { attacker, ..self }
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Says that the loop runs.
    pub fn beat(&self) {
        self.ring.beat();
    }

    /// Adds a row.
    pub fn push(&mut self, row: &Record) {
        self.ring.push(row);
    }

    /// The network's number comes after those of the nodes.
    pub fn own_number(&self) -> NodeId {
        NodeId(self.plan.nodes.len() as u16)
    }

    /// Takes an event that is asked for.
    pub fn ask(&mut self, now: Time, line: &Value) {
        match asked(&self.plan, None, line) {
            Ok((number, event)) => self.events.take(now, Steered { number, event, noted: true }),
            Err(e) => self.errors.push(e.to_string()),
        }
    }

    /// When it has something to do.
    pub fn next(&self) -> Time {
        self.events.next().min(self.probe_at).min(self.attacker.as_ref().map_or(NEVER, Attacker::next))
    }

    /// Does what is due; whether it touched the network.
    pub fn act(&mut self, b: &mut Between<'_>) -> bool {
        if self.next() > b.now {
            return false;
        }
        while let Some(number) = self.events.due(b.now) {
            let event = self.plan.events[number].clone();
            self.apply(number as u32, &event, b);
        }
        while let Some(s) = self.events.steered(b.now) {
            self.apply(s.number, &s.event, b);
        }
        if self.probe_at <= b.now {
            self.probe_queues(b.now, b.network.present());
        }
        true
    }

    fn apply(&mut self, number: u32, event: &EventPlan, b: &mut Between<'_>) {
        let stopped = b.network.has_stopped();
        let network = b.network.present();
        match &event.action {
            Action::Link(change) => {
                for link in &change.links {
                    if let Err(e) = network.change_link(b.latest, *link, change) {
                        self.errors.push(format!("events.{}: {e}", event.name));
                    }
                }
            }
            Action::Reroute => network.reroute(b.latest),
            Action::Traffic { traffic, running } => {
                traffic.iter().for_each(|t| network.set_traffic(b.latest, *t, *running && !stopped));
            }
            Action::Attack(attack) => {
                let (event, route) = ((number, event.name.as_str()), |from, to| network.route(from, to));
                let begun = match &mut self.attacker {
                    Some(attacker) => attacker.begin(b.now, &self.plan, event, attack, &route),
                    None => Err(attack::refused(event.1)),
                };
                self.errors.extend(begun.err().map(|e| e.to_string()));
            }
            Action::Flow { .. } | Action::Component { .. } | Action::Clock { .. } => {}
        }
        self.happened(b.now, number);
    }

    /// An event of this number took place.
    pub fn happened(&mut self, now: Time, number: u32) {
        self.ring.push(&Record { index: number, ..Record::new(now, Kind::Event) });
    }

    fn probe_queues(&mut self, now: Time, network: &mut Carrier) {
        for link in network_rows::queued_links(&self.plan) {
            let found = network.queue(now, link);
            self.ring.push(&network_rows::queue(now, link, found));
        }
        let period = self.plan.queue_probe_ns.unwrap_or(NEVER).max(1);
        self.probe_at += period * ((now - self.probe_at) / period + 1);
    }

    /// A datagram enters the network.
    pub fn entered(&mut self, datagram: &Datagram, bytes: &mut [u8]) {
        let Some(attacker) = self.attacker.as_mut().filter(|a| !a.is_idle()) else { return };
        let Datagram { arrived, wire_bytes, dscp, .. } = *datagram;
        let (from, to) = (NodeId(datagram.from.0), NodeId(datagram.to.0));
        // Others may carry a sample more than once: its number does not tell which datagram brought it.
        let plain = datagram.channel.map(|c| &self.plan.channels[c]);
        let once = plain.is_some_and(|c| c.security.is_none() && c.transport == "udp");
        let (flow, index) = match datagram.carries {
            Carries::Flow(flow) => (flow, if once { datagram.index } else { UNKNOWN }),
            _ => (FlowId::NONE, UNKNOWN),
        };
        let channel = datagram.channel.unwrap_or(ChannelId::NONE);
        self.heard.insert((channel, from), *datagram);
        attacker.hear(arrived, &Passing { from, to, channel, flow, index, wire_bytes, dscp }, bytes);
        while let Some(row) = attacker.poll_row() {
            self.ring.push(&row);
        }
    }

    /// What an attacker sends now, and where; nothing before it has heard where such datagrams go.
    pub fn shot(&mut self, now: Time) -> Option<(VertexId, Datagram, Vec<u8>)> {
        loop {
            let shot = self.attacker.as_mut()?.poll_shot(now)?;
            let Passing { from, channel, wire_bytes, dscp, .. } = shot.passing;
            let Some(heard) = self.heard.get(&(channel, from)) else { continue };
            self.ring.push(&shot.row);
            let (class, index, ecn, carries) = (ASIDE_CLASS, 0, Ecn::NotCapable, Carries::Nothing);
            let (arrived, len, rated_bytes) = (now, shot.bytes.len(), wire_bytes);
            let sizes = Datagram { len, wire_bytes, rated_bytes, ..*heard };
            return Some((
                shot.at,
                Datagram { arrived, class, index, dscp, ecn, carries, ..sizes },
                shot.bytes,
            ));
        }
    }

    /// The network has dropped a packet.
    pub fn dropped(&mut self, at: Time, packet: &Packet, link: LinkId, reason: DropReason) {
        let row = network_rows::dropped(at, packet, link, reason);
        row.iter().for_each(|row| self.ring.push(row));
    }

    /// The network let a datagram out.
    pub fn arrived(&mut self, datagram: &Datagram, transit: &Transit) {
        self.transits.add(datagram, transit);
    }

    /// A link took a packet.
    pub fn passed(&mut self, passage: &Passage) {
        network_rows::hop(passage).iter().for_each(|row| self.ring.push(row));
    }

    /// The engine has stalled.
    pub fn gap(&mut self, now: Time, late: Time) {
        self.ring.push(&Record { value: late, node: self.own_number(), ..Record::new(now, Kind::Gap) });
    }

    /// What is told at the end of links that it `carries`, of background traffic, and of where time went.
    pub fn report(self, network: &mut Layers, carries: impl Fn(LinkId) -> bool) -> Report {
        let mut report = Report { errors: self.errors, ..Report::default() };
        let (links, traffic) = network.accounts();
        let carried = (0..).map(LinkId).zip(links).filter(|(number, _)| carries(*number));
        report.accounts(carried.map(|(_, link)| link).collect(), traffic);
        let hops = network.hops();
        // A foreign network tells nothing.
        if !hops.is_empty() {
            report.hops(&self.plan, &hops);
            report.legs(&self.plan, &self.transits.finish());
        }
        report
    }

    /// The loop as one of the nodes that tell about themselves.
    pub fn itself(&self, own: RealSelf, cpu_ns: Time) -> NodeSelf {
        NodeSelf {
            name: "emulator".into(),
            cores: 1,
            busy_s: cpu_ns as f64 / 1e9,
            real: Some(RealSelf { ring_overflows: self.ring.lost(), ..own }),
            ..NodeSelf::default()
        }
    }
}

/// A packet of a program that is not ours, as a sample of a flow between two vertices, each with one component.
#[derive(Debug, Clone, Copy)]
pub struct Foreign {
    /// The flow.
    pub flow: FlowId,
    /// Its number in the flow.
    pub index: u32,
    /// Its bytes, without headers.
    pub bytes: u32,
    /// Vertices, which are components and nodes too.
    pub ends: [VertexId; 2],
    /// When it came in.
    pub came: Time,
}

impl Foreign {
    /// The row that says that it came in.
    pub fn sent(&self) -> Record {
        let VertexId(from) = self.ends[0];
        self.row(self.came, Kind::Sent, PointId::exit(ComponentId(from)), NodeId(from), self.came)
    }

    /// The row that says that it was handed on.
    pub fn delivered(&self, at: Time) -> Record {
        let VertexId(to) = self.ends[1];
        self.row(at, Kind::Delivered, PointId::entry(ComponentId(to)), NodeId(to), at - self.came)
    }

    fn row(&self, at: Time, kind: Kind, point: PointId, node: NodeId, value: i64) -> Record {
        let (flow, index, size) = (self.flow, self.index, self.bytes);
        Record { value, index, size, flow, point: point.0, node, ..Record::new(at, kind) }
    }
}
