//! Frames between a com component and the firmware of its board, on a serial line (`firmware/` speaks the same).
//!
//! ```text
//! line    COBS( body | CRC-16/CCITT-FALSE of the body ) | 0
//! body    kind:8 sequence:16, then
//!   0x01  HELLO    version:8 safe:8 watchdog_ms:16 work_us:32 channels:8 role:8 ... value:32 ...
//!   0x02  SAMPLE   channel:8 payload ...
//!   0x03  QUERY
//!   0x81  READY    version:8 of:16 at_us:32
//!   0x82  ANSWER   channel:8 of:16 entry_us:32 work_ns:32 payload ...
//!   0x83  SAFE     channel:8 at_us:32 value:32 ...
//!   0x84  COUNTS   count:32, nine times
//! ```
//! Numbers are in network order. COBS (Cheshire and Baker 1999) leaves no zero within a frame, so that a reader is in
//! step again at the next one. `sequence` numbers the frames of each side, `of` is that of the frame which is answered;
//! moments are those of the board's clock, modulo 2^32.

use crate::{
    bytes::{u16_at, u32_at, u8_at},
    Error,
};

/// Version of these bodies.
pub const VERSION: u8 = 1;
/// Longest body: with its CRC it is what one group of COBS holds.
pub const MAX_BODY: usize = 252;
/// Longest payload of a sample.
pub const MAX_PAYLOAD: usize = 236;
/// Most channels of a board.
pub const MAX_CHANNELS: usize = 8;
/// What COBS, CRC and the zero add to a body.
pub const OVERHEAD: usize = 4;
/// Bytes of a sample on the line, beside its payload.
pub const SAMPLE_OVERHEAD: usize = 4 + OVERHEAD;
/// Bytes of an answer on the line, beside its payload.
pub const ANSWER_OVERHEAD: usize = 14 + OVERHEAD;
/// Bytes of what tells of the safe output on the line, beside its values.
pub const SAFE_OVERHEAD: usize = 8 + OVERHEAD;

const MIN_BODY: usize = 3;
const CRC_BYTES: usize = 2;
/// COBS, with the longest body, without the zero.
const MAX_STUFFED: usize = MAX_BODY + CRC_BYTES + 1;
const ROLES_AT: usize = 12;
const COUNTS: usize = 9;

const HELLO: u8 = 0x01;
const SAMPLE: u8 = 0x02;
const QUERY: u8 = 0x03;
const READY: u8 = 0x81;
const ANSWER: u8 = 0x82;
const SAFE: u8 = 0x83;
const TOLD: u8 = 0x84;

/// What a board does with the samples of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// Bytes go on as they are.
    Relay = 0,
    /// A reading of the hand: a value that is no number is replaced by the last that was.
    Capture = 1,
    /// Set points of actuators, for which the watchdog waits: a value that is no number changes nothing.
    Drive = 2,
    /// A reading of forces: a value that is no number becomes 0.
    Sense = 3,
}

/// What a board has counted since power-on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Good frames.
    pub frames: u32,
    /// Damaged frames.
    pub no_crc: u32,
    /// Torn frames.
    pub no_cobs: u32,
    /// Stretches without a zero that are longer than any frame.
    pub too_long: u32,
    /// Frames with a kind, channel or length that there is not.
    pub unknown: u32,
    /// Frames that were numbered and never came.
    pub missing: u32,
    /// Values that are no numbers.
    pub refused: u32,
    /// Times that the watchdog went to the safe output.
    pub barked: u32,
    /// Bytes for which there was no room.
    pub overflown: u32,
}

impl Counts {
    fn to_array(self) -> [u32; COUNTS] {
        let Self { frames, no_crc, no_cobs, too_long, unknown, missing, refused, barked, overflown } = self;
        [frames, no_crc, no_cobs, too_long, unknown, missing, refused, barked, overflown]
    }

    fn from_array(a: [u32; COUNTS]) -> Self {
        let [frames, no_crc, no_cobs, too_long, unknown, missing, refused, barked, overflown] = a;
        Self { frames, no_crc, no_cobs, too_long, unknown, missing, refused, barked, overflown }
    }
}

/// The content of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repr<'a> {
    /// To the board: a host begins.
    Hello {
        /// Whether the safe output is that of `safe_values` (0 where those end); else outputs stay.
        to_values: bool,
        /// Silence of the drive after which the watchdog acts, ms; 0: never.
        watchdog_ms: u16,
        /// Least time from a sample's entry to its exit.
        work_us: u32,
        /// What each channel is for, as numbers of `Role`.
        roles: &'a [u8],
        /// Values of the safe output, 4 bytes each.
        safe_values: &'a [u8],
    },
    /// To the board: a sample.
    Sample {
        /// Its channel.
        channel: u8,
        /// Its bytes.
        payload: &'a [u8],
    },
    /// To the board: tell your counts.
    Query,
    /// From the board: it has understood a HELLO.
    Ready {
        /// The number of the HELLO.
        of: u16,
        /// When, by the board's clock.
        at_us: u32,
    },
    /// From the board: a sample is through.
    Answer {
        /// Its channel.
        channel: u8,
        /// The number of its frame.
        of: u16,
        /// When it entered, by the board's clock.
        entry_us: u32,
        /// From its entry to its exit.
        work_ns: u32,
        /// Its bytes, as the board gives them out.
        payload: &'a [u8],
    },
    /// From the board: the watchdog has gone to the safe output.
    Safe {
        /// The channel that was silent.
        channel: u8,
        /// When, by the board's clock.
        at_us: u32,
        /// What the outputs are now, 4 bytes each.
        values: &'a [u8],
    },
    /// From the board: its counts.
    Counts(Counts),
}

impl<'a> Repr<'a> {
    /// Number and content of a body.
    pub fn parse(body: &'a [u8]) -> Result<(u16, Self), Error> {
        if body.len() < MIN_BODY {
            return Err(Error::Truncated);
        }
        if body.len() > MAX_BODY {
            return Err(Error::TooLong);
        }
        let fixed = |n: usize| match body.len() {
            l if l < n => Err(Error::Truncated),
            l if l > n => Err(Error::TooLong),
            _ => Ok(()),
        };
        let repr = match u8_at(body, 0) {
            HELLO => Self::hello(body)?,
            SAMPLE => Self::Sample { channel: channel(body)?, payload: payload(body, 4)? },
            QUERY => fixed(3).map(|()| Self::Query)?,
            READY => {
                fixed(10)?;
                version(body)?;
                Self::Ready { of: u16_at(body, 4), at_us: u32_at(body, 6) }
            }
            ANSWER => Self::Answer {
                channel: channel(body)?,
                payload: payload(body, 14)?,
                of: u16_at(body, 4),
                entry_us: u32_at(body, 6),
                work_ns: u32_at(body, 10),
            },
            SAFE => Self::Safe { channel: channel(body)?, values: payload(body, 8)?, at_us: u32_at(body, 4) },
            TOLD => {
                fixed(3 + 4 * COUNTS)?;
                Self::Counts(Counts::from_array(std::array::from_fn(|i| u32_at(body, 3 + 4 * i))))
            }
            _ => return Err(Error::Unknown),
        };
        Ok((u16_at(body, 1), repr))
    }

    fn hello(body: &'a [u8]) -> Result<Self, Error> {
        version(body)?;
        let roles = body.get(ROLES_AT..ROLES_AT + usize::from(u8_at(body, 11))).ok_or(Error::Truncated)?;
        let safe_values = payload(body, ROLES_AT + roles.len())?;
        if roles.len() > MAX_CHANNELS {
            return Err(Error::TooLong);
        }
        if u8_at(body, 4) > 1 || roles.iter().any(|&r| r > Role::Sense as u8) {
            return Err(Error::Unknown);
        }
        if safe_values.len() % 4 != 0 {
            return Err(Error::Contradiction);
        }
        Ok(Self::Hello {
            to_values: u8_at(body, 4) == 1,
            watchdog_ms: u16_at(body, 5),
            work_us: u32_at(body, 7),
            roles,
            safe_values,
        })
    }

    /// Replaces `body` by the body with this content.
    pub fn emit(&self, sequence: u16, body: &mut Vec<u8>) {
        body.clear();
        body.push(self.kind());
        body.extend_from_slice(&sequence.to_be_bytes());
        match self {
            Self::Hello { to_values, watchdog_ms, work_us, roles, safe_values } => {
                body.extend_from_slice(&[VERSION, u8::from(*to_values)]);
                body.extend_from_slice(&watchdog_ms.to_be_bytes());
                body.extend_from_slice(&work_us.to_be_bytes());
                body.push(roles.len() as u8);
                body.extend_from_slice(roles);
                body.extend_from_slice(safe_values);
            }
            Self::Sample { channel, payload } => {
                body.push(*channel);
                body.extend_from_slice(payload);
            }
            Self::Query => {}
            Self::Ready { of, at_us } => {
                body.push(VERSION);
                body.extend_from_slice(&of.to_be_bytes());
                body.extend_from_slice(&at_us.to_be_bytes());
            }
            Self::Answer { channel, of, entry_us, work_ns, payload } => {
                body.push(*channel);
                body.extend_from_slice(&of.to_be_bytes());
                body.extend_from_slice(&entry_us.to_be_bytes());
                body.extend_from_slice(&work_ns.to_be_bytes());
                body.extend_from_slice(payload);
            }
            Self::Safe { channel, at_us, values } => {
                body.push(*channel);
                body.extend_from_slice(&at_us.to_be_bytes());
                body.extend_from_slice(values);
            }
            Self::Counts(counts) => {
                counts.to_array().iter().for_each(|c| body.extend_from_slice(&c.to_be_bytes()));
            }
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Hello { .. } => HELLO,
            Self::Sample { .. } => SAMPLE,
            Self::Query => QUERY,
            Self::Ready { .. } => READY,
            Self::Answer { .. } => ANSWER,
            Self::Safe { .. } => SAFE,
            Self::Counts(_) => TOLD,
        }
    }
}

fn channel(body: &[u8]) -> Result<u8, Error> {
    match body.get(3) {
        Some(&c) if usize::from(c) < MAX_CHANNELS => Ok(c),
        Some(_) => Err(Error::Unknown),
        None => Err(Error::Truncated),
    }
}

fn version(body: &[u8]) -> Result<(), Error> {
    if u8_at(body, 3) == VERSION {
        Ok(())
    } else {
        Err(Error::Unknown)
    }
}

fn payload(body: &[u8], from: usize) -> Result<&[u8], Error> {
    let payload = body.get(from..).ok_or(Error::Truncated)?;
    if payload.len() > MAX_PAYLOAD {
        return Err(Error::TooLong);
    }
    Ok(payload)
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bodies and their frames, which the firmware's tests read as well.
    const VECTORS: &str = include_str!("../../../firmware/vectors.txt");

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(|b| *b != b' ').collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    fn vectors() -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
        let rows = VECTORS.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
        rows.map(|l| {
            let parts: Vec<&str> = l.split('|').map(str::trim).collect();
            (parts[0], bytes(parts[1]), bytes(parts[2]))
        })
        .collect()
    }

    fn read(line: &[u8]) -> Vec<Result<Vec<u8>, &'static str>> {
        let mut reader = Reader::default();
        let mut found = Vec::new();
        for &byte in line {
            found.extend(reader.take(byte).map(|r| match r {
                Read::Body(b) => Ok(b.to_vec()),
                Read::NoCobs => Err("cobs"),
                Read::NoCrc => Err("crc"),
                Read::TooLong => Err("long"),
            }));
        }
        found
    }

    #[test]
    fn the_crc_is_that_of_its_catalogue_entry() {
        assert_eq!(crc(b"123456789"), 0x29b1);
    }

    // [Cheshire 1999]
    #[test]
    fn golden_bodies_have_their_golden_frames() {
        for (name, body, line) in vectors() {
            let mut out = Vec::new();
            write(&body, &mut out);
            assert_eq!(out, line, "{name}");
            assert_eq!(read(&line), [Ok(body.clone())], "{name}");
            let (sequence, repr) = Repr::parse(&body).unwrap();
            let mut again = Vec::new();
            repr.emit(sequence, &mut again);
            assert_eq!(again, body, "{name}");
        }
        assert!(vectors().len() >= 8);
    }

    #[test]
    fn lengths_on_the_line_are_those_that_are_told() {
        let lengths = [
            (Repr::Sample { channel: 1, payload: &[7; 24] }, SAMPLE_OVERHEAD),
            (Repr::Answer { channel: 1, of: 2, entry_us: 3, work_ns: 4, payload: &[7; 24] }, ANSWER_OVERHEAD),
            (Repr::Safe { channel: 1, at_us: 3, values: &[7; 24] }, SAFE_OVERHEAD),
        ];
        for (repr, overhead) in lengths {
            let (mut body, mut line) = (Vec::new(), Vec::new());
            repr.emit(9, &mut body);
            write(&body, &mut line);
            assert_eq!(line.len(), overhead + 24, "{repr:?}");
        }
    }

    #[test]
    fn what_is_damaged_torn_or_babbled_is_told_and_the_next_frame_is_read() {
        let (_, body, line) = vectors().remove(0);
        let good = || Ok(body.clone());
        let mut flipped = line.clone();
        flipped[3] ^= 1;
        assert_eq!(read(&[flipped, line.clone()].concat()), [Err("crc"), good()]);
        let torn = [&line[..2], &[0], &line[..]].concat();
        assert_eq!(read(&torn), [Err("cobs"), good()]);
        let babble = [&[0x55; 4000], &[0][..], &line[..]].concat();
        assert_eq!(read(&babble), [Err("long"), good()]);
        assert_eq!(read(&[&[0, 0, 0], &line[..], &[0]].concat()), [good()], "zeros between frames");
    }

    #[test]
    fn bodies_that_say_what_cannot_be_are_refused() {
        let refused = |body: &[u8]| Repr::parse(body).err();
        assert_eq!(refused(&[HELLO, 0]), Some(Error::Truncated));
        assert_eq!(refused(&[9, 0, 0]), Some(Error::Unknown));
        assert_eq!(refused(&[QUERY, 0, 0, 0]), Some(Error::TooLong));
        assert_eq!(refused(&[SAMPLE, 0, 0, 8]), Some(Error::Unknown), "there is no ninth channel");
        assert_eq!(refused(&[SAMPLE, 0, 0]), Some(Error::Truncated));
        assert_eq!(refused(&[ANSWER, 0, 0, 0, 0, 0]), Some(Error::Truncated));
        let hello = |version, channels, role| [HELLO, 0, 0, version, 0, 0, 1, 0, 0, 0, 0, channels, role];
        assert!(Repr::parse(&hello(VERSION, 1, 3)).is_ok());
        assert_eq!(refused(&hello(VERSION + 1, 1, 3)), Some(Error::Unknown));
        assert_eq!(refused(&hello(VERSION, 2, 3)), Some(Error::Truncated));
        assert_eq!(refused(&hello(VERSION, 1, 4)), Some(Error::Unknown));
        assert_eq!(refused(&hello(VERSION, 0, 3)), Some(Error::Contradiction), "a value has 4 bytes");
    }

    proptest! {
        #[test]
        fn any_body_survives_its_line(body in proptest::collection::vec(any::<u8>(), 3..=MAX_BODY)) {
            let mut line = Vec::new();
            write(&body, &mut line);
            prop_assert_eq!(line.len(), body.len() + OVERHEAD);
            prop_assert!(!line[..line.len() - 1].contains(&0));
            prop_assert_eq!(read(&line), [Ok(body)]);
        }

        #[test]
        fn one_wrong_bit_is_never_taken_for_a_body(
            body in proptest::collection::vec(any::<u8>(), 3..=MAX_BODY), at: prop::sample::Index, bit in 0u8..8,
        ) {
            let mut line = Vec::new();
            write(&body, &mut line);
            let i = at.index(line.len());
            line[i] ^= 1 << bit;
            line.push(0);
            prop_assert!(!read(&line).contains(&Ok(body)));
        }

        #[test]
        fn no_bytes_make_it_panic_and_what_is_read_is_written_again(line in proptest::collection::vec(any::<u8>(), 0..600)) {
            for body in read(&line).into_iter().flatten() {
                if let Ok((sequence, repr)) = Repr::parse(&body) {
                    let mut again = Vec::new();
                    repr.emit(sequence, &mut again);
                    prop_assert_eq!(again, body);
                }
            }
        }
    }
}
