//! The network with the users of its background traffic over TCP and QUIC.
//!
//! ```text
//!  driver ──► send ──► network ──► poll_event ──► driver
//!                       ▲  └─► packets of users ─┐
//!                       └──────── crowds ◄───────┘   (TCP, QUIC by quinn-proto, at both ends)
//! ```
//! To a driver it looks like the network alone: packets of users stay inside. So both worlds have the same users, and
//! the emulator needs no sockets for them (design: nodes).

mod connection;
mod crowd;
mod flight;
mod quic;
mod tcp;
mod throttle;
mod user;

use crowd::Crowd;
use flight::{Flight, Flights};
use tcps_core::{
    ids::{LinkId, TrafficId, VertexId},
    time::Time,
};
use tcps_net::ForeignCode;
use tcps_net::{NetError, NetEvent, Network, Packet, Passage};
use tcps_plan::net::{traffic_of_class, LinkChange, NetworkSpec, Played, QueueState, TrafficModel};
use tcps_plan::{Level, Plan, RunError};

/// A network, and who uses it besides the scenario's nodes.
pub struct BusyNetwork {
    network: Network,
    crowds: Vec<Crowd>,
    flights: Flights,
    /// Time never goes back.
    latest: Time,
}

impl BusyNetwork {
    /// The network of a plan with its users.
    pub fn new(plan: &Plan, code: &mut dyn ForeignCode) -> Result<Self, RunError> {
        let names: Vec<String> = plan.flows.iter().map(|f| f.name.clone()).collect();
        let mut busy = Self::recorded(&plan.network, &names, plan.seed, plan.records, code)?;
        busy.network.follow(plan.followed());
        Ok(busy)
    }

    /// As `of`; what becomes of single packets is kept if that is recorded.
    pub fn recorded(
        spec: &NetworkSpec,
        names: &[String],
        seed: u64,
        level: Level,
        code: &mut dyn ForeignCode,
    ) -> Result<Self, RunError> {
        let mut busy = Self::of(spec, names, seed, code)?;
        if level >= Level::Packets {
            busy.network.keep_passages();
        }
        Ok(busy)
    }

    /// A network with its users, for flows of these names.
    pub fn of(
        spec: &NetworkSpec,
        names: &[String],
        seed: u64,
        code: &mut dyn ForeignCode,
    ) -> Result<Self, RunError> {
        let network = Network::with(spec, names, seed, code).map_err(RunError::from)?;
        let mut crowds = Vec::new();
        for (i, traffic) in TrafficId::each(&spec.traffic) {
            if let TrafficModel::Played(Played::Users(tcp)) = &traffic.model {
                let rate_bps = tcp.drive.map_or(0.0, |d| spec.links[d.link].rate_bps.unwrap_or(0.0));
                let crowd = Crowd::new(i, traffic, tcp, rate_bps, seed);
                crowds.push(
                    crowd.map_err(|e| {
                        RunError::of(&e, e.fault()).within(format!("traffic.{}", traffic.name))
                    })?,
                );
            }
        }
        Ok(Self { network, crowds, flights: Flights::default(), latest: 0 })
    }

    /// The network itself, for its counters.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// See [`Network::send`].
    pub fn send(&mut self, now: Time, from: VertexId, packet: Packet) -> Time {
        self.network.send(now, from, packet)
    }

    /// When something may happen.
    pub fn poll_timeout(&self) -> Option<Time> {
        let users = self.crowds.iter().filter_map(Crowd::wake_ns);
        users.chain(self.network.poll_timeout()).min()
    }

    /// Does all work that is due at or before `now`, in the network first.
    pub fn handle_timeout(&mut self, now: Time) {
        self.latest = self.latest.max(now);
        self.network.handle_timeout(self.latest);
        for crowd in &mut self.crowds {
            if crowd.wake_ns().is_some_and(|t| t <= now) {
                crowd.act(self.latest, &mut self.network, &mut self.flights);
            }
        }
    }

    /// The next arrival or drop of a packet of the driver's.
    pub fn poll_event(&mut self) -> Option<NetEvent> {
        loop {
            let event = self.network.poll_event()?;
            let (NetEvent::Arrived { packet, .. }
            | NetEvent::Duplicated { packet, .. }
            | NetEvent::Dropped { packet, .. }) = event;
            let Some(traffic) = traffic_of_class(packet.class) else { return Some(event) };
            self.latest = self.latest.max(event.at());
            match event {
                NetEvent::Duplicated { .. } => self.flights.copied(packet.payload),
                NetEvent::Dropped { .. } => drop(self.flights.take(packet.payload)),
                NetEvent::Arrived { .. } => {
                    if let Some(flight) = self.flights.take(packet.payload) {
                        self.arrive(traffic, &flight);
                        self.flights.pool(flight);
                    }
                }
            }
        }
    }

    /// See [`Network::poll_passage`].
    pub fn poll_passage(&mut self) -> Option<Passage> {
        self.network.poll_passage()
    }

    /// See [`Network::settle_passages`].
    pub fn settle_passages(&mut self) {
        self.network.settle_passages();
    }

    fn arrive(&mut self, traffic: TrafficId, flight: &Flight) {
        if let Some(crowd) = self.crowds.iter_mut().find(|c| c.traffic == traffic) {
            crowd.arrive(self.latest, flight, &mut self.network, &mut self.flights);
        }
    }

    /// Stops or starts a traffic entry. Users of a stopped one drop their connections without a word.
    pub fn set_traffic(&mut self, now: Time, traffic: TrafficId, running: bool) {
        self.network.set_traffic(now, traffic, running);
        self.latest = self.latest.max(now);
        if let Some(crowd) = self.crowds.iter_mut().find(|c| c.traffic == traffic) {
            crowd.set_running(self.latest, running);
        }
    }

    /// See [`Network::change_link`].
    pub fn change_link(&mut self, now: Time, link: LinkId, change: &LinkChange) -> Result<(), NetError> {
        self.network.change_link(now, link, change)
    }

    /// See [`Network::reroute`].
    pub fn reroute(&mut self, now: Time) {
        self.network.reroute(now);
    }

    /// See [`Network::queue`].
    pub fn queue(&mut self, now: Time, link: LinkId) -> QueueState {
        self.network.queue(now, link)
    }
}
