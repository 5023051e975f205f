//! Merging by receiver reports: what a sender can do that hears of its packets only every half second.

use super::control::{merging, with, Controller, Hears};
use crate::params::{Params, TransportError, SAMPLES};
use tcps_core::{
    param::Entry,
    params,
    rate::{Feedback, RateController},
    time::Time,
};

/// The highest number of fragments once the mean delay has grown by a tenth, one less while it stays within that.
// [Gokhale 2017: reports]
#[derive(Debug)]
struct ByReport {
    k: u8,
    k_max: u8,
    previous_ns: Option<Time>,
}

impl RateController for ByReport {
    fn feedback(&mut self, _now: Time, feedback: &Feedback) {
        let Feedback::Report(report) = feedback else { return };
        let mean = report.mean_delay_ns as f64;
        if let Some(previous) = self.previous_ns.map(|p| p as f64) {
            // Clocks apart may make delays negative; a tenth is one of the size.
            let (growth, tenth) = (mean - previous, 0.1 * previous.abs());
            if growth > tenth {
                self.k = self.k_max;
            } else if growth >= -tenth {
                self.k = (self.k - 1).max(1);
            }
        }
        self.previous_ns = Some(report.mean_delay_ns);
    }

    fn fragments(&mut self, _now: Time) -> u8 {
        self.k
    }
}

params! {
    /// Of the rule.
    struct Given {
        k_max: u8 = Count, "4", SAMPLES, "most samples in a packet";
    }
}

/// `rtcp-report`.
fn by_report(params: &Params<'_>, _: Time) -> Result<Box<dyn RateController>, TransportError> {
    let Given { k_max } = params.read()?;
    Ok(Box::new(ByReport { k: 1, k_max, previous_ns: None }))
}

/// `rtcp-report` in a scenario.
pub(crate) const ENTRY: Entry<Controller> = merging(
    37,
    "rtcp-report",
    "sets k by the mean delay of a receiver report every 500 ms",
    with!(Given),
    Hears::Reports,
    by_report,
);

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::{rate::Report, time::MS};

    // [Gokhale 2017: reports]
    #[test]
    fn growth_by_a_tenth_merges_steadiness_relaxes_and_a_fall_holds() {
        let mut c = ByReport { k: 1, k_max: 4, previous_ns: None };
        let mut k = Vec::new();
        for mean_ms in [20, 21, 24, 22, 22, 10, 10, 10, 10] {
            let report = Report { mean_delay_ns: mean_ms * MS, loss: 0.0, jitter_ns: 0 };
            c.feedback(0, &Feedback::Report(report));
            k.push(c.fragments(0));
        }
        assert_eq!(k, [1, 1, 4, 3, 2, 2, 1, 1, 1]);
    }

    #[test]
    fn steady_delays_below_zero_are_no_growth() {
        let mut c = ByReport { k: 4, k_max: 4, previous_ns: None };
        for _ in 0..4 {
            c.feedback(0, &Feedback::Report(Report { mean_delay_ns: -10 * MS, loss: 0.0, jitter_ns: 0 }));
        }
        assert_eq!(c.fragments(0), 1, "clocks apart by more than the delay");
    }
}
