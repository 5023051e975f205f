//! Capture files that Wireshark opens: pcapng blocks (little-endian), with headers made up for virtual
//! packets.
//!
//! ```text
//! section header │ interface description ... │ enhanced packet ...
//!                                               └ Ethernet 14 │ IPv4 20 or IPv6 40 │ UDP 8 │ payload
//! ```
//! Pure functions that append to a buffer; the caller writes the buffer to a file. Layout of the blocks:
//! draft-ietf-opsawg-pcapng; checksums: RFC 1071, RFC 768 and RFC 8200 §8.1.

use crate::Error;
use std::net::{SocketAddrV4, SocketAddrV6};
use tcps_core::time::Time;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const LINKTYPE_ETHERNET: u16 = 1;
const LINKTYPE_RAW: u16 = 101;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
const UDP_BYTES: usize = 8;
const PROTOCOL_UDP: u8 = 17;
const HOPS: u8 = 64;

/// Where a datagram comes from and goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// Over IPv4.
    V4 {
        /// Sender.
        source: SocketAddrV4,
        /// Receiver.
        target: SocketAddrV4,
    },
    /// Over IPv6.
    V6 {
        /// Sender.
        source: SocketAddrV6,
        /// Receiver.
        target: SocketAddrV6,
    },
}

/// What the node of an interface did with a packet. (draft-ietf-opsawg-pcapng §4.3.1)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Not told.
    Somewhere = 0,
    /// It received the packet.
    Coming = 1,
    /// It sent the packet.
    Leaving = 2,
}

/// A block of a file, or its beginning.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a>(&'a [u8]);

impl<'a> Block<'a> {
    /// These bytes, whatever they are.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn word(&self, n: usize) -> Option<u32> {
        let bytes = self.0.get(4 * n..4 * n + 4)?;
        Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Its length in bytes as it says itself; nothing if that can be none.
    pub fn length(&self) -> Option<usize> {
        self.word(1).filter(|n| n % 4 == 0 && *n >= 12).map(|n| n as usize)
    }

    /// The stamp of a packet in nanoseconds; nothing of other blocks.
    pub fn packet_time_ns(&self) -> Option<Time> {
        let time = u64::from(self.word(3)?) << 32 | u64::from(self.word(4)?);
        (self.word(0)? == ENHANCED_PACKET).then(|| time.min(Time::MAX as u64) as Time)
    }
}

/// Appends the section header that begins a file; `application` names the program that wrote it.
pub fn section_header(out: &mut Vec<u8>, application: &str) {
    let start = begin(out, SECTION_HEADER);
    out.extend_from_slice(&BYTE_ORDER.to_le_bytes());
    out.extend_from_slice(&1u16.to_le_bytes());
    out.extend_from_slice(&0u16.to_le_bytes());
    out.extend_from_slice(&u64::MAX.to_le_bytes()); // length of the section: not told
    option(out, SHB_USERAPPL, application.as_bytes());
    option(out, 0, &[]);
    end(out, start);
}

/// Appends the description of an Ethernet interface with stamps in nanoseconds; the first one gets number 0.
pub fn interface(out: &mut Vec<u8>, name: &str) {
    described(out, name, LINKTYPE_ETHERNET);
}

/// Appends the description of an interface of bare IP packets, as [`interface`] does of an Ethernet one.
pub fn raw_interface(out: &mut Vec<u8>, name: &str) {
    described(out, name, LINKTYPE_RAW);
}

fn described(out: &mut Vec<u8>, name: &str, link_type: u16) {
    let start = begin(out, INTERFACE_DESCRIPTION);
    out.extend_from_slice(&link_type.to_le_bytes());
    out.extend_from_slice(&0u16.to_le_bytes());
    out.extend_from_slice(&0u32.to_le_bytes()); // packets are never cut
    option(out, IF_NAME, name.as_bytes());
    option(out, IF_TSRESOL, &[9]);
    option(out, 0, &[]);
    end(out, start);
}

/// Appends a UDP datagram seen on interface number `interface` at `time_ns` (before the start counts as the
/// start). `tos` is the byte of its IP header with code point and mark.
pub fn packet(
    out: &mut Vec<u8>,
    interface: u32,
    time_ns: Time,
    path: &Path,
    tos: u8,
    payload: &[u8],
    seen: Seen,
) -> Result<(), Error> {
    let udp_bytes = u16::try_from(UDP_BYTES + payload.len()).map_err(|_| Error::TooLong)?;
    let ip_bytes = udp_bytes.checked_add(20).ok_or(Error::TooLong)?;
    let frame_bytes = match path {
        Path::V4 { .. } => 34 + udp_bytes as u32,
        Path::V6 { .. } => 54 + udp_bytes as u32,
    };
    let start = begin_packet(out, interface, time_ns, frame_bytes);
    match path {
        Path::V4 { source, target } => ipv4(out, source, target, tos, ip_bytes),
        Path::V6 { source, target } => ipv6(out, source, target, tos, udp_bytes),
    }
    udp(out, path, udp_bytes, payload);
    end_packet(out, start, frame_bytes, seen);
    Ok(())
}

/// Appends a bare IP packet seen on interface number `interface` at `time_ns` (before the start counts as the start).
pub fn raw_packet(out: &mut Vec<u8>, interface: u32, time_ns: Time, bytes: &[u8], seen: Seen) {
    let start = begin_packet(out, interface, time_ns, bytes.len() as u32);
    out.extend_from_slice(bytes);
    end_packet(out, start, bytes.len() as u32, seen);
}

fn begin_packet(out: &mut Vec<u8>, interface: u32, time_ns: Time, frame_bytes: u32) -> usize {
    let start = begin(out, ENHANCED_PACKET);
    let time = time_ns.max(0) as u64;
    for word in [interface, (time >> 32) as u32, time as u32, frame_bytes, frame_bytes] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    start
}

fn end_packet(out: &mut Vec<u8>, start: usize, frame_bytes: u32, seen: Seen) {
    pad(out, frame_bytes as usize);
    if seen != Seen::Somewhere {
        option(out, EPB_FLAGS, &(seen as u32).to_le_bytes());
        option(out, 0, &[]);
    }
    end(out, start);
}

fn begin(out: &mut Vec<u8>, kind: u32) -> usize {
    let start = out.len();
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    start
}

fn end(out: &mut Vec<u8>, start: usize) {
    let total = ((out.len() - start + 4) as u32).to_le_bytes();
    out.extend_from_slice(&total);
    out[start + 4..start + 8].copy_from_slice(&total);
}

/// Options and packets are filled up to a multiple of four.
fn pad(out: &mut Vec<u8>, bytes: usize) {
    out.resize(out.len() + bytes.wrapping_neg() % 4, 0);
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&(value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    pad(out, value.len());
}

/// Locally administered addresses that end like the network's, so that they can be recognised.
fn ethernet(out: &mut Vec<u8>, source: &[u8], target: &[u8], ethertype: u16) {
    for address in [target, source] {
        out.extend_from_slice(&[2, 0]);
        out.extend_from_slice(&address[address.len() - 4..]);
    }
    out.extend_from_slice(&ethertype.to_be_bytes());
}

fn ipv4(out: &mut Vec<u8>, source: &SocketAddrV4, target: &SocketAddrV4, tos: u8, ip_bytes: u16) {
    let (from, to) = (source.ip().octets(), target.ip().octets());
    ethernet(out, &from, &to, 0x0800);
    let mut b = [0u8; 20];
    b[0] = 0x45;
    b[1] = tos;
    b[2..4].copy_from_slice(&ip_bytes.to_be_bytes());
    b[6] = 0x40; // must not be fragmented
    b[8] = HOPS;
    b[9] = PROTOCOL_UDP;
    b[12..16].copy_from_slice(&from);
    b[16..20].copy_from_slice(&to);
    let checksum = !fold(sum(&b));
    b[10..12].copy_from_slice(&checksum.to_be_bytes());
    out.extend_from_slice(&b);
}

fn ipv6(out: &mut Vec<u8>, source: &SocketAddrV6, target: &SocketAddrV6, tos: u8, udp_bytes: u16) {
    let (from, to) = (source.ip().octets(), target.ip().octets());
    ethernet(out, &from, &to, 0x86dd);
    let first = 6u32 << 28 | u32::from(tos) << 20;
    out.extend_from_slice(&first.to_be_bytes());
    out.extend_from_slice(&udp_bytes.to_be_bytes());
    out.extend_from_slice(&[PROTOCOL_UDP, HOPS]);
    out.extend_from_slice(&from);
    out.extend_from_slice(&to);
}

fn udp(out: &mut Vec<u8>, path: &Path, udp_bytes: u16, payload: &[u8]) {
    let (from, to, addresses) = match path {
        Path::V4 { source, target } => {
            (source.port(), target.port(), sum(&source.ip().octets()) + sum(&target.ip().octets()))
        }
        Path::V6 { source, target } => {
            (source.port(), target.port(), sum(&source.ip().octets()) + sum(&target.ip().octets()))
        }
    };
    let numbers = u32::from(PROTOCOL_UDP) + 2 * u32::from(udp_bytes) + u32::from(from) + u32::from(to);
    // A sum of 0 is sent as all ones, for 0 says that there is none.
    // [RFC 768]
    let checksum = match !fold(addresses + numbers + sum(payload)) {
        0 => 0xffff,
        c => c,
    };
    for field in [from, to, udp_bytes, checksum] {
        out.extend_from_slice(&field.to_be_bytes());
    }
    out.extend_from_slice(payload);
}

/// Sum of the 16-bit words, an odd last byte filled with 0; up to 64 KiB it cannot overflow.
// [RFC 1071 §1]
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | w.get(1).map_or(0, |b| u32::from(*b)));
    words.fold(0, u32::wrapping_add)
}

/// Ones' complement: the carries come in again at the low end.
fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const V4: Path = Path::V4 {
        source: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 47000),
        target: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 47001),
    };
    const V6: Path = Path::V6 {
        source: SocketAddrV6::new(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 47000, 0, 0),
        target: SocketAddrV6::new(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2), 47001, 0, 0),
    };

    #[test]
    fn golden_section_and_interface() {
        let mut out = Vec::new();
        section_header(&mut out, "abcde");
        interface(&mut out, "l1");
        #[rustfmt::skip]
        let expected = [
            0x0a, 0x0d, 0x0d, 0x0a, 44, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, // version 1.0
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, // length not told
            4, 0, 5, 0, b'a', b'b', b'c', b'd', b'e', 0, 0, 0, 0, 0, 0, 0, 44, 0, 0, 0,
            1, 0, 0, 0, 40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, // Ethernet, never cut
            2, 0, 2, 0, b'l', b'1', 0, 0, // name
            9, 0, 1, 0, 9, 0, 0, 0, // stamps of 10^-9 s
            0, 0, 0, 0, 40, 0, 0, 0,
        ];
        assert_eq!(out, expected);
    }

    #[test]
    fn golden_bare_packet() {
        let mut out = Vec::new();
        raw_interface(&mut out, "l1");
        assert_eq!(out[8..10], [101, 0], "bare IP");
        out.clear();
        raw_packet(&mut out, 1, 0x1_0000_0002, &[0x45, 1, 2], Seen::Coming);
        #[rustfmt::skip]
        let expected = [
            6, 0, 0, 0, 48, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0,
            0x45, 1, 2, 0, // the packet, filled up
            2, 0, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0, 48, 0, 0, 0,
        ];
        assert_eq!(out, expected);
    }

    // [RFC 1071 §1] [RFC 768]
    #[test]
    fn golden_packet_over_ipv4() {
        let mut out = Vec::new();
        packet(&mut out, 3, 0x1_0000_0002, &V4, 46 << 2, b"abc", Seen::Somewhere).unwrap();
        #[rustfmt::skip]
        let expected = [
            6, 0, 0, 0, 80, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 45, 0, 0, 0, 45, 0, 0, 0,
            0x02, 0x00, 10, 0, 0, 2, 0x02, 0x00, 10, 0, 0, 1, 0x08, 0x00, // Ethernet
            0x45, 0xb8, 0x00, 0x1f, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x26, 0x14, 10, 0, 0, 1, 10, 0, 0, 2,
            0xb7, 0x98, 0xb7, 0x99, 0x00, 0x0b, 0xb8, 0x40, b'a', b'b', b'c', // UDP
            0, 0, 0, 80, 0, 0, 0,
        ];
        assert_eq!(out, expected);
    }

    #[test]
    fn golden_packet_over_ipv6() {
        let mut out = Vec::new();
        packet(&mut out, 0, -1, &V6, 46 << 2, b"abc", Seen::Somewhere).unwrap();
        assert_eq!(out[12..20], [0; 8], "a moment before the start is the start");
        #[rustfmt::skip]
        let expected = [
            0x02, 0x00, 0, 0, 0, 2, 0x02, 0x00, 0, 0, 0, 1, 0x86, 0xdd, // Ethernet
            0x6b, 0x80, 0, 0, 0x00, 0x0b, 0x11, 0x40, // traffic class 0xb8
            0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
            0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
            0xb7, 0x98, 0xb7, 0x99, 0x00, 0x0b, 0x70, 0xce, b'a', b'b', b'c',
        ];
        assert_eq!(out[28..28 + 65], expected);
    }

    #[test]
    fn what_no_datagram_can_hold_is_refused_and_nothing_written() {
        let mut out = Vec::new();
        assert_eq!(packet(&mut out, 0, 0, &V4, 0, &[0; 65_508], Seen::Somewhere), Err(Error::TooLong));
        assert!(out.is_empty());
        assert_eq!(packet(&mut out, 0, 0, &V4, 0, &[0xff; 65_507], Seen::Somewhere), Ok(()));
    }

    #[test]
    fn a_packet_tells_its_moment_and_its_direction() {
        for (seen, bits) in [(Seen::Coming, 1), (Seen::Leaving, 2)] {
            let mut out = Vec::new();
            packet(&mut out, 0, 0x1_0000_0002, &V4, 0, b"abc", seen).unwrap();
            let block = Block::new(&out);
            assert_eq!((block.length(), block.packet_time_ns()), (Some(out.len()), Some(0x1_0000_0002)));
            assert_eq!(out[out.len() - 16..out.len() - 4], [2, 0, 4, 0, bits, 0, 0, 0, 0, 0, 0, 0]);
        }
        let mut out = Vec::new();
        section_header(&mut out, "abcde");
        assert_eq!((Block::new(&out).length(), Block::new(&out).packet_time_ns()), (Some(44), None));
        assert_eq!((Block::new(&out[..7]).length(), Block::new(&[]).packet_time_ns()), (None, None));
    }

    proptest! {
        #[test]
        fn blocks_are_padded_and_say_their_length_twice(
            payload in proptest::collection::vec(any::<u8>(), 0..70), tos: u8, time: i64, name in ".{0,20}",
        ) {
            let mut out = vec![1, 2, 3];
            interface(&mut out, &name);
            let middle = out.len();
            packet(&mut out, 0, time, &V6, tos, &payload, Seen::Leaving).unwrap();
            for block in [&out[3..middle], &out[middle..]] {
                let n = (block.len() as u32).to_le_bytes();
                prop_assert_eq!(block.len() % 4, 0);
                prop_assert_eq!(&block[4..8], &n);
                prop_assert_eq!(&block[block.len() - 4..], &n);
            }
        }
    }
}
