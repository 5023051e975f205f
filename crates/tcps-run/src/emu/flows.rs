//! Which flow and sample of a plan a packet is of, and how large it is for links.

use super::Datagram;
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};
use tcps_core::ids::{ChannelId, NodeId};
use tcps_plan::net::ASIDE_CLASS;
use tcps_plan::{FlowPlan, Plan};
use tcps_transport::encapsulation_bytes;
use tcps_transport::kernel_tcp;
use tcps_wire::{ip, telehaptic};

/// The flows of a plan, and where nodes listen, as whole IP packets tell it.
pub struct Flows<'a> {
    plan: &'a Plan,
    /// Channel per (node, whether by TCP, port).
    channels: BTreeMap<(NodeId, bool, u16), ChannelId>,
    /// Packets whose port could not be read.
    pub unread: u64,
}

impl<'a> Flows<'a> {
    /// Of a plan whose nodes listen at these addresses, per (node, channel).
    pub fn new(plan: &'a Plan, listeners: &BTreeMap<(NodeId, ChannelId), SocketAddr>) -> Self {
        let transport =
            |channel: ChannelId| plan.channels.get(usize::from(channel)).map(|c| c.transport.as_str());
        let by_tcp = |channel: ChannelId| transport(channel) == Some(kernel_tcp::NAME);
        let listens = |(&(node, channel), a): (&(NodeId, ChannelId), &SocketAddr)| {
            ((node, by_tcp(channel), a.port()), channel)
        };
        Self { plan, channels: listeners.iter().map(listens).collect(), unread: 0 }
    }

    /// The node that has an address of the plan.
    pub fn node(&self, address: IpAddr) -> Option<NodeId> {
        NodeId::each(&self.plan.real.addresses).find_map(|(node, a)| (*a == address).then_some(node))
    }

    /// An IP packet from one node to another that takes `wire_bytes` on the wire. A segment of TCP belongs to the channel
    /// whose port it goes to.
    pub fn of_packet(
        &mut self,
        [from, to]: [NodeId; 2],
        packet: &ip::Packet<'_>,
        bytes: &[u8],
        wire_bytes: u32,
    ) -> Datagram {
        self.unread += u64::from(packet.hides_port());
        let udp = packet.udp();
        let port = udp.as_ref().map(|u| (false, u.port)).or_else(|| Some((true, packet.tcp_port()?)));
        let channel = port.and_then(|(tcp, port)| self.channels.get(&(to, tcp, port)).copied());
        let payload = udp.map_or(&[][..], |u| &bytes[u.payload]);
        Datagram {
            dscp: packet.dscp(),
            ecn: packet.ecn(),
            ..self.of_datagram(channel, from, payload, wire_bytes)
        }
    }

    /// A UDP datagram of node `from` that takes `wire_bytes` on the wire.
    pub fn of_datagram(
        &self,
        channel: Option<ChannelId>,
        from: NodeId,
        datagram: &[u8],
        wire_bytes: u32,
    ) -> Datagram {
        let (class, index, wire_bytes) = account(self.plan, channel, from, datagram, wire_bytes);
        Datagram { class, index, wire_bytes, rated_bytes: wire_bytes, ..Datagram::default() }
    }
}

/// Flow, sample and accounted size of a UDP datagram of node `from` that takes `wire_bytes` on the wire.
fn account(
    plan: &Plan,
    channel: Option<ChannelId>,
    from: NodeId,
    datagram: &[u8],
    wire_bytes: u32,
) -> (u16, u32, u32) {
    let merged = channel.filter(|c| tcps_transport::is_telehaptic(&plan.channels[*c].transport));
    if let (Some(c), Ok(packet)) = (merged, telehaptic::Packet::new_checked(datagram)) {
        let oldest = packet.trailer().and_then(|t| t.position(0)).map_or(0, |p| p.index);
        return (carried(plan, c, from), oldest, plan.accounted_telehaptic(c, &packet));
    }
    let overhead_bytes = channel.and_then(|c| plan.overhead_bytes(c));
    match (channel, tcps_plan::accounted(datagram, wire_bytes, overhead_bytes)) {
        (Some(_), Some((flow, index, bytes))) if flow.index() < plan.flows.len() => (flow.0, index, bytes),
        (Some(c), None) => {
            (carried(plan, c, from), 0, wire_bytes - encapsulation_bytes(&plan.channels[c].transport))
        }
        _ => (ASIDE_CLASS, 0, wire_bytes),
    }
}

/// The flow that stands for datagrams of a channel that do not name their own: the first from their node, of those that
/// are neither sound nor picture if there are any; where none comes from there, the first of the channel.
fn carried(plan: &Plan, channel: ChannelId, from: NodeId) -> u16 {
    let rank = |f: &FlowPlan| {
        let mut on = f.path.iter().filter(|v| v.channel == Some(channel)).peekable();
        on.peek()?;
        let leaves = on.any(|v| plan.components[v.component].node == from);
        Some((!leaves, matches!(f.name.rsplit('/').next(), Some("audio" | "video"))))
    };
    let ranked = plan.flows.iter().zip(0..).filter_map(|(f, number)| Some((rank(f)?, number)));
    ranked.min().map_or(ASIDE_CLASS, |(_, number)| number)
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
        assert_eq!(
            account(&plan, Some(ChannelId(0)), NodeId(1), &packet, 999),
            (2, 515, 8 + 24 + 54),
            "haptic, not video"
        );
        assert_eq!(account(&plan, Some(ChannelId(0)), NodeId(0), &packet, 999), (0, 515, 8 + 24 + 54));
        assert_eq!(account(&plan, Some(ChannelId(0)), NodeId(1), b"a report", 99), (2, 0, 99));
        assert_eq!(account(&plan, None, NodeId(1), &packet, 99), (ASIDE_CLASS, 0, 99));
    }
}
