//! What lies between the loops of nodes and the network in virtual time, as `tcpsbed calibrate` measures it.
//!
//! ```text
//! timer ── wake-up ──► loop ── send ──► network ── [interrupt] ── receive ──► loop
//! ```
//! A loop goes on a wake-up later than a timer was set for; a datagram enters the network a send call after it was handed
//! over, and the loop has it a receive after it arrived. Datagrams of a node keep their order. Without measured costs
//! nothing here takes time, and nothing is drawn. A card that gathers arrivals holds them until there are enough, or the
//! first has waited long enough: then the kernel has all of them at once.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};
use tcps_core::{
    dist::{Dist, Sampler},
    ids::NodeId,
    time::{Time, NEVER},
};
use tcps_net::Packet;
use tcps_plan::{Interrupts, Plan};

/// A datagram between a loop and the network.
#[derive(Debug)]
pub enum Crossing {
    /// On its way out of node `from`.
    Out {
        /// The node.
        from: NodeId,
        /// What enters the network.
        packet: Packet,
    },
    /// In the socket of node `to`.
    In {
        /// The node.
        to: NodeId,
        /// Number of the datagram.
        flight: u32,
        /// When it arrived.
        arrived: Time,
    },
}

/// What is to come.
#[derive(Debug)]
enum Event {
    Cross(Crossing),
    /// The card of node `at` interrupts, unless it has done so since for another reason.
    Interrupt {
        at: NodeId,
        number: u64,
    },
}

/// All boundaries of a run.
#[derive(Debug, Default)]
pub struct Boundary {
    /// Something takes time at some node; else none of them is looked at.
    measured: bool,
    nodes: Vec<Side>,
    crossing: BinaryHeap<Reverse<Pending>>,
    order: u64,
}

/// The boundary of a node.
#[derive(Debug)]
struct Side {
    wakeup: Option<Sampler>,
    send: Option<Sampler>,
    receive: Option<Sampler>,
    interrupts: Option<Interrupts>,
    /// Datagrams that the card has and the kernel has not.
    held: Vec<u32>,
    interrupted: u64,
    /// The deadline that `late` was drawn for.
    deadline: Time,
    late: Time,
    /// When its last datagram is out, and in.
    out: Time,
    inward: Time,
}

#[derive(Debug)]
struct Pending {
    at: Time,
    order: u64,
    what: Event,
}

impl Boundary {
    /// The boundaries of a plan.
    pub fn new(plan: &Plan) -> Self {
        let side = |node: &tcps_plan::NodePlan| {
            let sampler = |dist: &Option<Dist>, what: &str| {
                dist.clone().map(|d| Sampler::new(d, plan.seed, &format!("nodes.{}.{what}", node.name)))
            };
            Side {
                wakeup: sampler(&node.wakeup, "wakeup"),
                send: sampler(&node.send, "send"),
                receive: sampler(&node.receive, "receive"),
                interrupts: node.interrupts,
                held: Vec::new(),
                interrupted: 0,
                deadline: NEVER,
                late: 0,
                out: 0,
                inward: 0,
            }
        };
        let nodes: Vec<Side> = plan.nodes.iter().map(side).collect();
        let takes_time = |n: &Side| {
            n.wakeup.is_some() || n.send.is_some() || n.receive.is_some() || n.interrupts.is_some()
        };
        Self { measured: nodes.iter().any(takes_time), nodes, ..Self::default() }
    }

    /// When a node wakes up whose timer is set for `deadline`: the same for the same deadline.
    #[inline]
    pub fn wakes(&mut self, node: usize, deadline: Time) -> Time {
        if !self.measured {
            return deadline;
        }
        let side = &mut self.nodes[node];
        let Some(wakeup) = side.wakeup.as_mut().filter(|_| deadline < NEVER) else { return deadline };
        if side.deadline != deadline {
            (side.deadline, side.late) = (deadline, wakeup.draw());
        }
        deadline.saturating_add(side.late)
    }

    /// When a packet that a node hands over now enters the network; nothing if at once.
    #[inline]
    pub fn leaves(&mut self, now: Time, from: NodeId, packet: &Packet) -> Option<Time> {
        if !self.measured {
            return None;
        }
        let side = &mut self.nodes[from];
        let at = (now + side.send.as_mut()?.draw()).max(side.out);
        side.out = at;
        self.push(at, Event::Cross(Crossing::Out { from, packet: *packet }));
        Some(at)
    }

    /// Whether a datagram that arrives now waits in the socket of its node.
    #[inline]
    pub fn waits(&mut self, now: Time, to: NodeId, flight: u32) -> bool {
        if !self.measured {
            return false;
        }
        let side = &mut self.nodes[to];
        let Some(Interrupts { packets, after_ns }) = side.interrupts else {
            return self.receives(now, to, flight);
        };
        side.held.push(flight);
        if side.held.len() >= packets as usize {
            self.interrupt(now, to);
        } else if side.held.len() == 1 {
            let number = side.interrupted;
            self.push(now + after_ns, Event::Interrupt { at: to, number });
        }
        true
    }

    /// Whether a datagram that the kernel has now waits for its loop.
    fn receives(&mut self, now: Time, to: NodeId, flight: u32) -> bool {
        let side = &mut self.nodes[to];
        let Some(receive) = side.receive.as_mut() else { return false };
        let at = (now + receive.draw()).max(side.inward);
        side.inward = at;
        self.push(at, Event::Cross(Crossing::In { to, flight, arrived: now }));
        true
    }

    /// The kernel of a node gets all that its card holds.
    fn interrupt(&mut self, now: Time, at: NodeId) {
        let side = &mut self.nodes[at];
        side.interrupted += 1;
        for flight in std::mem::take(&mut side.held) {
            if !self.receives(now, at, flight) {
                self.push(now, Event::Cross(Crossing::In { to: at, flight, arrived: now }));
            }
        }
    }

    fn push(&mut self, at: Time, what: Event) {
        self.order += 1;
        self.crossing.push(Reverse(Pending { at, order: self.order, what }));
    }

    /// When the next datagram is across.
    pub fn next(&self) -> Time {
        self.crossing.peek().map_or(NEVER, |Reverse(p)| p.at)
    }

    /// The next datagram that is across at `now`.
    pub fn across(&mut self, now: Time) -> Option<Crossing> {
        loop {
            self.crossing.peek().filter(|Reverse(p)| p.at <= now)?;
            match self.crossing.pop().map(|Reverse(p)| p.what)? {
                Event::Interrupt { at, number } if self.nodes[at].interrupted == number => {
                    self.interrupt(now, at);
                }
                Event::Interrupt { .. } => {}
                Event::Cross(crossing) => return Some(crossing),
            }
        }
    }
}

impl Ord for Pending {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Pending {}
