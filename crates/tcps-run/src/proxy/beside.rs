//! How late this machine wakes a program of ordinary priority: programs beside the emulator see this beside the network's
//! delay.

use crate::{emu::lock, threads};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        Arc, Mutex,
    },
    time::{Duration, Instant},
};
use tcps_core::time::Time;
use tcps_plan::RunError;

/// How long it sleeps at a time.
const PERIOD: Duration = Duration::from_millis(2);
/// The longest lateness that is told apart.
const MOST_NS: u64 = 3_600_000_000_000;

/// By how much a thread that slept [`PERIOD`] at a time woke too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lateness {
    p50: Time,
    p99: Time,
    max: Time,
}

/// Watches until it is dropped.
pub(super) struct Beside {
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Histogram<u64>>>,
}

impl Beside {
    /// Begins to watch.
    pub(super) fn begin() -> Result<Self, RunError> {
        let histogram = Histogram::new_with_bounds(1, MOST_NS, 2).expect("bounds are right");
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(histogram)));
        let (until, noted) = (stop.clone(), seen.clone());
        threads::start(move || {
            while !until.load(Ordering::Relaxed) {
                let asleep = Instant::now();
                std::thread::sleep(PERIOD);
                let late = asleep.elapsed().saturating_sub(PERIOD).as_nanos();
                lock(&noted).saturating_record(u64::try_from(late).unwrap_or(MOST_NS));
            }
        })?;
        Ok(Self { stop, seen })
    }

    /// What was seen so far; none before the first sleep has ended.
    pub(super) fn seen(&self) -> Option<Lateness> {
        let seen = lock(&self.seen);
        let at = |share| seen.value_at_quantile(share) as Time;
        (!seen.is_empty()).then(|| Lateness { p50: at(0.5), p99: at(0.99), max: seen.max() as Time })
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_are_noted_and_their_quantiles_are_in_order() {
        let beside = Beside::begin().unwrap();
        let begun = Instant::now();
        while beside.seen().is_none() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(PERIOD);
        }
        let late = beside.seen().unwrap();
        assert!(0 < late.p50 && late.p50 <= late.p99 && late.p99 <= late.max, "{late:?}");
    }
}
