//! UDP gates on loopback: ports of the emulator without root.
//!
//! Each side of each channel has a gate. For everything else each node has one, which stands for it: what others want
//! to tell the node they send there, and what it says itself comes to them from there; who has sent something is told
//! by the address of the socket. A datagram enters at its kernel stamp, not when the loop wakes up.

use super::{account, Entered, GateAddress, Listeners, Ports, Taken, Troubles};
use crate::{
    addresses::{self, asides::Asides},
    error::RunError,
    os::{
        clock::RunClock,
        socket::{Received, Socket},
    },
    plan::{Plan, OVERHEAD_BYTES},
};
use std::{collections::BTreeMap, net::SocketAddr, os::fd::RawFd};

/// All gates: those of channels in pairs, so that a datagram leaves through the other one of its pair; then one a node.
pub(super) struct Gates {
    gates: Vec<Gate>,
    /// Number of the gate of the first node.
    first_node: usize,
    /// Node behind each address that datagrams outside channels come from.
    aside_senders: BTreeMap<SocketAddr, u16>,
    asides: Asides,
    unsent: u64,
    strangers: u64,
}

struct Gate {
    socket: Socket,
    way: Way,
}

/// A way into the network.
enum Way {
    /// What arrives here comes from a channel's side at `from`, which listens at `peer`, and goes to node `to`.
    Channel { channel: u16, from: u16, to: u16, peer: Option<SocketAddr> },
    /// What arrives here is for a node, outside channels.
    Node(u16),
}

impl Gates {
    /// Binds the gates of a plan.
    pub fn bind(plan: &Plan) -> Result<Self, RunError> {
        let ip = |node: u16| addresses::gate_address(&plan.real, node);
        let mut gates = Vec::new();
        for (c, channel) in plan.channels.iter().zip(0..) {
            for (from, to) in [(c.a, c.b), (c.b, c.a)] {
                let way = Way::Channel { channel, from, to, peer: None };
                gates.push(Gate { socket: Socket::bind(ip(from))?, way });
            }
        }
        let first_node = gates.len();
        for node in 0..plan.nodes.len() as u16 {
            gates.push(Gate { socket: Socket::bind(ip(node))?, way: Way::Node(node) });
        }
        let (aside_senders, asides) = (BTreeMap::new(), Asides::default());
        Ok(Self { gates, first_node, aside_senders, asides, unsent: 0, strangers: 0 })
    }

    /// Where nodes reach each other.
    pub fn addresses(&self) -> Result<Vec<GateAddress>, RunError> {
        let of = |g: &Gate| {
            let (node, channel) = match g.way {
                Way::Channel { channel, from, .. } => (from, Some(channel)),
                Way::Node(node) => (node, None),
            };
            Ok((node, channel, g.socket.address()?))
        };
        self.gates.iter().map(of).collect()
    }

    /// With the addresses at which nodes listen.
    pub fn joined(mut self, plan: &Plan, listeners: &Listeners) -> Self {
        for g in &mut self.gates {
            if let Way::Channel { channel, from, peer, .. } = &mut g.way {
                *peer = listeners.channels.get(&(*from, *channel)).copied();
            }
        }
        self.aside_senders = listeners.aside_senders.iter().map(|&(node, address)| (address, node)).collect();
        self.asides = Asides::new(plan, listeners.asides.clone());
        self
    }

    /// Sender, receiver, exit and channel of what came through a gate; nothing if it is from a stranger.
    fn look(&self, port: usize, got: &Received) -> Option<(u16, u16, usize, Option<u16>)> {
        match self.gates[port].way {
            Way::Channel { channel, from, to, peer } => {
                (peer == Some(got.from)).then_some((from, to, port ^ 1, Some(channel)))
            }
            Way::Node(to) => {
                let from = self.aside_senders.get(&got.from).copied().filter(|from| *from != to)?;
                Some((from, to, self.first_node + usize::from(from), None))
            }
        }
    }
}

impl Ports for Gates {
    fn descriptors(&self) -> Vec<RawFd> {
        self.gates.iter().map(|g| g.socket.fd()).collect()
    }

    fn receive(&mut self, plan: &Plan, port: usize, clock: &mut RunClock, buffer: &mut [u8]) -> Taken {
        let Some(got) = self.gates[port].socket.receive(buffer) else { return Taken::Empty };
        let Some((from, to, exit, channel)) = self.look(port, &got) else {
            self.strangers += 1;
            return Taken::Stranger;
        };
        let now = clock.now();
        let arrived = got.stamp_ns.map_or(now, |s| clock.of_stamp(s, now));
        let bytes = &buffer[..got.len];
        let (class, index, wire_bytes) = account(plan, channel, from, bytes, got.len as u32 + OVERHEAD_BYTES);
        let (len, dscp) = (got.len, got.dscp);
        Taken::Packet(Entered { from, to, exit, arrived, len, class, index, dscp, wire_bytes })
    }

    fn deliver(&mut self, exit: usize, to: u16, dscp: u8, bytes: &[u8]) -> bool {
        let g = &mut self.gates[exit];
        let target = match g.way {
            Way::Channel { peer, .. } => peer,
            Way::Node(_) => self.asides.of(to, bytes),
        };
        let sent = target.is_some_and(|target| g.socket.send(bytes, target, dscp));
        self.unsent += u64::from(!sent);
        sent
    }

    fn stamps(&self) -> &'static str {
        "kernel"
    }

    fn troubles(&self) -> Troubles {
        let dropped = self.gates.iter().map(|g| u64::from(g.socket.drops())).sum();
        Troubles { dropped, unsent: self.unsent, strangers: self.strangers, unread: 0 }
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
        let gates = Gates::bind(&plan(24)).unwrap();
        assert_eq!(gates.gates.len(), 2 + 24);
    }

    #[test]
    fn a_datagram_leaves_unchanged_through_the_gate_of_its_sender_with_its_code_point() {
        let plan = plan(3);
        let gates = Gates::bind(&plan).unwrap();
        let sockets: Vec<_> = (0..3).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let at = |n: usize| sockets[n].local_addr().unwrap();
        let told = gates.addresses().unwrap();
        let gate = |node: u16| told.iter().find(|g| (g.0, g.1) == (node, None)).unwrap().2;
        let listeners = Listeners {
            asides: (0..3).map(|n| (n, vec![at(n as usize)])).collect(),
            aside_senders: (0..3).map(|n| (n, at(n as usize))).collect(),
            ..Listeners::default()
        };
        let mut gates = gates.joined(&plan, &listeners);
        let (mut clock, mut buffer) = (RunClock::new(0), [0; 64]);
        let mut take = |gates: &mut Gates, node: usize| {
            let port = gates.first_node + node;
            let taken = (0..1000).find_map(|_| match gates.receive(&plan, port, &mut clock, &mut buffer) {
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
        assert_eq!((e.from, e.to, &bytes[..e.len]), (2, 1, &b"hand"[..]));
        assert!(gates.deliver(e.exit, e.to, 46, &bytes[..e.len]));
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
