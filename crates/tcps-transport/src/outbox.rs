//! What an endpoint still has to hand over, in order, with its bytes; memory is used again once all is handed
//! over.

use tcps_core::endpoint::Output;

/// A queue of outputs and their bytes.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    items: Vec<(Output, usize)>,
    next: usize,
    start: usize,
}

impl Outbox {
    /// Adds an output whose bytes `write` appends to the buffer that it is given (and changes nothing else
    /// there).
    #[inline]
    pub fn push(&mut self, output: Output, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.items.push((output, self.bytes.len()));
    }

    /// Takes the oldest output, its bytes in `buf`.
    #[inline]
    pub fn pop(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        buf.clear();
        let (output, end) = *self.items.get(self.next)?;
        buf.extend_from_slice(self.bytes.get(self.start..end).unwrap_or(&[]));
        self.next += 1;
        self.start = end;
        if self.next == self.items.len() {
            self.items.clear();
            self.bytes.clear();
            (self.next, self.start) = (0, 0);
        }
        Some(output)
    }
}
