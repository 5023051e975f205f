//! UDP gates on loopback: ports of the emulator without root.
//!
//! Each side of each channel has a gate, and each ordered pair of nodes has one for everything else. A datagram
//! enters at its kernel stamp, not when the loop wakes up.

use super::{account, Entered, GateAddress, Listeners, Ports, Taken, Troubles};
use crate::{
    error::RunError,
    plan::{Plan, OVERHEAD_BYTES},
    real::{clock::RunClock, namespace, socket::Socket},
};
use std::{collections::BTreeSet, net::SocketAddr, os::fd::RawFd};

/// All gates; they come in pairs, and a datagram leaves through the other one of its pair.
pub(super) struct Gates {
    gates: Vec<Gate>,
    /// Where datagrams outside channels come from, per node.
    aside_senders: BTreeSet<(u16, SocketAddr)>,
    unsent: u64,
    strangers: u64,
}

/// A way into the network: what arrives here comes from node `from` and goes to node `to`.
struct Gate {
    socket: Socket,
    from: u16,
    to: u16,
    /// Channel, or nothing for datagrams outside channels.
    channel: Option<u16>,
    /// Where node `from` listens.
    peer: Option<SocketAddr>,
}

impl Gates {
    /// Binds the gates of a plan.
    pub fn bind(plan: &Plan) -> Result<Self, RunError> {
        let nodes = plan.nodes.len() as u16;
        let channels = plan.channels.iter().zip(0..).map(|(c, id)| (c.a, c.b, Some(id)));
        let asides = (0..nodes).flat_map(|a| (a + 1..nodes).map(move |b| (a, b, None)));
        let mut gates = Vec::new();
        for (a, b, channel) in channels.chain(asides) {
            for (from, to) in [(a, b), (b, a)] {
                let socket = Socket::bind(namespace::address(&plan.real, from))?;
                gates.push(Gate { socket, from, to, channel, peer: None });
            }
        }
        Ok(Self { gates, aside_senders: BTreeSet::new(), unsent: 0, strangers: 0 })
    }

    /// Where nodes reach each other.
    pub fn addresses(&self) -> Result<Vec<GateAddress>, RunError> {
        self.gates.iter().map(|g| Ok((g.from, g.to, g.channel, g.socket.address()?))).collect()
    }

    /// With the addresses at which nodes listen.
    pub fn joined(mut self, listeners: &Listeners) -> Self {
        for g in &mut self.gates {
            g.peer = match g.channel {
                Some(c) => listeners.channels.get(&(g.from, c)).copied(),
                None => listeners.asides.get(&g.from).copied(),
            };
        }
        self.aside_senders.clone_from(&listeners.aside_senders);
        self
    }

    /// Whether an address is that of the node behind a gate.
    fn knows(&self, gate: &Gate, sender: SocketAddr) -> bool {
        match gate.channel {
            Some(_) => gate.peer == Some(sender),
            None => self.aside_senders.contains(&(gate.from, sender)),
        }
    }
}

impl Ports for Gates {
    fn descriptors(&self) -> Vec<RawFd> {
        self.gates.iter().map(|g| g.socket.fd()).collect()
    }

    fn receive(&mut self, plan: &Plan, port: usize, clock: &mut RunClock, buffer: &mut [u8]) -> Taken {
        let Some(got) = self.gates[port].socket.receive(buffer) else { return Taken::Empty };
        let g = &self.gates[port];
        if !self.knows(g, got.from) {
            self.strangers += 1;
            return Taken::Stranger;
        }
        let now = clock.now();
        let arrived = got.stamp_ns.map_or(now, |s| clock.of_stamp(s, now));
        let bytes = &buffer[..got.len];
        let (class, index, wire_bytes) = account(plan, g.channel, bytes, got.len as u32 + OVERHEAD_BYTES);
        // A socket does not show the code point of what it receives: it is that of the flow.
        let dscp = plan.flows.get(usize::from(class)).map_or(0, |f| f.dscp);
        let (from, to, exit, len) = (g.from, g.to, port ^ 1, got.len);
        Taken::Packet(Entered { from, to, exit, arrived, len, class, index, dscp, wire_bytes })
    }

    fn deliver(&mut self, exit: usize, bytes: &[u8]) -> bool {
        let g = &mut self.gates[exit];
        let sent = g.peer.is_some_and(|peer| g.socket.send(bytes, peer, 0));
        self.unsent += u64::from(!sent);
        sent
    }

    fn stamps(&self) -> &'static str {
        "kernel"
    }

    fn troubles(&self) -> Troubles {
        let dropped = self.gates.iter().map(|g| u64::from(g.socket.drops())).sum();
        Troubles { dropped, unsent: self.unsent, strangers: self.strangers }
    }
}
