//! TAP devices in place of cables: where links are between the switches of a network that others have built, the emulator
//! takes the frames out of one device and puts them into the other, as the link says.
//!
//! ```text
//!  switch ── TAP l0a ──► link 0 of tcps-net ──► TAP l0b ── switch
//!                   ◄──  link 1 of tcps-net ◄──
//! ```
//! Every link is a network of two vertices of its own: `2 n` where link `n` begins, `2 n + 1` where it ends. Which way a
//! frame takes is the switches' business.

use super::{devices::Sort, Datagram, Flows};
use crate::os::namespace;
use serde::Deserialize;
use std::{
    collections::{btree_map::Entry, BTreeMap},
    fs::File,
};
use tcps_core::{
    ids::{LinkId, VertexId},
    size::LINK_BYTES,
};
use tcps_plan::net::{LinkSpec, ASIDE_CLASS};
use tcps_plan::{Plan, RunError};
use tcps_wire::ip;

/// Ethernet's header in front of IP.
const HEADER_BYTES: usize = 14;
/// EtherTypes of VLAN tags, which stand where IP is looked for. [IEEE 802.1Q]
const TAGS: [[u8; 2]; 3] = [[0x81, 0x00], [0x88, 0xa8], [0x91, 0x00]];
/// What a link carries beside the bytes of a frame: preamble and check sequence.
const AROUND_BYTES: u32 = LINK_BYTES - HEADER_BYTES as u32;

/// Which devices links are between: per number of a link the device that it leaves and the one that it reaches.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct WireSpec(BTreeMap<LinkId, (String, String)>);

impl WireSpec {
    /// The plan with every link alone between two vertices; those without devices do nothing, and so does traffic, which
    /// comes through the switches.
    pub fn plan(&self, plan: &Plan) -> Plan {
        let mut alone = plan.clone();
        let vertices = (0..2 * alone.network.links.len()).map(|v| format!("end {v}"));
        alone.network.vertices = vertices.collect();
        alone.network.traffic.clear();
        for (number, link) in (0..).map(LinkId).zip(&mut alone.network.links) {
            let own = LinkSpec { name: link.name.clone(), ..LinkSpec::default() };
            let kept = if self.carries(number) { link.clone() } else { own };
            let [from, to] = ends(number);
            *link = LinkSpec { from, to, ..kept };
        }
        alone
    }
}

/// The vertices that a link is alone between.
fn ends(link: LinkId) -> [VertexId; 2] {
    [2 * link.0, 2 * link.0 + 1].map(VertexId)
}

/// The link that leaves each device, with the number of the device that it reaches.
pub type Leads = Vec<Option<(LinkId, usize)>>;

/// Links between devices.
pub struct Wires<'a> {
    leads: Leads,
    flows: Flows<'a>,
}

impl WireSpec {
    /// The devices, which stand already, in the network namespace of this process; which link leaves each.
    pub fn open(&self, plan: &Plan) -> Result<(Vec<File>, Leads), RunError> {
        if let Some(link) = self.0.keys().find(|l| usize::from(**l) >= plan.network.links.len()) {
            return Err(RunError::config(format!("wires: found link {link}, which is not in the plan")));
        }
        let (mut numbers, mut devices, mut leads) = (BTreeMap::new(), Vec::new(), Vec::new());
        for name in self.0.values().flat_map(|(from, to)| [from, to]) {
            if let Entry::Vacant(free) = numbers.entry(name) {
                free.insert(devices.len());
                devices.push(namespace::tap(name).map_err(|e| RunError::system(name, e))?);
                leads.push(None);
            }
        }
        for (link, (from, to)) in &self.0 {
            leads[numbers[from]] = Some((*link, numbers[to]));
        }
        Ok((devices, leads))
    }

    /// Whether a link of the plan is between devices.
    pub fn carries(&self, link: LinkId) -> bool {
        self.0.contains_key(&link)
    }
}

impl<'a> Wires<'a> {
    /// With nodes that listen as told.
    pub fn new(leads: Leads, flows: Flows<'a>) -> Self {
        Self { leads, flows }
    }
}

impl Sort for Wires<'_> {
    /// Every frame is carried, also one of nobody that is known; nothing if it is none, or its device leads nowhere.
    fn look(&mut self, device: usize, frame: &[u8]) -> Option<Datagram> {
        let (link, exit) = self.leads[device]?;
        let content = frame.get(HEADER_BYTES..)?;
        self.flows.unread += u64::from(TAGS.contains(&[frame[HEADER_BYTES - 2], frame[HEADER_BYTES - 1]]));
        let wire_bytes = frame.len() as u32 + AROUND_BYTES;
        let stranger =
            Datagram { class: ASIDE_CLASS, wire_bytes, rated_bytes: wire_bytes, ..Datagram::default() };
        let inside = ip::Packet::new_checked(content).ok().map(|packet| {
            match (self.flows.node(packet.source()), self.flows.node(packet.destination())) {
                (Some(from), Some(to)) => self.flows.of_packet([from, to], &packet, content, wire_bytes),
                _ => Datagram { dscp: packet.dscp(), ecn: packet.ecn(), ..stranger },
            }
        });
        let [from, to] = ends(link);
        Some(Datagram { from, to, exit: exit as u32, ..inside.unwrap_or(stranger) })
    }

    fn unread(&self) -> u64 {
        self.flows.unread
    }

    fn before_ip(&self) -> usize {
        HEADER_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tcps_core::ids::{ChannelId, NodeId};

    fn plan() -> Plan {
        serde_json::from_value(json!({
            "name": "p", "seed": 1, "duration_ns": 1, "sessions": ["a"], "components": [], "flows": [],
            "nodes": [{"name": "a"}, {"name": "b"}],
            "real": {"waiting": "timer", "spin_ns": 0, "realtime": false, "ipv6": false, "network": "gates",
                     "addresses": ["10.66.0.1", "10.66.0.2"], "gates": null},
            "network": {"vertices": ["a", "b", "r"], "traffic": [{"name": "t", "from": 0, "to": 1,
                "model": {"kind": "cbr", "rate_bps": 1e3, "packet_bytes": 100}}], "links": [
                {"name": "l1.forward", "from": 0, "to": 2, "delay_ns": 5}, {"name": "l1.backward", "from": 2, "to": 0},
                {"name": "l2.forward", "from": 2, "to": 1, "rate_bps": 1e6},
            ]},
        }))
        .unwrap()
    }

    fn spec() -> WireSpec {
        serde_json::from_value(json!({"0": ["l0a", "l0b"], "1": ["l0b", "l0a"]})).unwrap()
    }

    fn wires<'a>(plan: &'a Plan, leads: &[Option<(LinkId, usize)>]) -> Wires<'a> {
        Wires::new(leads.to_vec(), Flows::new(plan, &BTreeMap::new()))
    }

    fn frame(source: [u8; 4], payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 12];
        bytes.extend([8, 0, 0x45, 46 << 2]);
        bytes.extend((28 + payload.len() as u16).to_be_bytes());
        bytes.extend([0, 0, 0, 0, 64, 17, 0, 0]);
        bytes.extend(source);
        bytes.extend([10, 66, 0, 2, 0, 9, 0, 9]);
        bytes.extend((8 + payload.len() as u16).to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn each_link_is_alone_between_its_ends_and_what_has_no_devices_does_nothing() {
        let alone = spec().plan(&plan());
        let links = &alone.network.links;
        assert_eq!(links.iter().map(|l| (l.from.0, l.to.0)).collect::<Vec<_>>(), [(0, 1), (2, 3), (4, 5)]);
        assert_eq!((links[0].delay_ns, links[2].rate_bps, links[2].name.as_str()), (5, None, "l2.forward"));
        assert!(alone.network.traffic.is_empty() && alone.network.vertices.len() == 6);
    }

    // [model: wire size]
    #[test]
    fn a_frame_enters_its_link_with_its_size_on_the_wire_and_its_code_point() {
        let plan = plan();
        let mut wires = wires(&plan, &[Some((LinkId(0), 1)), Some((LinkId(1), 0))]);
        let bytes = frame([10, 66, 0, 1], b"hand");
        let e = wires.look(1, &bytes).unwrap();
        assert_eq!((e.from.0, e.to.0, e.exit), (2, 3, 0));
        assert_eq!((e.wire_bytes, e.dscp, e.class), (46 + 12, 46, ASIDE_CLASS));
        // What is no IP, or from nobody that is known, is carried all the same.
        for other in [frame([10, 66, 0, 9], b"x"), vec![0; 14], vec![0xff; 60]] {
            let e = wires.look(0, &other).unwrap();
            assert_eq!((e.class, e.wire_bytes), (ASIDE_CLASS, other.len() as u32 + 12));
        }
    }

    #[test]
    fn a_segment_of_tcp_belongs_to_the_channel_whose_port_it_goes_to() {
        let mut plan = plan();
        let channel = json!({"name": "c", "session": 0, "a": 0, "b": 1, "transport": "kernel-tcp"});
        plan.channels = vec![serde_json::from_value(channel).unwrap()];
        let component = |n: u16| json!({"name": format!("c{n}"), "kind": "srv", "session": 0, "node": n});
        plan.components = serde_json::from_value(json!([component(0), component(1)])).unwrap();
        let flow = json!({"name": "hand", "session": 0, "direction": "forward", "period_ns": 1, "codec": "raw",
                          "source": {"kind": "generated", "bytes": 12}, "sink": {"kind": "count"},
                          "path": [{"component": 0, "channel": 0}, {"component": 1}]});
        plan.flows = vec![serde_json::from_value(flow).unwrap()];
        let listener = ((NodeId(1), ChannelId(0)), "10.66.0.2:9".parse().unwrap());
        let flows = Flows::new(&plan, &BTreeMap::from([listener]));
        let mut wires = Wires::new(vec![Some((LinkId(0), 1)), Some((LinkId(1), 0))], flows);
        let udp = frame([10, 66, 0, 1], &[0; 20]);
        let mut tcp = udp.clone();
        tcp[HEADER_BYTES + 9] = 6;
        let mut class = |bytes: &[u8]| wires.look(0, bytes).unwrap().class;
        assert_eq!((class(&tcp), class(&udp)), (0, ASIDE_CLASS), "the port is one of TCP");
    }

    #[test]
    fn what_is_no_frame_or_has_no_way_on_is_a_stranger() {
        let plan = plan();
        let mut wires = wires(&plan, &[Some((LinkId(0), 1)), None]);
        assert!(wires.look(0, &[0; 13]).is_none());
        assert!(wires.look(1, &frame([10, 66, 0, 1], b"x")).is_none());
    }

    #[test]
    fn links_that_are_not_in_the_plan_are_refused() {
        let none: WireSpec = serde_json::from_value(json!({})).unwrap();
        assert!(none.open(&plan()).is_ok_and(|(devices, _)| devices.is_empty()));
        let text = json!({"3": ["a", "b"]});
        let beyond: WireSpec = serde_json::from_value(text).unwrap();
        let why = beyond.open(&plan()).map(|_| ()).unwrap_err().to_string();
        assert_eq!(why, "wires: found link 3, which is not in the plan");
    }

    #[test]
    fn a_name_that_no_device_can_have_is_refused() {
        let text = json!({"0": ["a name too long for a device", "b"]});
        let long: WireSpec = serde_json::from_value(text).unwrap();
        assert!(long.open(&plan()).is_err());
    }
}
