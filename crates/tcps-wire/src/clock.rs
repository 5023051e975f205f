//! Clock exchange: a request with one stamp, its response with three; the fourth is taken on arrival.
//!
//! ```text
//!  0       1       2       3       4       5       6               8
//! +-------+-------+-------+-------+-------+-------+---------------+
//! | 0xCC  |  'T'  |  'C'  |  'C'  | ver=1 | mode  |       0       |
//! +-------+-------+-------+-------+-------+-------+---------------+
//! |           sequence            |  T1 ns: request left ...      :
//! +-------------------------------+-------------------------------+
//! :                               |  T2 ns: request arrived ...   :
//! +-------------------------------+-------------------------------+
//! :                               |  T3 ns: response left ...     :
//! +-------------------------------+-------------------------------+
//! :                               |
//! +-------------------------------+ 36
//! ```
//! Request (mode 1) and response (mode 2) have one size, so that links hold both equally long. T1 and T4 are
//! on the client's clock, T2 and T3 on the reference's (RFC 5357).

use crate::{
    bytes::{i64_at, u32_at, u8_at},
    Error,
};
use tcps_core::time::Time;

/// Length of a request or a response in bytes.
pub const CLOCK_BYTES: usize = 36;
/// The first byte of every clock datagram.
pub const FIRST_BYTE: u8 = 0xcc;
const START: [u8; 5] = [FIRST_BYTE, b'T', b'C', b'C', 1];

/// The content of a clock datagram.
// [RFC 5357]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repr {
    /// From the client.
    Request {
        /// Number of the exchange.
        sequence: u32,
        /// When it left (client's clock).
        t1_ns: Time,
    },
    /// From the reference.
    Response {
        /// Number of the exchange.
        sequence: u32,
        /// When the request left (client's clock), repeated.
        t1_ns: Time,
        /// When the request arrived (reference's clock).
        t2_ns: Time,
        /// When this left (reference's clock).
        t3_ns: Time,
    },
}

impl Repr {
    /// The content, if length, magic, version and the zero bytes are right, the mode is known, and a request brings no
    /// stamps of the reference.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        match bytes.len() {
            n if n < CLOCK_BYTES => return Err(Error::Truncated),
            n if n > CLOCK_BYTES => return Err(Error::Contradiction),
            _ if !bytes.starts_with(&START) || bytes.get(6..8) != Some(&[0, 0]) => {
                return Err(Error::Unknown)
            }
            _ => {}
        }
        let (sequence, [t1_ns, t2_ns, t3_ns]) = (u32_at(bytes, 8), [12, 20, 28].map(|at| i64_at(bytes, at)));
        match (u8_at(bytes, 5), t2_ns, t3_ns) {
            (1, 0, 0) => Ok(Repr::Request { sequence, t1_ns }),
            (1, _, _) => Err(Error::Contradiction),
            (2, _, _) => Ok(Repr::Response { sequence, t1_ns, t2_ns, t3_ns }),
            _ => Err(Error::Unknown),
        }
    }

    /// Appends the datagram to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let (mode, sequence, stamps) = match *self {
            Repr::Request { sequence, t1_ns } => (1, sequence, [t1_ns, 0, 0]),
            Repr::Response { sequence, t1_ns, t2_ns, t3_ns } => (2, sequence, [t1_ns, t2_ns, t3_ns]),
        };
        out.extend_from_slice(&START);
        out.extend_from_slice(&[mode, 0, 0]);
        out.extend_from_slice(&sequence.to_be_bytes());
        for stamp in stamps {
            out.extend_from_slice(&stamp.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOLDEN: [u8; 36] = [
        0xcc, 0x54, 0x43, 0x43, 0x01, 0x02, 0x00, 0x00, // magic, version 1, response
        0x00, 0x00, 0x00, 0x07, // exchange 7
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x64, // T1 = 100
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, // T2 = 256
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, // T3 = -1
    ];

    // [RFC 5357]
    #[test]
    fn the_golden_response_is_read_and_written() {
        let repr = Repr::Response { sequence: 7, t1_ns: 100, t2_ns: 256, t3_ns: -1 };
        assert_eq!(Repr::parse(&GOLDEN), Ok(repr));
        let mut out = Vec::new();
        repr.emit(&mut out);
        assert_eq!(out, GOLDEN);
        assert_eq!(crate::format(&out), Some(crate::Format::Clock));
    }

    #[test]
    fn wrong_modes_cuts_and_starts_are_refused() {
        for n in 0..CLOCK_BYTES {
            assert_eq!(Repr::parse(&GOLDEN[..n]), Err(Error::Truncated));
        }
        for at in [0, 1, 2, 3, 4, 6, 7] {
            let mut bytes = GOLDEN;
            bytes[at] ^= 0x40;
            assert_eq!(Repr::parse(&bytes), Err(Error::Unknown), "byte {at}");
        }
        let with_mode = |mode| {
            let mut bytes = GOLDEN;
            bytes[5] = mode;
            Repr::parse(&bytes)
        };
        assert_eq!(with_mode(1), Err(Error::Contradiction), "a request with T2");
        assert_eq!(with_mode(3), Err(Error::Unknown));
        assert_eq!(Repr::parse(&[0xcc; 37]), Err(Error::Contradiction));
    }

    proptest! {
        #[test]
        fn exchanges_survive_their_bytes(sequence: u32, t1_ns: i64, t2_ns: i64, t3_ns: i64) {
            let response = Repr::Response { sequence, t1_ns, t2_ns, t3_ns };
            for repr in [Repr::Request { sequence, t1_ns }, response] {
                let mut out = Vec::new();
                repr.emit(&mut out);
                prop_assert_eq!(Repr::parse(&out), Ok(repr));
            }
        }
    }
}
