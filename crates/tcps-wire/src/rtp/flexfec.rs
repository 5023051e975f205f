//! Payload of a FlexFEC repair packet (RFC 8627) with fixed rows and columns.
//!
//! ```text
//! +-+-+-+-+-------+-+-------------+-------------------------------+
//! |0|1|P|X|  CC   |M| PT recovery |        length recovery        |
//! +-+-+-+-+-------+-+-------------+-------------------------------+
//! |                          TS recovery                          |
//! +-------------------------------+---------------+---------------+
//! |            SN base            |  L (columns)  |   D (rows)    |
//! +-------------------------------+---------------+---------------+
//! ```
//! `D = 0`: parity of the row `base .. base + L`; `D = 1`: the same, and column parity follows;
//! `D > 1`: parity of the column `base, base + L, ..., base + (D - 1) L`. The source's SSRC is the CSRC of
//! the repair packet.

use super::parity::Parity;
use crate::{
    bytes::{u16_at, u32_at, u8_at},
    Error,
};

const HEADER_BYTES: usize = 12;
const RETRANSMISSION: u8 = 0x80;
const FIXED: u8 = 0x40;

/// The content of the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repr {
    /// First protected sequence number.
    pub base: u16,
    /// Columns, at least 1.
    pub columns: u8,
    /// Rows, as the drawing says.
    pub rows: u8,
    /// XOR of the protected packets.
    pub parity: Parity,
}

impl Repr {
    /// The content, if the header is that of fixed rows and columns.
    // [RFC 8627 §4.2.2.2]
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        let body = payload.get(HEADER_BYTES..).ok_or(Error::Truncated)?;
        let kind = u8_at(payload, 0) & (RETRANSMISSION | FIXED);
        let (columns, rows) = (u8_at(payload, 10), u8_at(payload, 11));
        if kind != FIXED || columns == 0 {
            return Err(Error::Unknown);
        }
        let parity = Parity {
            start: u16_at(payload, 0) & 0x3fff,
            length: u16_at(payload, 2),
            timestamp: u32_at(payload, 4),
            body: body.to_vec(),
        };
        Ok(Self { base: u16_at(payload, 8), columns, rows, parity })
    }

    /// Appends the payload to `out`.
    // [RFC 8627 §4.2.2.2]
    pub fn emit(&self, out: &mut Vec<u8>) {
        let [first, second] = self.parity.start.to_be_bytes();
        out.extend_from_slice(&[first & 0x3f | FIXED, second]);
        out.extend_from_slice(&self.parity.length.to_be_bytes());
        out.extend_from_slice(&self.parity.timestamp.to_be_bytes());
        out.extend_from_slice(&self.base.to_be_bytes());
        out.extend_from_slice(&[self.columns, self.rows]);
        out.extend_from_slice(&self.parity.body);
    }

    /// Sequence numbers of the protected packets.
    pub fn sequences(&self) -> impl Iterator<Item = u16> {
        let (base, step) = (self.base, if self.rows > 1 { u16::from(self.columns) } else { 1 });
        let count = u16::from(if self.rows > 1 { self.rows } else { self.columns });
        (0..count).map(move |i| base.wrapping_add(i.wrapping_mul(step)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // [RFC 8627 §4.2.2.2]
    #[test]
    fn rows_and_columns_name_their_packets() {
        let golden = [
            0x50, 0x60, 0x00, 0x05, // fixed; X recovered, PT 96; length 5
            0x00, 0x00, 0x00, 0x2a, // timestamp 42
            0xff, 0xff, 0x04, 0x02, // from 65535 on, 4 columns, 2 rows
            1, 2, 3, 4, 5,
        ];
        let repr = Repr::parse(&golden).unwrap();
        assert_eq!(repr.sequences().collect::<Vec<_>>(), [65_535, 3], "a column");
        let row = Repr { rows: 0, ..repr.clone() };
        assert_eq!(row.sequences().collect::<Vec<_>>(), [65_535, 0, 1, 2], "a row");
        assert_eq!(Repr { rows: 1, ..repr.clone() }.sequences().count(), 4, "a row of two dimensions");
        let mut out = Vec::new();
        repr.emit(&mut out);
        assert_eq!(out, golden);
        for (at, value) in [(0, 0x10), (0, 0xd0), (10, 0)] {
            let mut bytes = golden;
            bytes[at] = value;
            assert_eq!(Repr::parse(&bytes), Err(Error::Unknown), "mask, retransmission, no columns");
        }
        assert_eq!(Repr::parse(&golden[..11]), Err(Error::Truncated));
    }

    proptest! {
        #[test]
        fn payloads_survive_their_bytes(
            base: u16, columns in 1u8.., rows: u8, start in 0u16..0x4000, length: u16, timestamp: u32,
            body in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let repr = Repr { base, columns, rows, parity: Parity { start, length, timestamp, body } };
            let mut out = Vec::new();
            repr.emit(&mut out);
            prop_assert_eq!(Repr::parse(&out), Ok(repr));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(repr) = Repr::parse(&bytes) {
                prop_assert!((1..=255).contains(&repr.sequences().count()));
            }
        }
    }
}
