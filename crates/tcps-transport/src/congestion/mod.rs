//! Congestion control: what a sender makes of what it learns of its packets.
//!
//! ```text
//! RateController (tcps_core::rate)   how many samples a packet holds, and which are left out: telehaptic;
//!                                    or a rate in bit/s, which rtp keeps its flows within: a file and a line in `CONTROLLERS`
//! window                             segments in flight: tcp
//! ```
//! Nothing here knows which transport asks. `window` has a trait of its own, since `RateController` decides how many samples
//! a packet merges, from delays and reports, and has neither a window nor a notion of a lost segment; a TCP sender asks for
//! nothing else.

mod arrival_filter;
mod contact;
mod control;
mod dpm;
mod etp;
mod fixed;
#[cfg(test)]
mod fluid;
mod gcc;
mod gcc_rate;
mod guard;
mod loss;
mod nafcah;
mod napas;
mod others;
mod own;
mod perception;
mod queue;
mod rates;
mod report;
mod scream;
mod scream_queue;
mod shares;
mod tally;
mod trend;
pub(crate) mod window;
mod windowed;

pub(crate) use control::{Controller, Hears, Merging, Pacing};
pub(crate) use own::learning;
pub(crate) use windowed::WindowedMin;

use tcps_core::param::{Entry, Param};

/// The rate controllers by name: a new one is a file here and its line.
pub(crate) const CONTROLLERS: &[&Entry<Controller>] = &[
    &fixed::NO_MERGE,
    &fixed::HOIP,
    &loss::ENTRY,
    &fixed::FIXED,
    &fixed::TIMETABLE,
    &dpm::STEP,
    &dpm::MULTISTEP,
    &dpm::HOLDUP,
    &dpm::GUARDED,
    &queue::ENTRY,
    &shares::ENTRY,
    &nafcah::ENTRY,
    &napas::ENTRY,
    &etp::ENTRY,
    &perception::ENTRY,
    &scream::ENTRY,
    &gcc::ENTRY,
    &report::ENTRY,
    &own::ENTRY,
];

/// Those that merge, each a telehaptic transport.
pub(crate) fn merging() -> impl Iterator<Item = (&'static Entry<Controller>, Merging)> {
    CONTROLLERS.iter().filter_map(|c| Some((*c, c.make.merging?)))
}

/// Those that say how fast flows may send.
pub(crate) fn pacing() -> impl Iterator<Item = (&'static Entry<Controller>, Pacing)> {
    CONTROLLERS.iter().filter_map(|c| Some((*c, c.make.pacing?)))
}

/// The parameters of all of these beside some others.
pub(crate) const fn paced<const OWN: usize, const ALL: usize>(
    own: [&'static [Param]; OWN],
) -> [&'static [Param]; ALL] {
    let mut all: [&[Param]; ALL] = [&[]; ALL];
    let mut i = 0;
    while i < ALL {
        all[i] = match i < OWN {
            true => own[i],
            false => match CONTROLLERS[i - OWN].make.pacing {
                Some(pacing) => pacing.params,
                None => &[],
            },
        };
        i += 1;
    }
    all
}
