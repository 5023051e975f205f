//! RTP packets (RFC 3550) and what rides in them.
//!
//! ```text
//!  0                   1                   2                   3
//! +---+-+-+-------+-+-------------+-------------------------------+
//! |V=2|P|X|  CC   |M|     PT      |            sequence           |
//! +---+-+-+-------+-+-------------+-------------------------------+
//! |                           timestamp                           |
//! +---------------------------------------------------------------+
//! |                              SSRC                             |
//! +---------------------------------------------------------------+ 12
//! | CSRC, 4 bytes each, CC of them                                |
//! | extension, if X: profile (16), words (16), that many words    |
//! | payload                              | padding, if P: the last |
//! |                                      | byte counts it          |
//! +---------------------------------------------------------------+
//! ```
//! `extension` holds the elements of a header extension, `red` redundant blocks, `parity` what XOR parity
//! protects, `ulpfec` and `flexfec` the two headers that parity packets have.

pub mod extension;
pub mod flexfec;
pub mod parity;
pub mod red;
pub mod ulpfec;

use crate::{
    bytes::{u16_at, u32_at, u8_at},
    Error,
};

/// Length of the fixed header in bytes.
pub const HEADER_BYTES: usize = 12;
/// The version that is spoken here.
pub const VERSION: u8 = 2;
const PADDING: u8 = 0x20;
const EXTENSION: u8 = 0x10;
const MARKER: u8 = 0x80;

/// Whether a datagram on a port that RTP and RTCP share is RTCP: packet types 192 to 223.
// [RFC 5761 §4]
#[inline]
pub fn is_rtcp(datagram: &[u8]) -> bool {
    u8_at(datagram, 0) >> 6 == VERSION && (192..=223).contains(&u8_at(datagram, 1))
}

/// Whether a datagram on a port that RTP shares with messages of a key exchange is RTP or RTCP: first bytes 128 to 191.
// [RFC 7983 §7]
#[inline]
pub fn is_media(datagram: &[u8]) -> bool {
    u8_at(datagram, 0) >> 6 == VERSION
}

/// A view of a packet whose parts all lie inside it.
#[derive(Debug, Clone, Copy)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// The view, if version, CSRC list, extension and padding fit the number of bytes.
    // [RFC 3550 §5.1] [RFC 3550 §A.1]
    #[inline]
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        let packet = Self::new_sealed(buffer)?;
        match packet.padding_bytes() {
            0 if packet.first() & PADDING != 0 => Err(Error::Contradiction),
            padding if packet.header_bytes() + padding > packet.buffer.as_ref().len() => {
                Err(Error::Contradiction)
            }
            _ => Ok(packet),
        }
    }

    /// The view of an SRTP packet, if version, CSRC list and extension fit the number of bytes: the padding is sealed.
    // [RFC 3711 §3.1]
    #[inline]
    pub fn new_sealed(buffer: T) -> Result<Self, Error> {
        let packet = Self { buffer };
        let len = packet.buffer.as_ref().len();
        if len < HEADER_BYTES {
            return Err(Error::Truncated);
        }
        if packet.first() >> 6 != VERSION {
            return Err(Error::Unknown);
        }
        match len < packet.header_bytes() {
            true => Err(Error::Truncated),
            false => Ok(packet),
        }
    }

    #[inline]
    fn first(&self) -> u8 {
        u8_at(self.buffer.as_ref(), 0)
    }

    /// The marker bit.
    #[inline]
    pub fn marker(&self) -> bool {
        u8_at(self.buffer.as_ref(), 1) & MARKER != 0
    }

    /// Payload type, 0 to 127.
    #[inline]
    pub fn payload_type(&self) -> u8 {
        u8_at(self.buffer.as_ref(), 1) & !MARKER
    }

    /// Sequence number.
    #[inline]
    pub fn sequence(&self) -> u16 {
        u16_at(self.buffer.as_ref(), 2)
    }

    /// Timestamp in units of the payload's clock.
    #[inline]
    pub fn timestamp(&self) -> u32 {
        u32_at(self.buffer.as_ref(), 4)
    }

    /// Synchronisation source.
    #[inline]
    pub fn ssrc(&self) -> u32 {
        u32_at(self.buffer.as_ref(), 8)
    }

    /// Number of contributing sources.
    #[inline]
    pub fn csrc_count(&self) -> usize {
        usize::from(self.first() & 0x0f)
    }

    /// Contributing source `i`; 0 if there is none.
    #[inline]
    pub fn csrc(&self, i: usize) -> u32 {
        match i < self.csrc_count() {
            true => u32_at(self.buffer.as_ref(), HEADER_BYTES + 4 * i),
            false => 0,
        }
    }

    #[inline]
    fn extension_start(&self) -> usize {
        HEADER_BYTES + 4 * self.csrc_count()
    }

    /// The header extension: its profile number and its data.
    // [RFC 3550 §5.3.1]
    #[inline]
    pub fn extension(&self) -> Option<(u16, &[u8])> {
        if self.first() & EXTENSION == 0 {
            return None;
        }
        let bytes = self.buffer.as_ref();
        let at = self.extension_start();
        let end = at + 4 + 4 * usize::from(u16_at(bytes, at + 2));
        bytes.get(at + 4..end).map(|data| (u16_at(bytes, at), data))
    }

    /// Length of the header with contributing sources and extension.
    #[inline]
    pub fn header_bytes(&self) -> usize {
        let at = self.extension_start();
        match self.first() & EXTENSION {
            0 => at,
            _ => at + 4 + 4 * usize::from(u16_at(self.buffer.as_ref(), at + 2)),
        }
    }

    /// Bytes of padding, with the one that counts them.
    #[inline]
    pub fn padding_bytes(&self) -> usize {
        match self.first() & PADDING {
            0 => 0,
            _ => usize::from(self.buffer.as_ref().last().copied().unwrap_or(0)),
        }
    }

    /// The payload, without padding.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        let bytes = self.buffer.as_ref();
        let end = bytes.len().saturating_sub(self.padding_bytes());
        bytes.get(self.header_bytes()..end).unwrap_or(&[])
    }
}

/// The content of a fixed header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The marker bit: by profile, the last packet of a frame or the first after silence.
    pub marker: bool,
    /// Payload type, 0 to 127.
    pub payload_type: u8,
    /// Sequence number.
    pub sequence: u16,
    /// Timestamp in units of the payload's clock.
    pub timestamp: u32,
    /// Synchronisation source.
    pub ssrc: u32,
}

impl Repr {
    /// The content of a packet's fixed header.
    #[inline]
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Self {
        Self {
            marker: packet.marker(),
            payload_type: packet.payload_type(),
            sequence: packet.sequence(),
            timestamp: packet.timestamp(),
            ssrc: packet.ssrc(),
        }
    }

    /// Appends header, at most 15 contributing sources, and extension elements to `out`; the payload is the
    /// caller's.
    #[inline]
    pub fn emit(&self, csrc: &[u32], elements: &[extension::Element<'_>], out: &mut Vec<u8>) {
        let csrc = csrc.get(..15).unwrap_or(csrc);
        let x = if elements.is_empty() { 0 } else { EXTENSION };
        out.push(VERSION << 6 | x | csrc.len() as u8);
        out.push(u8::from(self.marker) << 7 | self.payload_type & !MARKER);
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&self.ssrc.to_be_bytes());
        csrc.iter().for_each(|c| out.extend_from_slice(&c.to_be_bytes()));
        if !elements.is_empty() {
            extension::emit(elements, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{extension::Element, *};
    use proptest::prelude::*;

    const GOLDEN: [u8; 29] = [
        0xb1, 0xe0, 0x12, 0x34, // V=2, padding, extension, 1 CSRC; marker, PT 96; sequence
        0x00, 0x01, 0x51, 0x80, // timestamp 86400
        0xde, 0xad, 0xbe, 0xef, // SSRC
        0x00, 0x00, 0x00, 0x07, // CSRC
        0xbe, 0xde, 0x00, 0x01, // one word of one-byte elements
        0x10, 0xff, 0x00, 0x00, // element 1: one byte; padding
        b'h', b'i', // payload
        0x00, 0x00, 0x03, // three bytes of padding
    ];

    // [RFC 3550 §5.1] [RFC 3550 §5.3.1]
    #[test]
    fn the_golden_packet_is_read() {
        let packet = Packet::new_checked(&GOLDEN).unwrap();
        let repr =
            Repr { marker: true, payload_type: 96, sequence: 0x1234, timestamp: 86_400, ssrc: 0xdead_beef };
        assert_eq!(Repr::parse(&packet), repr);
        assert_eq!((packet.csrc_count(), packet.csrc(0), packet.csrc(1)), (1, 7, 0));
        assert_eq!(packet.extension(), Some((0xbede, &[0x10, 0xff, 0, 0][..])));
        assert_eq!((packet.payload(), packet.padding_bytes()), (&b"hi"[..], 3));
        let mut out = Vec::new();
        repr.emit(&[7], &[Element { id: 1, data: &[0xff] }], &mut out);
        assert_eq!(out[1..], GOLDEN[1..24]);
        assert_eq!(out[0], 0x91, "nothing is padded here");
    }

    // [RFC 3550 §A.1]
    #[test]
    fn what_does_not_fit_is_refused() {
        let with = |at: usize, value: u8| {
            let mut bytes = GOLDEN;
            bytes[at] = value;
            Packet::new_checked(bytes).err()
        };
        assert_eq!(with(0, 0x31), Some(Error::Unknown), "version 0");
        assert_eq!(with(0, 0xbf), Some(Error::Truncated), "15 CSRC");
        assert_eq!(with(19, 9), Some(Error::Truncated), "9 words of extension");
        assert_eq!(with(28, 0), Some(Error::Contradiction), "padding of no bytes");
        assert_eq!(with(28, 6), Some(Error::Contradiction), "more padding than payload");
        assert_eq!(Packet::new_checked(&GOLDEN[..11]).err(), Some(Error::Truncated));
    }

    // [RFC 5761 §4]
    #[test]
    fn packet_types_tell_rtcp_from_rtp() {
        for (second, rtcp) in [(200, true), (223, true), (192, true), (191, false), (224, false), (0, false)]
        {
            assert_eq!(is_rtcp(&[0x80, second, 0, 0]), rtcp, "{second}");
        }
        assert!(!is_rtcp(&[0x40, 200]) && !is_rtcp(&[]));
    }

    // [RFC 7983 §7]
    #[test]
    fn first_bytes_tell_media_from_messages_of_a_key_exchange() {
        let media: Vec<u8> = (0..=u8::MAX).filter(|first| is_media(&[*first])).collect();
        assert_eq!(media, (128..192).collect::<Vec<_>>());
        assert!(!is_media(&[]));
    }

    // [RFC 3711 §3.1]
    #[test]
    fn a_sealed_packet_shows_its_header_and_its_padding_not() {
        let mut bytes = GOLDEN.to_vec();
        bytes[0] |= PADDING;
        bytes.push(255);
        assert_eq!(Packet::new_checked(&bytes).err(), Some(Error::Contradiction));
        let packet = Packet::new_sealed(&bytes).unwrap();
        let header_bytes = packet.header_bytes();
        assert_eq!(header_bytes, Packet::new_checked(&GOLDEN).unwrap().header_bytes());
        assert_eq!(Packet::new_sealed(&bytes[..header_bytes - 1]).err(), Some(Error::Truncated));
    }

    proptest! {
        #[test]
        fn headers_survive_their_bytes(
            marker: bool, payload_type in 0u8..128, sequence: u16, timestamp: u32, ssrc: u32,
            csrc in proptest::collection::vec(any::<u32>(), 0..16),
            payload in proptest::collection::vec(any::<u8>(), 0..50),
        ) {
            let repr = Repr { marker, payload_type, sequence, timestamp, ssrc };
            let mut out = Vec::new();
            repr.emit(&csrc, &[], &mut out);
            out.extend_from_slice(&payload);
            let packet = Packet::new_checked(&out).unwrap();
            prop_assert_eq!(Repr::parse(&packet), repr);
            prop_assert_eq!((0..packet.csrc_count()).map(|i| packet.csrc(i)).collect::<Vec<_>>(), csrc);
            prop_assert_eq!(packet.payload(), &payload[..]);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(packet) = Packet::new_checked(&bytes) {
                let extension = packet.extension().map_or(0, |(_, data)| 4 + data.len());
                let parts = HEADER_BYTES + 4 * packet.csrc_count() + extension;
                prop_assert_eq!(parts + packet.payload().len() + packet.padding_bytes(), bytes.len());
            }
        }
    }
}
