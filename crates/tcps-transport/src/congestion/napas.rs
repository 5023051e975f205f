//! Merging of the samples that a sampler has let pass (after Gokhale et al. 2018, NaPAS).
//!
//! ```text
//! sample ─► sampler (a hook: `weber`) ─► k of those that passed, by the triggers of `dpm` ─► packet
//!                                        or what there is, 4 ms after the first of them
//! ```

use super::{
    control::{merging, with, Controller, Hears},
    dpm,
};
use crate::params::{Params, TransportError};
use tcps_core::{
    param::Entry,
    params,
    rate::{Feedback, RateController, Sent},
    time::Time,
};

/// The controller.
struct Napas {
    merging: Box<dyn RateController>,
    hold_ns: Time,
}

// [Gokhale 2018]
impl RateController for Napas {
    fn feedback(&mut self, now: Time, feedback: &Feedback) {
        self.merging.feedback(now, feedback);
    }

    fn sent(&mut self, now: Time, packet: &Sent) {
        self.merging.sent(now, packet);
    }

    fn fragments(&mut self, now: Time) -> u8 {
        self.merging.fragments(now)
    }

    fn hold_ns(&self) -> Option<Time> {
        Some(self.hold_ns)
    }
}

params! {
    /// Of the rule.
    struct Given {
        hold_ns: Time = Ns, "4 ms", 0.0..=1e9, "the longest time that a sample waits";
    }
}

/// `napas`.
fn napas(params: &Params<'_>, period_ns: Time) -> Result<Box<dyn RateController>, TransportError> {
    let Given { hold_ns } = params.read()?;
    Ok(Box::new(Napas { merging: dpm::step(params, period_ns)?, hold_ns }))
}

/// `napas` in a scenario.
pub(crate) const ENTRY: Entry<Controller> = merging(
    32,
    "napas",
    "dpm for samples that passed a sampler (after Gokhale 2018)",
    with!(dpm::Published, dpm::Repeats, Given),
    Hears::Delays,
    napas,
);
