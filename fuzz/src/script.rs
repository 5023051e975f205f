//! Bytes as a script of steps; what is not there reads as 0.

/// Bytes that are still to be read.
pub(crate) struct Script<'a>(pub(crate) &'a [u8]);

impl<'a> Script<'a> {
    /// The next byte; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next `n` bytes, or what is left.
    pub(crate) fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        head
    }

    /// The next number of `N` bytes, network order.
    pub(crate) fn number<const N: usize>(&mut self) -> u64 {
        self.take(N).iter().fold(0, |n, b| n << 8 | u64::from(*b))
    }
}
