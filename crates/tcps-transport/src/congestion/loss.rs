//! Merging that goes by losses and lets haptic events pass (after Lee & Kim 2007).
//!
//! ```text
//! report ─► more than 1 % lost, twice in a row ─► k + 1, up to k_max        nothing lost, twice in a row ─► k - 1
//! sample ─► differs from the one before by half of it (contact is made or lost) ─► its packet leaves at once
//! ```

use super::contact::Contact;
use super::control::{merging, with, Controller, Hears};
use crate::params::{Params, TransportError, SAMPLES};
use tcps_core::{
    param::Entry,
    params,
    rate::{Feedback, RateController},
    time::Time,
};

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

params! {
    /// Of the rule.
    struct Given {
        k_max: u8 = Count, "4", SAMPLES, "most samples in a packet";
        loss: f64 = Share, "1 %", 0.0..=1.0, "share of packets lost above which a report is bad";
        persist: u32 = Count, "2", 1.0..=100.0, "reports in a row before k changes";
        event: f64 = Number, "0.5", 0.0..=1e6, "difference from the previous sample that is an event, as a multiple of that sample";
    }
}

/// `loss-triggered`.
fn loss_triggered(params: &Params<'_>, _: Time) -> Result<Box<dyn RateController>, TransportError> {
    let Given { k_max, loss, persist, event } = params.read()?;
    Ok(Box::new(LossTriggered {
        k: 1,
        k_max,
        loss,
        persist,
        lossy: 0,
        clean: 0,
        contact: Contact::new(event),
    }))
}

/// `loss-triggered` in a scenario.
pub(crate) const ENTRY: Entry<Controller> = merging(
    22,
    "loss-triggered",
    "k rises by one after reports of losses, and falls by one after reports without (after Lee and Kim 2007)",
    with!(Given),
    Hears::Reports,
    loss_triggered,
);

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
