//! Set against delivered, for one ordered pair of nodes: what the network said, and what was done.

use crate::real::rate::Rates;
use hdrhistogram::Histogram;
use tcps_core::{report::histogram, time::Time};
use tcps_plan::report::Emulated;

/// Packets from one node to another.
pub(super) struct Journey {
    set: Histogram<u64>,
    delivered: Histogram<u64>,
    error: Histogram<u64>,
    rates: Rates,
    lost: u64,
    /// Packets that the network delivered and the kernel would not take.
    unsent: u64,
}

impl Journey {
    pub(super) fn new() -> Self {
        Self {
            set: histogram(),
            delivered: histogram(),
            error: histogram(),
            rates: Rates::default(),
            lost: 0,
            unsent: 0,
        }
    }

    /// The network has dropped a packet.
    pub(super) fn lose(&mut self) {
        self.lost += 1;
    }

    /// The network says that a packet of `bytes` on the wire leaves at `at`, `set` after it came in.
    pub(super) fn leaves(&mut self, at: Time, bytes: u32) {
        self.rates.let_out(at, bytes);
    }

    /// It has left at `sent`, or the kernel would not take it.
    pub(super) fn left(&mut self, set: Time, arrived: Time, sent: Option<Time>, bytes: u32) {
        let Some(sent) = sent else {
            self.rates.refused(bytes);
            return self.unsent += 1;
        };
        self.rates.handed_on(arrived + set, sent - arrived - set, bytes);
        let _ = self.set.record(set.max(0) as u64);
        let _ = self.delivered.record((sent - arrived).max(0) as u64);
        let _ = self.error.record((sent - arrived - set).max(0) as u64);
    }

    /// Packets whose fate is known; those under way at the end are neither lost nor delivered.
    pub(super) fn decided(&self) -> u64 {
        self.lost + self.unsent + self.delivered.len()
    }

    /// Its line in the report; `stamps` says what tells when packets entered.
    pub(super) fn report(&self, stamps: &'static str, from: &str, to: &str) -> Emulated {
        let delays = (&self.set, &self.delivered, &self.error);
        let rates = (self.rates.set_bps(), self.rates.delivered_bps());
        Emulated::new(stamps, format!("{from} -> {to}"), delays, rates, self.decided(), self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::MS;

    #[test]
    fn an_emulator_that_falls_behind_delivers_less_than_is_set() {
        let mut journey = Journey::new();
        for n in 0..2000 {
            let at = n * MS;
            journey.leaves(at + 10 * MS, 125);
            journey.left(10 * MS, at, Some(at + 10 * MS + n * MS / 10), 125);
        }
        let told = serde_json::to_value(journey.report("kernel", "a", "b")).unwrap();
        let rate = |key: &str| told[key].as_f64().unwrap();
        assert!((rate("set_rate_bps") - 1e6).abs() < 1.0, "{told}");
        assert!((rate("delivered_rate_bps") - 1e6 / 1.1).abs() < 1.0, "{told}");
    }
}
