//! What carries packets between nodes: the built-in network, or one that another program simulates.
//!
//! ```text
//!  driver ──► Carrier ─┬─► built   tcps-net and the users of its background traffic
//!                      └─► foreign   another program, driven line by line (ns-3)
//! ```
//! Both drivers see no difference but one: a foreign network cannot say when it will next do something without going
//! there. So the virtual driver says how far it may go; on the machine's clock the program keeps time itself.

mod foreign;
mod lines;
mod program;
mod routes;
mod told;

pub use foreign::Foreign;
pub use program::ForeignSpec;
pub use routes::{routes, ways};
pub use told::ForeignSelf;

use crate::background::BusyNetwork;
use std::os::fd::RawFd;
use tcps_core::{
    ids::{LinkId, TrafficId, VertexId},
    time::{Time, NEVER},
};
use tcps_net::{ForeignCode, NetError, NetEvent, Packet, Passage};
use tcps_plan::net::{Hops, LinkChange, LinkStats, QueueState, TrafficStats};
use tcps_plan::{Plan, RunError};

/// A network between nodes.
pub enum Carrier {
    /// The built-in one.
    Built(Box<BusyNetwork>),
    /// Another program's.
    Foreign(Box<Foreign>),
}

impl Carrier {
    /// The network of a plan; that of another program if one is named, on the machine's clock if `by_clock`.
    pub fn new(
        plan: &Plan,
        foreign: Option<&ForeignSpec>,
        by_clock: bool,
        code: &mut dyn ForeignCode,
    ) -> Result<Self, RunError> {
        Ok(match foreign {
            None => Self::Built(Box::new(BusyNetwork::new(plan, code)?)),
            Some(spec) => Self::Foreign(Box::new(Foreign::launch(plan, spec, by_clock)?)),
        })
    }

    /// Run time is 0 at `start_ns` (CLOCK_MONOTONIC); only on the machine's clock.
    pub fn start(&mut self, start_ns: Time) {
        if let Self::Foreign(f) = self {
            f.start(start_ns);
        }
    }

    /// When something happens that the driver has to see, not looking beyond `limit`.
    pub fn next_before(&mut self, limit: Time) -> Time {
        match self {
            Self::Built(n) => n.poll_timeout().unwrap_or(NEVER),
            Self::Foreign(f) => f.next_before(limit),
        }
    }

    /// When it wants to be called on the machine's clock; a foreign one keeps time itself.
    pub fn poll_timeout(&self) -> Option<Time> {
        match self {
            Self::Built(n) => n.poll_timeout(),
            Self::Foreign(_) => None,
        }
    }

    /// See [`BusyNetwork::handle_timeout`].
    pub fn handle_timeout(&mut self, now: Time) {
        match self {
            Self::Built(n) => n.handle_timeout(now),
            Self::Foreign(f) => f.run_to(now),
        }
    }

    /// See [`BusyNetwork::send`]; a foreign network does not say when its first link has taken a packet.
    pub fn send(&mut self, now: Time, from: VertexId, packet: Packet) -> Time {
        match self {
            Self::Built(n) => n.send(now, from, packet),
            Self::Foreign(f) => {
                f.send(now, from, packet);
                now
            }
        }
    }

    /// The next arrival or drop of a packet of the driver's.
    pub fn poll_event(&mut self) -> Option<NetEvent> {
        match self {
            Self::Built(n) => n.poll_event(),
            Self::Foreign(f) => f.poll_event(),
        }
    }

    /// What became of a packet at a link; a foreign network does not tell.
    pub fn poll_passage(&mut self) -> Option<Passage> {
        match self {
            Self::Built(n) => n.poll_passage(),
            Self::Foreign(_) => None,
        }
    }

    /// See [`BusyNetwork::settle_passages`].
    pub fn settle_passages(&mut self) {
        if let Self::Built(n) = self {
            n.settle_passages();
        }
    }

    /// See [`BusyNetwork::set_traffic`].
    pub fn set_traffic(&mut self, now: Time, traffic: TrafficId, running: bool) {
        match self {
            Self::Built(n) => n.set_traffic(now, traffic, running),
            Self::Foreign(f) => f.set_traffic(traffic, running),
        }
    }

    /// See [`BusyNetwork::change_link`].
    pub fn change_link(&mut self, now: Time, link: LinkId, change: &LinkChange) -> Result<(), NetError> {
        match self {
            Self::Built(n) => n.change_link(now, link, change),
            Self::Foreign(_) => {
                Err(NetError::new("events", "link", "a network that another program simulates", ALLOWED))
            }
        }
    }

    /// See [`BusyNetwork::reroute`]; the paths of a foreign network stay as they are.
    pub fn reroute(&mut self, now: Time) {
        if let Self::Built(n) = self {
            n.reroute(now);
        }
    }

    /// The links from one vertex to another; a foreign network does not tell.
    pub fn route(&self, from: VertexId, to: VertexId) -> Option<Vec<LinkId>> {
        match self {
            Self::Built(n) => n.network().route(from, to),
            Self::Foreign(_) => None,
        }
    }

    /// What waits at a link.
    pub fn queue(&mut self, now: Time, link: LinkId) -> QueueState {
        match self {
            Self::Built(n) => n.queue(now, link),
            Self::Foreign(f) => f.queue(now, link),
        }
    }

    /// What code of the user's in it did wrong.
    pub fn failures(&self) -> Vec<String> {
        match self {
            Self::Built(n) => n.network().failures(),
            Self::Foreign(_) => Vec::new(),
        }
    }

    /// Counters of links and of background traffic; those of a foreign network come with its end.
    pub fn accounts(&mut self) -> (Vec<LinkStats>, Vec<TrafficStats>) {
        match self {
            Self::Built(n) => (n.network().link_stats(), n.network().traffic_stats()),
            Self::Foreign(f) => f.end(),
        }
    }

    /// Where the time of packets went at each link; a foreign network does not tell.
    pub fn hops(&self) -> Vec<Hops> {
        match self {
            Self::Built(n) => n.network().hops(),
            Self::Foreign(_) => Vec::new(),
        }
    }

    /// Why a foreign network does not go on.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Built(_) => None,
            Self::Foreign(f) => f.failure(),
        }
    }

    /// What to wait for besides sockets.
    pub fn descriptor(&self) -> Option<RawFd> {
        match self {
            Self::Built(_) => None,
            Self::Foreign(f) => Some(f.descriptor()),
        }
    }

    /// Reads what a foreign network has told, without waiting.
    pub fn listen(&mut self) {
        if let Self::Foreign(f) = self {
            f.listen();
        }
    }

    /// What a foreign network tells about itself, after its end.
    pub fn itself(&self) -> Option<&ForeignSelf> {
        match self {
            Self::Built(_) => None,
            Self::Foreign(f) => f.itself(),
        }
    }
}

const ALLOWED: &str = "no such event: its links stay as they are";
