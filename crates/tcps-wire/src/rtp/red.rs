//! Redundant blocks in one RTP payload (RFC 2198): older payloads before the newest.
//!
//! ```text
//! +-+-------------+-------------+------------+   +-+-------------+
//! |1|  block PT   | ts offset   |   length   |   |0|  block PT   |   then the blocks' bytes, oldest first
//! +-+-------------+-------------+------------+   +-+-------------+
//!  1       7            14            10           primary: 1 byte
//! ```

use crate::{
    bytes::{u32_at, u8_at},
    Error,
};

/// The largest timestamp offset of a redundant block.
pub const MAX_OFFSET: u32 = (1 << 14) - 1;
/// The most bytes in a redundant block.
pub const MAX_BLOCK_BYTES: usize = (1 << 10) - 1;
/// Most blocks that are read from a payload.
pub const MAX_BLOCKS: usize = 16;

/// A block: what was sent `offset` before the packet's timestamp.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Block<'a> {
    /// Payload type of the block.
    pub payload_type: u8,
    /// How far before the packet's timestamp; 0 for the primary.
    pub offset: u32,
    /// Its bytes.
    pub data: &'a [u8],
}

/// The blocks of a payload in its order; the primary is the last.
// [RFC 2198 §3]
pub fn parse(payload: &[u8]) -> Result<Vec<Block<'_>>, Error> {
    let (mut blocks, mut at) = (Vec::new(), 0);
    while u8_at(payload, at) & 0x80 != 0 {
        if payload.len() < at + 4 || blocks.len() + 1 == MAX_BLOCKS {
            return Err(Error::Truncated);
        }
        let word = u32_at(payload, at);
        let length = (word & 0x3ff) as usize;
        blocks.push((
            Block { payload_type: (word >> 24) as u8 & 0x7f, offset: word >> 10 & 0x3fff, data: &[] },
            length,
        ));
        at += 4;
    }
    let primary = Block { payload_type: *payload.get(at).ok_or(Error::Truncated)?, ..Block::default() };
    let mut rest = payload.get(at + 1..).unwrap_or(&[]);
    let mut out = Vec::with_capacity(blocks.len() + 1);
    for (block, length) in blocks {
        let (data, after) = rest.split_at_checked(length).ok_or(Error::Truncated)?;
        out.push(Block { data, ..block });
        rest = after;
    }
    out.push(Block { data: rest, ..primary });
    Ok(out)
}

/// Appends a payload of `blocks`, the last one the primary, to `out`. A redundant block that is too long or too
/// old for its header is left out.
// [RFC 2198 §3]
pub fn emit(blocks: &[Block<'_>], out: &mut Vec<u8>) {
    let Some((primary, older)) = blocks.split_last() else { return };
    let fits = |b: &&Block<'_>| b.offset <= MAX_OFFSET && b.data.len() <= MAX_BLOCK_BYTES;
    for b in older.iter().filter(fits) {
        let word = 1 << 31 | u32::from(b.payload_type & 0x7f) << 24 | b.offset << 10 | b.data.len() as u32;
        out.extend_from_slice(&word.to_be_bytes());
    }
    out.push(primary.payload_type & 0x7f);
    older.iter().filter(fits).for_each(|b| out.extend_from_slice(b.data));
    out.extend_from_slice(primary.data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // [RFC 2198 §3] [RFC 2198]
    #[test]
    fn a_block_costs_its_bytes_and_four_more() {
        let golden = [
            0x80 | 5,
            0x00,
            0xa0,
            0x03, // redundant, PT 5, offset 40, 3 bytes
            0x05, // primary, PT 5
            b'o',
            b'l',
            b'd',
            b'n',
            b'e',
            b'w',
            b'!',
        ];
        let blocks = [
            Block { payload_type: 5, offset: 40, data: b"old" },
            Block { payload_type: 5, offset: 0, data: b"new!" },
        ];
        assert_eq!(parse(&golden).unwrap(), blocks);
        let mut out = Vec::new();
        emit(&blocks, &mut out);
        assert_eq!(out, golden);
        for n in 0..8 {
            assert!(parse(&golden[..n]).is_err(), "{n}");
        }
    }

    #[test]
    fn what_does_not_fit_a_block_header_is_left_out() {
        let long = [0u8; 1024];
        let mut out = Vec::new();
        let primary = Block { payload_type: 1, offset: 0, data: b"p" };
        let too_long = Block { payload_type: 1, offset: 1, data: &long };
        let too_old = Block { payload_type: 1, offset: 16_384, data: b"o" };
        emit(&[too_long, too_old, primary], &mut out);
        assert_eq!(out, [1, b'p']);
    }

    proptest! {
        #[test]
        fn blocks_survive_their_bytes(
            raw in proptest::collection::vec(
                (0u8..128, 0u32..=MAX_OFFSET, proptest::collection::vec(any::<u8>(), 0..60)), 1..8),
        ) {
            let mut blocks: Vec<_> = raw
                .iter()
                .map(|(payload_type, offset, data)| Block { payload_type: *payload_type, offset: *offset, data })
                .collect();
            if let Some(primary) = blocks.last_mut() {
                primary.offset = 0;
            }
            let mut out = Vec::new();
            emit(&blocks, &mut out);
            prop_assert_eq!(parse(&out).unwrap(), blocks);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = parse(&bytes);
        }
    }
}
