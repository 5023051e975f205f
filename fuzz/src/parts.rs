//! What loops of other hosts left, as it is merged: rows of records, and blocks of captures.

use std::io;
use tcps_core::record::{Record, RECORD_BYTES};
use tcps_run::os::merge::{Item, Merge};
use tcps_wire::pcapng::Block;

/// The first byte says how many rows the first of two parts has; the same bytes are a capture, too.
pub fn parts(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else { return };
    let at = rest.len().min(usize::from(first) * RECORD_BYTES);
    let parts = [&rest[..at], &rest[at..]].map(rows);
    let all = parts.iter().map(Vec::len).sum::<usize>();
    let streams = parts.map(|part| part.into_iter().map(|row| -> Item<Record> { Ok((row.time_ns, row)) }));
    let merged: io::Result<Vec<Record>> = Merge::new(streams).and_then(Iterator::collect);
    let merged = merged.expect("no file is read");
    assert!(merged.len() == all && merged.is_sorted_by_key(|row| row.time_ns));
    blocks(rest);
}

/// The rows of known kinds, which come out again as the same bytes.
fn rows(part: &[u8]) -> Vec<Record> {
    let read = |bytes: &[u8]| {
        let row = Record::from_bytes(bytes.try_into().ok()?)?;
        assert_eq!(row.to_bytes(), bytes);
        Some(row)
    };
    part.chunks_exact(RECORD_BYTES).filter_map(read).collect()
}

/// The blocks of a capture, up to the first without a length that can be one.
fn blocks(mut rest: &[u8]) {
    while let Some(length) = Block::new(rest).length() {
        assert!(length >= 12 && Block::new(rest).packet_time_ns().is_none_or(|time_ns| time_ns >= 0));
        let Some(behind) = rest.get(length..) else { return };
        rest = behind;
    }
}
