//! What a background source is, and how its packets are spaced.

use serde_json::Value;
use std::ops::RangeInclusive;
use tcps_core::{
    param::Fault,
    seed::Stream,
    time::{Time, NEVER},
};

/// When packets come, and how large they are on the wire.
pub trait Arrivals: Send {
    /// The next packet as (time since the start of the source, bytes), in order of time; `None` after the last.
    fn next(&mut self) -> Option<(Time, u32)>;
    /// Its mean rate on the wire, by which routes are chosen; 0 where it is not known beforehand.
    fn mean_rate_bps(&self) -> f64 {
        0.0
    }
    /// What code of the user's did wrong.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// How a source is made from its parameters, which are complete.
pub type MakeSource = fn(&Value, Stream) -> Result<Box<dyn Arrivals>, Fault>;

/// Rates of sources; 0 is silent.
pub(super) const RATE: RangeInclusive<f64> = 0.0..=1e12;

/// Time between packets of `bytes` at `rate_bps`; infinite for a silent source.
pub fn spacing_ns(bytes: u32, rate_bps: f64) -> f64 {
    f64::from(bytes) * 8e9 / rate_bps
}

/// A moment as whole nanoseconds, or `None` beyond the end of time.
pub(super) fn moment(ns: f64) -> Option<Time> {
    (ns < NEVER as f64 / 2.0).then_some((ns + 0.5) as Time)
}
