//! Echo trailer: the echo commands that ride on the samples of a datagram, behind its payload.
//!
//! ```text
//!  0       1       2               4                               8
//! +-------+
//! | count |  then, `count` times, 19 bytes:
//! +-------+---------------+-------------------------------+
//! |sample |     target    |            sequence           |
//! +-------+---------------+-------+-----------------------+-------+
//! |          reply token          |        injected time, ns      :
//! +-------------------------------+-------------------------------+
//! :                               |
//! +-------------------------------+
//! ```
//! `sample` tells which sample of a merged datagram carries the command, `target` the echo point that answers
//! and the reply token the number of the node that waits (Polachan 2022: echoes).

use crate::{
    bytes::{i64_at, u16_at, u32_at, u8_at},
    Error,
};
use tcps_core::{
    ids::NodeId,
    sample::{Echo, PointId},
};

/// Length of one command in the trailer, in bytes.
pub const TAG_BYTES: usize = 19;

/// Length of a trailer with `count` commands, in bytes.
pub const fn trailer_bytes(count: usize) -> usize {
    1 + count * TAG_BYTES
}

/// A view of a trailer whose count and length agree.
#[derive(Debug, Clone, Copy)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// The view, if there is at least one command and no byte is left over.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        let bytes = buffer.as_ref();
        let need = trailer_bytes(u8_at(bytes, 0) as usize);
        match bytes.len() {
            n if n < need.max(trailer_bytes(1)) => Err(Error::Truncated),
            n if n > need => Err(Error::Contradiction),
            _ => Ok(Self { buffer }),
        }
    }

    /// Number of commands, at least 1.
    pub fn count(&self) -> u8 {
        u8_at(self.buffer.as_ref(), 0)
    }

    /// The bytes of command `i`; empty if there is none.
    pub fn tag(&self, i: usize) -> &[u8] {
        let at = trailer_bytes(i);
        self.buffer.as_ref().get(at..at + TAG_BYTES).unwrap_or(&[])
    }
}

/// An echo command on a sample of a datagram.
// [Polachan 2022: echoes]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// Which sample of the datagram carries it, from 0.
    pub sample: u8,
    /// The command.
    pub echo: Echo,
}

impl Repr {
    /// Command `i` of a trailer, if its reply token is the number of a node.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>, i: usize) -> Result<Self, Error> {
        Self::parse_tag(packet.tag(i))
    }

    /// The command in these bytes of a trailer.
    pub(crate) fn parse_tag(b: &[u8]) -> Result<Self, Error> {
        if b.len() < TAG_BYTES {
            return Err(Error::Truncated);
        }
        let reply_to = NodeId(u16::try_from(u32_at(b, 7)).map_err(|_| Error::Unknown)?);
        let target = PointId(u16_at(b, 1));
        let echo = Echo { target, sequence: u32_at(b, 3), reply_to, injected_ns: i64_at(b, 11) };
        Ok(Self { sample: u8_at(b, 0), echo })
    }

    /// Appends the command to `out`, where the trailer's count stands already.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.push(self.sample);
        out.extend_from_slice(&self.echo.target.0.to_be_bytes());
        out.extend_from_slice(&self.echo.sequence.to_be_bytes());
        out.extend_from_slice(&u32::from(self.echo.reply_to.0).to_be_bytes());
        out.extend_from_slice(&self.echo.injected_ns.to_be_bytes());
    }
}

/// Begins a trailer: appends its count to `out`; that many commands must follow.
pub fn emit_count(count: u8, out: &mut Vec<u8>) {
    out.push(count);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOLDEN: [u8; 20] = [
        0x01, // one command
        0x03, // on the fourth sample
        0x80, 0x07, // target: hold-until-done of component 7
        0x00, 0x00, 0x01, 0x00, // command 256
        0x00, 0x00, 0x00, 0x09, // node 9 waits
        0x00, 0x00, 0x00, 0x00, 0x3b, 0x9a, 0xca, 0x00, // injected at 1 s
    ];

    fn golden() -> Repr {
        let echo =
            Echo { target: PointId(0x8007), sequence: 256, reply_to: NodeId(9), injected_ns: 1_000_000_000 };
        Repr { sample: 3, echo }
    }

    // [Polachan 2022: echoes]
    #[test]
    fn the_golden_trailer_is_read_and_written() {
        let packet = Packet::new_checked(&GOLDEN).unwrap();
        assert_eq!(packet.count(), 1);
        assert_eq!(Repr::parse(&packet, 0), Ok(golden()));
        assert_eq!(Repr::parse(&packet, 1), Err(Error::Truncated));
        let mut out = Vec::new();
        emit_count(1, &mut out);
        golden().emit(&mut out);
        assert_eq!(out, GOLDEN);
    }

    #[test]
    fn wrong_counts_and_tokens_are_refused() {
        assert_eq!(Packet::new_checked(&[][..]).err(), Some(Error::Truncated));
        assert_eq!(Packet::new_checked(&[0][..]).err(), Some(Error::Truncated));
        assert_eq!(Packet::new_checked(&GOLDEN[..19]).err(), Some(Error::Truncated));
        let mut bytes = GOLDEN.to_vec();
        bytes.push(0);
        assert_eq!(Packet::new_checked(&bytes).err(), Some(Error::Contradiction));
        let mut bytes = GOLDEN;
        bytes[9] = 1;
        assert_eq!(Repr::parse(&Packet::new_checked(bytes).unwrap(), 0), Err(Error::Unknown));
    }

    proptest! {
        #[test]
        fn trailers_survive_their_bytes(
            raw in proptest::collection::vec(any::<(u8, u16, u32, u16, i64)>(), 1..20),
        ) {
            let tags: Vec<Repr> = raw
                .into_iter()
                .map(|(sample, target, sequence, reply_to, injected_ns)| Repr {
                    sample,
                    echo: Echo { target: PointId(target), sequence, reply_to: NodeId(reply_to), injected_ns },
                })
                .collect();
            let mut out = Vec::new();
            emit_count(tags.len() as u8, &mut out);
            tags.iter().for_each(|t| t.emit(&mut out));
            let packet = Packet::new_checked(&out).unwrap();
            let parse = |i: u8| Repr::parse(&packet, i.into());
            let back: Result<Vec<Repr>, Error> = (0..packet.count()).map(parse).collect();
            prop_assert_eq!(back, Ok(tags));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), i in 0usize..300) {
            if let Ok(packet) = Packet::new_checked(&bytes) {
                let _ = Repr::parse(&packet, i);
            }
        }
    }
}
