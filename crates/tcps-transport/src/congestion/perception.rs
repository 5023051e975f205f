//! A deadband that follows the network (after the abstract of PAHCP, a perception-based adaptive haptic protocol).
//!
//! ```text
//! sample ─► differs from the one sent last by delta of it, or 100 ms after that ─► goes, else it is left out
//! 500 ms ─► queue above 5 ms ─► next larger delta      below 1 ms ─► next smaller
//! ```
//! delta is one of 5, 8, 12, 20 %. The queue is the mean delay of 500 ms above the least of 60 s. Nothing is merged.
//! Samples are taken as 4-byte floats in network order; others all go.

use super::{
    contact::Contact,
    control::{merging, with, Controller, Hears},
    tally::Tally,
};
use crate::params::{Params, TransportError, MINUTE};
use tcps_core::{
    param::Entry,
    params,
    rate::{Feedback, RateController},
    time::Time,
};

// [Gokhale 2016]
const DELTAS: [f64; 4] = [0.05, 0.08, 0.12, 0.20];

/// The controller.
#[derive(Debug)]
struct Perception {
    level: usize,
    congested_ns: f64,
    clear_ns: f64,
    keep_ns: Time,
    tally: Tally,
    sent: Contact,
    sent_ns: Time,
}

impl Perception {
    // [model: PAHCP] [Gokhale 2016]
    fn adapt(&mut self, queue_ns: f64) {
        if queue_ns > self.congested_ns {
            self.level = (self.level + 1).min(DELTAS.len() - 1);
        } else if queue_ns < self.clear_ns {
            self.level = self.level.saturating_sub(1);
        }
    }
}

impl RateController for Perception {
    fn feedback(&mut self, now: Time, feedback: &Feedback) {
        let Feedback::Delay(notice) = feedback else { return };
        if let Some(queue_ns) = self.tally.add(now, notice) {
            self.adapt(queue_ns);
        }
    }

    fn fragments(&mut self, _now: Time) -> u8 {
        1
    }

    // [Hinterseer 2008: Weber sampler]
    fn admits(&mut self, now: Time, sample: &[u8], must: bool) -> bool {
        let kept_ns = now.saturating_sub(self.sent_ns);
        let differs = !self.sent.is_comparable(sample) || self.sent.differs_by(sample, DELTAS[self.level]);
        let goes = must || kept_ns >= self.keep_ns || differs;
        if goes {
            self.sent_ns = now;
            self.sent.keep(sample);
        }
        goes
    }
}

params! {
    /// Of the rule.
    struct Given {
        congested_above_ns: Time = Ns, "5 ms", MINUTE, "queue above which the path is congested";
        clear_below_ns: Time = Ns, "1 ms", MINUTE, "queue below which the path is clear";
        keep_ns: Time = Ns, "100 ms", MINUTE, "longest time without a sample";
    }
}

/// `pahcp`.
fn pahcp(params: &Params<'_>, _: Time) -> Result<Box<dyn RateController>, TransportError> {
    Ok(Box::new(perception(params)?))
}

fn perception(params: &Params<'_>) -> Result<Perception, TransportError> {
    let Given { congested_above_ns, clear_below_ns, keep_ns } = params.read()?;
    Ok(Perception {
        level: 0,
        congested_ns: congested_above_ns as f64,
        clear_ns: clear_below_ns as f64,
        keep_ns,
        tally: Tally::new(),
        sent: Contact::new(DELTAS[0]),
        sent_ns: 0,
    })
}

/// `pahcp` in a scenario.
pub(crate) const ENTRY: Entry<Controller> = merging(
    34,
    "pahcp",
    "skips samples within a deadband that grows with the queue; merges nothing",
    with!(Given),
    Hears::Delays,
    pahcp,
);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tcps_core::time::MS;

    fn controller() -> Perception {
        perception(&Params::new("pahcp", &json!({}))).unwrap()
    }

    fn force(n: f32) -> Vec<u8> {
        [0.0f32, 0.0, n].map(f32::to_be_bytes).concat()
    }

    /// The least step from 1 that passes, in per cent.
    fn threshold(c: &mut Perception) -> u32 {
        let passes = |percent: &u32| {
            c.admits(MS, &force(1.0), true);
            c.admits(MS, &force(1.0 + *percent as f32 / 100.0 + 0.001), false)
        };
        (1..40).find(passes).unwrap_or(0)
    }

    // [model: PAHCP] [Gokhale 2016]
    #[test]
    fn the_deadband_grows_with_a_queue_and_shrinks_without() {
        let mut c = controller();
        let got = [0.0, 6e6, 20e6, 5.1e6, 9e6, 3e6, 0.0, 0.9e6].map(|queue_ns| {
            c.adapt(queue_ns);
            threshold(&mut c)
        });
        assert_eq!(got, [5, 8, 12, 20, 20, 20, 12, 8]);
    }

    // [Hinterseer 2008: Weber sampler] [Hinterseer 2008: deadband]
    #[test]
    fn a_sample_goes_when_it_differs_after_100_ms_and_when_it_must() {
        let mut c = controller();
        assert!(c.admits(0, &force(1.0), false), "the first");
        assert!(!c.admits(MS, &force(1.04), false));
        assert!(c.admits(2 * MS, &force(1.06), false));
        assert!(!c.admits(3 * MS, &force(1.1), false), "compared with what was sent last");
        assert!(c.admits(102 * MS, &force(1.06), false));
        assert!(c.admits(103 * MS, &force(1.06), true));
        assert!(c.admits(104 * MS, &[1, 2, 3], false) && c.admits(105 * MS, &[1, 2, 3], false));
    }

    // [model: PAHCP]
    #[test]
    fn nothing_is_merged_whatever_the_queue_is() {
        let mut c = controller();
        let fragments = [0.0, 6e6, 50e6, 50e6].map(|queue_ns| {
            c.adapt(queue_ns);
            c.fragments(0)
        });
        assert_eq!(fragments, [1; 4]);
    }
}
