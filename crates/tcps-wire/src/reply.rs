//! Echo reply: the answer to an echo command, a datagram of its own.
//!
//! ```text
//!  0       1       2       3       4       5                       8
//! +-------+-------+-------+-------+-------+-----------------------+
//! | 0xEC  |  'T'  |  'C'  |  'E'  | ver=1 |           0           |
//! +-------+-------+-------+-------+-------+-----------------------+
//! |     point     |     flow      |            sequence           |
//! +---------------+---------------+-------------------------------+
//! |               injected time, ns (giver's clock)               |
//! +---------------------------------------------------------------+
//! |            reached time, ns (answering node's clock)          |
//! +---------------------------------------------------------------+ 32
//! ```

use crate::{
    bytes::{i64_at, u16_at, u32_at},
    Error,
};
use tcps_core::{
    ids::FlowId,
    sample::{EchoReply, PointId},
};

/// Length of a reply in bytes.
pub const REPLY_BYTES: usize = 32;
/// The first byte of every reply.
pub const FIRST_BYTE: u8 = 0xec;
const START: [u8; 8] = [FIRST_BYTE, b'T', b'C', b'E', 1, 0, 0, 0];

/// The content of a reply.
// [Polachan 2022: echoes]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr(pub EchoReply);

impl Repr {
    /// The content, if length, magic, version and the zero bytes are right.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        match bytes.len() {
            n if n < REPLY_BYTES => Err(Error::Truncated),
            n if n > REPLY_BYTES => Err(Error::Contradiction),
            _ if !bytes.starts_with(&START) => Err(Error::Unknown),
            _ => Ok(Self(EchoReply {
                point: PointId(u16_at(bytes, 8)),
                flow: FlowId(u16_at(bytes, 10)),
                sequence: u32_at(bytes, 12),
                injected_ns: i64_at(bytes, 16),
                reached_ns: i64_at(bytes, 24),
            })),
        }
    }

    /// Appends the datagram to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&START);
        out.extend_from_slice(&self.0.point.0.to_be_bytes());
        out.extend_from_slice(&self.0.flow.0.to_be_bytes());
        out.extend_from_slice(&self.0.sequence.to_be_bytes());
        out.extend_from_slice(&self.0.injected_ns.to_be_bytes());
        out.extend_from_slice(&self.0.reached_ns.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOLDEN: [u8; 32] = [
        0xec, 0x54, 0x43, 0x45, 0x01, 0x00, 0x00, 0x00, // magic, version 1
        0x00, 0x0a, 0x00, 0x02, 0x00, 0x00, 0x01, 0x00, // entry of component 5, flow 2, command 256
        0x00, 0x00, 0x00, 0x00, 0x3b, 0x9a, 0xca, 0x00, // injected at 1 s
        0x00, 0x00, 0x00, 0x00, 0x3b, 0xaa, 0x0c, 0x40, // reached 1 ms later
    ];

    fn golden() -> Repr {
        let (injected_ns, reached_ns) = (1_000_000_000, 1_001_000_000);
        Repr(EchoReply { point: PointId(10), flow: FlowId(2), sequence: 256, injected_ns, reached_ns })
    }

    // [Polachan 2022: echoes]
    #[test]
    fn the_golden_reply_is_read_and_written() {
        assert_eq!(Repr::parse(&GOLDEN), Ok(golden()));
        let mut out = Vec::new();
        golden().emit(&mut out);
        assert_eq!(out, GOLDEN);
        assert_eq!(crate::format(&out), Some(crate::Format::Reply));
    }

    #[test]
    fn every_cut_and_every_change_of_the_start_is_refused() {
        for n in 0..REPLY_BYTES {
            assert_eq!(Repr::parse(&GOLDEN[..n]), Err(Error::Truncated));
        }
        for at in 0..START.len() {
            let mut bytes = GOLDEN;
            bytes[at] ^= 0x40;
            assert_eq!(Repr::parse(&bytes), Err(Error::Unknown), "byte {at}");
        }
        assert_eq!(Repr::parse(&[0xec; 33]), Err(Error::Contradiction));
    }

    proptest! {
        #[test]
        fn replies_survive_their_bytes(
            point: u16, flow: u16, sequence: u32, injected_ns: i64, reached_ns: i64,
        ) {
            let (point, flow) = (PointId(point), FlowId(flow));
            let repr = Repr(EchoReply { point, flow, sequence, injected_ns, reached_ns });
            let mut out = Vec::new();
            repr.emit(&mut out);
            prop_assert_eq!(Repr::parse(&out), Ok(repr));
        }
    }
}
