//! TCP segments in IPv4 packets, one in each, with correct checksums.
//!
//! ```text
//! │ IPv4 header (20) │ TCP header (20) │ options (0-40) │ content │
//! ```
//! Only whole packets between the two given ends are read; what else there is in the world is refused.

mod checksum;
mod options;

pub use options::{Blocks, Options};

use crate::{
    bytes::{u16_at, u32_at, u8_at},
    Error,
};
use checksum::Sum;

/// Bytes of the IPv4 header and of the TCP header without options.
pub const HEADER_BYTES: usize = IP_BYTES + TCP_BYTES;

const IP_BYTES: usize = 20;
const TCP_BYTES: usize = 20;
const PROTOCOL: u8 = 6;
const LIVE: u8 = 64;
const DO_NOT_FRAGMENT: u16 = 0x4000;

/// Addresses and ports of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// Address and port that it comes from.
    pub from: ([u8; 4], u16),
    /// Address and port that it goes to.
    pub to: ([u8; 4], u16),
}

pub use tcps_core::endpoint::Ecn;

/// The control bits.
// [RFC 9293 §3.1]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronises sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Resets the connection.
    pub const RST: Self = Self(0x04);
    /// The receiver is to hand on what it has.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number counts.
    pub const ACK: Self = Self(0x10);
    /// A mark of congestion has been seen.
    pub const ECE: Self = Self(0x40);
    /// The congestion window has been reduced.
    pub const CWR: Self = Self(0x80);

    /// Whether all bits of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// With the bits of `other` too, if `condition` holds.
    #[must_use]
    pub fn with(self, other: Self, condition: bool) -> Self {
        if condition {
            Self(self.0 | other.0)
        } else {
            self
        }
    }
}

/// A segment without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Repr {
    /// Number of the first byte, or of SYN.
    pub sequence: u32,
    /// The number that is expected next, if `flags` has ACK.
    pub acknowledgement: u32,
    /// Control bits.
    pub flags: Flags,
    /// The window field as it is, not scaled.
    pub window: u16,
    /// Options.
    pub options: Options,
    /// What the IP header says of congestion.
    pub ecn: Ecn,
}

impl Repr {
    /// Reads a packet from `ends.from` to `ends.to`: the segment and its content.
    // [RFC 9293 §3.1]
    pub fn parse<'a>(packet: &'a [u8], ends: &Ends) -> Result<(Self, &'a [u8]), Error> {
        let segment = ip_payload(packet, ends)?;
        let ports = u16_at(segment, 0) == ends.from.1 && u16_at(segment, 2) == ends.to.1;
        let header_bytes = usize::from(u8_at(segment, 12) >> 4) * 4;
        if segment.len() < TCP_BYTES || segment.len() < header_bytes {
            return Err(Error::Truncated);
        }
        if !ports {
            return Err(Error::Unknown);
        }
        if header_bytes < TCP_BYTES || pseudo(ends, segment.len()).add(segment).finish() != 0 {
            return Err(Error::Contradiction);
        }
        let repr = Self {
            sequence: u32_at(segment, 4),
            acknowledgement: u32_at(segment, 8),
            flags: Flags(u8_at(segment, 13)),
            window: u16_at(segment, 14),
            options: Options::parse(&segment[TCP_BYTES..header_bytes])?,
            ecn: Ecn::of(u8_at(packet, 1)),
        };
        Ok((repr, &segment[header_bytes..]))
    }

    /// Appends the packet, whose content is the bytes of both parts, to `out`. Content that no packet has room for is cut.
    pub fn emit(&self, ends: &Ends, content: [&[u8]; 2], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0x45, self.ecn.tos(0), 0, 0, 0, 0]);
        out.extend_from_slice(&DO_NOT_FRAGMENT.to_be_bytes());
        out.extend_from_slice(&[LIVE, PROTOCOL, 0, 0]);
        out.extend_from_slice(&ends.from.0);
        out.extend_from_slice(&ends.to.0);
        out.extend_from_slice(&ends.from.1.to_be_bytes());
        out.extend_from_slice(&ends.to.1.to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.acknowledgement.to_be_bytes());
        out.extend_from_slice(&[0, self.flags.0]);
        out.extend_from_slice(&self.window.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        self.options.emit(out);
        let header_bytes = out.len() - start - IP_BYTES;
        content.iter().for_each(|part| out.extend_from_slice(part));
        out.truncate(start + usize::from(u16::MAX));
        finish(&mut out[start..], header_bytes, ends);
    }
}

/// Lengths and checksums of a packet that is otherwise complete.
fn finish(packet: &mut [u8], header_bytes: usize, ends: &Ends) {
    let total = packet.len() as u16;
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    let ip = Sum::default().add(&packet[..IP_BYTES]).finish();
    packet[10..12].copy_from_slice(&ip.to_be_bytes());
    let segment = &mut packet[IP_BYTES..];
    segment[12] = (header_bytes as u8 / 4) << 4;
    let tcp = pseudo(ends, segment.len()).add(segment).finish();
    segment[16..18].copy_from_slice(&tcp.to_be_bytes());
}

/// The content of an IPv4 packet in one piece, with a good header, between the given addresses.
// [RFC 791 §3.1]
fn ip_payload<'a>(packet: &'a [u8], ends: &Ends) -> Result<&'a [u8], Error> {
    let header_bytes = usize::from(u8_at(packet, 0) & 0xf) * 4;
    let total = usize::from(u16_at(packet, 2));
    if packet.len() < IP_BYTES || packet.len() < header_bytes || packet.len() < total {
        return Err(Error::Truncated);
    }
    let whole = u16_at(packet, 6) & 0x3fff == 0;
    let addresses = packet[12..16] == ends.from.0 && packet[16..20] == ends.to.0;
    if u8_at(packet, 0) >> 4 != 4 || !whole || u8_at(packet, 9) != PROTOCOL || !addresses {
        return Err(Error::Unknown);
    }
    if header_bytes < IP_BYTES || total < header_bytes {
        return Err(Error::Contradiction);
    }
    if Sum::default().add(&packet[..header_bytes]).finish() != 0 {
        return Err(Error::Contradiction);
    }
    Ok(&packet[header_bytes..total])
}

/// The sum over what is not in the segment.
// [RFC 9293 §3.1]
fn pseudo(ends: &Ends, segment_bytes: usize) -> Sum {
    let length = (segment_bytes as u16).to_be_bytes();
    Sum::default().add(&ends.from.0).add(&ends.to.0).add(&[0, PROTOCOL]).add(&length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: Ends = Ends { from: ([192, 0, 2, 1], 7), to: ([192, 0, 2, 2], 9) };

    fn repr() -> Repr {
        let mut sack = Blocks::default();
        sack.push(7, 9);
        Repr {
            sequence: 0xffff_fff0,
            acknowledgement: 5,
            flags: Flags::ACK.with(Flags::PSH, true),
            window: 1000,
            options: Options { stamps: Some((1, 2)), sack, ..Options::default() },
            ecn: Ecn::Capable,
        }
    }

    // [RFC 9293 §3.1]
    #[test]
    fn a_segment_is_read_as_it_was_written() {
        let mut packet = vec![9];
        repr().emit(&ENDS, [b"ha", b"nds"], &mut packet);
        assert_eq!(packet.len(), 1 + HEADER_BYTES + 12 + 12 + 5);
        assert_eq!(packet[1..3], [0x45, 2]);
        assert_eq!(Repr::parse(&packet[1..], &ENDS).unwrap(), (repr(), &b"hands"[..]));
    }

    /// A SYN of Linux 6 as tcpdump shows it: MSS 1460, SACK permitted, time stamp, NOP, scale 7.
    // [RFC 791 §3.1] [RFC 2018 §2] [RFC 7323 §3]
    #[test]
    fn a_syn_has_the_bytes_that_linux_sends() {
        let options = Options {
            mss: Some(1460),
            scale: Some(7),
            sack_permitted: true,
            stamps: Some((0x0102_0304, 0)),
            ..Options::default()
        };
        let mut packet = Vec::new();
        let syn = Repr { flags: Flags::SYN, window: 64240, options, ..Repr::default() };
        syn.emit(&ENDS, [&[], &[]], &mut packet);
        let expected = [2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7];
        assert_eq!(packet[40..], expected);
        assert_eq!(packet[32], 0xa0);
    }

    #[test]
    fn what_is_damaged_or_for_others_is_refused() {
        let mut good = Vec::new();
        repr().emit(&ENDS, [b"hands", &[]], &mut good);
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Repr::parse(&bytes, &ENDS).is_err(), "bit {bit}");
        }
        for length in 0..good.len() {
            assert!(Repr::parse(&good[..length], &ENDS).is_err(), "{length} bytes");
        }
        let other = Ends { from: ENDS.to, to: ENDS.from };
        assert_eq!(Repr::parse(&good, &other), Err(Error::Unknown));
    }
}
