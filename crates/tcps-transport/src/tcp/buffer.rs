//! Bytes that are written and not yet acknowledged.

use std::collections::VecDeque;

/// The send buffer. Its first byte has a position in the stream.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: VecDeque<u8>,
    start: u64,
    limit_bytes: usize,
}

impl Buffer {
    /// A buffer for so many bytes of a stream that begins behind SYN.
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self { bytes: VecDeque::new(), start: 1, limit_bytes }
    }

    /// Adds as many bytes as there is room for; how many.
    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        let room = self.limit_bytes.saturating_sub(self.bytes.len()).min(bytes.len());
        self.bytes.extend(&bytes[..room]);
        room
    }

    /// Behind the last byte.
    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Drops what is before `position`.
    pub(super) fn release(&mut self, position: u64) {
        let gone = position.saturating_sub(self.start).min(self.bytes.len() as u64);
        self.bytes.drain(..gone as usize);
        self.start += gone;
    }

    /// The bytes between two positions, as far as they are there, in two parts.
    pub(super) fn content(&self, start: u64, end: u64) -> [&[u8]; 2] {
        let place = |position: u64| (position.saturating_sub(self.start) as usize).min(self.bytes.len());
        let (from, to) = (place(start), place(end).max(place(start)));
        let (first, second) = self.bytes.as_slices();
        let split = first.len();
        [&first[from.min(split)..to.min(split)], &second[from.max(split) - split..to.max(split) - split]]
    }
}
