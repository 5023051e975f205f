//! Merging of the samples that a sampler has let pass (after Gokhale et al. 2018, NaPAS).
//!
//! ```text
//! sample ─► sampler (a hook: `weber`) ─► k of those that passed, by the triggers of `dpm` ─► packet
//!                                        or what there is, 4 ms after the first of them
//! ```

use super::dpm;
use crate::params::{Params, TransportError};
use tcps_core::{
    rate::{Feedback, RateController, Sent},
    time::{Time, MS, SECOND},
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

/// `napas`.
pub(crate) fn napas(params: &Params<'_>, period_ns: Time) -> Result<Box<dyn RateController>, TransportError> {
    let hold_ns = params.span_ns("hold_ns", 0..=SECOND)?.unwrap_or(4 * MS);
    Ok(Box::new(Napas { merging: dpm::step(params, period_ns)?, hold_ns }))
}
