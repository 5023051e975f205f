//! Two endpoints and a bad network between them, in virtual time.
//!
//! ```text
//!        client ──► forward conditions ──► server
//!          ▲  (own clock)          (own clock) │
//!          └────── backward conditions ◄───────┘
//! ```

use std::collections::BTreeMap;
use tcps_core::{
    endpoint::{Delivery, Endpoint, EndpointStats, Input, Output, Transmit},
    record::Record,
    sample::Meta,
    seed::Stream,
    time::{NodeClock, Time, NEVER},
};

/// What one direction does to datagrams.
#[derive(Debug, Clone, Copy, Default)]
pub struct Conditions {
    /// Least delay.
    pub latency_ns: Time,
    /// Mean of an exponential delay on top; datagrams overtake each other.
    pub jitter_ns: Time,
    /// Probability that a datagram is lost.
    pub loss: f64,
    /// Probability that it comes twice.
    pub duplication: f64,
}

/// An endpoint out of the registry.
pub struct Boxed(pub Box<dyn Endpoint>);

impl Endpoint for Boxed {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        self.0.handle_input(now, input)
    }
    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.0.poll_output(buf)
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.0.poll_timeout()
    }
    fn stats(&self) -> EndpointStats {
        self.0.stats()
    }
}

/// A side's endpoint, its clock, what it handed over, and the direction that it sends in.
pub struct End<E> {
    pub endpoint: E,
    pub clock: NodeClock,
    pub sends: Conditions,
    pub delivered: Vec<(Delivery, Vec<u8>)>,
    pub transmitted: Vec<Transmit>,
    pub lost: Vec<Transmit>,
    pub records: Vec<Record>,
    pub last_received: Option<Vec<u8>>,
}

/// The two ends, the time and what is on its way.
pub struct Pair<C, S> {
    pub client: End<C>,
    pub server: End<S>,
    pub time: Time,
    flight: BTreeMap<(Time, u64), (bool, Vec<u8>)>,
    sent: u64,
    chance: Stream,
    digest: u64,
}

impl<E: Endpoint> End<E> {
    fn new(endpoint: E, sends: Conditions) -> Self {
        let clock = NodeClock::default();
        let (delivered, transmitted, lost, records) = (vec![], vec![], vec![], vec![]);
        Self { endpoint, clock, sends, delivered, transmitted, lost, records, last_received: None }
    }

    /// True time of the endpoint's deadline: the first moment at which its clock shows it.
    fn deadline(&self) -> Time {
        let Some(local) = self.endpoint.poll_timeout() else { return NEVER };
        let mut t = local;
        for _ in 0..4 {
            t += local - self.clock.read(t);
        }
        while self.clock.read(t) < local {
            t += 1;
        }
        t
    }

    fn timeout(&mut self, time: Time) -> Vec<Vec<u8>> {
        self.endpoint.handle_input(self.clock.read(time), Input::Timeout);
        self.drain()
    }

    fn datagram(&mut self, time: Time, bytes: &[u8]) -> Vec<Vec<u8>> {
        let received_ns = self.clock.read(time);
        self.last_received = Some(bytes.to_vec());
        self.endpoint.handle_input(received_ns, Input::datagram(bytes, received_ns));
        self.drain()
    }

    fn drain(&mut self) -> Vec<Vec<u8>> {
        let (mut datagrams, mut buf) = (vec![], vec![]);
        while let Some(output) = self.endpoint.poll_output(&mut buf) {
            match output {
                Output::Transmit(t) => {
                    self.transmitted.push(t);
                    datagrams.push(buf.clone());
                }
                Output::Deliver(d) => self.delivered.push((d, buf.clone())),
                Output::Record(r) => self.records.push(r),
            }
        }
        datagrams
    }
}

impl<C: Endpoint, S: Endpoint> Pair<C, S> {
    pub fn new(seed: u64, client: C, server: S, forward: Conditions, backward: Conditions) -> Self {
        let chance = Stream::new(seed, "pair");
        let (client, server) = (End::new(client, forward), End::new(server, backward));
        Self {
            client,
            server,
            time: 0,
            flight: BTreeMap::new(),
            sent: 0,
            chance,
            digest: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// The client's local side has a sample now.
    pub fn send(&mut self, meta: Meta, bytes: &[u8]) {
        self.client.endpoint.handle_input(self.client.clock.read(self.time), Input::Sample { meta, bytes });
        let datagrams = self.client.drain();
        self.launch(true, datagrams);
    }

    /// The server's local side has a sample now.
    pub fn send_back(&mut self, meta: Meta, bytes: &[u8]) {
        self.server.endpoint.handle_input(self.server.clock.read(self.time), Input::Sample { meta, bytes });
        let datagrams = self.server.drain();
        self.launch(false, datagrams);
    }

    /// FNV-1a of everything that both sides have sent, with its moment.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Everything until `end` happens; time is `end` afterwards.
    pub fn run_until(&mut self, end: Time) {
        while self.next().is_some_and(|t| t <= end) {
            self.run_next();
        }
        self.time = end;
    }

    /// The next thing happens, if there is one.
    pub fn run_next(&mut self) {
        if let Some(time) = self.next() {
            self.time = self.time.max(time);
            self.step();
        }
    }

    fn next(&self) -> Option<Time> {
        let arrival = self.flight.keys().next().map_or(NEVER, |k| k.0);
        let next = arrival.min(self.client.deadline()).min(self.server.deadline());
        (next < NEVER).then_some(next)
    }

    fn step(&mut self) {
        let due = self.flight.first_entry().filter(|e| e.key().0 <= self.time).map(|e| e.remove());
        if let Some((to_server, bytes)) = due {
            let answers = match to_server {
                true => self.server.datagram(self.time, &bytes),
                false => self.client.datagram(self.time, &bytes),
            };
            self.launch(!to_server, answers);
        } else if self.client.deadline() <= self.time {
            let datagrams = self.client.timeout(self.time);
            self.launch(true, datagrams);
        } else {
            let datagrams = self.server.timeout(self.time);
            self.launch(false, datagrams);
        }
    }

    fn launch(&mut self, to_server: bool, datagrams: Vec<Vec<u8>>) {
        let first = match to_server {
            true => self.client.transmitted.len() - datagrams.len(),
            false => self.server.transmitted.len() - datagrams.len(),
        };
        for (i, bytes) in datagrams.into_iter().enumerate() {
            for byte in self.time.to_le_bytes().iter().chain(&bytes) {
                self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
            let sends = if to_server { self.client.sends } else { self.server.sends };
            if self.chance.chance(sends.loss) {
                match to_server {
                    true => self.client.lost.push(self.client.transmitted[first + i]),
                    false => self.server.lost.push(self.server.transmitted[first + i]),
                }
                continue;
            }
            let copies = 1 + u64::from(self.chance.chance(sends.duplication));
            for _ in 0..copies {
                let jitter = self.chance.exponential(sends.jitter_ns as f64) as Time;
                self.sent += 1;
                let arrival = self.time + sends.latency_ns + jitter;
                self.flight.insert((arrival, self.sent), (to_server, bytes.clone()));
            }
        }
    }
}
