//! What a queue discipline is, and what it knows of its link.

use crate::packet::{InFlight, Packet};
use serde_json::Value;
use tcps_core::{param::Fault, record::DropReason, seed::Stream, time::Time};
use tcps_plan::net::traffic_of_class;

/// A packet that a discipline refused or threw out, and why.
pub type Refused = (Packet, DropReason);

/// The queue in front of a line. The packet in service is not in it.
pub trait QueueDiscipline: Send {
    /// Takes a packet that arrives at `in_flight.at`. `line_idle` tells that the line is free, so that the packet will
    /// not wait and no limit applies. Packets that are dropped for it go to `refused`.
    fn enqueue(&mut self, in_flight: InFlight, line_idle: bool, refused: &mut Vec<Refused>);
    /// The packet that starts at `now`; `None` if and only if nothing waits any more, or may start (`opens`).
    fn dequeue(&mut self, now: Time, refused: &mut Vec<Refused>) -> Option<InFlight>;
    /// The first moment from `now` on at which something that waits may start.
    fn opens(&self, now: Time) -> Time {
        now
    }
    /// Packets that wait.
    fn packets(&self) -> u64;
    /// Their bytes.
    fn bytes(&self) -> u64;
    /// Tells the rate of the line, at the start and when it changes.
    fn set_rate(&mut self, _rate_bps: f64) {}
    /// Sets most that may wait, as of the next packet that arrives: what waits is not dropped before.
    fn set_limit(&mut self, limit: Limit);
    /// Packets that it marked in place of dropping them.
    fn marked(&self) -> u64 {
        0
    }
    /// What code of the user's did wrong.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// Most that may wait, in bytes and in packets.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
}

impl Limit {
    /// A limit in bytes, in packets, both or none.
    pub fn of(bytes: Option<u64>, packets: Option<u64>) -> Self {
        let max = u64::MAX / 2;
        Self { bytes: bytes.unwrap_or(max).min(max), packets: packets.unwrap_or(max).min(max) }
    }

    /// Whether a packet may join those that wait. A packet that would exceed the limit is dropped whole; the one in
    /// service does not count. [model: FIFO link]
    #[inline]
    pub fn admits(&self, waiting_packets: u64, waiting_bytes: u64, packet_bytes: u32) -> bool {
        waiting_packets < self.packets && waiting_bytes + u64::from(packet_bytes) <= self.bytes
    }
}

/// Class by code point: `classes[i]` lists the code points of class i, the last class takes the rest.
pub fn by_code_point(classes: &[Vec<u8>]) -> [u8; 256] {
    let mut class_of = [classes.len().saturating_sub(1).min(255) as u8; 256];
    for (class, code_points) in classes.iter().enumerate() {
        for &dscp in code_points {
            class_of[usize::from(dscp)] = class as u8;
        }
    }
    class_of
}

/// Names of flows and traffic, so that a discipline can have a queue for each.
#[derive(Debug, Clone, Default)]
pub struct Flows {
    flows: Vec<String>,
    traffic: Vec<String>,
}

impl Flows {
    /// Flows of the plan and traffic entries of the network, in the order of their numbers.
    pub fn new(flows: &[String], traffic: Vec<String>) -> Self {
        Self { flows: flows.to_vec(), traffic }
    }

    /// Number of distinct flows, with one for unknown classes.
    pub fn count(&self) -> usize {
        self.flows.len() + self.traffic.len() + 1
    }

    /// Place of a class among them.
    pub fn place(&self, class: u16) -> usize {
        let n = self.flows.len();
        match traffic_of_class(class) {
            Some(t) if t.index() < self.traffic.len() => n + t.index(),
            None if usize::from(class) < n => class.into(),
            _ => self.count() - 1,
        }
    }

    /// Places that `name` means: a flow, `traffic.` and an entry, or `traffic.` and what entries have before the point.
    pub fn named(&self, name: &str) -> Vec<usize> {
        let flows = self.flows.iter().enumerate().filter(|(_, f)| *f == name).map(|(i, _)| i);
        let traffic = self.traffic.iter().enumerate().filter(|(_, t)| {
            let entry = name.strip_prefix("traffic.");
            entry == Some(t) || entry == t.split('.').next()
        });
        flows.chain(traffic.map(|(i, _)| self.flows.len() + i)).collect()
    }
}

/// What a discipline knows of its link.
#[derive(Debug)]
pub struct Context<'a> {
    /// Most that may wait.
    pub limit: Limit,
    /// Flows and background traffic; absent where parameters are checked before these are known.
    pub flows: Option<&'a Flows>,
    /// Seed of every random stream.
    pub seed: u64,
    /// Name of the link.
    pub link: &'a str,
}

impl Context<'_> {
    /// The random stream of an object of the link.
    pub fn stream(&self, object: &str) -> Stream {
        Stream::new(self.seed, &format!("links.{}.{object}", self.link))
    }
}

/// How a discipline is made from its parameters, which are complete.
pub struct Discipline {
    /// Whether it opens and closes by the clock, for which it needs the line for itself.
    pub timed: bool,
    pub(super) make: Make,
}

type Make = fn(&Value, &Context<'_>) -> Result<Box<dyn QueueDiscipline>, Fault>;

impl Discipline {
    pub(super) const fn new(make: Make) -> Self {
        Self { timed: false, make }
    }

    pub(super) const fn timed(make: Make) -> Self {
        Self { timed: true, make }
    }
}
