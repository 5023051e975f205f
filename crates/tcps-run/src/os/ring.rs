//! A wait-free ring of rows in a shared file: what a node has published survives its death.
//!
//! ```text
//!  0           64       128      192           192 + 32 * capacity
//!  | head beat | tail   | lost   | row | row | … |
//! ```
//! One producer (a loop) moves `head`, one consumer (the orchestrator) moves `tail`. The loop says at each turn when that was
//! (`beat`, CLOCK_MONOTONIC): one that is stopped is silent.

#![expect(unsafe_code, reason = "memory that another process shares")]

use super::clock::monotonic_ns;
use memmap2::MmapRaw;
use nix::{errno::Errno, fcntl::posix_fallocate};
use std::{
    fs::{File, OpenOptions},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};
use tcps_core::{
    record::{Record, RECORD_BYTES},
    time::Time,
};
use tcps_plan::RunError;

const HEAD: usize = 0;
const BEAT: usize = 8;
const TAIL: usize = 64;
const LOST: usize = 128;
const ROWS: usize = 192;

/// The shared memory of a ring.
#[derive(Debug)]
struct Shared {
    /// Never seen as a slice: the other process writes while this one looks.
    map: MmapRaw,
    capacity: u64,
}

impl Shared {
    fn open(path: &Path, capacity: Option<u64>) -> Result<Self, RunError> {
        let fail = |e| RunError::system(path.display(), e);
        let create = capacity.is_some();
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(create).truncate(create).open(path).map_err(fail)?;
        if let Some(rows) = capacity {
            allocate(&file, path, ROWS as u64 + rows * RECORD_BYTES as u64)?;
        }
        let map = MmapRaw::map_raw(&file).map_err(fail)?;
        let capacity = (map.len().saturating_sub(ROWS) / RECORD_BYTES) as u64;
        if capacity == 0 {
            return Err(RunError::data(format!("{} is no ring of rows", path.display())));
        }
        Ok(Self { map, capacity })
    }

    fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: `at` is one of four constants inside the mapping, which is page-aligned; atomics allow sharing.
        unsafe { &*self.map.as_mut_ptr().add(at).cast::<AtomicU64>() }
    }

    fn slot(&self, n: u64) -> *mut [u8; RECORD_BYTES] {
        let at = ROWS + (n % self.capacity) as usize * RECORD_BYTES;
        // SAFETY: `capacity` slots lie inside the mapping.
        unsafe { self.map.as_mut_ptr().add(at).cast() }
    }
}

/// Takes the memory now: where it is short, the first touch of a page would end the process by a bus error.
fn allocate(file: &File, path: &Path, bytes: u64) -> Result<(), RunError> {
    posix_fallocate(file, 0, bytes as i64).map_err(|e| {
        let remedy = match e {
            Errno::EFBIG => "raise the limit of the size of files: ulimit -f unlimited",
            _ => "make room there (df -h /dev/shm; docker run --shm-size=256m), or record less: measure.records = \"samples\"",
        };
        RunError::world(format!("{}: no room for {bytes} bytes of rows ({}); {remedy}", path.display(), e.desc()))
    })
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
        // SAFETY: the consumer reads no slot from `head` on, and has let go of this one.
        unsafe { self.shared.slot(self.head).write(row.to_bytes()) };
        self.head += 1;
        self.shared.counter(HEAD).store(self.head, Ordering::Release);
    }

    /// Says that the loop runs.
    pub fn beat(&self) {
        self.shared.counter(BEAT).store(monotonic_ns() as u64, Ordering::Relaxed);
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

    /// Opens a ring of which so many rows have been taken by a consumer that is gone.
    pub fn resume(path: &Path, taken: u64) -> Result<Self, RunError> {
        let shared = Shared::open(path, None)?;
        let head = shared.counter(HEAD).load(Ordering::Acquire);
        Ok(Self { tail: taken.clamp(head.saturating_sub(shared.capacity), head), shared })
    }

    /// Appends all published rows to `out`; they are the producer's to overwrite after `taken`.
    pub fn drain(&mut self, out: &mut Vec<u8>) -> u64 {
        let head = self.shared.counter(HEAD).load(Ordering::Acquire);
        let n = head.saturating_sub(self.tail).min(self.shared.capacity);
        for i in self.tail..self.tail + n {
            // SAFETY: the producer writes no slot between `tail` and `head`.
            out.extend_from_slice(&unsafe { self.shared.slot(i).read() });
        }
        self.tail += n;
        n
    }

    /// Lets go of what was drained: a consumer that dies before has taken nothing.
    pub fn taken(&mut self) {
        self.shared.counter(TAIL).store(self.tail, Ordering::Release);
    }

    /// Time since the loop ran last; 0 before its first turn.
    pub fn silence_ns(&self) -> Time {
        match self.shared.counter(BEAT).load(Ordering::Relaxed) as Time {
            0 => 0,
            beat => (monotonic_ns() - beat).max(0),
        }
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
        let writer = crate::threads::start(move || {
            for i in 0..10_000 {
                producer.push(&Record::new(i, Kind::Sent));
                std::thread::yield_now();
            }
            producer.lost()
        })
        .unwrap();
        let mut bytes = Vec::new();
        while !writer.is_finished() {
            consumer.drain(&mut bytes);
            consumer.taken();
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
        consumer.taken();
        producer.push(&Record::new(10, Kind::Sent));
        assert_eq!(consumer.drain(&mut bytes), 1);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn who_comes_after_a_dead_consumer_takes_up_where_its_file_ends() {
        let path = file("resumed");
        let mut producer = Producer::create(&path, 8).unwrap();
        (0..6).for_each(|i| producer.push(&Record::new(i, Kind::Sent)));
        let mut bytes = Vec::new();
        Consumer::open(&path).unwrap().drain(&mut bytes); // dies before it lets go of them
        (6..10).for_each(|i| producer.push(&Record::new(i, Kind::Sent)));
        bytes.truncate(4 * RECORD_BYTES); // and before all were in its file
        let mut heir = Consumer::resume(&path, 4).unwrap();
        assert_eq!((heir.drain(&mut bytes), heir.lost()), (4, 2));
        let times: Vec<i64> = bytes
            .chunks_exact(RECORD_BYTES)
            .map(|b| Record::from_bytes(b.try_into().unwrap()).unwrap().time_ns)
            .collect();
        assert_eq!(times, [0, 1, 2, 3, 4, 5, 6, 7]);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_loop_that_does_not_run_is_silent() {
        let path = file("beat");
        let producer = Producer::create(&path, 8).unwrap();
        let consumer = Consumer::open(&path).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert_eq!(consumer.silence_ns(), 0, "it has not begun");
        producer.beat();
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(consumer.silence_ns() >= 5_000_000);
        let silent = consumer.silence_ns();
        producer.beat();
        assert!(consumer.silence_ns() < silent);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_ring_without_room_is_refused_before_it_is_used() {
        let path = Path::new("/dev/shm").join(format!("tcps-ring-room-{}", std::process::id()));
        if std::fs::write(&path, b"").is_err() {
            return eprintln!("skipped: /dev/shm cannot be written here");
        }
        let e = Producer::create(&path, 1 << 50).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert!(e.found.contains("no room for") && e.found.contains("--shm-size"), "{e}");
    }

    #[test]
    fn a_file_that_is_no_ring_is_refused() {
        let path = file("none");
        std::fs::write(&path, b"short").unwrap();
        assert!(Consumer::open(&path).is_err());
        std::fs::remove_file(path).unwrap();
    }
}
