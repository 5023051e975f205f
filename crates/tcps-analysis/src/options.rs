//! How a run is looked at.

use tcps_core::time::{Time, SECOND};

/// How to look.
#[derive(Debug, Clone)]
pub struct Options {
    /// What was sent before this moment does not count.
    pub warmup_ns: Time,
    /// A sample is lost if it was sent at least this long before the end and never arrived.
    pub grace_ns: Time,
    /// Bins of a curve over time, at most.
    pub bins: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { warmup_ns: 0, grace_ns: SECOND, bins: 400 }
    }
}
