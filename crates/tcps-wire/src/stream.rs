//! Numbered datagrams of the transports that send again: data, and what the receiver answers.
//!
//! ```text
//!  0       1       2               4                               8
//! +-------+-------+---------------+
//! | 0x02  | class |   sequence    |  then a sample as in `header`: data, 28 bytes with both headers
//! +-------+-------+---------------+
//! | 0x03  |   0   |   sequence    |  acknowledgement of one datagram
//! +-------+-------+---------------+-------------------------------+
//! | 0x04  |   0   |    newest     |          datagrams had        |  report, every so often
//! +-------+-------+---------------+-------------------------------+
//! | 0x05  | count |  count times a sequence: what the receiver misses
//! +-------+-------+---------------+
//! ```
//! The sequence counts the datagrams of one sender on one channel, modulo 2^16; a datagram that is sent again keeps its
//! own. 28 bytes are also what the common header of SCTP and the header of its data chunk take (RFC 9260).

use crate::{
    bytes::{u16_at, u32_at, u8_at},
    Error,
};

/// Bytes before a sample's header.
pub const PREFIX_BYTES: usize = 4;
/// Where the class of data stands.
pub const CLASS_AT: usize = 1;
/// Length of an acknowledgement.
pub const ACK_BYTES: usize = 4;
/// Length of a report.
pub const REPORT_BYTES: usize = 8;
/// Sequences that one request may hold.
pub const MOST_REQUESTED: usize = 64;
const DATA: u8 = 2;
const ACK: u8 = 3;
const REPORT: u8 = 4;
const REQUEST: u8 = 5;

/// A view of a datagram that has at least a prefix.
#[derive(Debug, Clone, Copy)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// The view, if there are bytes for a prefix.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        if buffer.as_ref().len() < PREFIX_BYTES {
            return Err(Error::Truncated);
        }
        Ok(Self { buffer })
    }

    /// The bytes behind the prefix: of data, a sample with its header.
    pub fn body(&self) -> &[u8] {
        self.buffer.as_ref().get(PREFIX_BYTES..).unwrap_or(&[])
    }

    /// Sequence `i` of a request.
    pub fn requested(&self, i: usize) -> u16 {
        u16_at(self.buffer.as_ref(), 2 + 2 * i)
    }
}

/// What a datagram says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repr {
    /// A sample, or a fragment of one, follows.
    Data {
        /// Class of service; what it means is the transport's.
        class: u8,
        /// Number of the datagram.
        sequence: u16,
    },
    /// This datagram is here.
    Ack {
        /// Its number.
        sequence: u16,
    },
    /// How much is here.
    Report {
        /// Newest number seen.
        newest: u16,
        /// Datagrams had so far, modulo 2^32.
        had: u32,
    },
    /// These are missing; `Packet::requested` gives them.
    Request {
        /// How many, at least 1.
        count: u8,
    },
}

impl Repr {
    /// The content, if kind and length agree.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Result<Self, Error> {
        let b = packet.buffer.as_ref();
        let exactly = |n: usize| match b.len() {
            found if found < n => Err(Error::Truncated),
            found if found > n => Err(Error::Contradiction),
            _ => Ok(()),
        };
        let second = u8_at(b, 1);
        match u8_at(b, 0) {
            DATA => return Ok(Self::Data { class: second, sequence: u16_at(b, 2) }),
            REQUEST => {
                let count = usize::from(second);
                if count == 0 || count > MOST_REQUESTED {
                    return Err(Error::Contradiction);
                }
                return exactly(2 + 2 * count).map(|()| Self::Request { count: second });
            }
            _ if second != 0 => return Err(Error::Unknown),
            ACK => exactly(ACK_BYTES)?,
            REPORT => exactly(REPORT_BYTES)?,
            _ => return Err(Error::Unknown),
        }
        Ok(match u8_at(b, 0) {
            ACK => Self::Ack { sequence: u16_at(b, 2) },
            _ => Self::Report { newest: u16_at(b, 2), had: u32_at(b, 4) },
        })
    }

    /// Appends it to `out`; the sample of data, and the sequences of a request, are the caller's.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Data { class, sequence } => emit_prefix(DATA, class, sequence, out),
            Self::Ack { sequence } => emit_prefix(ACK, 0, sequence, out),
            Self::Report { newest, had } => {
                emit_prefix(REPORT, 0, newest, out);
                out.extend_from_slice(&had.to_be_bytes());
            }
            Self::Request { count } => out.extend_from_slice(&[REQUEST, count]),
        }
    }
}

fn emit_prefix(kind: u8, second: u8, sequence: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&[kind, second]);
    out.extend_from_slice(&sequence.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(bytes: &[u8]) -> Result<Repr, Error> {
        Repr::parse(&Packet::new_checked(bytes)?)
    }

    #[test]
    fn the_golden_datagrams_are_read_and_written() {
        let golden: [(Repr, &[u8]); 4] = [
            (Repr::Data { class: 1, sequence: 258 }, &[2, 1, 1, 2]),
            (Repr::Ack { sequence: 0xfffe }, &[3, 0, 0xff, 0xfe]),
            (Repr::Report { newest: 7, had: 0x0102_0304 }, &[4, 0, 0, 7, 1, 2, 3, 4]),
            (Repr::Request { count: 2 }, &[5, 2, 0, 9, 1, 0]),
        ];
        for (repr, bytes) in golden {
            assert_eq!(parse(bytes), Ok(repr));
            let mut out = Vec::new();
            repr.emit(&mut out);
            assert_eq!(out, bytes[..out.len()]);
        }
        let request = Packet::new_checked(golden[3].1).unwrap();
        assert_eq!((request.requested(0), request.requested(1)), (9, 256));
    }

    #[test]
    fn wrong_kinds_and_lengths_are_refused() {
        let refused: [(&[u8], Error); 9] = [
            (&[2, 0, 0], Error::Truncated),
            (&[1, 0, 0, 0], Error::Unknown),
            (&[6, 0, 0, 0], Error::Unknown),
            (&[3, 1, 0, 0], Error::Unknown),
            (&[3, 0, 0, 0, 0], Error::Contradiction),
            (&[4, 0, 0, 0, 0], Error::Truncated),
            (&[5, 0, 0, 0], Error::Contradiction),
            (&[5, 2, 0, 0], Error::Truncated),
            (&[5, 65, 0, 0], Error::Contradiction),
        ];
        for (bytes, error) in refused {
            assert_eq!(parse(bytes), Err(error), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), i in 0usize..300) {
            if let Ok(packet) = Packet::new_checked(&bytes) {
                let _ = (Repr::parse(&packet), packet.requested(i), packet.body());
            }
        }
    }
}
