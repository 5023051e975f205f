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
    sample::{EchoReply, FlowId, PointId},
    time::Time,
};

/// Length of a reply in bytes.
pub const REPLY_BYTES: usize = 32;
/// The first byte of every reply.
pub const FIRST_BYTE: u8 = 0xec;
const START: [u8; 8] = [FIRST_BYTE, b'T', b'C', b'E', 1, 0, 0, 0];

/// A view of a reply of the right length, magic and version.
#[derive(Debug, Clone, Copy)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// The view, if length, magic, version and the zero bytes are right.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        let bytes = buffer.as_ref();
        match bytes.len() {
            n if n < REPLY_BYTES => Err(Error::Truncated),
            n if n > REPLY_BYTES => Err(Error::Contradiction),
            _ if !bytes.starts_with(&START) => Err(Error::Unknown),
            _ => Ok(Self { buffer }),
        }
    }

    /// The point that answered.
    pub fn point(&self) -> PointId {
        u16_at(self.buffer.as_ref(), 8)
    }

    /// The flow whose sample carried the command.
    pub fn flow(&self) -> FlowId {
        u16_at(self.buffer.as_ref(), 10)
    }

    /// Number of the command.
    pub fn sequence(&self) -> u32 {
        u32_at(self.buffer.as_ref(), 12)
    }

    /// When the command was given, in nanoseconds on the giver's clock.
    pub fn injected_ns(&self) -> Time {
        i64_at(self.buffer.as_ref(), 16)
    }

    /// When the command reached the point, in nanoseconds on the answering node's clock.
    pub fn reached_ns(&self) -> Time {
        i64_at(self.buffer.as_ref(), 24)
    }
}

/// The content of a reply.
// [Polachan 2022: echoes]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr(pub EchoReply);

impl Repr {
    /// The content.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Self {
        Self(EchoReply {
            point: packet.point(),
            flow: packet.flow(),
            sequence: packet.sequence(),
            injected_ns: packet.injected_ns(),
            reached_ns: packet.reached_ns(),
        })
    }

    /// Appends the datagram to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&START);
        out.extend_from_slice(&self.0.point.to_be_bytes());
        out.extend_from_slice(&self.0.flow.to_be_bytes());
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
        Repr(EchoReply { point: 10, flow: 2, sequence: 256, injected_ns, reached_ns })
    }

    // [Polachan 2022: echoes]
    #[test]
    fn the_golden_reply_is_read_and_written() {
        assert_eq!(Repr::parse(&Packet::new_checked(&GOLDEN).unwrap()), golden());
        let mut out = Vec::new();
        golden().emit(&mut out);
        assert_eq!(out, GOLDEN);
        assert_eq!(crate::format(&out), Some(crate::Format::Reply));
    }

    #[test]
    fn every_cut_and_every_change_of_the_start_is_refused() {
        for n in 0..REPLY_BYTES {
            assert_eq!(Packet::new_checked(&GOLDEN[..n]).err(), Some(Error::Truncated));
        }
        for at in 0..START.len() {
            let mut bytes = GOLDEN;
            bytes[at] ^= 0x40;
            assert_eq!(Packet::new_checked(bytes).err(), Some(Error::Unknown), "byte {at}");
        }
        assert_eq!(Packet::new_checked([0xec; 33]).err(), Some(Error::Contradiction));
    }

    proptest! {
        #[test]
        fn replies_survive_their_bytes(
            point: u16, flow: u16, sequence: u32, injected_ns: i64, reached_ns: i64,
        ) {
            let repr = Repr(EchoReply { point, flow, sequence, injected_ns, reached_ns });
            let mut out = Vec::new();
            repr.emit(&mut out);
            prop_assert_eq!(Repr::parse(&Packet::new_checked(&out).unwrap()), repr);
        }
    }
}
