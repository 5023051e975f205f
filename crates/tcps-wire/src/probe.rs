//! Probe of a round trip: a datagram that the other side sends back at once.
//!
//! ```text
//!  0       1               2               4                               8
//! +---------------+---------------+---------------+-------------------------------+
//! | 0xC0 or 0xC1  |       0       |   sequence    |  time at which it left, us    |
//! +---------------+---------------+---------------+-------------------------------+
//! ```
//! 0xC0 asks, 0xC1 answers with the same sequence and time. With the headers below it takes 62 bytes on the wire.

use crate::{
    bytes::{u16_at, u32_at, u8_at},
    Error,
};

/// Length of a probe or its answer.
pub const PROBE_BYTES: usize = 8;
/// First byte of a probe.
pub const ASKS: u8 = 0xc0;
/// First byte of an answer.
pub const ANSWERS: u8 = 0xc1;

/// The content of a probe.
// [Kokkonis 2015]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// Whether it is an answer.
    pub answers: bool,
    /// Number of the probe, modulo 2^16.
    pub sequence: u16,
    /// When the probe left, in microseconds of its sender's clock, modulo 2^32.
    pub left_us: u32,
}

impl Repr {
    /// The content, if length and marks are right.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let first = u8_at(bytes, 0);
        match bytes.len() {
            n if n < PROBE_BYTES => Err(Error::Truncated),
            n if n > PROBE_BYTES => Err(Error::TooLong),
            _ if !matches!(first, ASKS | ANSWERS) || u8_at(bytes, 1) != 0 => Err(Error::Unknown),
            _ => {
                Ok(Self { answers: first == ANSWERS, sequence: u16_at(bytes, 2), left_us: u32_at(bytes, 4) })
            }
        }
    }

    /// Appends the probe to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[if self.answers { ANSWERS } else { ASKS }, 0]);
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.left_us.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // [Kokkonis 2015]
    #[test]
    fn the_golden_probe_is_8_bytes_and_62_on_the_wire() {
        let golden = [0xc0, 0, 0x12, 0x34, 0x00, 0x01, 0x86, 0xa0];
        let probe = Repr { answers: false, sequence: 0x1234, left_us: 100_000 };
        let mut out = Vec::new();
        probe.emit(&mut out);
        assert_eq!(out, golden);
        assert_eq!(out.len() + 8 + 20 + 26, 62);
        assert_eq!(Repr::parse(&golden), Ok(probe));
        let refused = |bytes: &[u8]| Repr::parse(bytes).err();
        assert_eq!(refused(&golden[..7]), Some(Error::Truncated));
        assert_eq!(refused(&[0xc0, 0, 0, 0, 0, 0, 0, 0, 0]), Some(Error::TooLong));
        assert_eq!(refused(&[0xc2, 0, 0, 0, 0, 0, 0, 0]), Some(Error::Unknown));
        assert_eq!(refused(&[0xc1, 1, 0, 0, 0, 0, 0, 0]), Some(Error::Unknown));
    }

    proptest! {
        #[test]
        fn probes_survive_their_bytes(answers: bool, sequence: u16, left_us: u32) {
            let probe = Repr { answers, sequence, left_us };
            let mut out = Vec::new();
            probe.emit(&mut out);
            prop_assert_eq!(Repr::parse(&out), Ok(probe));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            let _ = Repr::parse(&bytes);
        }
    }
}
