//! Merging by round trips of probes (after Kokkonis et al. 2015, NAFCAH).
//!
//! ```text
//! probe every 10 ms ─► round trip ─► the triggers of `dpm`: congested ─► k + 1, steady ─► k - 1
//! ```
//! A round trip holds the queues of both directions, so congestion of one makes both merge. Published is merging of the
//! forward direction alone; here each side goes by its own probes.

use super::{
    control::{merging, with, Controller, Hears},
    dpm,
};
use crate::params::{Params, Probing, TransportError};
use tcps_core::{
    param::Entry,
    rate::{DelayNotice, Feedback, RateController, Sent},
    time::Time,
};

/// The controller.
struct Nafcah(Box<dyn RateController>);

// [Kokkonis 2015]
impl RateController for Nafcah {
    fn feedback(&mut self, now: Time, feedback: &Feedback) {
        let Feedback::RoundTrip(round_trip_ns) = *feedback else { return };
        let notice = DelayNotice {
            delay_ns: round_trip_ns,
            fresh: true,
            generated_ns: now.saturating_sub(round_trip_ns),
            fragments: 1,
            wire_bytes: 0,
            certain: true,
            reverse_ns: 0,
            left_ns: 0,
        };
        self.0.feedback(now, &Feedback::Delay(notice));
    }

    fn sent(&mut self, now: Time, packet: &Sent) {
        self.0.sent(now, packet);
    }

    fn fragments(&mut self, now: Time) -> u8 {
        self.0.fragments(now)
    }
}

/// `nafcah`.
fn nafcah(params: &Params<'_>, period_ns: Time) -> Result<Box<dyn RateController>, TransportError> {
    Ok(Box::new(Nafcah(dpm::multistep(params, period_ns)?)))
}

/// `nafcah` in a scenario.
pub(crate) const ENTRY: Entry<Controller> = merging(
    31,
    "nafcah",
    "as dpm-multistep, by the round trip of probes (after Kokkonis 2015)",
    with!(dpm::Published, Probing),
    Hears::RoundTrips,
    nafcah,
);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tcps_core::time::MS;

    // [Kokkonis 2015]
    #[test]
    fn eight_rises_of_the_round_trip_merge_one_more_and_steadiness_one_less() {
        let mut c = nafcah(&Params::new("nafcah", &json!({})), MS).unwrap();
        let mut now = 0;
        let mut hears = |round_trip_ms: f64| {
            now += 10 * MS;
            c.feedback(now, &Feedback::RoundTrip((round_trip_ms * 1e6) as Time));
            c.fragments(now)
        };
        let rising: Vec<u8> = (0..9).map(|i| hears(30.0 + f64::from(i))).collect();
        assert_eq!(rising, [1, 1, 1, 1, 1, 1, 1, 1, 2]);
        // Four probes were in flight when k changed; what they tell is passed over.
        let still: Vec<u8> = (0..14).map(|_| hears(38.0)).collect();
        assert_eq!(still, [[2; 10].as_slice(), &[1; 4]].concat());
        let delay = DelayNotice {
            delay_ns: 90 * MS,
            fresh: true,
            generated_ns: now,
            fragments: 1,
            wire_bytes: 0,
            certain: true,
            reverse_ns: 0,
            left_ns: 0,
        };
        (1..20).for_each(|i| {
            c.feedback(now + i * MS, &Feedback::Delay(DelayNotice { delay_ns: (90 + i) * MS, ..delay }));
        });
        assert_eq!(c.fragments(now), 1, "it goes by probes alone");
    }
}
