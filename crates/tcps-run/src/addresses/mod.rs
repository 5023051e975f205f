//! Addresses of nodes, by rule or as the plan gives them.
//!
//! ```text
//! node 0   10.77.0.1, 02:4e:00:00:00:01      gateway to all other nodes   02:4e:00:00:00:00
//! ```
//! Nobody has to ask for hardware addresses: they follow from the numbers of nodes. A program that holds the nodes' devices
//! itself and knows Ethernet frames only (ns-3) is given them, and nodes write them down.

pub mod asides;

use serde_json::{json, Value};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tcps_core::ids::NodeId;
use tcps_plan::{Isolation, Plan, RealPlan};

/// First bytes of the hardware addresses of nodes and gateway: of nobody's making.
const PREFIX: [u8; 4] = [2, b'N', 0, 0];

/// The address of the emulator's gate of a node.
pub fn gate_address(real: &RealPlan, node: NodeId) -> IpAddr {
    real.gates.unwrap_or_else(|| by_rule(real, node))
}

/// The address of a node's sockets.
pub fn address(real: &RealPlan, node: NodeId) -> IpAddr {
    real.addresses.get(usize::from(node)).copied().unwrap_or_else(|| by_rule(real, node))
}

fn by_rule(real: &RealPlan, node: NodeId) -> IpAddr {
    let number = node.0 + 1;
    let [high, low] = number.to_be_bytes();
    match (real.network, real.ipv6) {
        (Isolation::Gates, false) => Ipv4Addr::LOCALHOST.into(),
        (Isolation::Gates, true) => Ipv6Addr::LOCALHOST.into(),
        (Isolation::Namespaces, false) => Ipv4Addr::new(10, 77, high, low).into(),
        (Isolation::Namespaces, true) => Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, number).into(),
    }
}

/// The node with an address in a namespace.
pub fn node_at(address: IpAddr) -> Option<NodeId> {
    let number = match address {
        IpAddr::V4(a) => match a.octets() {
            [10, 77, high, low] => u16::from_be_bytes([high, low]),
            _ => return None,
        },
        IpAddr::V6(a) => match a.segments() {
            [0xfd77, 0, 0, 0, 0, 0, 0, number] => number,
            _ => return None,
        },
    };
    number.checked_sub(1).map(NodeId)
}

/// The hardware address of a node's device; that of all gateways without a number.
pub fn hardware(node: Option<NodeId>) -> [u8; 6] {
    let [high, low] = node.map_or(0, |n| n.0 + 1).to_be_bytes();
    let [a, b, c, d] = PREFIX;
    [a, b, c, d, high, low]
}

fn written(hardware: [u8; 6]) -> String {
    hardware.map(|byte| format!("{byte:02x}")).join(":")
}

/// The hardware address of whatever is at the other end of every device.
pub fn gateway() -> String {
    written(hardware(None))
}

/// Addresses of all nodes as a program wants them that holds their devices: `[{"address":"10.77.0.1","mac":"02:…"}]`.
pub fn ends(plan: &Plan) -> Value {
    let of = |(n, _)| json!({"address": address(&plan.real, n), "mac": written(hardware(Some(n)))});
    NodeId::each(&plan.nodes).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_its_node() {
        for ipv6 in [false, true] {
            let real = RealPlan { network: Isolation::Namespaces, ipv6, ..RealPlan::default() };
            for node in [0, 1, 254, 255, 256, 40_000].map(NodeId) {
                assert_eq!(node_at(address(&real, node)), Some(node));
            }
        }
        for stranger in ["10.77.0.0", "10.78.0.1", "fd77::", "fd77::1:1", "ff02::2", "127.0.0.1"] {
            assert_eq!(node_at(stranger.parse().unwrap()), None, "{stranger}");
        }
    }

    #[test]
    fn addresses_follow_from_the_numbers_of_nodes() {
        let plan: Plan = serde_json::from_value(json!({
            "name": "p", "seed": 1, "duration_ns": 1, "sessions": [], "components": [], "flows": [],
            "nodes": [{"name": "a"}, {"name": "b"}],
            "real": {"waiting": "timer", "spin_ns": 0, "realtime": false, "ipv6": false, "network": "namespaces",
                     "addresses": [], "gates": null, "frames": true},
        }))
        .unwrap();
        let expected = json!([
            {"address": "10.77.0.1", "mac": "02:4e:00:00:00:01"},
            {"address": "10.77.0.2", "mac": "02:4e:00:00:00:02"},
        ]);
        assert_eq!(ends(&plan), expected);
        assert_eq!(gateway(), "02:4e:00:00:00:00");
        assert_eq!(written(hardware(Some(NodeId(0x1234)))), "02:4e:00:00:12:35");
    }
}
