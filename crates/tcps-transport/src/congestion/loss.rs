//! Merging that goes by losses and lets haptic events pass (after Lee & Kim 2007).
//!
//! ```text
//! report ─► more than 1 % lost, twice in a row ─► k + 1, up to k_max        nothing lost, twice in a row ─► k - 1
//! sample ─► differs from the one before by half of it (contact is made or lost) ─► its packet leaves at once
//! ```

use super::contact::Contact;
use crate::params::{Params, TransportError};
use tcps_core::{
    rate::{Feedback, RateController},
    time::Time,
};
use tcps_wire::telehaptic::MOST_FRAGMENTS;

/// The controller.
#[derive(Debug)]
struct LossTriggered {
    k: u8,
    k_max: u8,
    loss: f64,
    persist: u32,
    lossy: u32,
    clean: u32,
    contact: Contact,
}

// [model: approximations] merging grows only after persistent loss; events have priority
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
        self.contact.is_event(sample)
    }
}

/// `loss-triggered`.
pub(crate) fn loss_triggered(
    params: &Params<'_>,
    _: Time,
) -> Result<Box<dyn RateController>, TransportError> {
    Ok(Box::new(LossTriggered {
        k: 1,
        k_max: params.integer("k_max", 1..=u32::from(MOST_FRAGMENTS))?.unwrap_or(4) as u8,
        loss: params.number("loss", 0.0..=1.0)?.unwrap_or(0.01),
        persist: params.integer("persist", 1..=100)?.unwrap_or(2),
        lossy: 0,
        clean: 0,
        contact: Contact::new(params.number("event", 0.0..=1e6)?.unwrap_or(0.5)),
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

    // [model: approximations]
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

    // [model: approximations]
    #[test]
    fn contact_leaves_at_once() {
        let mut c = controller();
        let urgent = [1.0f32, 1.1, 2.0].map(|n| c.urgent(&n.to_be_bytes()));
        assert_eq!(urgent, [false, false, true]);
    }
}
