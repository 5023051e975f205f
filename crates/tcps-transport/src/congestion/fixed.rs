//! Merging that listens to nobody: never, always alike, or by a timetable.

use crate::params::{Params, TransportError};
use tcps_core::{
    rate::{Feedback, RateController},
    time::{Time, MS},
};
use tcps_wire::telehaptic::MOST_FRAGMENTS;

/// The same number of fragments in every packet.
// [Gokhale 2017: fixed merging]
#[derive(Debug)]
struct Fixed(u8);

impl RateController for Fixed {
    fn feedback(&mut self, _now: Time, _feedback: &Feedback) {}
    fn fragments(&mut self, _now: Time) -> u8 {
        self.0
    }
}

/// Another number from each moment on: an oracle, if the moments are those at which the network changes.
#[derive(Debug)]
struct Timetable(Vec<(Time, u8)>);

impl RateController for Timetable {
    fn feedback(&mut self, _now: Time, _feedback: &Feedback) {}
    fn fragments(&mut self, now: Time) -> u8 {
        self.0.iter().rev().find(|(at, _)| *at <= now).map_or(1, |(_, k)| *k)
    }
}

/// `no-merge`.
pub(crate) fn no_merge(_: &Params<'_>, _: Time) -> Result<Box<dyn RateController>, TransportError> {
    Ok(Box::new(Fixed(1)))
}

/// `fixed-k`, `k` fragments a packet.
pub(crate) fn fixed(params: &Params<'_>, _: Time) -> Result<Box<dyn RateController>, TransportError> {
    let k = params.integer("k", 1..=u32::from(MOST_FRAGMENTS))?.unwrap_or(4);
    Ok(Box::new(Fixed(k as u8)))
}

/// `timetable-k`: `k[i]` fragments a packet from `at[i]` on, 1 before.
pub(crate) fn timetable(params: &Params<'_>, _: Time) -> Result<Box<dyn RateController>, TransportError> {
    let at = params.integers("at_ms", 0..=i64::MAX / MS)?;
    let k = params.integers("k", 1..=i64::from(MOST_FRAGMENTS))?;
    if at.len() != k.len() || at.is_empty() || !at.is_sorted() {
        return Err(params.refuse("k", "as many numbers as `at` has moments, in their order"));
    }
    Ok(Box::new(Timetable(at.into_iter().map(|at| at * MS).zip(k.into_iter().map(|k| k as u8)).collect())))
}
