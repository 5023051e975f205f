//! The emulator: the network of the scenario between real nodes, on the machine's clock.
//!
//! ```text
//!  node a ──► port a ─┐                        ┌─► port b ──► node b
//!                     └─► tcps-net, real clock ─┘
//! ```
//! Ports are UDP gates on loopback, without root (`gates`), or the TUN devices of nodes in network namespaces of their
//! own (`taps`), or the TAP devices that are the links between the switches of others (`wires`), or none, where another
//! program holds the devices (`beyond`). A datagram leaves when the network says so; how far that moment and the delivery
//! differ is measured for every packet: set against delivered.

mod beyond;
mod gates;
mod journey;
mod relay;
mod taps;
mod wires;

use crate::{
    carrier::{Carrier, ForeignSpec},
    error::RunError,
    os::{clock::RunClock, ring::Producer},
    plan::{FlowPlan, Isolation, Plan},
};
use beyond::Beyond;
use gates::Gates;
pub use relay::Relay;
use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    os::fd::RawFd,
    path::Path,
};
use taps::Taps;
use tcps_core::time::Time;
use tcps_net::ASIDE_CLASS;
use tcps_transport::kernel_tcp;
use tcps_wire::{header, ip, telehaptic};
pub use wires::WireSpec;
use wires::Wires;

const RING_ROWS: u64 = 1 << 15;

/// Where datagrams enter and leave the network. Ports are numbered as their descriptors.
trait Ports {
    /// What can be waited for.
    fn descriptors(&self) -> Vec<RawFd>;
    /// The next datagram at a port, with its bytes in the buffer.
    fn receive(&mut self, plan: &Plan, port: usize, clock: &mut RunClock, buffer: &mut [u8]) -> Taken;
    fn deliver(&mut self, exit: usize, to: u16, dscp: u8, bytes: &[u8]) -> bool;
    /// What a vertex of the network is called.
    fn name<'a>(&'a self, plan: &'a Plan, vertex: u16) -> &'a str {
        &plan.nodes[usize::from(vertex)].name
    }
    /// Whether a link of the plan is this emulator's.
    fn carries(&self, _link: u16) -> bool {
        true
    }
    /// What says when datagrams entered.
    fn stamps(&self) -> &'static str;
    /// What went wrong so far.
    fn troubles(&self) -> Troubles;
}

/// What a port gives.
enum Taken {
    /// Nothing more at the moment.
    Empty,
    /// A datagram that is not for the network.
    Stranger,
    Packet(Entered),
}

/// A datagram that enters the network.
struct Entered {
    from: u16,
    to: u16,
    /// The port that it leaves through.
    exit: usize,
    arrived: Time,
    /// Bytes of the buffer that are handed on.
    len: usize,
    class: u16,
    index: u32,
    dscp: u8,
    wire_bytes: u32,
}

/// What ports count.
#[derive(Debug, Clone, Copy, Default)]
struct Troubles {
    /// Datagrams that the kernel dropped on the way in.
    dropped: u64,
    /// Datagrams that the kernel would not take.
    unsent: u64,
    /// Packets that are for no node.
    strangers: u64,
    /// Packets whose port cannot be read, so that no rule is theirs.
    unread: u64,
}

/// The emulator, before nodes have told where they listen.
pub struct Emulator {
    entrance: Entrance,
    network: Carrier,
    ring: Producer,
}

enum Entrance {
    Gates(Gates),
    Taps(taps::Listener),
    Wires(Wires),
    /// Where the program that simulates the network takes the devices.
    Beyond,
}

/// A gate: (node, channel, address) where a node sends what is for a channel; (node, nothing, address) that stands for a
/// node outside channels.
pub type GateAddress = (u16, Option<u16>, SocketAddr);

/// Where nodes listen.
#[derive(Debug, Default)]
pub struct Listeners {
    /// Per (node, channel).
    pub channels: BTreeMap<(u16, u16), SocketAddr>,
    /// Per node, for everything else, in the order of its loops.
    pub asides: BTreeMap<u16, Vec<SocketAddr>>,
    /// Every address from which a node sends everything else: its loops have a socket each.
    pub aside_senders: BTreeSet<(u16, SocketAddr)>,
}

impl Emulator {
    /// Builds the network, or has another program build it, and its ports; TUN devices are taken at `taps`.
    pub fn prepare(
        plan: &Plan,
        ring: &Path,
        taps: Option<&Path>,
        foreign: Option<&ForeignSpec>,
    ) -> Result<Self, RunError> {
        let network = Carrier::new(plan, foreign, true)?;
        let entrance = match plan.real.network {
            Isolation::Gates => {
                plan.refuse_kernel_tcp("the emulator's gates carry datagrams of UDP only")?;
                Entrance::Gates(Gates::bind(plan)?)
            }
            Isolation::Namespaces if plan.real.frames => Entrance::Beyond,
            Isolation::Namespaces => Entrance::Taps(taps::Listener::bind(taps)?),
        };
        Ok(Self { entrance, network, ring: Producer::create(ring, RING_ROWS)? })
    }

    /// Builds the links of a plan between devices of this process's network namespace; the plan is that of
    /// [`WireSpec::plan`].
    pub fn wired(plan: &Plan, alone: &Plan, ring: &Path, wires: &WireSpec) -> Result<Self, RunError> {
        let network = Carrier::new(alone, None, true)?;
        let entrance = Entrance::Wires(Wires::open(plan, wires)?);
        Ok(Self { entrance, network, ring: Producer::create(ring, RING_ROWS)? })
    }

    /// The gates that nodes send to; without gates, nodes send to each other.
    pub fn gates(&self) -> Result<Vec<GateAddress>, RunError> {
        match &self.entrance {
            Entrance::Gates(g) => g.addresses(),
            Entrance::Taps(_) | Entrance::Wires(_) | Entrance::Beyond => Ok(Vec::new()),
        }
    }

    /// Joins the nodes. Run time is 0 at `start` (CLOCK_MONOTONIC).
    pub fn join(self, plan: &Plan, listeners: &Listeners, start: Time) -> Result<Relay, RunError> {
        let ports: Box<dyn Ports> = match self.entrance {
            Entrance::Gates(gates) => Box::new(gates.joined(plan, listeners)),
            Entrance::Taps(listener) => {
                let devices = listener.devices(plan.nodes.len())?;
                Box::new(Taps::new(devices, Heard::new(plan, &listeners.channels)))
            }
            Entrance::Wires(wires) => Box::new(wires.joined(Heard::new(plan, &listeners.channels))),
            Entrance::Beyond => Box::new(Beyond),
        };
        Ok(Relay::new(ports, self.network, self.ring, plan, start))
    }
}

/// Where nodes listen, as whole IP packets tell it: channel per (node, whether by TCP, port).
#[derive(Default)]
struct Heard {
    channels: BTreeMap<(u16, bool, u16), u16>,
    /// Packets whose port could not be read.
    unread: Cell<u64>,
}

impl Heard {
    /// From the addresses at which nodes listen, per (node, channel).
    fn new(plan: &Plan, listeners: &BTreeMap<(u16, u16), SocketAddr>) -> Self {
        let transport = |channel: u16| plan.channels.get(usize::from(channel)).map(|c| c.transport.as_str());
        let by_tcp = |channel: u16| transport(channel) == Some(kernel_tcp::NAME);
        let listens =
            |(&(node, channel), a): (&(u16, u16), &SocketAddr)| ((node, by_tcp(channel), a.port()), channel);
        Self { channels: listeners.iter().map(listens).collect(), unread: Cell::new(0) }
    }

    /// Counts a packet whose port cannot be read.
    fn count_unread(&self) {
        self.unread.set(self.unread.get() + 1);
    }

    /// Flow, sample, accounted size and code point of an IP packet from one node to another that takes `wire_bytes` on
    /// the wire. A segment of TCP belongs to the channel whose port it goes to.
    fn account(
        &self,
        plan: &Plan,
        [from, to]: [u16; 2],
        packet: &ip::Packet<'_>,
        bytes: &[u8],
        wire_bytes: u32,
    ) -> (u16, u32, u32, u8) {
        if packet.hides_port() {
            self.count_unread();
        }
        let udp = packet.udp();
        let port = udp.as_ref().map(|u| (false, u.port)).or_else(|| Some((true, packet.tcp_port()?)));
        let channel = port.and_then(|(tcp, port)| self.channels.get(&(to, tcp, port)).copied());
        let payload = udp.map_or(&[][..], |u| &bytes[u.payload]);
        let (class, index, wire_bytes) = account(plan, channel, from, payload, wire_bytes);
        (class, index, wire_bytes, packet.dscp())
    }
}

/// Flow, sample and accounted size of a UDP datagram of node `from` that takes `wire_bytes` on the wire.
fn account(
    plan: &Plan,
    channel: Option<u16>,
    from: u16,
    datagram: &[u8],
    wire_bytes: u32,
) -> (u16, u32, u32) {
    let merged = channel.filter(|c| tcps_transport::is_telehaptic(&plan.channels[usize::from(*c)].transport));
    if let (Some(c), Ok(packet)) = (merged, telehaptic::Packet::new_checked(datagram)) {
        let oldest = packet.trailer().and_then(|t| t.position(0)).map_or(0, |p| p.index);
        return (carried(plan, c, from), oldest, plan.accounted_telehaptic(c, &packet));
    }
    let parsed = header::Packet::new_checked(datagram).ok().and_then(|p| header::Repr::parse(&p).ok());
    match (channel, parsed) {
        (Some(c), Some(h)) if usize::from(h.flow) < plan.flows.len() => {
            (h.flow, h.index, plan.accounted_bytes(c, wire_bytes, h.payload_bytes()))
        }
        (Some(c), None) => (carried(plan, c, from), 0, wire_bytes - encapsulation_bytes(plan, c)),
        _ => (ASIDE_CLASS, 0, wire_bytes),
    }
}

/// The flow that stands for datagrams of a channel that do not name their own: the first from their node, of those that
/// are neither sound nor picture if there are any; where none comes from there, the first of the channel.
fn carried(plan: &Plan, channel: u16, from: u16) -> u16 {
    let rank = |f: &FlowPlan| {
        let mut on = f.path.iter().filter(|v| v.channel == Some(channel)).peekable();
        on.peek()?;
        let leaves = on.any(|v| plan.components[usize::from(v.component)].node == from);
        Some((!leaves, matches!(f.name.rsplit('/').next(), Some("audio" | "video"))))
    };
    let ranked = plan.flows.iter().zip(0..).filter_map(|(f, number)| Some((rank(f)?, number)));
    ranked.min().map_or(ASIDE_CLASS, |(_, number)| number)
}

/// Headers that are there only because the transport's own IP packets ride in UDP on sockets (design: streams).
fn encapsulation_bytes(plan: &Plan, channel: u16) -> u32 {
    if plan.channels[usize::from(channel)].transport == "tcp" {
        8 + 20
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};
    use tcps_wire::telehaptic::{
        trailer::{self, Position},
        Repr,
    };

    fn plan(transport: &str) -> Plan {
        let flow = |name: &str, direction: &str, ends: [u16; 2]| {
            let path = json!([{"component": ends[0], "channel": 0}, {"component": ends[1]}]);
            json!({"name": name, "session": 0, "direction": direction, "period_ns": 1_000_000, "codec": "raw",
                   "source": {"kind": "generated", "bytes": 12}, "sink": {"kind": "count"}, "path": path})
        };
        let component = |n: u16| json!({"name": format!("c{n}"), "kind": "srv", "session": 0, "node": n});
        let plan: Value = json!({
            "name": "p", "seed": 1, "duration_ns": 1, "sessions": ["a"], "nodes": [{"name": "n0"}, {"name": "n1"}],
            "channels": [{"name": "c", "session": 0, "a": 0, "b": 1, "transport": transport}],
            "components": [component(0), component(1)],
            "flows": [flow("kinematic", "forward", [0, 1]), flow("a/video", "backward", [1, 0]),
                      flow("a/haptic", "backward", [1, 0])],
        });
        serde_json::from_value(plan).unwrap()
    }

    #[test]
    fn a_merged_packet_is_accounted_to_its_flow_and_oldest_sample_as_in_virtual_time() {
        let (mut packet, plan) = (Vec::new(), plan("dpm"));
        let (audio, video, delay_us) = (None, None, None);
        let head = Repr {
            fragments: 2,
            repeated: false,
            delay_us,
            timestamp_ms: 0,
            audio,
            video,
            has_trailer: true,
        };
        head.emit(&mut packet);
        packet.extend_from_slice(&[0; 24]);
        trailer::emit(&[], &[Position { sample: 0, index: 515, origin_ns: 0 }], &[], &mut packet);
        assert_eq!(account(&plan, Some(0), 1, &packet, 999), (2, 515, 8 + 24 + 54), "haptic, not video");
        assert_eq!(account(&plan, Some(0), 0, &packet, 999), (0, 515, 8 + 24 + 54));
        assert_eq!(account(&plan, Some(0), 1, b"a report", 99), (2, 0, 99));
        assert_eq!(account(&plan, None, 1, &packet, 99), (ASIDE_CLASS, 0, 99));
    }
}
