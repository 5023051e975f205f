//! IP packets as a TUN device gives them: what a link needs to see.
//!
//! ```text
//! IPv4 or IPv6 header ─┬─► UDP: ports, length ─► [ payload ]
//!                      └─► TCP: ports
//! ```
//! What is behind IPv6 extension headers is not looked into; nor is a fragment after the first: `hides_port` tells.

use crate::{
    bytes::{u16_at, u32_at, u8_at},
    Error,
};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    ops::Range,
};
use tcps_core::endpoint::Ecn;

const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;
const TCP_BYTES: usize = 20;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
const ESP: u8 = 50;
const AUTHENTICATION: u8 = 51;
/// Hop-by-hop and destination options, routing, fragment, mobility, host identity, shim6.
const EXTENSIONS: [u8; 7] = [0, 60, 43, 44, 135, 139, 140];

/// A whole IP packet.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    header_bytes: usize,
}

/// A protocol with ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// Datagrams.
    Udp,
    /// Streams.
    Tcp,
}

/// What a TCP segment takes of the numbers of its bytes. [RFC 9293 §3.1]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tcp {
    /// Number of its first byte.
    pub sequence: u32,
    /// How many numbers it takes: its payload, and one each for a flag that opens or closes a connection.
    pub length: u32,
    /// SYN.
    pub opens: bool,
    /// RST.
    pub resets: bool,
}

/// Where a UDP datagram's parts are in an IP packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Udp {
    /// Destination port.
    pub port: u16,
    /// Its payload.
    pub payload: Range<usize>,
}

impl<'a> Packet<'a> {
    /// A view of an IPv4 or IPv6 packet that is exactly as long as it says.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let (header_bytes, total) = match u8_at(bytes, 0) >> 4 {
            4 => (usize::from(u8_at(bytes, 0) & 0xf) * 4, usize::from(u16_at(bytes, 2))),
            6 => (IPV6_BYTES, IPV6_BYTES + usize::from(u16_at(bytes, 4))),
            _ => return Err(Error::Unknown),
        };
        if bytes.len() < header_bytes.max(IPV4_BYTES) {
            return Err(Error::Truncated);
        }
        if header_bytes < IPV4_BYTES || total != bytes.len() {
            return Err(Error::Contradiction);
        }
        Ok(Self { bytes, header_bytes })
    }

    fn is_v4(&self) -> bool {
        u8_at(self.bytes, 0) >> 4 == 4
    }

    /// Source address.
    pub fn source(&self) -> IpAddr {
        self.address(if self.is_v4() { 12 } else { 8 })
    }

    /// Destination address.
    pub fn destination(&self) -> IpAddr {
        self.address(if self.is_v4() { 16 } else { 24 })
    }

    fn address(&self, at: usize) -> IpAddr {
        if self.is_v4() {
            return Ipv4Addr::from(u32_at(self.bytes, at)).into();
        }
        Ipv6Addr::from(std::array::from_fn::<u16, 8, _>(|i| u16_at(self.bytes, at + 2 * i))).into()
    }

    /// Differentiated services code point, 0 to 63. [RFC 2474 §3]
    pub fn dscp(&self) -> u8 {
        if self.is_v4() {
            return u8_at(self.bytes, 1) >> 2;
        }
        (u16_at(self.bytes, 0) >> 6) as u8 & 0x3f
    }

    /// What it says of congestion. [RFC 3168 §5]
    pub fn ecn(&self) -> Ecn {
        Ecn::of(if self.is_v4() { u8_at(self.bytes, 1) } else { (u16_at(self.bytes, 0) >> 4) as u8 })
    }

    /// Whether the beginning of a protocol's header, of so many bytes, is in it.
    fn begins(&self, protocol: u8, header_bytes: usize) -> bool {
        let (found, later_fragment) = match self.is_v4() {
            true => (u8_at(self.bytes, 9), u16_at(self.bytes, 6) & 0x1fff != 0),
            false => (u8_at(self.bytes, 6), false),
        };
        found == protocol && !later_fragment && self.bytes.len() >= self.header_bytes + header_bytes
    }

    /// Whether it may have ports that are not seen: behind extension headers of IPv6, encrypted, in a fragment after the
    /// first, or cut off. [RFC 8200 §4, RFC 4303]
    pub fn hides_port(&self) -> bool {
        let (next, later_fragment) = match self.is_v4() {
            true => (u8_at(self.bytes, 9), u16_at(self.bytes, 6) & 0x1fff != 0),
            false => (u8_at(self.bytes, 6), false),
        };
        match next {
            _ if later_fragment => true,
            TCP => self.tcp_port().is_none(),
            UDP => self.udp().is_none(),
            ESP | AUTHENTICATION => true,
            next => !self.is_v4() && EXTENSIONS.contains(&next),
        }
    }

    /// Destination port of the TCP segment in it, if its beginning is there. [RFC 9293 §3.1]
    pub fn tcp_port(&self) -> Option<u16> {
        self.begins(TCP, TCP_BYTES).then(|| u16_at(self.bytes, self.header_bytes + 2))
    }

    /// Source and destination port, if its beginning is there.
    pub fn ports(&self) -> Option<(Transport, [u16; 2])> {
        let of = |protocol, header_bytes, transport| {
            self.begins(protocol, header_bytes)
                .then(|| (transport, [0, 2].map(|at| u16_at(self.bytes, self.header_bytes + at))))
        };
        of(UDP, UDP_BYTES, Transport::Udp).or_else(|| of(TCP, TCP_BYTES, Transport::Tcp))
    }

    /// Bytes behind the headers of UDP or TCP, and of others behind that of IP. [RFC 9293 §3.1]
    pub fn payload_bytes(&self) -> usize {
        let header_bytes = match self.ports() {
            Some((Transport::Udp, _)) => UDP_BYTES,
            Some((Transport::Tcp, _)) => usize::from(u8_at(self.bytes, self.header_bytes + 12) >> 4) * 4,
            None => 0,
        };
        self.bytes.len().saturating_sub(self.header_bytes + header_bytes)
    }

    /// The TCP segment in it, if its beginning is there. [RFC 9293 §3.1]
    pub fn tcp(&self) -> Option<Tcp> {
        if !self.begins(TCP, TCP_BYTES) {
            return None;
        }
        let (sequence, flags) =
            (u32_at(self.bytes, self.header_bytes + 4), u8_at(self.bytes, self.header_bytes + 13));
        let [closes, opens, resets] = [1, 2, 4].map(|flag| flags & flag != 0);
        let length = self.payload_bytes() as u32 + u32::from(opens) + u32::from(closes);
        Some(Tcp { sequence, length, opens, resets })
    }

    /// Whether it is a message of ICMP.
    pub fn is_icmp(&self) -> bool {
        self.begins(if self.is_v4() { ICMP } else { ICMP_V6 }, 0)
    }

    /// Identification of the datagram that it is a fragment of, and whether it is the first; of IPv4 only.
    pub fn fragment(&self) -> Option<(u16, bool)> {
        let (offset, more) = (u16_at(self.bytes, 6) & 0x1fff, u16_at(self.bytes, 6) & 0x2000 != 0);
        (self.is_v4() && (offset != 0 || more)).then(|| (u16_at(self.bytes, 4), offset == 0))
    }

    /// The UDP datagram in it, if its beginning is there.
    pub fn udp(&self) -> Option<Udp> {
        let at = self.header_bytes;
        let length = usize::from(u16_at(self.bytes, at + 4));
        if !self.begins(UDP, UDP_BYTES) || length < UDP_BYTES {
            return None;
        }
        let end = (at + length).min(self.bytes.len());
        Some(Udp { port: u16_at(self.bytes, at + 2), payload: at + UDP_BYTES..end })
    }
}

/// Marks a packet: it has met congestion. What is no IP packet, or may not be marked, stays as it is.
// [RFC 3168 §5]
pub fn mark(bytes: &mut [u8]) {
    let Ok(packet) = Packet::new_checked(bytes) else { return };
    if packet.ecn() == Ecn::NotCapable {
        return;
    }
    if !packet.is_v4() {
        bytes[1] |= 0x30;
        return;
    }
    let before = u16_at(bytes, 0);
    bytes[1] |= 3;
    // [RFC 1624 §3]
    let sum = u32::from(!u16_at(bytes, 10)) + u32::from(!before) + u32::from(u16_at(bytes, 0));
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP datagram from node 1 to port 7000 of node 2, without a checksum.
    fn packet(v6: bool, dscp: u8, payload: &[u8]) -> Vec<u8> {
        let udp_bytes = (UDP_BYTES + payload.len()) as u16;
        let mut b = if v6 {
            let mut b = (6u32 << 28 | u32::from(dscp) << 22).to_be_bytes().to_vec();
            b.extend(udp_bytes.to_be_bytes());
            b.extend([UDP, 64]);
            b.extend("fd77::1".parse::<Ipv6Addr>().unwrap().octets());
            b.extend("fd77::2".parse::<Ipv6Addr>().unwrap().octets());
            b
        } else {
            let mut b = vec![0x45, dscp << 2];
            b.extend((20 + udp_bytes).to_be_bytes());
            b.extend([0, 0, 0x40, 0, 64, UDP, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2]);
            b
        };
        b.extend(7001u16.to_be_bytes());
        b.extend(7000u16.to_be_bytes());
        b.extend(udp_bytes.to_be_bytes());
        b.extend([0, 0]);
        b.extend(payload);
        b
    }

    /// Code points are read where the kernel puts them. [RFC 2474 §3]
    #[test]
    fn addresses_code_point_and_port_are_seen() {
        for (v6, from, to) in [(false, "10.77.0.1", "10.77.0.2"), (true, "fd77::1", "fd77::2")] {
            let bytes = packet(v6, 46, b"hand");
            let p = Packet::new_checked(&bytes).unwrap();
            assert_eq!((p.source().to_string(), p.destination().to_string()), (from.into(), to.into()));
            assert_eq!(p.dscp(), 46);
            let udp = p.udp().unwrap();
            assert_eq!((udp.port, &bytes[udp.payload]), (7000, &b"hand"[..]));
        }
    }

    /// A mark leaves the checksum right, and packets that may not be marked as they are. [RFC 3168 §5] [RFC 1624 §3]
    #[test]
    fn a_packet_that_may_be_marked_is_marked() {
        let sum = |header: &[u8]| header.chunks(2).map(|w| u32::from(u16_at(w, 0))).sum::<u32>();
        let folded = |header: &[u8]| (sum(header) & 0xffff) + (sum(header) >> 16);
        for v6 in [false, true] {
            for (before, after) in [(0, Ecn::NotCapable), (1, Ecn::Met), (2, Ecn::Met), (3, Ecn::Met)] {
                let mut bytes = packet(v6, 46, b"hand");
                bytes[1] |= if v6 { before << 4 } else { before };
                if !v6 {
                    let checksum = !(folded(&bytes[..20]) as u16);
                    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
                }
                assert_eq!(Packet::new_checked(&bytes).unwrap().ecn() as u8, before);
                mark(&mut bytes);
                let p = Packet::new_checked(&bytes).unwrap();
                assert_eq!((p.ecn(), p.dscp()), (after, 46));
                assert!(v6 || folded(&bytes[..20]) == 0xffff, "{before}");
            }
        }
        mark(&mut []);
    }

    /// [RFC 9293 §3.1]
    #[test]
    fn the_port_of_a_tcp_segment_is_seen_and_no_datagram() {
        for v6 in [false, true] {
            let mut bytes = packet(v6, 0, &[0; 12]);
            bytes[if v6 { 6 } else { 9 }] = TCP;
            let p = Packet::new_checked(&bytes).unwrap();
            assert_eq!((p.tcp_port(), p.udp()), (Some(7000), None));
        }
        let datagram = packet(false, 0, &[0; 12]);
        assert_eq!(Packet::new_checked(&datagram).unwrap().tcp_port(), None);
        let mut short = packet(false, 0, &[0; 11]);
        short[9] = TCP;
        assert_eq!(Packet::new_checked(&short).unwrap().tcp_port(), None);
    }

    /// [RFC 9293 §3.1]
    #[test]
    fn a_payload_is_what_lies_behind_all_headers() {
        let of = |bytes: &[u8]| Packet::new_checked(bytes).unwrap().payload_bytes();
        for v6 in [false, true] {
            let at = if v6 { IPV6_BYTES } else { IPV4_BYTES };
            let mut bytes = packet(v6, 0, &[0; 32]);
            assert_eq!(of(&bytes), 32);
            bytes[if v6 { 6 } else { 9 }] = TCP;
            bytes[at + 12] = 8 << 4; // a header of 32 bytes, with time stamps
            assert_eq!(of(&bytes), 8);
            bytes[at + 13] = 0b10; // it opens a connection
            let opening = Packet::new_checked(&bytes).unwrap().tcp();
            // The length and checksum of UDP are where a segment has its number.
            let sequence = u32::from(u16_at(&bytes, at + 4)) << 16;
            assert_eq!(opening, Some(Tcp { sequence, length: 9, opens: true, resets: false }));
            bytes[at + 12] = 15 << 4;
            assert_eq!(of(&bytes), 0, "a header that is longer than the packet");
            bytes[if v6 { 6 } else { 9 }] = if v6 { ICMP_V6 } else { ICMP };
            assert_eq!(of(&bytes), 40);
        }
    }

    /// [RFC 8200 §4]
    #[test]
    fn ports_behind_extensions_and_in_fragments_are_hidden() {
        let next = |v6: bool, number: u8| {
            let mut bytes = packet(v6, 0, &[0; 12]);
            bytes[if v6 { 6 } else { 9 }] = number;
            Packet::new_checked(&bytes).unwrap().hides_port()
        };
        assert!([0, 43, 44, 50, 51, 60].iter().all(|n| next(true, *n)));
        assert!([TCP, UDP, 58, 59].iter().all(|n| !next(true, *n)));
        assert!([TCP, UDP, 1, 2].iter().all(|n| !next(false, *n)) && next(false, ESP));
        let mut later_fragment = packet(false, 0, b"hand");
        later_fragment[7] = 1;
        assert!(Packet::new_checked(&later_fragment).unwrap().hides_port());
    }

    #[test]
    fn what_is_not_a_whole_packet_is_refused() {
        let bytes = packet(false, 0, b"hand");
        for n in 0..bytes.len() {
            assert!(Packet::new_checked(&bytes[..n]).is_err(), "{n} bytes");
        }
        let mut short_header = bytes.clone();
        short_header[0] = 0x44;
        assert_eq!(Packet::new_checked(&short_header).unwrap_err(), Error::Contradiction);
        let mut later_fragment = bytes;
        later_fragment[7] = 1;
        assert_eq!(Packet::new_checked(&later_fragment).unwrap().udp(), None);
    }
}
