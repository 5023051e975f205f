//! Options of a segment.

use crate::{
    bytes::{u16_at, u32_at, u8_at},
    Error,
};

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const STAMPS: u8 = 8;
/// A header has room for so many bytes of options.
const ROOM: usize = 40;
/// Bytes of time stamps, filled up.
const STAMP_BYTES: usize = 12;

/// Ranges of sequence numbers that have arrived, each from its first number to that behind it.
// [RFC 2018 §3]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Blocks {
    all: [(u32, u32); Self::MOST],
    count: u8,
}

impl Blocks {
    /// The most that a header has room for.
    pub const MOST: usize = 4;

    /// Adds a range, if there is room.
    pub fn push(&mut self, first: u32, behind: u32) {
        if let Some(place) = self.all.get_mut(usize::from(self.count)) {
            *place = (first, behind);
            self.count += 1;
        }
    }

    /// The ranges.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.all[..usize::from(self.count)]
    }

    /// Those that there is room for.
    fn fitting(&self, room: usize) -> &[(u32, u32)] {
        &self.as_slice()[..(room.saturating_sub(4) / 8).min(usize::from(self.count))]
    }

    /// Bytes of the option in a segment, with or without time stamps.
    pub fn bytes(&self, has_stamps: bool) -> usize {
        match self.fitting(if has_stamps { ROOM - STAMP_BYTES } else { ROOM }).len() {
            0 => 0,
            count => 4 + 8 * count,
        }
    }
}

/// The options that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// The largest segment that is taken, without headers.
    pub mss: Option<u16>,
    /// Shift of the window field. [RFC 7323 §2]
    pub scale: Option<u8>,
    /// Whether selective acknowledgements are understood. [RFC 2018 §2]
    pub sack_permitted: bool,
    /// Time stamp, and the one that it answers. [RFC 7323 §3]
    pub stamps: Option<(u32, u32)>,
    /// Selective acknowledgement.
    pub sack: Blocks,
}

impl Options {
    /// Reads the options of a header. Unknown ones are passed over.
    // [RFC 9293 §3.2]
    pub(super) fn parse(mut bytes: &[u8]) -> Result<Self, Error> {
        let mut found = Self::default();
        while let Some(&kind) = bytes.first() {
            let length = match kind {
                END => break,
                NOP => 1,
                _ => usize::from(u8_at(bytes, 1)),
            };
            if length == 0 || (kind != NOP && length < 2) || length > bytes.len() {
                return Err(Error::Contradiction);
            }
            found.read(kind, &bytes[1.min(length)..length]);
            bytes = &bytes[length..];
        }
        Ok(found)
    }

    /// Reads one option from its length on. One whose length is wrong is passed over.
    fn read(&mut self, kind: u8, option: &[u8]) {
        match (kind, option.len() + 1) {
            (MSS, 4) => self.mss = Some(u16_at(option, 1)),
            (SCALE, 3) => self.scale = Some(u8_at(option, 1)),
            (SACK_PERMITTED, 2) => self.sack_permitted = true,
            (STAMPS, 10) => self.stamps = Some((u32_at(option, 1), u32_at(option, 5))),
            (SACK, length) if length >= 10 && (length - 2).is_multiple_of(8) => {
                self.sack = Blocks::default();
                for at in (1..option.len()).step_by(8) {
                    self.sack.push(u32_at(option, at), u32_at(option, at + 4));
                }
            }
            _ => {}
        }
    }

    /// Appends the options, filled up to whole words, as Linux orders them. Blocks that there is no room for are left out.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        if let Some(mss) = self.mss {
            out.extend_from_slice(&[MSS, 4]);
            out.extend_from_slice(&mss.to_be_bytes());
        }
        match (self.sack_permitted, self.stamps.is_some()) {
            (true, _) => out.extend_from_slice(&[SACK_PERMITTED, 2]),
            (false, true) => out.extend_from_slice(&[NOP, NOP]),
            (false, false) => {}
        }
        if let Some((value, echo)) = self.stamps {
            out.extend_from_slice(&[STAMPS, 10]);
            out.extend_from_slice(&value.to_be_bytes());
            out.extend_from_slice(&echo.to_be_bytes());
        }
        if let Some(shift) = self.scale {
            out.extend_from_slice(&[NOP, SCALE, 3, shift]);
        }
        let blocks = self.sack.fitting(ROOM.saturating_sub(out.len() - start));
        if !blocks.is_empty() {
            out.extend_from_slice(&[NOP, NOP, SACK, 2 + 8 * blocks.len() as u8]);
            for (first, behind) in blocks {
                out.extend_from_slice(&first.to_be_bytes());
                out.extend_from_slice(&behind.to_be_bytes());
            }
        }
        while !(out.len() - start).is_multiple_of(4) {
            out.push(END);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emitted(options: &Options) -> Vec<u8> {
        let mut out = Vec::new();
        options.emit(&mut out);
        out
    }

    // [RFC 2018 §3]
    #[test]
    fn beside_time_stamps_there_is_room_for_three_blocks() {
        let mut sack = Blocks::default();
        (0..6).for_each(|i| sack.push(i, i + 1));
        let alone = emitted(&Options { sack, ..Options::default() });
        assert_eq!((sack.bytes(false), STAMP_BYTES + sack.bytes(true)), (alone.len(), ROOM));
        let found = Options::parse(&alone).unwrap();
        assert_eq!(found.sack.as_slice(), [(0, 1), (1, 2), (2, 3), (3, 4)]);
        let both = Options { sack, stamps: Some((8, 9)), ..Options::default() };
        let bytes = emitted(&both);
        assert_eq!(bytes.len(), ROOM);
        let found = Options::parse(&bytes).unwrap();
        assert_eq!((found.stamps, found.sack.as_slice().len()), (Some((8, 9)), 3));
    }

    // [RFC 9293 §3.2]
    #[test]
    fn unknown_options_are_passed_over_and_contradictions_refused() {
        assert_eq!(Options::parse(&[254, 4, 1, 2, NOP, SCALE, 3, 9]).unwrap().scale, Some(9));
        assert_eq!(Options::parse(&[END, 9, 9]).unwrap(), Options::default());
        assert_eq!(
            Options::parse(&[MSS, 3, 1]).unwrap(),
            Options::default(),
            "a length that MSS does not have"
        );
        for bad in [&[MSS][..], &[MSS, 0], &[MSS, 1], &[MSS, 4, 1], &[NOP, 99]] {
            assert_eq!(Options::parse(bad), Err(Error::Contradiction), "{bad:?}");
        }
    }
}
