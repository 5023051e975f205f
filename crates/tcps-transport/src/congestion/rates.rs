//! What merging makes of a rate: how many bits a second k fragments a packet take, and the least k that a rate allows.
//!
//! ```text
//! R_k = (fragment + headers / k) / period            k = least with R_k <= rate, or k_max
//! ```

use tcps_core::{rate::Sent, time::Time};

/// Weight of the newest packet: fragments without sound and picture come between those with them.
const WEIGHT: f64 = 1.0 / 64.0;
/// How far a rate may be above that of no merging: sizes vary, and a rate that is just enough would not be.
const HEAD_ROOM: f64 = 1.2;

/// Sizes, averaged over packets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    period_ns: Time,
    k_max: u8,
    fragment_bytes: f64,
    overhead_bytes: f64,
}

impl Rates {
    /// For samples of this period and packets of at most `k_max` of them.
    pub(super) fn new(period_ns: Time, k_max: u8) -> Self {
        Self { period_ns, k_max, fragment_bytes: 0.0, overhead_bytes: 0.0 }
    }

    /// A packet has left.
    pub(super) fn sent(&mut self, packet: &Sent) {
        let fragment_bytes = f64::from(packet.payload_bytes) / f64::from(packet.fragments.max(1));
        let overhead_bytes = f64::from(packet.wire_bytes) - f64::from(packet.payload_bytes);
        let weight = if self.overhead_bytes == 0.0 { 1.0 } else { WEIGHT };
        self.fragment_bytes += weight * (fragment_bytes - self.fragment_bytes);
        self.overhead_bytes += weight * (overhead_bytes - self.overhead_bytes);
    }

    /// A rate kept between `share` of that with the largest packets and a little more than that of no merging.
    pub(super) fn within(&self, rate_bps: f64, share: f64) -> f64 {
        let (least_bps, most_bps) = (share * self.at_bps(self.k_max), HEAD_ROOM * self.at_bps(1));
        rate_bps.clamp(least_bps, most_bps.max(least_bps))
    }

    /// The rate to begin with.
    pub(super) fn most_bps(&self) -> f64 {
        HEAD_ROOM * self.at_bps(1)
    }

    /// Most fragments of a packet.
    pub(super) fn k_max(&self) -> u8 {
        self.k_max
    }

    /// Bits a second with k fragments a packet.
    // [Gokhale 2017: streams]
    pub(super) fn at_bps(&self, k: u8) -> f64 {
        let bytes = self.fragment_bytes + self.overhead_bytes / f64::from(k.max(1));
        bytes * 8e9 / self.period_ns.max(1) as f64
    }

    /// The least number of fragments that keeps to a rate, `k_max` if none does.
    pub(super) fn fragments(&self, rate_bps: f64) -> u8 {
        (1..self.k_max).find(|k| self.at_bps(*k) <= rate_bps).unwrap_or(self.k_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::MS;

    // [Gokhale 2017: streams]
    #[test]
    fn the_published_rates_and_the_k_that_a_rate_allows() {
        let mut rates = Rates::new(MS, 4);
        rates.sent(&Sent { generated_ns: 0, fragments: 4, payload_bytes: 280, wire_bytes: 347 });
        let kbps = [1, 2, 3, 4].map(|k| (rates.at_bps(k) / 10.0).round() / 100.0);
        assert_eq!(kbps, [1096.0, 828.0, 738.67, 694.0]);
        assert_eq!([2e6, 5e5].map(|r| rates.within(r, 1.0).round()), [1.2 * 1.096e6, 694e3]);
        assert_eq!([2e6, 1.096e6, 1.09e6, 8e5, 7e5, 6e5].map(|r| rates.fragments(r)), [1, 1, 2, 3, 4, 4]);
    }
}
