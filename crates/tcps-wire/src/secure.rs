//! Secured datagrams: what stands in front of a sealed payload, and the messages that agree on its keys.
//!
//! ```text
//!  0       1       2               4                               8
//! +-------+-------+---------------+-------------------------------+
//! | 0xD1  | phase |    session    |            number             |  record: then the sealed payload and a tag of 16 bytes
//! | 0xD5  | phase |    session    |            number             |  record that asks for a new session: a tag of 16 bytes
//! +-------+-------+---------------+-------------------------------+
//! | 0xD2  | ver=1 |       0       |  hello: then 48 bytes of Noise, and 16 of a code
//! | 0xD3  | ver=1 |       0       |  answer: then 48 bytes of Noise, and 16 of a code
//! | 0xD4  | ver=1 |       0       |  request for a hello, of a side without keys: nothing more
//! | 0xDA  | ver=1 |    session    |  outside channels: then any of these, for the loop of a session of the scenario
//! +-------+-------+---------------+
//! ```
//! `phase` is the number of the key, modulo 256. The session of a record is drawn from its handshake; that of 0xDA is a number in
//! the plan, or 0xFFFF.

use crate::{
    bytes::{u16_at, u32_at, u8_at},
    Error,
};

/// Length of a record's header.
pub const RECORD_BYTES: usize = 8;
/// Length of the header of any other message.
pub const MESSAGE_BYTES: usize = 4;
/// Length of a tag.
pub const TAG_BYTES: usize = 16;
/// Length of a message of Noise NNpsk0: a public key and a tag.
pub const NOISE_BYTES: usize = 48;
/// Length of a hello or an answer behind its header: a message of Noise, and a code by which who has no key is told cheaply.
pub const HANDSHAKE_BYTES: usize = NOISE_BYTES + TAG_BYTES;
/// The first byte of what travels outside channels.
pub const ASIDE_BYTE: u8 = 0xda;
const RECORD: u8 = 0xd1;
const HELLO: u8 = 0xd2;
const ANSWER: u8 = 0xd3;
const REQUEST: u8 = 0xd4;
const ASKING: u8 = 0xd5;
/// Also the version that both sides mix into their handshake.
pub const VERSION: u8 = 1;

/// What a secured datagram is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repr {
    /// A sealed payload.
    Record(Record),
    /// Opens a handshake.
    Hello,
    /// Completes one.
    Answer,
    /// Asks the other side to open one; anybody can make it.
    Request,
}

/// The header of a sealed payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Record {
    /// Whether it asks for a new session, in place of a payload.
    pub asks: bool,
    /// Number of the key, modulo 256.
    pub phase: u8,
    /// Number of the session.
    pub session: u16,
    /// Number of the record under its key.
    pub number: u32,
}

impl Record {
    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; RECORD_BYTES] {
        let ([a, b], [c, d, e, f]) = (self.session.to_be_bytes(), self.number.to_be_bytes());
        [if self.asks { ASKING } else { RECORD }, self.phase, a, b, c, d, e, f]
    }
}

impl Repr {
    /// The header, if the length fits what it announces.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let (least, most, repr) = match u8_at(bytes, 0) {
            kind @ (RECORD | ASKING) => {
                let asks = kind == ASKING;
                let (phase, session, number) = (u8_at(bytes, 1), u16_at(bytes, 2), u32_at(bytes, 4));
                let most = if asks { RECORD_BYTES + TAG_BYTES } else { usize::MAX };
                (RECORD_BYTES + TAG_BYTES, most, Self::Record(Record { asks, phase, session, number }))
            }
            HELLO => (MESSAGE_BYTES + HANDSHAKE_BYTES, MESSAGE_BYTES + HANDSHAKE_BYTES, Self::Hello),
            ANSWER => (MESSAGE_BYTES + HANDSHAKE_BYTES, MESSAGE_BYTES + HANDSHAKE_BYTES, Self::Answer),
            REQUEST => (MESSAGE_BYTES, MESSAGE_BYTES, Self::Request),
            _ => return Err(Error::Unknown),
        };
        match bytes.len() {
            n if n < least => Err(Error::Truncated),
            n if n > most => Err(Error::Contradiction),
            _ if !matches!(repr, Self::Record(_)) && bytes[1..MESSAGE_BYTES] != [VERSION, 0, 0] => {
                Err(Error::Unknown)
            }
            _ => Ok(repr),
        }
    }

    /// Appends the header to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let kind = match self {
            Self::Record(record) => return out.extend_from_slice(&record.to_bytes()),
            Self::Hello => HELLO,
            Self::Answer => ANSWER,
            Self::Request => REQUEST,
        };
        out.extend_from_slice(&[kind, VERSION, 0, 0]);
    }
}

/// What travels outside channels: the session whose loop it is for, and the secured datagram.
pub fn parse_aside(bytes: &[u8]) -> Result<(u16, &[u8]), Error> {
    match bytes {
        [ASIDE_BYTE, VERSION, a, b, rest @ ..] => Ok((u16::from_be_bytes([*a, *b]), rest)),
        [ASIDE_BYTE, VERSION, ..] => Err(Error::Truncated),
        _ => Err(Error::Unknown),
    }
}

/// Appends what stands in front of a secured datagram outside channels.
pub fn emit_aside(session: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&[ASIDE_BYTE, VERSION]);
    out.extend_from_slice(&session.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOLDEN: [u8; 8] = [0xd1, 0x03, 0x12, 0x34, 0x00, 0x00, 0x01, 0x00]; // key 3 of session 0x1234, record 256

    #[test]
    fn the_golden_record_is_read_and_written() {
        let record = Record { asks: false, phase: 3, session: 0x1234, number: 256 };
        assert_eq!(record.to_bytes(), GOLDEN);
        let mut bytes = GOLDEN.to_vec();
        bytes.resize(RECORD_BYTES + TAG_BYTES, 0);
        assert_eq!(Repr::parse(&bytes), Ok(Repr::Record(record)));
        assert_eq!(Repr::parse(&bytes[..23]), Err(Error::Truncated));
        let asking = Record { asks: true, ..record };
        bytes[0] = 0xd5;
        assert_eq!((&asking.to_bytes()[..], Repr::parse(&bytes)), (&bytes[..8], Ok(Repr::Record(asking))));
        bytes.push(0);
        assert_eq!(Repr::parse(&bytes), Err(Error::Contradiction), "nothing is in it");
        assert_eq!(crate::format(&bytes), None, "the port tells that it is one");
    }

    #[test]
    fn messages_have_one_length_and_one_version() {
        for (repr, length) in [(Repr::Hello, 68), (Repr::Answer, 68), (Repr::Request, 4)] {
            let mut bytes = Vec::new();
            repr.emit(&mut bytes);
            bytes.resize(length, 7);
            assert_eq!(Repr::parse(&bytes), Ok(repr));
            assert_eq!(Repr::parse(&bytes[..length - 1]), Err(Error::Truncated));
            bytes.push(0);
            assert_eq!(Repr::parse(&bytes), Err(Error::Contradiction));
            bytes.pop();
            bytes[1] = 2;
            assert_eq!(Repr::parse(&bytes), Err(Error::Unknown));
        }
        assert_eq!(Repr::parse(&[]), Err(Error::Unknown));
    }

    #[test]
    fn an_aside_names_its_session() {
        let mut bytes = Vec::new();
        emit_aside(5, &mut bytes);
        assert_eq!(parse_aside(&bytes), Ok((5, &[][..])));
        assert_eq!(crate::format(&bytes), Some(crate::Format::Secured));
        assert_eq!(parse_aside(&bytes[..3]), Err(Error::Truncated));
        assert_eq!(parse_aside(&[ASIDE_BYTE, 2, 0, 5]), Err(Error::Unknown));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = (Repr::parse(&bytes), parse_aside(&bytes));
        }
    }
}
