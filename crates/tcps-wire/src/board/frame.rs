//! Bodies on a line: COBS (Cheshire and Baker 1999) leaves no zero within a frame, so that a reader is in step again at the
//! next one, whatever came before.

use crate::bytes::u16_at;

/// Longest body: with its CRC it is what one group of COBS holds.
pub const MAX_BODY: usize = 252;
/// What COBS, CRC and the zero add to a body.
pub const OVERHEAD: usize = 4;

/// Shortest body: its kind and its number.
pub(super) const MIN_BODY: usize = 3;
const CRC_BYTES: usize = 2;
/// COBS, with the longest body, without the zero.
const MAX_STUFFED: usize = MAX_BODY + CRC_BYTES + 1;

/// CRC-16/CCITT-FALSE: polynomial 0x1021, begins with 0xFFFF.
pub fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xffff, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |c, _| if c & 0x8000 == 0 { c << 1 } else { c << 1 ^ 0x1021 })
    })
}

/// Appends the frame of a body to `line`, by COBS. A body that is too long is cut, which no `Repr` makes.
// [Cheshire 1999]
pub fn write(body: &[u8], line: &mut Vec<u8>) {
    let body = &body[..body.len().min(MAX_BODY)];
    let crc = crc(body).to_be_bytes();
    let mut count_at = line.len();
    line.push(0);
    for &byte in body.iter().chain(&crc) {
        if byte == 0 {
            line[count_at] = (line.len() - count_at) as u8;
            count_at = line.len();
        }
        line.push(byte);
    }
    line[count_at] = (line.len() - count_at) as u8;
    line.push(0);
}

/// What the bytes up to a zero were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read<'a> {
    /// A frame with this body.
    Body(&'a [u8]),
    /// A count led past the end of the frame, or it was shorter than any.
    NoCobs,
    /// The CRC is not that of the body.
    NoCrc,
    /// It was longer than any frame.
    TooLong,
}

/// Takes the bytes of a line one at a time.
#[derive(Debug, Default)]
pub struct Reader {
    bytes: Vec<u8>,
    too_long: bool,
    complete: bool,
}

impl Reader {
    /// The next byte; what it has completed.
    pub fn take(&mut self, byte: u8) -> Option<Read<'_>> {
        if std::mem::take(&mut self.complete) {
            self.bytes.clear();
            self.too_long = false;
        }
        if byte != 0 {
            match self.bytes.len() < MAX_STUFFED {
                true => self.bytes.push(byte),
                false => self.too_long = true,
            }
            return None;
        }
        self.complete = true;
        if self.too_long {
            return Some(Read::TooLong);
        }
        if self.bytes.is_empty() {
            return None;
        }
        Some(if unstuff(&mut self.bytes) { checked(&self.bytes) } else { Read::NoCobs })
    }
}

/// The body, if there is one and its CRC is right.
fn checked(bytes: &[u8]) -> Read<'_> {
    match bytes.len().checked_sub(CRC_BYTES) {
        Some(n) if n >= MIN_BODY => {
            let (body, told) = bytes.split_at(n);
            if crc(body) == u16_at(told, 0) {
                Read::Body(body)
            } else {
                Read::NoCrc
            }
        }
        _ => Read::NoCobs,
    }
}

/// Takes COBS away, in place; false if a count leads past the end.
fn unstuff(bytes: &mut Vec<u8>) -> bool {
    let (mut from, mut to) = (0, 0);
    while from < bytes.len() {
        let count = usize::from(bytes[from]);
        if count == 0 || from + count > bytes.len() {
            return false;
        }
        bytes.copy_within(from + 1..from + count, to);
        to += count - 1;
        from += count;
        if count < 255 && from < bytes.len() {
            bytes[to] = 0;
            to += 1;
        }
    }
    bytes.truncate(to);
    true
}
