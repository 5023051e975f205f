//! RTCP: the packets that senders and receivers of RTP tell each other about it with (RFC 3550 and others).
//!
//! ```text
//! compound datagram:  [ SR or RR ][ SDES ][ more ... ][ BYE ]
//! packet:             +---+-+-----+--------+---------------+---------- -
//!                     |V=2|P|count|  type  |  words minus 1 | body
//!                     +---+-+-----+--------+---------------+---------- -
//! 200 SR, 201 RR (`report`)      205 transport feedback: NACK (`feedback`), congestion control (`ccfb`)
//! 202 SDES (`sdes`)              206 payload feedback (`feedback`)
//! 203 BYE, 204 APP (`bye`)       207 extended reports (`xr`)
//! ```

pub mod bye;
pub mod ccfb;
pub mod feedback;
mod packet;
pub mod report;
pub mod sdes;
pub mod xr;

pub use packet::{emit, Packet, HEADER_BYTES};

use crate::{bytes::u8_at, Error};
use packet::{push_u32, take, PADDING};

/// The packets of a compound datagram, in order.
#[derive(Debug, Clone)]
pub struct Packets<'a> {
    rest: &'a [u8],
}

impl<'a> Packets<'a> {
    /// The packets, if the datagram keeps the rules of a compound: whole packets of version 2, a report first,
    /// padding only in the last.
    // [RFC 3550 §6.1] [RFC 3550 §A.2]
    pub fn compound(datagram: &'a [u8]) -> Result<Self, Error> {
        let first = u8_at(datagram, 1);
        if !matches!(first, report::SR | report::RR) || u8_at(datagram, 0) & PADDING != 0 {
            return Err(Error::Unknown);
        }
        Self::reduced(datagram)
    }

    /// The packets of a datagram that may be one packet or several without a report, as AVPF allows.
    // [RFC 5506 §3.4]
    pub fn reduced(datagram: &'a [u8]) -> Result<Self, Error> {
        let mut rest = datagram;
        while !rest.is_empty() {
            let (_, padded, after) = take(rest)?;
            if padded && !after.is_empty() {
                return Err(Error::Contradiction);
            }
            rest = after;
        }
        match datagram.is_empty() {
            true => Err(Error::Truncated),
            false => Ok(Self { rest: datagram }),
        }
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Packet<'a>;

    fn next(&mut self) -> Option<Packet<'a>> {
        let (packet, _, after) = take(self.rest).ok()?;
        self.rest = after;
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RR: [u8; 8] = [0x80, 201, 0, 1, 0, 0, 0, 5];
    const BYE: [u8; 8] = [0x81, 203, 0, 1, 0, 0, 0, 5];

    // [RFC 3550 §6.1] [RFC 3550 §A.2]
    #[test]
    fn a_compound_begins_with_a_report_and_pads_only_its_last_packet() {
        let both = [RR, BYE].concat();
        let packets: Vec<_> =
            Packets::compound(&both).unwrap().map(|p| (p.kind, p.count, p.body.len())).collect();
        assert_eq!(packets, [(201, 0, 4), (203, 1, 4)]);
        assert_eq!(Packets::compound(&BYE).err(), Some(Error::Unknown), "no report first");
        assert_eq!(Packets::compound(&both[..15]).err(), Some(Error::Truncated));
        assert_eq!(Packets::compound(&[]).err(), Some(Error::Unknown));
        let mut padded = both.clone();
        padded[8] |= PADDING;
        padded[11] = 2;
        padded.extend_from_slice(&[0, 0, 0, 4]);
        let last = Packets::compound(&padded).unwrap().last().unwrap();
        assert_eq!(last.body.len(), 4, "without its padding");
        padded.extend_from_slice(&RR);
        assert_eq!(Packets::compound(&padded).err(), Some(Error::Contradiction));
        let mut version = both;
        version[8] = 0x41;
        assert_eq!(Packets::compound(&version).err(), Some(Error::Unknown));
    }

    // [RFC 5506 §3.4]
    #[test]
    fn reduced_size_needs_no_report() {
        assert_eq!(Packets::reduced(&BYE).unwrap().count(), 1);
        assert_eq!(Packets::reduced(&[]).err(), Some(Error::Truncated));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            if let Some(first) = bytes.first_mut() {
                *first = *first & 0x3f | 0x80;
            }
            if let Ok(packets) = Packets::reduced(&bytes) {
                let inside: usize = packets.map(|p| HEADER_BYTES + p.body.len()).sum();
                prop_assert!(inside <= bytes.len());
            }
        }
    }
}
