//! Merging that goes by losses and lets haptic events pass (after Lee & Kim 2007).
//!
//! ```text
//! report ─► more than 1 % lost, twice in a row ─► k + 1, up to k_max        nothing lost, twice in a row ─► k - 1
//! sample ─► differs from the one before by half of it (contact is made or lost) ─► its packet leaves at once
//! ```
//! Samples are taken as 4-byte floats in network order; others are never an event.

use crate::params::{Params, TransportError};
use tcps_core::{
    rate::{Feedback, RateController},
    time::Time,
};
use tcps_wire::telehaptic::MOST_FRAGMENTS;

/// The least length of a vector that a change is compared with, in the unit of the values.
const SMALL: f64 = 1e-5;

/// The controller.
#[derive(Debug)]
struct LossTriggered {
    k: u8,
    k_max: u8,
    loss: f64,
    persist: u32,
    event: f64,
    lossy: u32,
    clean: u32,
    last: Vec<f32>,
}

// [PROTOCOLS 3.12] merging grows only after persistent loss; events have priority
impl RateController for LossTriggered {
    fn feedback(&mut self, _now: Time, feedback: &Feedback) {
        let Feedback::Report(report) = feedback else { return };
        let is_lossy = report.loss > self.loss;
        self.lossy = if is_lossy { self.lossy + 1 } else { 0 };
        self.clean = if is_lossy { 0 } else { self.clean + 1 };
        if self.lossy >= self.persist {
            (self.k, self.lossy) = ((self.k + 1).min(self.k_max), 0);
        } else if self.clean >= self.persist {
            (self.k, self.clean) = ((self.k - 1).max(1), 0);
        }
    }

    fn fragments(&mut self, _now: Time) -> u8 {
        self.k
    }

    fn urgent(&mut self, sample: &[u8]) -> bool {
        let values = || sample.chunks_exact(4).map(|b| f32::from_be_bytes([b[0], b[1], b[2], b[3]]));
        let square = |v: f64| v * v;
        let off: f64 =
            values().zip(&self.last).map(|(new, old)| square(f64::from(new) - f64::from(*old))).sum();
        let long: f64 = self.last.iter().map(|v| square(f64::from(*v))).sum();
        let comparable = sample.len() % 4 == 0 && self.last.len() * 4 == sample.len();
        self.last.clear();
        self.last.extend(values());
        comparable && off > square(self.event * (long.sqrt() + SMALL))
    }
}

/// `loss-triggered`.
pub(super) fn loss_triggered(
    params: &Params<'_>,
    _: Time,
) -> Result<Box<dyn RateController>, TransportError> {
    Ok(Box::new(LossTriggered {
        k: 1,
        k_max: params.integer("k_max", 1..=u32::from(MOST_FRAGMENTS))?.unwrap_or(4) as u8,
        loss: params.number("loss", 0.0..=1.0)?.unwrap_or(0.01),
        persist: params.integer("persist", 1..=100)?.unwrap_or(2),
        event: params.number("event", 0.0..=1e6)?.unwrap_or(0.5),
        lossy: 0,
        clean: 0,
        last: Vec::new(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tcps_core::rate::Report;

    fn controller() -> Box<dyn RateController> {
        loss_triggered(&Params::new("loss-triggered", &json!({})), 0).unwrap()
    }

    // [PROTOCOLS 3.12]
    #[test]
    fn merging_grows_after_two_lossy_reports_and_shrinks_after_two_clean_ones() {
        let mut c = controller();
        let mut k = Vec::new();
        for loss in [0.0, 0.2, 0.0, 0.2, 0.2, 0.02, 0.02, 0.2, 0.2, 0.2, 0.2, 0.01, 0.0, 0.0, 0.0] {
            c.feedback(0, &Feedback::Report(Report { mean_delay_ns: 0, loss, jitter_ns: 0 }));
            k.push(c.fragments(0));
        }
        assert_eq!(k, [1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 4, 4, 3, 3, 2]);
    }

    // [PROTOCOLS 3.12]
    #[test]
    fn contact_and_release_are_events_and_a_slow_change_is_not() {
        let mut c = controller();
        let force = |n: f32| [0.0f32, 0.0, n].map(f32::to_be_bytes).concat();
        let urgent: Vec<bool> = [0.0, 0.0, 2.0, 2.5, 3.0, 0.5, 0.0].map(|n| c.urgent(&force(n))).to_vec();
        assert_eq!(urgent, [false, false, true, false, false, true, true]);
        assert!(!c.urgent(&[1, 2, 3]) && !c.urgent(&[1, 2, 3]));
    }
}
