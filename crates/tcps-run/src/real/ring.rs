//! A wait-free ring of rows in a shared file: what a node has published survives its death.
//!
//! ```text
//!  0        64       128      192           192 + 32 * capacity
//!  | head   | tail   | lost   | row | row | … |
//! ```
//! One producer (a loop) moves `head`, one consumer (the orchestrator) moves `tail`.

use crate::error::RunError;
use memmap2::MmapMut;
use std::{
    fs::OpenOptions,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};
use tcps_core::record::{Record, RECORD_BYTES};

const HEAD: usize = 0;
const TAIL: usize = 64;
const LOST: usize = 128;
const ROWS: usize = 192;

/// The shared memory of a ring.
#[derive(Debug)]
struct Shared {
    map: MmapMut,
    capacity: u64,
}

impl Shared {
    fn open(path: &Path, capacity: Option<u64>) -> Result<Self, RunError> {
        let fail = |e: std::io::Error| RunError::new(format!("{}: {e}", path.display()));
        let create = capacity.is_some();
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(create).truncate(create).open(path).map_err(fail)?;
        if let Some(rows) = capacity {
            file.set_len(ROWS as u64 + rows * RECORD_BYTES as u64).map_err(fail)?;
        }
        // SAFETY: the file belongs to this run; only a producer and a consumer of this module map it.
        let map = unsafe { MmapMut::map_mut(&file) }.map_err(fail)?;
        let capacity = (map.len().saturating_sub(ROWS) / RECORD_BYTES) as u64;
        if capacity == 0 {
            return Err(RunError::new(format!("{}: is no ring of rows", path.display())));
        }
        Ok(Self { map, capacity })
    }

    fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: `at` is one of three constants inside the mapping, which is page-aligned; atomics allow sharing.
        unsafe { &*(self.map.as_ptr().add(at) as *const AtomicU64) }
    }

    fn slot(&self, n: u64) -> usize {
        ROWS + (n % self.capacity) as usize * RECORD_BYTES
    }
}

/// The side that writes.
#[derive(Debug)]
pub struct Producer {
    shared: Shared,
    head: u64,
    tail_seen: u64,
}

impl Producer {
    /// Makes the file of a ring.
    pub fn create(path: &Path, capacity: u64) -> Result<Self, RunError> {
        Ok(Self { shared: Shared::open(path, Some(capacity))?, head: 0, tail_seen: 0 })
    }

    /// Publishes a row; counts it as lost if there is no room.
    pub fn push(&mut self, row: &Record) {
        if self.head - self.tail_seen >= self.shared.capacity {
            self.tail_seen = self.shared.counter(TAIL).load(Ordering::Acquire);
            if self.head - self.tail_seen >= self.shared.capacity {
                self.shared.counter(LOST).fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        let at = self.shared.slot(self.head);
        self.shared.map[at..at + RECORD_BYTES].copy_from_slice(&row.to_bytes());
        self.head += 1;
        self.shared.counter(HEAD).store(self.head, Ordering::Release);
    }

    /// Rows lost so far.
    pub fn lost(&self) -> u64 {
        self.shared.counter(LOST).load(Ordering::Relaxed)
    }
}

/// The side that drains.
#[derive(Debug)]
pub struct Consumer {
    shared: Shared,
    tail: u64,
}

impl Consumer {
    /// Opens a ring that a producer has made.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        Ok(Self { shared: Shared::open(path, None)?, tail: 0 })
    }

    /// Appends all published rows to `out`.
    pub fn drain(&mut self, out: &mut Vec<u8>) -> u64 {
        let head = self.shared.counter(HEAD).load(Ordering::Acquire);
        let n = head.saturating_sub(self.tail).min(self.shared.capacity);
        for i in self.tail..self.tail + n {
            let at = self.shared.slot(i);
            out.extend_from_slice(&self.shared.map[at..at + RECORD_BYTES]);
        }
        self.tail += n;
        self.shared.counter(TAIL).store(self.tail, Ordering::Release);
        n
    }

    /// Rows lost so far.
    pub fn lost(&self) -> u64 {
        self.shared.counter(LOST).load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::record::Kind;

    fn file(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("tcps-ring-{name}-{}", std::process::id()))
    }

    #[test]
    fn rows_come_out_in_order_from_another_thread() {
        let path = file("order");
        let mut producer = Producer::create(&path, 64).unwrap();
        let mut consumer = Consumer::open(&path).unwrap();
        let writer = std::thread::spawn(move || {
            for i in 0..10_000 {
                producer.push(&Record::new(i, Kind::Sent));
                std::thread::yield_now();
            }
            producer.lost()
        });
        let mut bytes = Vec::new();
        while !writer.is_finished() {
            consumer.drain(&mut bytes);
        }
        consumer.drain(&mut bytes);
        let lost = writer.join().unwrap();
        let times: Vec<i64> = bytes
            .chunks_exact(RECORD_BYTES)
            .map(|b| Record::from_bytes(b.try_into().unwrap()).unwrap().time_ns)
            .collect();
        assert!(times.windows(2).all(|w| w[0] < w[1]));
        assert_eq!(times.len() as u64 + lost, 10_000);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_full_ring_counts_what_it_loses() {
        let path = file("full");
        let mut producer = Producer::create(&path, 8).unwrap();
        (0..10).for_each(|i| producer.push(&Record::new(i, Kind::Sent)));
        let mut consumer = Consumer::open(&path).unwrap();
        let mut bytes = Vec::new();
        assert_eq!((consumer.drain(&mut bytes), consumer.lost()), (8, 2));
        producer.push(&Record::new(10, Kind::Sent));
        assert_eq!(consumer.drain(&mut bytes), 1);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_that_is_no_ring_is_refused() {
        let path = file("none");
        std::fs::write(&path, b"short").unwrap();
        assert!(Consumer::open(&path).is_err());
        std::fs::remove_file(path).unwrap();
    }
}
