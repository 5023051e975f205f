//! Devices that carry Ethernet frames, for a program that holds the nodes' devices itself and knows no other (ns-3).
//!
//! ```text
//!  node's namespace: 10.77.0.1, 02:4e:00:00:00:01 ══ TAP ══ program: gateway 02:4e:00:00:00:00 to all other nodes
//! ```
//! Nobody has to ask for hardware addresses: they follow from the numbers of nodes and are written down on both sides.

use super::namespace::{address, ioctl, request_for};
use crate::plan::Plan;
use serde_json::{json, Value};
use std::{
    io,
    mem::zeroed,
    net::{IpAddr, UdpSocket},
    os::fd::AsRawFd,
};

/// First bytes of the hardware addresses of nodes and gateway: of nobody's making.
const PREFIX: [u8; 4] = [2, b'N', 0, 0];
/// An entry that stays.
const ATF_COM_PERM: libc::c_int = 0x02 | 0x04;

/// The hardware address of a node's device; that of all gateways without a number.
fn hardware(node: Option<u16>) -> [u8; 6] {
    let [high, low] = node.map_or(0, |n| n + 1).to_be_bytes();
    let [a, b, c, d] = PREFIX;
    [a, b, c, d, high, low]
}

fn written(hardware: [u8; 6]) -> String {
    hardware.map(|byte| format!("{byte:02x}")).join(":")
}

/// The hardware address of whatever is at the other end of every device.
pub(crate) fn gateway() -> String {
    written(hardware(None))
}

/// Addresses of all nodes as a program wants them that holds their devices: `[{"address":"10.77.0.1","mac":"02:…"}]`.
pub(crate) fn ends(plan: &Plan) -> Value {
    let of = |n: u16| json!({"address": address(&plan.real, n), "mac": written(hardware(Some(n)))});
    (0..plan.nodes.len() as u16).map(of).collect()
}

/// Gives a device of this thread's namespace the hardware address of its node, and tells the kernel that all others are
/// behind the gateway.
pub(super) fn introduce(device: &str, node: u16, others: impl Iterator<Item = IpAddr>) -> io::Result<()> {
    let control = UdpSocket::bind(("0.0.0.0", 0))?;
    let mut request = request_for(device);
    request.ifr_ifru.ifru_hwaddr = ethernet(hardware(Some(node)));
    ioctl(control.as_raw_fd(), libc::SIOCSIFHWADDR, &mut request)?;
    for other in others {
        // SAFETY: all-zero bytes are valid for this plain C structure.
        let mut entry: libc::arpreq = unsafe { zeroed() };
        let IpAddr::V4(ip) = other else { return Err(io::Error::from(io::ErrorKind::Unsupported)) };
        entry.arp_pa.sa_family = libc::AF_INET as u16;
        // Two bytes of port come before the address.
        entry.arp_pa.sa_data[2..6].iter_mut().zip(ip.octets()).for_each(|(to, from)| *to = from as _);
        entry.arp_ha = ethernet(hardware(None));
        entry.arp_flags = ATF_COM_PERM;
        entry.arp_dev.iter_mut().zip(device.bytes()).for_each(|(to, from)| *to = from as _);
        ioctl(control.as_raw_fd(), libc::SIOCSARP, &mut entry)?;
    }
    Ok(())
}

fn ethernet(hardware: [u8; 6]) -> libc::sockaddr {
    let mut address = libc::sockaddr { sa_family: libc::ARPHRD_ETHER, sa_data: [0; 14] };
    address.sa_data.iter_mut().zip(hardware).for_each(|(to, from)| *to = from as _);
    address
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(written(hardware(Some(0x1234))), "02:4e:00:00:12:35");
    }
}
