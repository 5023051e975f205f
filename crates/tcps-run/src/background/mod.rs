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
mod quic;
mod tcp;
mod throttle;
mod user;

use crowd::Crowd;
use tcps_core::time::Time;
use tcps_net::ForeignCode;
use tcps_net::{NetError, NetEvent, Network, Packet};
use tcps_plan::net::{LinkChange, TRAFFIC_BASE};
use tcps_plan::net::{NetworkSpec, Played, QueueState, TrafficModel};
use tcps_plan::{Plan, RunError};

/// A network, and who uses it besides the scenario's nodes.
pub struct BusyNetwork {
    network: Network,
    crowds: Vec<Crowd>,
    flights: Flights,
    /// Time never goes back.
    latest: Time,
}

/// Packets of users on their way.
#[derive(Default)]
struct Flights {
    all: Vec<Flight>,
    free: Vec<u32>,
}

/// A packet of a user on its way.
#[derive(Default)]
struct Flight {
    user: u16,
    to_client: bool,
    /// Number of the user's connection: packets of earlier ones are stale.
    connection: u32,
    bytes: Vec<u8>,
    copies: u16,
}

impl BusyNetwork {
    /// The network of a plan with its users.
    pub fn new(plan: &Plan, code: &mut dyn ForeignCode) -> Result<Self, RunError> {
        let names: Vec<String> = plan.flows.iter().map(|f| f.name.clone()).collect();
        Self::of(&plan.network, &names, plan.seed, code)
    }

    /// A network with its users, for flows of these names.
    pub fn of(
        spec: &NetworkSpec,
        names: &[String],
        seed: u64,
        code: &mut dyn ForeignCode,
    ) -> Result<Self, RunError> {
        let network = Network::with(spec, names, seed, code).map_err(|e| RunError::new(e.to_string()))?;
        let mut crowds = Vec::new();
        for (i, traffic) in spec.traffic.iter().enumerate() {
            if let TrafficModel::Played(Played::Users(tcp)) = &traffic.model {
                let rate_bps =
                    tcp.drive.map_or(0.0, |d| spec.links[usize::from(d.link)].rate_bps.unwrap_or(0.0));
                let crowd = Crowd::new(i as u16, traffic, tcp, rate_bps, seed);
                crowds.push(crowd.map_err(|e| RunError::new(format!("traffic.{}: {e}", traffic.name)))?);
            }
        }
        Ok(Self { network, crowds, flights: Flights::default(), latest: 0 })
    }

    /// The network itself, for its counters.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// See [`Network::send`].
    pub fn send(&mut self, now: Time, from: u16, packet: Packet) -> Time {
        self.network.send(now, from, packet)
    }

    /// When something may happen.
    pub fn poll_timeout(&self) -> Option<Time> {
        let users = self.crowds.iter().filter_map(Crowd::wake_ns).min();
        [self.network.poll_timeout(), users].into_iter().flatten().min()
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
            let Some(traffic) = packet.class.checked_sub(TRAFFIC_BASE) else { return Some(event) };
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

    fn arrive(&mut self, traffic: u16, flight: &Flight) {
        if let Some(crowd) = self.crowds.iter_mut().find(|c| c.traffic == traffic) {
            crowd.arrive(self.latest, flight, &mut self.network, &mut self.flights);
        }
    }

    /// Stops or starts a traffic entry. Users of a stopped one drop their connections without a word.
    pub fn set_traffic(&mut self, now: Time, traffic: u16, running: bool) {
        self.network.set_traffic(now, traffic, running);
        self.latest = self.latest.max(now);
        if let Some(crowd) = self.crowds.iter_mut().find(|c| c.traffic == traffic) {
            crowd.set_running(self.latest, running);
        }
    }

    /// See [`Network::change_link`].
    pub fn change_link(&mut self, now: Time, link: u16, change: &LinkChange) -> Result<(), NetError> {
        self.network.change_link(now, link, change)
    }

    /// See [`Network::reroute`].
    pub fn reroute(&mut self, now: Time) {
        self.network.reroute(now);
    }

    /// See [`Network::queue`].
    pub fn queue(&mut self, now: Time, link: u16) -> QueueState {
        self.network.queue(now, link)
    }
}

impl Flights {
    /// A buffer for the bytes of a packet.
    fn room(&mut self) -> (u32, &mut Flight) {
        let id = self.free.pop().unwrap_or_else(|| {
            self.all.push(Flight::default());
            self.all.len() as u32 - 1
        });
        let flight = &mut self.all[id as usize];
        flight.bytes.clear();
        flight.copies = 0;
        (id, flight)
    }

    fn copied(&mut self, id: u32) {
        if let Some(flight) = self.all.get_mut(id as usize) {
            flight.copies += 1;
        }
    }

    /// A packet that has come to its end; its place is free unless copies are on their way.
    fn take(&mut self, id: u32) -> Option<Flight> {
        let flight = self.all.get_mut(id as usize)?;
        let (user, to_client, connection) = (flight.user, flight.to_client, flight.connection);
        let bytes = match flight.copies.checked_sub(1) {
            Some(left) => {
                flight.copies = left;
                flight.bytes.clone()
            }
            None => {
                self.free.push(id);
                std::mem::take(&mut flight.bytes)
            }
        };
        Some(Flight { user, to_client, connection, bytes, copies: 0 })
    }

    /// Uses the memory of a packet again.
    fn pool(&mut self, flight: Flight) {
        if let Some(room) = self.free.last().and_then(|id| self.all.get_mut(*id as usize)) {
            if room.bytes.capacity() == 0 {
                room.bytes = flight.bytes;
            }
        }
    }
}
