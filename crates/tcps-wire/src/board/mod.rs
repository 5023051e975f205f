//! Frames between a com component and the firmware of its board, on a serial line (`firmware/` speaks the same).
//!
//! ```text
//! line    COBS( body | CRC-16/CCITT-FALSE of the body ) | 0                      frame.rs
//! body    kind:8 sequence:16, then                                               body.rs
//!   0x01  HELLO    version:8 safe:8 watchdog_ms:16 work_us:32 channels:8 role:8 ... value:32 ...
//!   0x02  SAMPLE   channel:8 payload ...
//!   0x03  QUERY
//!   0x81  READY    version:8 of:16 at_us:32
//!   0x82  ANSWER   channel:8 of:16 entry_us:32 work_ns:32 payload ...
//!   0x83  SAFE     channel:8 at_us:32 value:32 ...
//!   0x84  COUNTS   count:32, nine times
//! ```
//! Numbers are in network order. `sequence` numbers the frames of each side, `of` is that of the frame which is answered;
//! moments are those of the board's clock, modulo 2^32.

mod body;
mod frame;

pub use body::{Counts, Repr, Role, MAX_CHANNELS, MAX_PAYLOAD, MAX_SAFE_VALUES, VERSION};
pub use frame::{crc, write, Read, Reader, MAX_BODY, OVERHEAD};

/// Bytes of a sample on the line, beside its payload.
pub const SAMPLE_OVERHEAD: usize = 4 + OVERHEAD;
/// Bytes of an answer on the line, beside its payload.
pub const ANSWER_OVERHEAD: usize = 14 + OVERHEAD;
/// Bytes of what tells of the safe output on the line, beside its values.
pub const SAFE_OVERHEAD: usize = 8 + OVERHEAD;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bodies and their frames, which the firmware's tests read as well.
    const VECTORS: &str = include_str!("../../../../firmware/vectors.txt");

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
