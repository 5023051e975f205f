//! Rows from a reader, a thousand at a time.

use std::io::{ErrorKind, Read, Result};
use tcps_core::record::{Record, RECORD_BYTES};

/// Small enough to stay in the nearest caches.
const CHUNK_BYTES: usize = 1024 * RECORD_BYTES;

/// A reader cut into rows.
pub struct Rows<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Rows whose kind is unknown.
    pub unknown: u64,
    /// Bytes of an unfinished row at the end.
    pub torn_bytes: usize,
}

impl<R: Read> Rows<R> {
    /// Rows of this reader.
    pub fn new(reader: R) -> Self {
        Self { reader, buffer: vec![0; CHUNK_BYTES], unknown: 0, torn_bytes: 0 }
    }

    /// Hands every row to `each`; unknown kinds and a torn last row are counted, not handed over.
    pub fn for_each(&mut self, mut each: impl FnMut(&Record)) -> Result<()> {
        loop {
            let filled = self.fill()?;
            let rows = self.buffer[..filled].chunks_exact(RECORD_BYTES);
            let torn = rows.remainder().len();
            for bytes in rows {
                match bytes.try_into().ok().and_then(Record::from_bytes) {
                    Some(row) => each(&row),
                    None => self.unknown += 1,
                }
            }
            if filled < CHUNK_BYTES {
                self.torn_bytes = torn;
                return Ok(());
            }
        }
    }

    /// Reads until the buffer is full or the reader ends.
    fn fill(&mut self) -> Result<usize> {
        let mut filled = 0;
        while filled < CHUNK_BYTES {
            match self.reader.read(&mut self.buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::record::Kind;

    /// Gives a few bytes at a time, as a pipe does.
    struct Dribble<'a>(&'a [u8]);

    impl Read for Dribble<'_> {
        fn read(&mut self, out: &mut [u8]) -> Result<usize> {
            let n = 7.min(self.0.len()).min(out.len());
            out[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn rows_survive_a_reader_that_dribbles_and_a_torn_end_is_counted() {
        let mut bytes = Vec::new();
        for time in 0..10_000 {
            bytes.extend(Record::new(time, Kind::Late).to_bytes());
        }
        bytes[30] = 0;
        bytes.extend([1; 5]);
        let mut rows = Rows::new(Dribble(&bytes));
        let mut next = 1;
        rows.for_each(|row| {
            assert_eq!(row.time_ns, next);
            next += 1;
        })
        .unwrap();
        assert_eq!((next, rows.unknown, rows.torn_bytes), (10_000, 1, 5));
    }
}
