//! IP packets as a TUN device gives them: what a link needs to see, and one bit that it may break.
//!
//! ```text
//! IPv4 or IPv6 header ─► UDP: ports, length, checksum ─► [ payload ]
//! ```
//! A UDP datagram behind IPv6 extension headers is not looked into; nor is a fragment after the first.

use crate::{
    bytes::{u16_at, u32_at, u8_at},
    Error,
};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    ops::Range,
};

const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;
const UDP: u8 = 17;

/// A whole IP packet.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    header_bytes: usize,
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

    /// The UDP datagram in it, if its beginning is there.
    pub fn udp(&self) -> Option<Udp> {
        let (protocol, later_fragment) = match self.is_v4() {
            true => (u8_at(self.bytes, 9), u16_at(self.bytes, 6) & 0x1fff != 0),
            false => (u8_at(self.bytes, 6), false),
        };
        let at = self.header_bytes;
        let length = usize::from(u16_at(self.bytes, at + 4));
        if protocol != UDP || later_fragment || length < UDP_BYTES || self.bytes.len() < at + UDP_BYTES {
            return None;
        }
        let end = (at + length).min(self.bytes.len());
        Some(Udp { port: u16_at(self.bytes, at + 2), payload: at + UDP_BYTES..end })
    }
}

/// Flips one bit, chosen by a number, of a UDP payload and mends the UDP checksum, so that the datagram reaches its
/// program as one does that was broken without the checksum noticing.
///
/// In any other packet the bit is one after the IP header and no checksum is mended: the kernel drops it there.
pub fn flip_a_bit(bytes: &mut [u8], by: u32) {
    let Ok(packet) = Packet::new_checked(bytes) else { return };
    let (header_bytes, udp) = (packet.header_bytes, packet.udp());
    let range = udp.as_ref().map_or(header_bytes..bytes.len(), |u| u.payload.clone());
    if range.is_empty() {
        return;
    }
    let bit = by as usize % (range.len() * 8);
    let at = range.start + bit / 8;
    // The checksum adds words of 16 bits from the start of the payload on.
    let shift = if (bit / 8) % 2 == 0 { 8 } else { 0 };
    let old = bytes[at];
    bytes[at] ^= 1 << (bit % 8);
    if udp.is_some() {
        let sum = header_bytes + 6;
        let mended =
            updated_checksum(u16_at(bytes, sum), u16::from(old) << shift, u16::from(bytes[at]) << shift);
        bytes[sum..sum + 2].copy_from_slice(&mended.to_be_bytes());
    }
}

/// The checksum after one word has changed: HC' = ~(~HC + ~m + m'). [RFC 1624 §3]
///
/// 0 means that there is none; a sum of 0 is sent as 0xffff. [RFC 768]
fn updated_checksum(checksum: u16, old: u16, new: u16) -> u16 {
    if checksum == 0 {
        return 0;
    }
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let folded = (sum & 0xffff) + (sum >> 16);
    match !((folded & 0xffff) + (folded >> 16)) as u16 {
        0 => 0xffff,
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A UDP datagram from node 1 to port 7000 of node 2, with its checksum.
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
        let at = b.len();
        b.extend(7001u16.to_be_bytes());
        b.extend(7000u16.to_be_bytes());
        b.extend(udp_bytes.to_be_bytes());
        b.extend([0, 0]);
        b.extend(payload);
        let sum = !total(&b, at);
        b[at + 6..at + 8].copy_from_slice(&(if sum == 0 { 0xffff } else { sum }).to_be_bytes());
        b
    }

    /// The ones' complement sum over pseudo header and datagram; 0xffff if the checksum in it is right. [RFC 768]
    fn total(bytes: &[u8], udp: usize) -> u16 {
        let addresses = if udp == IPV4_BYTES { 12..20 } else { 8..40 };
        let mut words = bytes[addresses].to_vec();
        words.extend([0, UDP]);
        words.extend(((bytes.len() - udp) as u16).to_be_bytes());
        words.extend(&bytes[udp..]);
        let sum: u32 =
            words.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0))).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        (folded + (folded >> 16)) as u16
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

    proptest! {
        /// [RFC 1624 §3], and the kernel, which checks the sum of [RFC 768], takes the broken datagram.
        #[test]
        fn one_bit_changes_and_the_checksum_is_right(
            v6: bool, by: u32, payload in proptest::collection::vec(any::<u8>(), 1..90),
        ) {
            let whole = packet(v6, 0, &payload);
            let mut broken = whole.clone();
            flip_a_bit(&mut broken, by);
            let start = whole.len() - payload.len();
            let changed: u32 = whole[start..].iter().zip(&broken[start..]).map(|(a, b)| (a ^ b).count_ones()).sum();
            prop_assert_eq!(changed, 1);
            prop_assert_eq!(total(&broken, start - UDP_BYTES), 0xffff);
            prop_assert_eq!(&whole[..start - 2], &broken[..start - 2]);
        }
    }
}
