//! Bundle: a datagram of runs, for transports that mix flows or merge more samples than the telehaptic header can count.
//!
//! ```text
//!  0       1       2               4
//! +-------+-------+---------------+
//! | 0x06  | runs  |   sequence    |  then the runs, each with 24 bytes before its content:
//! +-------+-------+---------------+-------------------------------+
//! |     flow      | count | flags |             index             |
//! +---------------+-------+-------+-------------------------------+
//! |                       origin time, ns                         |
//! +-------------------------------+-------------------------------+
//! |  length of the whole sample   |            offset             |
//! +-------------------------------+-------------------------------+
//!   count > 1    samples that follow each other: count - 1 times, us since the first (2); then count times a sample
//!   count = 1    a sample or, flags bit 1, `size` (2) and that many bytes of it from `offset` on
//!   flags bit 0  the echo trailer of the (last part of the) sample stands before all that
//! ```

use crate::{
    bytes::{i64_at, u16_at, u32_at, u8_at},
    echo, Error,
};
use tcps_core::{
    ids::FlowId,
    sample::Echo,
    time::{Time, US},
};

/// The first byte.
pub const FIRST_BYTE: u8 = 6;
/// Bytes before the first run.
pub const PREFIX_BYTES: usize = 4;
/// Bytes before the content of a run.
pub const RUN_BYTES: usize = 24;
/// Bytes that an echo command takes.
pub const ECHO_BYTES: usize = echo::trailer_bytes(1);
const ECHO: u8 = 1;
const PART: u8 = 2;

/// Appends the bytes before the runs.
pub fn emit_prefix(runs: u8, sequence: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&[FIRST_BYTE, runs]);
    out.extend_from_slice(&sequence.to_be_bytes());
}

/// A run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// Number of the flow.
    pub flow: FlowId,
    /// Samples in it, at least 1.
    pub count: u8,
    /// Number of the first sample within its flow.
    pub index: u32,
    /// When it was made, in nanoseconds on its maker's clock.
    pub origin_ns: Time,
    /// Bytes of a whole sample.
    pub length: u32,
    /// Where the content begins in the sample, if it is a part of one.
    pub part: Option<Part>,
    /// The echo command on the sample.
    pub echo: Option<Echo>,
}

/// Which part of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its first byte.
    pub offset: u32,
    /// How many bytes.
    pub size: u16,
}

impl Repr {
    /// Bytes before the samples.
    pub fn header_bytes(&self) -> usize {
        let echo = if self.echo.is_some() { ECHO_BYTES } else { 0 };
        let part = if self.part.is_some() { 2 } else { 0 };
        RUN_BYTES + echo + part + 2 * (usize::from(self.count.max(1)) - 1)
    }

    /// Appends everything before the samples; `origins_ns` are those of the samples behind the first.
    pub fn emit(&self, origins_ns: impl Iterator<Item = Time>, out: &mut Vec<u8>) {
        let flags = if self.echo.is_some() { ECHO } else { 0 } | if self.part.is_some() { PART } else { 0 };
        out.extend_from_slice(&self.flow.0.to_be_bytes());
        out.extend_from_slice(&[self.count, flags]);
        out.extend_from_slice(&self.index.to_be_bytes());
        out.extend_from_slice(&self.origin_ns.to_be_bytes());
        out.extend_from_slice(&self.length.to_be_bytes());
        out.extend_from_slice(&self.part.map_or(0, |p| p.offset).to_be_bytes());
        if let Some(echo) = self.echo {
            echo::emit_count(1, out);
            echo::Repr { sample: 0, echo }.emit(out);
        }
        if let Some(part) = self.part {
            out.extend_from_slice(&part.size.to_be_bytes());
        }
        for origin_ns in origins_ns {
            let later_us = origin_ns.saturating_sub(self.origin_ns).div_euclid(US);
            out.extend_from_slice(&(later_us.clamp(0, 0xffff) as u16).to_be_bytes());
        }
    }
}

/// The runs of a datagram, one after the other; after an error there are no more.
#[derive(Debug)]
pub struct Runs<'a> {
    rest: &'a [u8],
    left: u8,
}

/// A run and its samples.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// What it says of itself.
    pub repr: Repr,
    later: &'a [u8],
    content: &'a [u8],
}

impl<'a> Run<'a> {
    /// Sample `i` with its time of origin; the part of one, if it is that.
    pub fn sample(&self, i: u8) -> (Time, &'a [u8]) {
        let later_us = if i == 0 { 0 } else { u16_at(self.later, 2 * (usize::from(i) - 1)) };
        let size = self.repr.part.map_or(self.repr.length as usize, |p| p.size.into());
        let at = usize::from(i) * size;
        let origin_ns = self.repr.origin_ns.saturating_add(Time::from(later_us) * US);
        (origin_ns, self.content.get(at..at + size).unwrap_or(&[]))
    }
}

impl<'a> Runs<'a> {
    /// The runs, if there are bytes for a prefix and the first byte is right.
    pub fn new_checked(datagram: &'a [u8]) -> Result<Self, Error> {
        let (prefix, rest) = datagram.split_at_checked(PREFIX_BYTES).ok_or(Error::Truncated)?;
        match (u8_at(prefix, 0), u8_at(prefix, 1)) {
            (FIRST_BYTE, 0) => Err(Error::Contradiction),
            (FIRST_BYTE, left) => Ok(Self { rest, left }),
            _ => Err(Error::Unknown),
        }
    }

    fn run(&mut self) -> Result<Run<'a>, Error> {
        let head = self.cut(RUN_BYTES)?;
        let (count, flags) = (u8_at(head, 2), u8_at(head, 3));
        if flags & !(ECHO | PART) != 0 {
            return Err(Error::Unknown);
        }
        let (length, offset) = (u32_at(head, 16), u32_at(head, 20));
        if count == 0 || (count > 1 && flags != 0) || (flags & PART == 0 && offset != 0) {
            return Err(Error::Contradiction);
        }
        let echo = if flags & ECHO != 0 { Some(tag(self.cut(ECHO_BYTES)?)?) } else { None };
        let part =
            if flags & PART != 0 { Some(Part { offset, size: u16_at(self.cut(2)?, 0) }) } else { None };
        if part.is_some_and(|p| p.size == 0 || u64::from(p.offset) + u64::from(p.size) > length.into()) {
            return Err(Error::Contradiction);
        }
        let later = self.cut(2 * (usize::from(count) - 1))?;
        let size = part.map_or(length as usize, |p| p.size.into());
        let content = self.cut(size.checked_mul(count.into()).ok_or(Error::TooLong)?)?;
        let (flow, index, origin_ns) = (FlowId(u16_at(head, 0)), u32_at(head, 4), i64_at(head, 8));
        Ok(Run { repr: Repr { flow, count, index, origin_ns, length, part, echo }, later, content })
    }

    fn cut(&mut self, bytes: usize) -> Result<&'a [u8], Error> {
        let (head, rest) = self.rest.split_at_checked(bytes).ok_or(Error::Truncated)?;
        self.rest = rest;
        Ok(head)
    }
}

impl<'a> Iterator for Runs<'a> {
    type Item = Result<Run<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            let over = !std::mem::take(&mut self.rest).is_empty();
            return over.then_some(Err(Error::Contradiction));
        }
        self.left -= 1;
        let run = self.run();
        if run.is_err() {
            (self.left, self.rest) = (0, &[]);
        }
        Some(run)
    }
}

fn tag(trailer: &[u8]) -> Result<Echo, Error> {
    let packet = echo::Packet::new_checked(trailer)?;
    Ok(echo::Repr::parse(&packet, 0)?.echo)
}

#[cfg(test)]
mod tests {

    use super::*;
    use proptest::prelude::*;
    use tcps_core::{ids::NodeId, sample::PointId};

    const GOLDEN: [u8; 42] = [
        6, 1, 0, 9, // one run, datagram 9
        0, 2, 2, 0, // flow 2, two samples
        0, 0, 0, 7, // the first is number 7
        0, 0, 0, 0, 0, 0x0f, 0x42, 0x40, // made at 1 ms
        0, 0, 0, 6, // of 6 bytes each
        0, 0, 0, 0, // from the start
        0x03, 0xe8, // the second 1000 us later
        b'f', b'o', b'r', b'c', b'e', b'1', b'f', b'o', b'r', b'c', b'e', b'2',
    ];

    fn repr() -> Repr {
        Repr { flow: FlowId(2), count: 2, index: 7, origin_ns: 1000 * US, length: 6, part: None, echo: None }
    }

    #[test]
    fn the_golden_bundle_is_read_and_written() {
        let run = Runs::new_checked(&GOLDEN).unwrap().next().unwrap().unwrap();
        assert_eq!(run.repr, repr());
        assert_eq!(run.sample(0), (1000 * US, &b"force1"[..]));
        assert_eq!(run.sample(1), (2000 * US, &b"force2"[..]));
        assert_eq!(run.sample(2).1, b"");
        let mut out = Vec::new();
        emit_prefix(1, 9, &mut out);
        repr().emit([2000 * US].into_iter(), &mut out);
        assert_eq!(out, GOLDEN[..PREFIX_BYTES + repr().header_bytes()]);
    }

    #[test]
    fn each_wrong_field_has_its_error() {
        let with = |at: usize, value: u8| {
            let mut bytes = GOLDEN;
            bytes[at] = value;
            Runs::new_checked(&bytes).and_then(|mut runs| runs.try_for_each(|r| r.map(|_| ())))
        };
        assert_eq!(with(1, 1), Ok(()));
        assert_eq!(with(0, 5), Err(Error::Unknown));
        assert_eq!(with(1, 0), Err(Error::Contradiction), "no runs");
        assert_eq!(with(1, 2), Err(Error::Truncated), "a second run");
        assert_eq!(with(6, 0), Err(Error::Contradiction), "no samples");
        assert_eq!(with(6, 1), Err(Error::Contradiction), "bytes left over");
        assert_eq!(with(7, 4), Err(Error::Unknown), "flag");
        assert_eq!(with(7, 2), Err(Error::Contradiction), "a part of two samples");
        assert_eq!(with(27, 1), Err(Error::Contradiction), "an offset of a whole sample");
        assert_eq!(with(23, 255), Err(Error::Truncated), "a longer sample");
    }

    proptest! {
        #[test]
        fn runs_survive_their_bytes(
            raw in proptest::collection::vec((any::<u16>(), any::<u32>(), any::<i64>(), 1u16..200, 0u8..4), 1..9),
        ) {
            let echo = Echo { target: PointId(1), sequence: 2, reply_to: NodeId(3), injected_ns: 4 };
            let reprs: Vec<Repr> = raw.into_iter().map(|(flow, index, origin_ns, size, flags)| Repr {
                flow: FlowId(flow), count: 1, index, origin_ns,
                length: 500,
                part: Some(Part { offset: u32::from(flags), size }),
                echo: (flags & 1 != 0).then_some(echo),
            }).collect();
            let mut out = Vec::new();
            emit_prefix(reprs.len() as u8, 0, &mut out);
            for r in &reprs {
                let at = out.len();
                r.emit(std::iter::empty(), &mut out);
                prop_assert_eq!(out.len() - at, r.header_bytes());
                out.resize(out.len() + usize::from(r.part.unwrap().size), 7);
            }
            let back: Result<Vec<Repr>, Error> = Runs::new_checked(&out).unwrap().map(|r| r.map(|r| r.repr)).collect();
            prop_assert_eq!(back, Ok(reprs));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120), first: bool) {
            let mut bytes = bytes;
            if let (true, Some(b)) = (first, bytes.first_mut()) {
                *b = FIRST_BYTE;
            }
            for run in Runs::new_checked(&bytes).into_iter().flatten().flatten() {
                let size: usize = (0..run.repr.count).map(|i| run.sample(i).1.len()).sum();
                prop_assert!(size <= bytes.len());
            }
        }
    }
}
