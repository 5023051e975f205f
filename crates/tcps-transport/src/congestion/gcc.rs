//! `gcc`: merging by the rate that Google congestion control allows.
//!
//! ```text
//! arrivals ─► GccRate ─► rate, from 0.85 times that of k_max to 1.2 times that of no merging ─► k = least with R_k <= rate
//! ```

use super::{
    control::{with, Controller, Hears, Merging, Pacing},
    gcc_rate::{GccRate, BETA},
    rates::Rates,
};
use crate::params::{Params, Telling, TransportError, PERIOD, SAMPLES};
use tcps_core::{
    param::{Draws, Entry, Params as _},
    params,
    rate::{Feedback, RateController, Sent},
    time::Time,
};

/// Estimates that the detector adds up, as the published code does.
const DELTAS: u32 = 60;

/// The controller.
#[derive(Debug)]
struct Gcc {
    rates: Rates,
    rate: GccRate,
}

impl RateController for Gcc {
    fn feedback(&mut self, now: Time, feedback: &Feedback) {
        if let Feedback::Arrival(arrival) = feedback {
            self.rate.arrival(now, arrival);
        }
    }

    fn sent(&mut self, now: Time, packet: &Sent) {
        self.rates.sent(packet);
        let range_bps = [0.0, f64::INFINITY].map(|bps| self.rates.within(bps, BETA));
        self.rate.sent(now, packet.wire_bytes, range_bps);
    }

    fn fragments(&mut self, _now: Time) -> u8 {
        self.rate.allowed_bps().map_or(1, |bps| self.rates.fragments(bps))
    }
}

/// The same rate, for flows that keep within it.
#[derive(Debug)]
struct GccFlows {
    rate: GccRate,
    range_bps: [f64; 2],
}

impl RateController for GccFlows {
    fn feedback(&mut self, now: Time, feedback: &Feedback) {
        match feedback {
            Feedback::Arrival(arrival) => self.rate.arrival(now, arrival),
            Feedback::Silence => self.rate.silent(),
            _ => {}
        }
    }

    fn sent(&mut self, now: Time, packet: &Sent) {
        self.rate.sent(now, packet.wire_bytes, self.range_bps);
    }

    fn keep_within(&mut self, range_bps: [f64; 2]) {
        self.range_bps = range_bps;
    }

    fn rate_bps(&self) -> Option<f64> {
        self.rate.allowed_bps()
    }
}

params! {
    /// Of the rule for flows.
    struct Flows {
        target_ns: Option<Time> = Ns, ABSENT, PERIOD, "with congestion gcc: a queue above it counts as over-use, too";
    }
}

/// `congestion = "gcc"`: Google's rule as its published code has it.
fn flows(params: &Params<'_>) -> Result<Box<dyn RateController>, TransportError> {
    let rate = GccRate::new(DELTAS, params.read::<Flows>()?.target_ns);
    Ok(Box::new(GccFlows { rate, range_bps: [0.0, f64::INFINITY] }))
}

params! {
    /// Of the rule.
    struct Given {
        k_max: u8 = Count, "4", SAMPLES, "most samples in a packet";
        deltas: u32 = Count, "60", 1.0..=1000.0, "largest factor of the estimate; 1 follows the text of the draft";
        target_ns: Option<Time> = Ns, ABSENT, PERIOD, "a queue above it counts as over-use, too";
    }
}

/// `gcc`.
fn gcc(params: &Params<'_>, period_ns: Time) -> Result<Box<dyn RateController>, TransportError> {
    let Given { k_max, deltas, target_ns } = params.read()?;
    Ok(Box::new(Gcc { rates: Rates::new(period_ns, k_max), rate: GccRate::new(deltas, target_ns) }))
}

/// In a scenario.
pub(crate) const ENTRY: Entry<Controller> = Entry {
    id: 36,
    name: "gcc",
    doc: "keeps the rate of Google congestion control (draft-ietf-rmcat-gcc-02)",
    params: with!(Given, Telling),
    draws: Draws::No,
    make: Controller {
        merging: Some(Merging { hears: Hears::Arrivals, first_come: false, make: gcc }),
        pacing: Some(Pacing { params: Flows::TABLE, make: flows }),
    },
};

#[cfg(test)]
mod tests {
    use super::{super::fluid::Fluid, *};
    use serde_json::json;
    use tcps_core::time::MS;

    fn fluid(params: serde_json::Value) -> Fluid {
        Fluid::new(gcc(&Params::new("gcc", &params), MS).unwrap())
    }

    // [draft-ietf-rmcat-gcc-02]
    #[test]
    fn over_use_takes_85_per_cent_of_what_comes_in_and_the_draft_alone_waits_for_losses() {
        let mut f = fluid(json!({}));
        assert!(f.run(2000, 400.0).iter().all(|k| *k == 1));
        let ks = f.run(4000, 800.0);
        let reaction = ks.iter().position(|k| *k > 1).unwrap();
        assert!((30..200).contains(&reaction), "{reaction}: long before the buffer is full");
        let mut draft = fluid(json!({"deltas": 1}));
        draft.run(2000, 400.0);
        let first = draft.run(4000, 800.0).iter().position(|k| *k > 1).unwrap_or(4000);
        assert!(draft.lost > 0 && first > 303, "{first}: the buffer is full after 303 ms");
    }

    #[test]
    fn a_target_of_10_ms_ends_what_stands_without_growing() {
        let after = |params: serde_json::Value| {
            let mut f = fluid(params);
            f.run(2000, 400.0);
            f.run(20_000, 790.0);
            let queue_ms = f.queue_ns / 1e6;
            f.run(60_000, 0.0);
            (queue_ms, f.c.fragments(82_000 * MS))
        };
        let (published, short) = (after(json!({})), after(json!({"target_ns": 10 * MS})));
        assert!(short.0 < 15.0 && published.0 > short.0 + 10.0, "{published:?} {short:?}");
        assert_eq!(
            (published.1, short.1),
            (1, 1),
            "both come back, by half a packet a response time near the limit"
        );
    }
}
