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

/// A view of a clock datagram of the right length, magic and version.
#[derive(Debug, Clone, Copy)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// The view, if length, magic, version and the zero bytes are right.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        let bytes = buffer.as_ref();
        match bytes.len() {
            n if n < CLOCK_BYTES => Err(Error::Truncated),
            n if n > CLOCK_BYTES => Err(Error::Contradiction),
            _ if !bytes.starts_with(&START) || bytes.get(6..8) != Some(&[0, 0]) => Err(Error::Unknown),
            _ => Ok(Self { buffer }),
        }
    }

    /// 1 for a request, 2 for a response.
    pub fn mode(&self) -> u8 {
        u8_at(self.buffer.as_ref(), 5)
    }

    /// Number of the exchange.
    pub fn sequence(&self) -> u32 {
        u32_at(self.buffer.as_ref(), 8)
    }

    /// When the request left, in nanoseconds on the client's clock.
    pub fn t1_ns(&self) -> Time {
        i64_at(self.buffer.as_ref(), 12)
    }

    /// When the request arrived, in nanoseconds on the reference's clock; 0 in a request.
    pub fn t2_ns(&self) -> Time {
        i64_at(self.buffer.as_ref(), 20)
    }

    /// When the response left, in nanoseconds on the reference's clock; 0 in a request.
    pub fn t3_ns(&self) -> Time {
        i64_at(self.buffer.as_ref(), 28)
    }
}

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
    /// The content, if the mode is known and a request brings no stamps of the reference.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Result<Self, Error> {
        let (sequence, t1_ns) = (packet.sequence(), packet.t1_ns());
        match (packet.mode(), packet.t2_ns(), packet.t3_ns()) {
            (1, 0, 0) => Ok(Repr::Request { sequence, t1_ns }),
            (1, _, _) => Err(Error::Contradiction),
            (2, t2_ns, t3_ns) => Ok(Repr::Response { sequence, t1_ns, t2_ns, t3_ns }),
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
        assert_eq!(Repr::parse(&Packet::new_checked(&GOLDEN).unwrap()), Ok(repr));
        let mut out = Vec::new();
        repr.emit(&mut out);
        assert_eq!(out, GOLDEN);
        assert_eq!(crate::format(&out), Some(crate::Format::Clock));
    }

    #[test]
    fn wrong_modes_cuts_and_starts_are_refused() {
        for n in 0..CLOCK_BYTES {
            assert_eq!(Packet::new_checked(&GOLDEN[..n]).err(), Some(Error::Truncated));
        }
        for at in [0, 1, 2, 3, 4, 6, 7] {
            let mut bytes = GOLDEN;
            bytes[at] ^= 0x40;
            assert_eq!(Packet::new_checked(bytes).err(), Some(Error::Unknown), "byte {at}");
        }
        let with_mode = |mode| {
            let mut bytes = GOLDEN;
            bytes[5] = mode;
            Packet::new_checked(bytes).and_then(|p| Repr::parse(&p))
        };
        assert_eq!(with_mode(1), Err(Error::Contradiction), "a request with T2");
        assert_eq!(with_mode(3), Err(Error::Unknown));
        assert_eq!(Packet::new_checked([0xcc; 37]).err(), Some(Error::Contradiction));
    }

    proptest! {
        #[test]
        fn exchanges_survive_their_bytes(sequence: u32, t1_ns: i64, t2_ns: i64, t3_ns: i64) {
            let response = Repr::Response { sequence, t1_ns, t2_ns, t3_ns };
            for repr in [Repr::Request { sequence, t1_ns }, response] {
                let mut out = Vec::new();
                repr.emit(&mut out);
                prop_assert_eq!(Repr::parse(&Packet::new_checked(&out).unwrap()), Ok(repr));
            }
        }
    }
}
