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

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::MS;

    #[test]
    fn what_playout_did_is_told_with_ages_and_intervals() {
        let mut shown = Shown::default();
        let rows = [
            (Kind::Played, 10, 4),
            (Kind::Overdue, 11, 0),
            (Kind::Overdue, 12, 0),
            (Kind::Played, 20, 6),
            (Kind::Skipped, 21, 0),
            (Kind::Skipped, 21, 0),
            (Kind::Skipped, 21, 0),
            (Kind::Starved, 30, 0),
            (Kind::Starved, 40, 0),
            (Kind::Starved, 50, 0),
            (Kind::Starved, 60, 0),
            (Kind::Played, 70, 5),
        ];
        for (kind, at_ms, value_ms) in rows {
            shown.take(&Record { value: value_ms * MS, ..Record::new(at_ms * MS, kind) });
        }
        let told = shown.report();
        assert_eq!((told.played, told.late, told.skipped, told.starved), (3, 2, 3, 4));
        let age = told.age_ns.unwrap();
        assert_eq!((age.min, age.mean, age.max), (4e6, 5e6, 6e6));
        let interval = told.interval_ns.unwrap();
        assert_eq!((interval.n, interval.min, interval.max), (2, 10e6, 50e6));
    }
}
