//! Which flow and sample of a plan a packet is of, and how large it is for links.

use super::{Carries, Datagram};
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};
use tcps_core::ids::{ChannelId, NodeId};
use tcps_plan::net::ASIDE_CLASS;
use tcps_plan::Plan;
use tcps_transport::encapsulation_bytes;
use tcps_transport::kernel_tcp;
use tcps_wire::{ip, telehaptic};

/// The flows of a plan, and where nodes listen, as whole IP packets tell it.
pub struct Flows<'a> {
    plan: &'a Plan,
    /// Channel per (node, whether by TCP, port).
    channels: BTreeMap<(NodeId, bool, u16), ChannelId>,
    /// The flow that stands for datagrams that do not name their own, per channel and sender.
    leading: BTreeMap<(ChannelId, NodeId), u16>,
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
        let ends = ChannelId::each(&plan.channels).flat_map(|(c, ends)| [(c, ends.a), (c, ends.b)]);
        let leading = ends.map(|(c, from)| ((c, from), leading(plan, c, from))).collect();
        Self { plan, channels: listeners.iter().map(listens).collect(), leading, unread: 0 }
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
        let (class, index, wire_bytes, carries) = self.account(channel, from, datagram, wire_bytes);
        Datagram {
            channel,
            class,
            index,
            wire_bytes,
            rated_bytes: wire_bytes,
            carries,
            ..Datagram::default()
        }
    }

    /// Flow, sample and accounted size of a UDP datagram of node `from` that takes `wire_bytes` on the wire, and what it has in it.
    fn account(
        &self,
        channel: Option<ChannelId>,
        from: NodeId,
        datagram: &[u8],
        wire_bytes: u32,
    ) -> (u16, u32, u32, Carries) {
        let aside = (ASIDE_CLASS, 0, wire_bytes, Carries::Nothing);
        let Some(c) = channel else { return aside };
        let transport = self.plan.channels[c].transport.as_str();
        let leading = || self.leading.get(&(c, from)).copied().unwrap_or(ASIDE_CLASS);
        if self.plan.channels[c].security.is_some() {
            let wire_bytes = wire_bytes - encapsulation_bytes(transport);
            return (leading(), 0, wire_bytes, Carries::Channel(c, from, [true; 2]));
        }
        let merges = tcps_transport::is_telehaptic(transport);
        if let (true, Ok(packet)) = (merges, telehaptic::Packet::new_checked(datagram)) {
            let oldest = packet.trailer().and_then(|t| t.position(0)).map_or(0, |p| p.index);
            let media = [packet.audio_header(), packet.video_header()].map(|m| m.is_some());
            let bytes = self.plan.accounted_telehaptic(c, &packet);
            return (leading(), oldest, bytes, Carries::Channel(c, from, media));
        }
        match tcps_plan::accounted(datagram, wire_bytes, self.plan.overhead_bytes(c)) {
            Some((flow, index, bytes)) if flow.index() < self.plan.flows.len() => {
                (flow.0, index, bytes, Carries::Flow(flow))
            }
            Some(_) => aside,
            None => {
                let carries = if merges { Carries::Nothing } else { Carries::Channel(c, from, [true; 2]) };
                (leading(), 0, wire_bytes - encapsulation_bytes(transport), carries)
            }
        }
    }
}

/// The flow that stands for datagrams of a channel that do not name their own: the first from their node, of those that
/// are neither sound nor picture if there are any; where none comes from there, the first of the channel.
fn leading(plan: &Plan, channel: ChannelId, from: NodeId) -> u16 {
    let ranked =
        plan.flows_of(channel, from).map(|(id, flow, leaves)| (!leaves, flow.medium().is_some(), id.0));
    ranked.min().map_or(ASIDE_CLASS, |(.., number)| number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};
    use tcps_wire::telehaptic::{
        trailer::{self, Position},
        Repr, SubHeader,
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
        let flows = Flows::new(&plan, &BTreeMap::new());
        let of = |channel: Option<ChannelId>, from: u16, bytes: &[u8]| {
            let (class, index, size, _) = flows.account(channel, NodeId(from), bytes, 99);
            (class, index, size)
        };
        let c = Some(ChannelId(0));
        assert_eq!(of(c, 1, &packet), (2, 515, 8 + 24 + 54), "haptic, not video");
        assert_eq!(of(c, 0, &packet), (0, 515, 8 + 24 + 54));
        assert_eq!(of(c, 1, b"a report"), (2, 0, 99));
        assert_eq!(of(None, 1, &packet), (ASIDE_CLASS, 0, 99));
    }

    #[test]
    fn a_datagram_has_samples_of_the_flows_that_it_names_and_of_all_where_it_names_none() {
        let mut packet = Vec::new();
        let video = Some(SubHeader { frame: 7, bytes: 3, part: 0 });
        let head = Repr {
            fragments: 1,
            repeated: false,
            delay_us: None,
            timestamp_ms: 0,
            audio: None,
            video,
            has_trailer: false,
        };
        head.emit(&mut packet);
        packet.extend_from_slice(&[0; 12 + 3]);
        let of = |transport: &str, bytes: &[u8]| {
            let plan = plan(transport);
            Flows::new(&plan, &BTreeMap::new()).account(Some(ChannelId(0)), NodeId(1), bytes, 999).3
        };
        assert_eq!(of("dpm", &packet), Carries::Channel(ChannelId(0), NodeId(1), [false, true]));
        assert_eq!(of("dpm", b"a report"), Carries::Nothing);
        assert_eq!(of("quic", b"sealed"), Carries::Channel(ChannelId(0), NodeId(1), [true; 2]));
    }
}
