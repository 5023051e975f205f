//! Header of the plain `udp` transport: a sample, or one fragment of it.
//!
//! ```text
//!  0       1       2               4                               8
//! +-------+-------+---------------+-------------------------------+
//! | ver=1 | flags |     flow      |             index             |
//! +-------+-------+---------------+-------------------------------+
//! |                       origin time, ns                         |
//! +-------------------------------+---------------+---------------+
//! |  length of the whole sample   |   fragment    |   fragments   |
//! +-------------------------------+---------------+---------------+ 24
//! | payload of this fragment ...          | echo trailer, if flags bit 0
//! ```
//! A sample of `length` bytes in `fragments` pieces is cut evenly: every fragment but the last has
//! `chunk = ceil(length / fragments)` bytes, so that header alone gives offset and size of the payload.

use crate::{
    bytes::{i64_at, u16_at, u32_at, u8_at},
    Error,
};
use tcps_core::{ids::FlowId, sample::Meta, time::Time};

/// Length of the header in bytes.
pub const HEADER_BYTES: usize = 24;
/// The version that is spoken here, and the first byte of every datagram with this header.
pub const VERSION: u8 = 1;
/// Flag: an echo trailer follows the payload.
pub const FLAG_ECHO: u8 = 1;

/// A view of a datagram that has at least a whole header.
#[derive(Debug, Clone, Copy)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// The view, if there are bytes for a header.
    #[inline]
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        if buffer.as_ref().len() < HEADER_BYTES {
            return Err(Error::Truncated);
        }
        Ok(Self { buffer })
    }

    #[inline]
    fn fixed(&self) -> &[u8; HEADER_BYTES] {
        self.buffer.as_ref().first_chunk().unwrap_or(&[0; HEADER_BYTES])
    }

    /// Version of the format.
    #[inline]
    pub fn version(&self) -> u8 {
        u8_at(self.fixed(), 0)
    }

    /// Flag bits.
    #[inline]
    pub fn flags(&self) -> u8 {
        u8_at(self.fixed(), 1)
    }

    /// Number of the flow.
    #[inline]
    pub fn flow(&self) -> FlowId {
        FlowId(u16_at(self.fixed(), 2))
    }

    /// Number of the sample within its flow.
    #[inline]
    pub fn index(&self) -> u32 {
        u32_at(self.fixed(), 4)
    }

    /// When the sample was made, in nanoseconds on its maker's clock.
    #[inline]
    pub fn origin_ns(&self) -> Time {
        i64_at(self.fixed(), 8)
    }

    /// Bytes of the whole sample.
    #[inline]
    pub fn length(&self) -> u32 {
        u32_at(self.fixed(), 16)
    }

    /// Number of this fragment, from 0.
    #[inline]
    pub fn fragment(&self) -> u16 {
        u16_at(self.fixed(), 20)
    }

    /// Fragments of the sample, at least 1.
    #[inline]
    pub fn fragments(&self) -> u16 {
        u16_at(self.fixed(), 22)
    }

    /// The part of the sample in this datagram; empty if the datagram is too short for it.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        self.split().0
    }

    /// The bytes behind the payload.
    #[inline]
    pub fn trailer(&self) -> &[u8] {
        self.split().1
    }

    #[inline]
    fn split(&self) -> (&[u8], &[u8]) {
        let body = self.buffer.as_ref().get(HEADER_BYTES..).unwrap_or(&[]);
        let size = span(self.length(), self.fragment(), self.fragments()).1;
        body.split_at_checked(size as usize).unwrap_or((&[], body))
    }
}

/// Offset and size of a fragment's payload within its sample; (length, 0) if there can be no such fragment.
#[inline]
fn span(length: u32, fragment: u16, fragments: u16) -> (u32, u32) {
    if fragments <= 1 {
        return (0, length);
    }
    let chunk = length.div_ceil(fragments as u32);
    let offset = (fragment as u64 * chunk as u64).min(length as u64) as u32;
    (offset, chunk.min(length - offset))
}

/// The content of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// Number of the flow.
    pub flow: FlowId,
    /// Number of the sample within its flow.
    pub index: u32,
    /// When the sample was made, in nanoseconds on its maker's clock.
    pub origin_ns: Time,
    /// Bytes of the whole sample.
    pub length: u32,
    /// Number of this fragment, from 0.
    pub fragment: u16,
    /// Fragments of the sample, at least 1.
    pub fragments: u16,
    /// Whether an echo trailer follows the payload.
    pub has_echo: bool,
}

impl Repr {
    /// That of a sample which goes in one piece.
    pub fn whole(meta: &Meta, bytes: usize, has_echo: bool) -> Self {
        let Meta { flow, index, origin_ns, .. } = *meta;
        Self { flow, index, origin_ns, length: bytes as u32, fragment: 0, fragments: 1, has_echo }
    }

    /// The content, if version, flags, fragment numbers and the number of bytes agree.
    #[inline]
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Result<Self, Error> {
        if packet.version() != VERSION || packet.flags() & !FLAG_ECHO != 0 {
            return Err(Error::Unknown);
        }
        let repr = Self {
            flow: packet.flow(),
            index: packet.index(),
            origin_ns: packet.origin_ns(),
            length: packet.length(),
            fragment: packet.fragment(),
            fragments: packet.fragments(),
            has_echo: packet.flags() & FLAG_ECHO != 0,
        };
        repr.check(packet.buffer.as_ref().len() - HEADER_BYTES)?;
        Ok(repr)
    }

    #[inline]
    fn check(&self, body_bytes: usize) -> Result<(), Error> {
        if self.fragment >= self.fragments {
            return Err(Error::Contradiction);
        }
        let payload_bytes = self.payload_bytes();
        let last = Self { fragment: self.fragments - 1, ..*self };
        if self.fragments > 1 && last.payload_bytes() == 0 {
            return Err(Error::Contradiction);
        }
        match body_bytes.checked_sub(payload_bytes) {
            None => Err(Error::Truncated),
            Some(rest) if (rest > 0) != self.has_echo => Err(Error::Contradiction),
            Some(_) => Ok(()),
        }
    }

    /// Where this fragment's payload begins in the sample.
    #[inline]
    pub fn offset(&self) -> usize {
        span(self.length, self.fragment, self.fragments).0 as usize
    }

    /// Size of this fragment's payload.
    #[inline]
    pub fn payload_bytes(&self) -> usize {
        span(self.length, self.fragment, self.fragments).1 as usize
    }

    /// Appends the header to `out`; payload and trailer are the caller's.
    #[inline]
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut b = [0u8; HEADER_BYTES];
        b[0] = VERSION;
        b[1] = if self.has_echo { FLAG_ECHO } else { 0 };
        b[2..4].copy_from_slice(&self.flow.0.to_be_bytes());
        b[4..8].copy_from_slice(&self.index.to_be_bytes());
        b[8..16].copy_from_slice(&self.origin_ns.to_be_bytes());
        b[16..20].copy_from_slice(&self.length.to_be_bytes());
        b[20..22].copy_from_slice(&self.fragment.to_be_bytes());
        b[22..24].copy_from_slice(&self.fragments.to_be_bytes());
        out.extend_from_slice(&b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOLDEN: [u8; 27] = [
        0x01, 0x00, 0x01, 0x02, // version, flags, flow 258
        0x00, 0x01, 0x00, 0x05, // index 65541
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, // origin -2 ns
        0x00, 0x00, 0x00, 0x0b, // a sample of 11 bytes
        0x00, 0x02, 0x00, 0x03, // third of three fragments: 4 + 4 + 3
        b'i', b'j', b'k',
    ];

    fn golden() -> Repr {
        Repr {
            flow: FlowId(258),
            index: 65541,
            origin_ns: -2,
            length: 11,
            fragment: 2,
            fragments: 3,
            has_echo: false,
        }
    }

    #[test]
    fn the_golden_datagram_is_read_and_written() {
        let packet = Packet::new_checked(&GOLDEN).unwrap();
        assert_eq!(Repr::parse(&packet), Ok(golden()));
        assert_eq!((packet.payload(), packet.trailer()), (&b"ijk"[..], &b""[..]));
        let mut out = Vec::new();
        golden().emit(&mut out);
        assert_eq!(out, GOLDEN[..HEADER_BYTES]);
        assert_eq!(crate::format(&out), Some(crate::Format::Sample));
    }

    #[test]
    fn each_wrong_field_has_its_error() {
        let with = |at: usize, value: u8| {
            let mut bytes = GOLDEN;
            bytes[at] = value;
            Packet::new_checked(bytes).and_then(|p| Repr::parse(&p))
        };
        assert_eq!(with(0, 2), Err(Error::Unknown), "version");
        assert_eq!(with(1, 2), Err(Error::Unknown), "flag");
        assert_eq!(with(1, 1), Err(Error::Contradiction), "trailer announced, none there");
        assert_eq!(with(21, 3), Err(Error::Contradiction), "fragment 3 of 3");
        assert_eq!(with(19, 12), Err(Error::Truncated), "4 bytes needed, 3 there");
        assert_eq!(with(19, 10), Err(Error::Contradiction), "a byte too many");
        assert_eq!(with(23, 9), Err(Error::Contradiction), "11 bytes do not fill 9 even fragments");
        assert_eq!(Packet::new_checked(&GOLDEN[..23]).err(), Some(Error::Truncated));
    }

    proptest! {
        #[test]
        fn fragments_cover_a_sample_once_and_are_read_back(
            length in 0u32..100_000, room in 256u32..2000, flow: u16, index: u32, origin_ns: i64,
        ) {
            let fragments = length.div_ceil(room).max(1) as u16;
            let mut end = 0;
            for fragment in 0..fragments {
                let repr =
                    Repr { flow: FlowId(flow), index, origin_ns, length, fragment, fragments, has_echo: false };
                prop_assert_eq!(repr.offset(), end);
                prop_assert!(repr.payload_bytes() <= room as usize);
                end += repr.payload_bytes();
                let mut out = Vec::new();
                repr.emit(&mut out);
                out.resize(HEADER_BYTES + repr.payload_bytes(), 7);
                prop_assert_eq!(Repr::parse(&Packet::new_checked(&out).unwrap()), Ok(repr));
            }
            prop_assert_eq!(end, length as usize);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(packet) = Packet::new_checked(&bytes) {
                let both = packet.payload().len() + packet.trailer().len();
                prop_assert!(both <= bytes.len() - HEADER_BYTES);
                if let Ok(repr) = Repr::parse(&packet) {
                    prop_assert_eq!(packet.payload().len(), repr.payload_bytes());
                }
            }
        }
    }
}
