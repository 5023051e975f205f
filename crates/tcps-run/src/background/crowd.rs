//! The users of one traffic entry: servers at its `from`, clients at its `to`, objects from one to the other.

use super::{
    flight::{Flight, Flights},
    throttle::Throttle,
    user::{Phase, User},
};
use tcps_core::{
    endpoint::Ecn,
    ids::{LinkId, TrafficId, VertexId},
    seed::Stream,
    time::Time,
};
use tcps_net::{pages::Pages, Network, Packet};
use tcps_plan::net::{traffic_class, TrafficSpec, UsersSpec};
use tcps_transport::TransportError;

/// The users of an entry.
pub(super) struct Crowd {
    /// Number of the entry.
    pub(super) traffic: TrafficId,
    from: VertexId,
    to: VertexId,
    dscp: u8,
    stop_ns: Option<Time>,
    users: Vec<User>,
    throttle: Throttle,
    running: bool,
    packets: u32,
    wake_ns: Option<Time>,
}

impl Crowd {
    /// The users of entry number `traffic`, who begin at its start. `rate_bps` is that of the link to drive.
    pub(super) fn new(
        traffic: TrafficId,
        spec: &TrafficSpec,
        tcp: &UsersSpec,
        rate_bps: f64,
        seed: u64,
    ) -> Result<Self, TransportError> {
        let name = format!("traffic.{}", spec.name);
        let user = |i| User::new(tcp, &format!("{name}.{i}"), seed);
        let mut crowd = Self {
            traffic,
            from: spec.from,
            to: spec.to,
            dscp: spec.dscp,
            stop_ns: spec.stop_ns,
            users: (0..tcp.users).map(user).collect::<Result<_, _>>()?,
            throttle: Throttle::new(tcp.drive, first_speed(tcp, rate_bps, &name, seed), spec.start_ns),
            running: true,
            packets: 0,
            wake_ns: None,
        };
        let mut chance = Stream::new(seed, &format!("{name}.begin"));
        for user in &mut crowd.users {
            user.phase = Phase::Thinking(user.first_think_s(chance.unit()));
        }
        crowd.set_wake();
        Ok(crowd)
    }

    /// When something is to be done.
    pub(super) fn wake_ns(&self) -> Option<Time> {
        self.wake_ns
    }

    /// Does everything that is due at `now`.
    pub(super) fn act(&mut self, now: Time, network: &mut Network, flights: &mut Flights) {
        if self.stop_ns.is_some_and(|t| t <= now) {
            self.stop_ns = None;
            self.set_running(now, false);
            return;
        }
        if self.throttle.wake_ns().is_some_and(|t| t <= now) {
            let busy_ns = self.throttle.link().map_or(0, |l| busy_ns(network, l));
            self.throttle.look(now, busy_ns);
        }
        for i in 0..self.users.len() {
            if self.due_ns(i).is_some_and(|t| t <= now) {
                match self.users[i].phase {
                    Phase::Thinking(_) if self.begins_ns(i) <= Some(now) => self.users[i].begin(now),
                    Phase::Parsing(until) if until <= now => self.users[i].go_on(now),
                    _ => {}
                }
                self.work(i, now, network, flights);
            }
        }
        self.set_wake();
    }

    /// A packet of a user has arrived.
    pub(super) fn arrive(
        &mut self,
        now: Time,
        flight: &Flight,
        network: &mut Network,
        flights: &mut Flights,
    ) {
        let i = usize::from(flight.user);
        if self.users.get(i).is_some_and(|u| u.number == flight.connection) {
            self.users[i].receive(now, flight.to_client, &flight.bytes);
            self.work(i, now, network, flights);
            self.set_wake();
        }
    }

    /// Stops the users, who drop their connections, or lets them begin again.
    pub(super) fn set_running(&mut self, now: Time, running: bool) {
        if self.running == running {
            return;
        }
        self.running = running;
        let shown_s = self.throttle.shown_s(now);
        for user in &mut self.users {
            user.rest(now);
            if running {
                user.phase = Phase::Thinking(shown_s + user.think_s());
            }
        }
        self.set_wake();
    }

    fn work(&mut self, i: usize, now: Time, network: &mut Network, flights: &mut Flights) {
        let user = &mut self.users[i];
        if user.work(now) {
            user.phase = Phase::Thinking(self.throttle.shown_s(now) + user.think_s());
        }
        loop {
            let (payload, flight) = flights.room();
            let Some(to_client) = self.users[i].pop(&mut flight.bytes) else {
                flights.free.push(payload);
                return;
            };
            (flight.user, flight.to_client, flight.connection) = (i as u16, to_client, self.users[i].number);
            let (from, dst) = if to_client { (self.from, self.to) } else { (self.to, self.from) };
            // [model: wire size]
            let wire_bytes = flight.bytes.len() as u32 + self.users[i].below_bytes();
            let (class, index) = (traffic_class(self.traffic), self.packets);
            self.packets = self.packets.wrapping_add(1);
            network.send(
                now,
                from,
                Packet {
                    payload,
                    class,
                    index,
                    dst,
                    dscp: self.dscp,
                    ecn: Ecn::NotCapable,
                    wire_bytes,
                    sent_ns: now,
                },
            );
        }
    }

    /// When user `i` begins his next page, if he thinks.
    fn begins_ns(&self, i: usize) -> Option<Time> {
        match self.users[i].phase {
            Phase::Thinking(until_s) => Some(self.throttle.when(until_s)),
            _ => None,
        }
    }

    fn due_ns(&self, i: usize) -> Option<Time> {
        let parsed = match self.users[i].phase {
            Phase::Parsing(until) => Some(until),
            _ => self.begins_ns(i),
        };
        [self.users[i].timer_ns(), parsed].into_iter().flatten().min()
    }

    fn set_wake(&mut self) {
        let users = (0..self.users.len()).filter_map(|i| self.due_ns(i)).min();
        let looks = self.throttle.wake_ns().filter(|_| self.running);
        self.wake_ns = [users, looks, self.stop_ns].into_iter().flatten().min();
    }
}

/// Time in which a link's line has been busy so far.
fn busy_ns(network: &Network, link: LinkId) -> Time {
    network.link_stats().get(link.index()).map_or(0, |l| l.busy_ns)
}

/// How fast users must think for the wanted load if loading took no time; 1 without a link to drive.
fn first_speed(tcp: &UsersSpec, rate_bps: f64, name: &str, seed: u64) -> f64 {
    let (Some(drive), Some(pages)) = (&tcp.drive, &tcp.pages) else { return 1.0 };
    let (page_bytes, think_s) = Pages::means(pages, Stream::new(seed, &format!("{name}.survey")));
    let pages_a_second = drive.utilisation * rate_bps / (8.0 * page_bytes);
    think_s * pages_a_second / f64::from(tcp.users)
}
