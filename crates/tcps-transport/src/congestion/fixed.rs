//! Merging that listens to nobody: never, always alike, or by a timetable.

use super::control::{merging, with, Controller, Hears, Merging};
use crate::params::{Params, TransportError, SAMPLES};
use tcps_core::{
    param::{Draws, Entry},
    params,
    rate::{Feedback, RateController},
    time::{Time, MS},
};

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
pub(super) fn no_merge(_: &Params<'_>, _: Time) -> Result<Box<dyn RateController>, TransportError> {
    Ok(Box::new(Fixed(1)))
}

params! {
    /// Of always the same.
    struct Always {
        k: u8 = Count, "4", SAMPLES, "samples in a packet";
    }
}

/// `fixed-k`, `k` fragments a packet.
fn fixed(params: &Params<'_>, _: Time) -> Result<Box<dyn RateController>, TransportError> {
    Ok(Box::new(Fixed(params.read::<Always>()?.k)))
}

params! {
    /// Of a timetable.
    struct Moments {
        at_ms: Vec<Time> = List(&Count), "[]", 0.0..=9e12, "times at which k changes, in ms";
        k: Vec<u8> = List(&Count), "[]", SAMPLES, "samples per packet from each time on";
    }
}

/// `timetable-k`: `k[i]` fragments a packet from `at[i]` on, 1 before.
fn timetable(params: &Params<'_>, _: Time) -> Result<Box<dyn RateController>, TransportError> {
    let Moments { at_ms: at, k } = params.read()?;
    if at.len() != k.len() || at.is_empty() || !at.is_sorted() {
        return Err(params.refuse("k", "as many numbers as `at` has times, in their order"));
    }
    Ok(Box::new(Timetable(at.into_iter().map(|at| at * MS).zip(k).collect())))
}

/// `no-merge` in a scenario.
pub(crate) const NO_MERGE: Entry<Controller> =
    merging(20, "no-merge", "one fragment per packet", with!(), Hears::Nothing, no_merge);
/// `fixed-k` in a scenario.
pub(crate) const FIXED: Entry<Controller> =
    merging(23, "fixed-k", "k is always the parameter k", with!(Always), Hears::Nothing, fixed);
/// `timetable-k` in a scenario.
pub(crate) const TIMETABLE: Entry<Controller> = merging(
    24,
    "timetable-k",
    "k is k[i] from at_ms[i] on: an oracle, because it knows the future",
    with!(Moments),
    Hears::Nothing,
    timetable,
);
/// `hoip` in a scenario. [Gokhale 2013] first come, first served; adaptive sampling is a hook (`weber`)
pub(crate) const HOIP: Entry<Controller> = Entry {
    id: 21,
    name: "hoip",
    doc: "sound and picture in order of arrival, one fragment per packet (after Gokhale 2013)",
    params: NO_MERGE.params,
    draws: Draws::No,
    make: Controller {
        merging: Some(Merging { hears: Hears::Nothing, first_come: true, make: no_merge }),
        pacing: None,
    },
};
