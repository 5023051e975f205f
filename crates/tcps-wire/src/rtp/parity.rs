//! What XOR parity over RTP packets protects: the same bits in ULPFEC (RFC 5109 §8) and FlexFEC (RFC 8627 §6).
//!
//! ```text
//! packet  V P X CC M PT │ (sequence) │ timestamp │ (SSRC) │ everything behind byte 12
//!           └── 14 bits ┘                └ 32 bits ┘          and its length, 16 bits
//! parity  = XOR of these over all packets, shorter ones padded with zeros
//! missing = parity XOR all others; sequence and SSRC are known from the parity's header
//! ```

use super::{Repr, HEADER_BYTES, VERSION};
use crate::{
    bytes::{u16_at, u32_at},
    Error,
};

/// The XOR of some packets' protected bits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parity {
    /// First 16 bits of the header; the two bits of the version carry no meaning.
    pub start: u16,
    /// Lengths behind the fixed header, in bytes.
    pub length: u16,
    /// Timestamps.
    pub timestamp: u32,
    /// Everything behind the fixed header.
    pub body: Vec<u8>,
}

impl Parity {
    /// Takes a packet in; one that is shorter than a header or too long is refused.
    // [RFC 5109 §8.1] [RFC 8627 §6.2]
    pub fn add(&mut self, packet: &[u8]) -> Result<(), Error> {
        let body = packet.get(HEADER_BYTES..).ok_or(Error::Truncated)?;
        self.length ^= u16::try_from(body.len()).map_err(|_| Error::TooLong)?;
        self.start ^= u16_at(packet, 0);
        self.timestamp ^= u32_at(packet, 4);
        if self.body.len() < body.len() {
            self.body.resize(body.len(), 0);
        }
        self.body.iter_mut().zip(body).for_each(|(p, b)| *p ^= b);
        Ok(())
    }

    /// The packet that is left when all others have been taken out again, appended to `out`.
    // [RFC 5109 §9.2] [RFC 8627 §6.3]
    pub fn recover(&self, sequence: u16, ssrc: u32, out: &mut Vec<u8>) -> Result<(), Error> {
        let body = self.body.get(..usize::from(self.length)).ok_or(Error::Contradiction)?;
        let start = self.start & 0x3fff | u16::from(VERSION) << 14;
        let [first, second] = start.to_be_bytes();
        let repr = Repr {
            marker: second & 0x80 != 0,
            payload_type: second & 0x7f,
            sequence,
            timestamp: self.timestamp,
            ssrc,
        };
        let at = out.len();
        repr.emit(&[], &[], out);
        out[at] = first;
        out.extend_from_slice(body);
        Ok(())
    }

    /// Forgets all packets; the memory stays.
    pub fn clear(&mut self) {
        self.body.clear();
        (self.start, self.length, self.timestamp) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtp::Packet;
    use proptest::prelude::*;

    fn packet(sequence: u16, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let repr = Repr {
            marker: sequence.is_multiple_of(2),
            payload_type: 96,
            sequence,
            timestamp: u32::from(sequence) * 8,
            ssrc: 9,
        };
        repr.emit(&[], &[], &mut out);
        out.extend_from_slice(payload);
        out
    }

    // [RFC 5109 §8.1] [RFC 5109 §9.2] [RFC 8627 §6.2] [RFC 8627 §6.3]
    proptest! {
        #[test]
        fn one_missing_packet_comes_back_bit_by_bit(
            payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 1..9),
            missing: proptest::sample::Index,
        ) {
            let packets: Vec<_> = (0u16..).zip(&payloads).map(|(i, p)| packet(i, p)).collect();
            let missing = missing.index(packets.len());
            let mut parity = Parity::default();
            packets.iter().for_each(|p| parity.add(p).unwrap());
            for (i, p) in packets.iter().enumerate() {
                if i != missing {
                    parity.add(p).unwrap();
                }
            }
            let mut out = Vec::new();
            parity.recover(missing as u16, 9, &mut out).unwrap();
            prop_assert_eq!(&out, &packets[missing]);
            prop_assert!(Packet::new_checked(&out).is_ok());
        }
    }

    #[test]
    fn a_length_beyond_the_body_is_refused() {
        let parity = Parity { length: 3, body: vec![0; 2], ..Parity::default() };
        assert_eq!(parity.recover(0, 0, &mut Vec::new()), Err(Error::Contradiction));
        assert_eq!(Parity::default().add(&[0; 11]), Err(Error::Truncated));
        assert_eq!(Parity::default().add(&[0; 70_000]), Err(Error::TooLong));
    }
}
