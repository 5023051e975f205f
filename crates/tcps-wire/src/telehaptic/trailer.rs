//! Trailer of a telehaptic packet: echo commands, and what the published header cannot say of samples and frames.
//!
//! ```text
//! | echo commands, 19 bytes each | positions, 13 each | frames, 18 each | echoes 8 | positions 8 | frames 8 |
//!
//! position   sample 8, index 32, origin time 64 (ns)
//! frame      medium 1 and place 15, index 32, length 32, origin time 64 (ns)
//! ```
//! The counts stand at the end, so that the trailer is found from behind: a header does not say how long haptic
//! samples are. The first sample has a position, and each that does not follow the one before it in number and
//! time; a frame is there where the first byte of one is in the packet. The echo command of sample `i` has the number
//! `i`, that of frame `i` of the trailer [`FRAME`]` + i`.

use crate::{
    bytes::{i64_at, u16_at, u32_at, u8_at},
    echo, Error,
};
use tcps_core::time::Time;

/// Echo commands with this number and above ride on a frame.
pub const FRAME: u8 = 0x80;
const COUNTS_BYTES: usize = 3;
const POSITION_BYTES: usize = 13;
const FRAME_BYTES: usize = 18;

/// Which sample this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Place in the packet, from 0.
    pub sample: u8,
    /// Number in its flow.
    pub index: u32,
    /// When it was made, in nanoseconds on its maker's clock.
    pub origin_ns: Time,
}

impl Position {
    /// The sample after this one, at place `sample`, if it follows in time and number.
    pub fn next(&self, sample: u8, period_ns: Time) -> Self {
        let origin_ns = self.origin_ns.wrapping_add(period_ns);
        Self { sample, index: self.index.wrapping_add(1), origin_ns }
    }
}

/// A frame whose first byte is in the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameStart {
    /// Video, not audio.
    pub video: bool,
    /// Where it begins among the bytes of its medium in the packet, below 32768.
    pub at: u16,
    /// Number in its flow.
    pub index: u32,
    /// Bytes of the whole frame.
    pub length: u32,
    /// When it was made, in nanoseconds on its maker's clock.
    pub origin_ns: Time,
}

fn size(echoes: u8, positions: u8, frames: u8) -> usize {
    usize::from(echoes) * echo::TAG_BYTES
        + usize::from(positions) * POSITION_BYTES
        + usize::from(frames) * FRAME_BYTES
        + COUNTS_BYTES
}

/// Length of the trailer at the end of what follows a header.
pub(super) fn length(behind: &[u8]) -> Result<usize, Error> {
    behind.last_chunk::<COUNTS_BYTES>().map(|c| size(c[0], c[1], c[2])).ok_or(Error::Truncated)
}

/// A view of a trailer.
#[derive(Debug, Clone, Copy)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
}

impl<'a> Packet<&'a [u8]> {
    pub(super) fn behind(datagram: &'a [u8], at: usize) -> Self {
        Self { buffer: datagram.get(at..).unwrap_or(&[]) }
    }
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Bytes of the trailer.
    pub fn length(&self) -> usize {
        self.buffer.as_ref().len()
    }

    fn counts(&self) -> [u8; COUNTS_BYTES] {
        self.buffer.as_ref().last_chunk().copied().unwrap_or([0; COUNTS_BYTES])
    }

    /// The `n` bytes of entry `i` behind `at`, if `i` is below `count`.
    fn entry(&self, at: usize, count: u8, n: usize, i: usize) -> Option<&[u8]> {
        let at = at + i * n;
        self.buffer.as_ref().get(at..at + n).filter(|_| i < usize::from(count))
    }

    /// Number of echo commands.
    pub fn echoes(&self) -> usize {
        usize::from(self.counts()[0])
    }

    /// Echo command `i`, if it is there and its reply token is the number of a node.
    pub fn echo(&self, i: usize) -> Option<echo::Repr> {
        let [echoes, ..] = self.counts();
        self.entry(0, echoes, echo::TAG_BYTES, i).and_then(|b| echo::Repr::parse_tag(b).ok())
    }

    /// Position `i`, if it is there.
    pub fn position(&self, i: usize) -> Option<Position> {
        let [echoes, positions, _] = self.counts();
        let at = size(echoes, 0, 0) - COUNTS_BYTES;
        let b = self.entry(at, positions, POSITION_BYTES, i)?;
        Some(Position { sample: u8_at(b, 0), index: u32_at(b, 1), origin_ns: i64_at(b, 5) })
    }

    /// Frame `i`, if it is there.
    pub fn frame(&self, i: usize) -> Option<FrameStart> {
        let [echoes, positions, frames] = self.counts();
        let at = size(echoes, positions, 0) - COUNTS_BYTES;
        let b = self.entry(at, frames, FRAME_BYTES, i)?;
        let place = u16_at(b, 0);
        Some(FrameStart {
            video: place & 0x8000 != 0,
            at: place & 0x7fff,
            index: u32_at(b, 2),
            length: u32_at(b, 6),
            origin_ns: i64_at(b, 10),
        })
    }
}

/// Appends the trailer to `out`; at most 255 entries of each kind.
pub fn emit(echoes: &[echo::Repr], positions: &[Position], frames: &[FrameStart], out: &mut Vec<u8>) {
    for tag in echoes {
        tag.emit(out);
    }
    for p in positions {
        out.push(p.sample);
        out.extend_from_slice(&p.index.to_be_bytes());
        out.extend_from_slice(&p.origin_ns.to_be_bytes());
    }
    for f in frames {
        let place = f.at & 0x7fff | if f.video { 0x8000 } else { 0 };
        out.extend_from_slice(&place.to_be_bytes());
        out.extend_from_slice(&f.index.to_be_bytes());
        out.extend_from_slice(&f.length.to_be_bytes());
        out.extend_from_slice(&f.origin_ns.to_be_bytes());
    }
    out.extend_from_slice(&[echoes.len() as u8, positions.len() as u8, frames.len() as u8]);
}

#[cfg(test)]
#[allow(clippy::unusual_byte_groupings)] // the groups are the fields
mod tests {
    use super::*;
    use crate::telehaptic;
    use tcps_core::{
        ids::NodeId,
        sample::{Echo, PointId},
    };

    const GOLDEN: [u8; 68] = [
        0b001_001_0_1,
        0xff,
        0xff,
        0xff,
        0,
        0,
        0,
        9, // audio, k = 1, trailer
        0,
        5,
        0,
        1,
        0, // frame 5 has one byte here
        b'h',
        b'A', //
        0x80,
        0x80,
        0x07,
        0,
        0,
        0,
        4,
        0,
        0,
        0,
        3,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        1, // echo on frame 0
        0,
        0,
        1,
        0,
        0,
        0xff,
        0xff,
        0xff,
        0xff,
        0xff,
        0xff,
        0xff,
        0xfe, // sample 0 is 65536, made at -2 ns
        0,
        0,
        0,
        0,
        0,
        5,
        0,
        0,
        0,
        160, // audio from place 0 on: frame 5 of 160 bytes
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        8, // made at 8 ns
        1,
        1,
        1,
    ];

    // [Gokhale 2017: header]
    #[test]
    fn the_golden_trailer_is_found_from_behind_read_and_written() {
        let packet = telehaptic::Packet::new_checked(&GOLDEN[..]).unwrap();
        let trailer = packet.trailer().unwrap();
        let echo = Echo { target: PointId(0x8007), sequence: 4, reply_to: NodeId(3), injected_ns: 1 };
        let (tag, place) =
            (echo::Repr { sample: FRAME, echo }, Position { sample: 0, index: 65_536, origin_ns: -2 });
        let start = FrameStart { video: false, at: 0, index: 5, length: 160, origin_ns: 8 };
        assert_eq!(trailer.echo(0), Some(tag));
        assert_eq!((trailer.position(0), trailer.frame(0)), (Some(place), Some(start)));
        assert_eq!((trailer.echo(1), trailer.position(1), trailer.frame(1)), (None, None, None));
        assert_eq!((packet.sample(0), packet.audio()), (&b"h"[..], &b"A"[..]));
        let mut out = Vec::new();
        emit(&[tag], &[place], &[start], &mut out);
        assert_eq!(out, GOLDEN[15..]);
    }
}
