//! What answers at the far side: `step(t, command) -> sense`.

use crate::time::Time;

/// How the loop of a robot that has one of its own kept its time, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pace {
    /// Ticks that it took.
    pub ticks: u64,
    /// Ticks that it left out because it came more than a tick late.
    pub missed_ticks: u64,
    /// Times it came over a millisecond late.
    pub gaps_over_1ms: u64,
    /// Times its watchdog found that commands had ceased.
    pub watchdog: u64,
    /// Median of how late it came.
    pub p50_ns: u64,
    /// 99th percentile of it.
    pub p99_ns: u64,
    /// The latest.
    pub max_ns: u64,
}

/// A robot, or anything that takes commands and can be felt.
///
/// Built-in robots are Rust; a Python class with the same two methods is wrapped into one. In virtual time it is
/// stepped by its ticks; on sockets a timer runs the same object.
pub trait Robot: Send {
    /// Advances to `now` with the newest command (empty before the first); writes what is sensed, returns how many values.
    fn step(&mut self, now: Time, command: &[f64], sense: &mut [f64]) -> usize;
    /// True once the last command has been carried out (hold-until-done echoes wait for it).
    fn arrived(&mut self) -> bool {
        true
    }
    /// What went wrong, if anything did.
    fn failure(&self) -> Option<String> {
        None
    }
    /// Ends its own loop, if it has one, and tells how that kept its time; it is not stepped any more.
    fn pace(&mut self) -> Option<Pace> {
        None
    }
}
