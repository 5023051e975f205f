//! UDP gates on loopback: ports of the emulator without root.
//!
//! Each side of each channel has a gate. For everything else each node has one, which stands for it: what others want
//! to tell the node they send there, and what it says itself comes to them from there; who has sent something is told
//! by the address of the socket. A datagram enters at its kernel stamp, not when the loop wakes up.

use super::{Datagram, Flows, Ports, Taken, Troubles};
use crate::{
    addresses::{self, asides::Asides},
    os::{clock::RunClock, socket::Socket},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    os::fd::RawFd,
};
use tcps_core::ids::{ChannelId, NodeId};
use tcps_plan::{Plan, RunError, OVERHEAD_BYTES};

/// A gate: (node, channel, address) where a node sends what is for a channel; (node, nothing, address) that stands for a
/// node outside channels.
pub type GateAddress = (NodeId, Option<ChannelId>, SocketAddr);

/// Where nodes listen.
#[derive(Debug, Default)]
pub struct Listeners {
    /// Per (node, channel).
    pub channels: BTreeMap<(NodeId, ChannelId), SocketAddr>,
    /// Per node, for everything else, in the order of its loops.
    pub asides: BTreeMap<NodeId, Vec<SocketAddr>>,
    /// Every address from which a node sends everything else: its loops have a socket each.
    pub aside_senders: BTreeSet<(NodeId, SocketAddr)>,
}

/// All gates: those of channels in pairs, so that a datagram leaves through the other one of its pair; then one a node.
pub struct Gates<'a> {
    flows: Flows<'a>,
    gates: Vec<Gate>,
    /// Number of the gate of the first node.
    first_node: usize,
    /// Node behind each address that datagrams outside channels come from.
    aside_senders: BTreeMap<SocketAddr, NodeId>,
    asides: Asides,
    strangers: u64,
}

struct Gate {
    socket: Socket,
    kind: GateKind,
}

/// What a gate leads to.
enum GateKind {
    /// What arrives here comes from a channel's side at `from`, which listens at `peer`, and goes to node `to`.
    Channel { channel: ChannelId, from: NodeId, to: NodeId, peer: Option<SocketAddr> },
    /// What arrives here is for a node, outside channels.
    Node(NodeId),
}

impl<'a> Gates<'a> {
    /// Binds the gates of a plan.
    pub fn bind(plan: &'a Plan) -> Result<Self, RunError> {
        let ip = |node: NodeId| addresses::gate_address(&plan.real, node);
        let mut gates = Vec::new();
        for (channel, c) in ChannelId::each(&plan.channels) {
            for (from, to) in [(c.a, c.b), (c.b, c.a)] {
                let kind = GateKind::Channel { channel, from, to, peer: None };
                gates.push(Gate { socket: Socket::bind(ip(from))?, kind });
            }
        }
        let first_node = gates.len();
        for (node, _) in NodeId::each(&plan.nodes) {
            gates.push(Gate { socket: Socket::bind(ip(node))?, kind: GateKind::Node(node) });
        }
        let (flows, aside_senders) = (Flows::new(plan, &BTreeMap::new()), BTreeMap::new());
        Ok(Self { flows, gates, first_node, aside_senders, asides: Asides::default(), strangers: 0 })
    }

    /// Where nodes reach each other.
    pub fn addresses(&self) -> Result<Vec<GateAddress>, RunError> {
        let of = |g: &Gate| {
            let (node, channel) = match g.kind {
                GateKind::Channel { channel, from, .. } => (from, Some(channel)),
                GateKind::Node(node) => (node, None),
            };
            Ok((node, channel, g.socket.address()?))
        };
        self.gates.iter().map(of).collect()
    }

    /// With the addresses at which nodes listen.
    pub fn joined(mut self, plan: &Plan, listeners: &Listeners) -> Self {
        for g in &mut self.gates {
            if let GateKind::Channel { channel, from, peer, .. } = &mut g.kind {
                *peer = listeners.channels.get(&(*from, *channel)).copied();
            }
        }
        self.aside_senders = listeners.aside_senders.iter().map(|&(node, address)| (address, node)).collect();
        self.asides = Asides::new(plan, listeners.asides.clone());
        self
    }

    /// Sender, receiver, exit and channel of what an address sent to a gate; nothing if it is a stranger's.
    fn look(&self, port: usize, sender: SocketAddr) -> Option<(NodeId, NodeId, usize, Option<ChannelId>)> {
        match self.gates[port].kind {
            GateKind::Channel { channel, from, to, peer } => {
                (peer == Some(sender)).then_some((from, to, port ^ 1, Some(channel)))
            }
            GateKind::Node(to) => {
                let from = self.aside_senders.get(&sender).copied().filter(|from| *from != to)?;
                Some((from, to, self.first_node + from.index(), None))
            }
        }
    }
}

impl Ports for Gates<'_> {
    fn descriptors(&self) -> Vec<RawFd> {
        self.gates.iter().map(|g| g.socket.fd()).collect()
    }

    fn receive(&mut self, port: usize, clock: &mut RunClock, buffer: &mut [u8]) -> Taken {
        let Some((got, arrived)) = self.gates[port].socket.receive_at(clock, buffer) else {
            return Taken::Empty;
        };
        let Some((from, to, exit, channel)) = self.look(port, got.from) else {
            self.strangers += 1;
            return Taken::Stranger;
        };
        let (len, dscp, ecn, exit) = (got.len, got.dscp, got.ecn, exit as u32);
        let datagram = self.flows.of_datagram(channel, from, &buffer[..len], len as u32 + OVERHEAD_BYTES);
        let (from, to) = (from.into(), to.into());
        Taken::Packet(Datagram { from, to, exit, arrived, len, dscp, ecn, ..datagram })
    }

    fn deliver(&mut self, e: &Datagram, bytes: &[u8]) -> bool {
        let g = &mut self.gates[e.exit as usize];
        let target = match g.kind {
            GateKind::Channel { peer, .. } => peer,
            GateKind::Node(_) => self.asides.of(NodeId(e.to.0), bytes),
        };
        target.is_some_and(|target| g.socket.send(bytes, target, e.ecn.tos(e.dscp)))
    }

    fn stamps(&self) -> &'static str {
        "kernel"
    }

    fn troubles(&self) -> Troubles {
        let dropped = self.gates.iter().map(|g| u64::from(g.socket.drops())).sum();
        Troubles { dropped, strangers: self.strangers, ..Troubles::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::net::UdpSocket;
    use tcps_core::time::MS;

    fn plan(nodes: u16) -> Plan {
        let nodes: Vec<_> = (0..nodes).map(|n| json!({"name": format!("n{n}")})).collect();
        let channel = json!({"name": "c", "session": 0, "a": 0, "b": 1, "transport": "udp"});
        serde_json::from_value(json!({
            "name": "p", "seed": 1, "duration_ns": 1, "sessions": ["a"], "nodes": nodes, "channels": [channel],
            "components": [], "flows": [],
        }))
        .unwrap()
    }

    #[test]
    fn twenty_four_nodes_need_a_gate_each() {
        let plan = plan(24);
        let gates = Gates::bind(&plan).unwrap();
        assert_eq!(gates.gates.len(), 2 + 24);
    }

    #[test]
    fn a_datagram_leaves_unchanged_through_the_gate_of_its_sender_with_its_code_point() {
        let plan = plan(3);
        let gates = Gates::bind(&plan).unwrap();
        let sockets: Vec<_> = (0..3).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let at = |n: usize| sockets[n].local_addr().unwrap();
        let told = gates.addresses().unwrap();
        let gate = |node: u16| told.iter().find(|g| (g.0, g.1) == (NodeId(node), None)).unwrap().2;
        let listeners = Listeners {
            asides: (0..3).map(|n| (NodeId(n), vec![at(n as usize)])).collect(),
            aside_senders: (0..3).map(|n| (NodeId(n), at(n as usize))).collect(),
            ..Listeners::default()
        };
        let mut gates = gates.joined(&plan, &listeners);
        let (mut clock, mut buffer) = (RunClock::new(0), [0; 64]);
        let mut take = |gates: &mut Gates<'_>, node: usize| {
            let port = gates.first_node + node;
            let taken = (0..1000).find_map(|_| match gates.receive(port, &mut clock, &mut buffer) {
                Taken::Empty => {
                    std::thread::sleep(std::time::Duration::from_nanos(MS as u64));
                    None
                }
                taken => Some(taken),
            });
            taken.map(|t| (t, buffer))
        };
        sockets[2].send_to(b"hand", gate(1)).unwrap();
        let Some((Taken::Packet(e), bytes)) = take(&mut gates, 1) else { panic!("nothing entered") };
        assert_eq!((e.from.0, e.to.0, &bytes[..e.len]), (2, 1, &b"hand"[..]));
        assert!(gates.deliver(&Datagram { dscp: 46, ..e }, &bytes[..e.len]));
        let mut got = [0; 64];
        let (len, from) = sockets[1].recv_from(&mut got).unwrap();
        assert_eq!(
            (&got[..len], from),
            (&b"hand"[..], gate(2)),
            "it comes from the gate that stands for node 2"
        );
        // Neither a stranger nor a node that writes to itself comes in.
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"?", gate(1)).unwrap();
        assert!(matches!(take(&mut gates, 1), Some((Taken::Stranger, _))));
        sockets[1].send_to(b"?", gate(1)).unwrap();
        assert!(matches!(take(&mut gates, 1), Some((Taken::Stranger, _))));
    }
}
