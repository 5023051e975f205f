//! Payload of a ULPFEC packet (RFC 5109) with one level of protection, which covers the packets whole.
//!
//! ```text
//! +-+-+-+-+-------+-+-------------+-------------------------------+
//! |E|L|P|X|  CC   |M| PT recovery |            SN base            |
//! +-+-+-+-+-------+-+-------------+-------------------------------+
//! |                          TS recovery                          |
//! +-------------------------------+-------------------------------+
//! |        length recovery        |       protection length       |
//! +-------------------------------+-------------------------------+
//! |              mask             |  mask, 32 more bits if L      :
//! +-------------------------------+-------------------------------+
//! ```

use super::parity::Parity;
use crate::{
    bytes::{u16_at, u32_at, u8_at},
    Error,
};

/// Packets that the long mask can name.
pub const MAX_PACKETS: u16 = 48;
const EXTENSION: u8 = 0x80;
const LONG_MASK: u8 = 0x40;

/// The content of the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repr {
    /// Sequence number that the mask's first bit names.
    pub base: u16,
    /// Protected packets: the bit `47 - i` is the packet `base + i`.
    pub mask: u64,
    /// XOR of them.
    pub parity: Parity,
}

impl Repr {
    /// The content, if all that is announced is there.
    // [RFC 5109 §7.3] [RFC 5109 §7.4]
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        let long = u8_at(payload, 0) & LONG_MASK != 0;
        let head = if long { 18 } else { 14 };
        if payload.len() < head {
            return Err(Error::Truncated);
        }
        if u8_at(payload, 0) & EXTENSION != 0 {
            return Err(Error::Unknown);
        }
        let low = if long { u32_at(payload, 14) } else { 0 };
        let protected = usize::from(u16_at(payload, 10));
        let body = payload.get(head..head + protected).ok_or(Error::Truncated)?;
        let parity = Parity {
            start: u16_at(payload, 0) & 0x3fff,
            length: u16_at(payload, 8),
            timestamp: u32_at(payload, 4),
            body: body.to_vec(),
        };
        let mask = u64::from(u16_at(payload, 12)) << 32 | u64::from(low);
        Ok(Self { base: u16_at(payload, 2), mask, parity })
    }

    /// Appends the payload to `out`, with the short mask where it does.
    // [RFC 5109 §7.3] [RFC 5109 §7.4]
    pub fn emit(&self, out: &mut Vec<u8>) {
        let long = self.mask & 0xffff_ffff != 0;
        let [first, second] = self.parity.start.to_be_bytes();
        out.extend_from_slice(&[first & 0x3f | if long { LONG_MASK } else { 0 }, second]);
        out.extend_from_slice(&self.base.to_be_bytes());
        out.extend_from_slice(&self.parity.timestamp.to_be_bytes());
        out.extend_from_slice(&self.parity.length.to_be_bytes());
        out.extend_from_slice(&(self.parity.body.len() as u16).to_be_bytes());
        out.extend_from_slice(&((self.mask >> 32) as u16).to_be_bytes());
        if long {
            out.extend_from_slice(&(self.mask as u32).to_be_bytes());
        }
        out.extend_from_slice(&self.parity.body);
    }

    /// Sequence numbers of the protected packets.
    pub fn sequences(&self) -> impl Iterator<Item = u16> + '_ {
        let named = |i: &u16| self.mask >> (MAX_PACKETS - 1 - i) & 1 == 1;
        (0..MAX_PACKETS).filter(named).map(|i| self.base.wrapping_add(i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The example of RFC 5109 §10.1, packets A to D (sequence numbers 8 to 11, payload types 11, 18, 11, 18).
    // [RFC 5109 §7.3] [RFC 5109 §7.4] [RFC 5109 §8.1]
    #[test]
    fn the_example_of_the_standard_has_its_header() {
        let packets = [(8u16, 11u8, 3u32, 200usize), (9, 18, 5, 140), (10, 11, 7, 100), (11, 18, 9, 340)];
        let mut parity = Parity::default();
        for (sequence, payload_type, timestamp, length) in packets {
            let mut bytes = vec![0x80, payload_type | if sequence == 8 { 0x80 } else { 0 }];
            bytes.extend_from_slice(&sequence.to_be_bytes());
            bytes.extend_from_slice(&timestamp.to_be_bytes());
            bytes.extend_from_slice(&2u32.to_be_bytes());
            bytes.resize(12 + length, 0);
            parity.add(&bytes).unwrap();
        }
        let repr = Repr { base: 8, mask: 0xf << 44, parity };
        let mut out = Vec::new();
        repr.emit(&mut out);
        // Marker recovery 1, PT recovery 0, TS recovery 3^5^7^9 = 8, length recovery 200^140^100^340 = 372.
        let golden = [0x00, 0x80, 0, 8, 0, 0, 0, 8, 0x01, 0x74, 0x01, 0x54, 0xf0, 0x00];
        assert_eq!(out[..14], golden);
        assert_eq!(out.len(), 14 + 340);
        assert_eq!(Repr::parse(&out), Ok(repr.clone()));
        assert_eq!(repr.sequences().collect::<Vec<_>>(), [8, 9, 10, 11]);
    }

    proptest! {
        #[test]
        fn payloads_survive_their_bytes(
            base: u16, mask in 0u64..1 << 48, start in 0u16..0x4000, length: u16, timestamp: u32,
            body in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let repr = Repr { base, mask, parity: Parity { start, length, timestamp, body } };
            let mut out = Vec::new();
            repr.emit(&mut out);
            prop_assert_eq!(Repr::parse(&out), Ok(repr));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(repr) = Repr::parse(&bytes) {
                prop_assert!(repr.sequences().count() <= 48);
            }
        }
    }
}
