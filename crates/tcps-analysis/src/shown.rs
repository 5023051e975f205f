//! What playout made of the samples of a flow: shown when, too late, left out, and ticks with nothing new.

use super::tally::{Distribution, Tally};
use serde::Serialize;
use tcps_core::{
    record::{Kind, Record},
    time::Time,
};

/// What a flow's playout did.
#[derive(Debug, Serialize)]
pub struct ShownReport {
    /// Samples shown.
    pub played: u64,
    /// Samples that came after their moment.
    pub late: u64,
    /// Samples left out to keep a queue short, or for a newer one.
    pub skipped: u64,
    /// Ticks with nothing new.
    pub starved: u64,
    /// Age of a sample when it is shown, ns.
    pub age_ns: Option<Distribution>,
    /// Time between samples shown, ns.
    pub interval_ns: Option<Distribution>,
}

/// Playout being watched.
#[derive(Debug, Default)]
pub struct Shown {
    age: Tally,
    interval: Tally,
    last_ns: Option<Time>,
    late: u64,
    skipped: u64,
    starved: u64,
}

impl Shown {
    /// A row of playout.
    pub fn take(&mut self, row: &Record) {
        match row.kind {
            Kind::Played => {
                self.age.add(row.value);
                if let Some(last_ns) = self.last_ns.replace(row.time_ns) {
                    self.interval.add(row.time_ns.saturating_sub(last_ns));
                }
            }
            Kind::Overdue => self.late += 1,
            Kind::Skipped => self.skipped += 1,
            _ => self.starved += 1,
        }
    }

    /// What it did.
    pub fn report(&self) -> ShownReport {
        ShownReport {
            played: self.age.n(),
            late: self.late,
            skipped: self.skipped,
            starved: self.starved,
            age_ns: self.age.distribution(),
            interval_ns: self.interval.distribution(),
        }
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.age.heap_bytes() + self.interval.heap_bytes()
    }
}
