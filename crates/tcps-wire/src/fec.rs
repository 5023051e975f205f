//! Header before the datagrams of a block code: where a datagram stands in its block.
//!
//! ```text
//!  0       1       2       3       4                               8
//! +-------+-------+-------+-------+-------------------------------+
//! | 0xFE  | place |  data | parity|             block             |  then a datagram, or a parity symbol
//! +-------+-------+-------+-------+-------------------------------+
//! ```
//! Places `0 .. data` are datagrams as they were, places from [`FIRST_PARITY`] on parity. `data` is the number of
//! datagrams of the block, known when its parity is made; 0 before. A symbol is a datagram behind its length
//! (16 bits), filled up with zeros to the longest of the block.

use crate::{
    bytes::{u32_at, u8_at},
    Error,
};

/// Length of the header in bytes.
pub const HEADER_BYTES: usize = 8;
/// The first byte of every datagram with this header.
pub const FIRST_BYTE: u8 = 0xfe;
/// Most datagrams in a block.
pub const MAX_DATA: u8 = 32;
/// Most parity symbols of a block.
pub const MAX_PARITY: u8 = 16;
/// Place of the first parity symbol.
pub const FIRST_PARITY: u8 = MAX_DATA;

/// The content of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// Place in the block.
    pub place: u8,
    /// Datagrams of the block; 0 where not known yet.
    pub data: u8,
    /// Parity symbols of the block.
    pub parity: u8,
    /// Number of the block.
    pub block: u32,
}

impl Repr {
    /// The content and what follows it, if place and numbers agree.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let body = bytes.get(HEADER_BYTES..).ok_or(Error::Truncated)?;
        if u8_at(bytes, 0) != FIRST_BYTE {
            return Err(Error::Unknown);
        }
        let repr = Self {
            place: u8_at(bytes, 1),
            data: u8_at(bytes, 2),
            parity: u8_at(bytes, 3),
            block: u32_at(bytes, 4),
        };
        let places = match repr.data {
            0 => repr.place < MAX_DATA,
            _ => (FIRST_PARITY..FIRST_PARITY + MAX_PARITY.min(repr.parity)).contains(&repr.place),
        };
        match places && repr.data <= MAX_DATA && repr.parity <= MAX_PARITY {
            true => Ok((repr, body)),
            false => Err(Error::Contradiction),
        }
    }

    /// Appends the header to `out`.
    #[inline]
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[FIRST_BYTE, self.place, self.data, self.parity]);
        out.extend_from_slice(&self.block.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_golden_header_is_read_and_written() {
        let golden = [0xfe, 0x21, 4, 2, 0, 1, 0, 5, 9];
        let repr = Repr { place: 33, data: 4, parity: 2, block: 65_541 };
        assert_eq!(Repr::parse(&golden), Ok((repr, &golden[8..])));
        let mut out = Vec::new();
        repr.emit(&mut out);
        assert_eq!(out, golden[..8]);
        for (at, value, error) in [
            (0, 0xfd, Error::Unknown),
            (1, 34, Error::Contradiction),
            (2, 33, Error::Contradiction),
            (2, 0, Error::Contradiction),
            (3, 17, Error::Contradiction),
        ] {
            let mut bytes = golden;
            bytes[at] = value;
            assert_eq!(Repr::parse(&bytes).err(), Some(error), "byte {at}");
        }
        assert_eq!(Repr::parse(&golden[..7]), Err(Error::Truncated));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok((repr, body)) = Repr::parse(&bytes) {
                let mut out = Vec::new();
                repr.emit(&mut out);
                out.extend_from_slice(body);
                prop_assert_eq!(out, bytes);
            }
        }
    }
}
