//! Constant bit rate: packet `n` comes at `n * 8 * bytes / rate`, computed from the start so that nothing drifts.

use super::arrivals::{moment, spacing_ns, Arrivals, MakeSource, RATE};
use tcps_core::{
    param::{Draws, Entry, Params},
    params,
    time::Time,
};

params! {
    /// Of packets of one size.
    pub struct Packets {
        rate_bps: f64 = Bps, GIVEN, RATE, "rate on the wire, in each direction or between each pair (for `poisson` and `vbr` the mean rate)";
        packet_bytes: u32 = Bytes, "500 B", 1.0..=65535.0, "size of a packet on the wire (the mean if sizes vary)";
    }
}

/// In a scenario.
pub const ENTRY: Entry<MakeSource> = Entry {
    id: 0,
    name: "cbr",
    doc: "constant bit rate",
    params: &[Packets::TABLE],
    draws: Draws::No,
    make: |params, _| {
        let Packets { rate_bps, packet_bytes } = Packets::read(params)?;
        Ok(Box::new(Cbr::new(rate_bps, packet_bytes)))
    },
};

/// A constant-bit-rate source.
pub struct Cbr {
    rate_bps: f64,
    spacing_ns: f64,
    bytes: u32,
    n: u64,
}

impl Cbr {
    /// Packets of `packet_bytes` at `rate_bps`, the first at once; none at rate 0.
    pub fn new(rate_bps: f64, packet_bytes: u32) -> Self {
        let n = if rate_bps > 0.0 { 0 } else { 1 };
        Self { rate_bps, spacing_ns: spacing_ns(packet_bytes, rate_bps), bytes: packet_bytes, n }
    }
}

impl Arrivals for Cbr {
    fn next(&mut self) -> Option<(Time, u32)> {
        let at = moment(self.n as f64 * self.spacing_ns)?;
        self.n += 1;
        Some((at, self.bytes))
    }

    fn mean_rate_bps(&self) -> f64 {
        self.rate_bps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cross traffic of the dumbbell: 50 bytes at 400 kbit/s land every millisecond exactly. [Gokhale 2017: dumbbell]
    #[test]
    fn fifty_bytes_at_400_kbps_land_every_millisecond() {
        let mut cbr = Cbr::new(400e3, 50);
        for n in 0..1_000_000 {
            assert_eq!(cbr.next(), Some((n * 1_000_000, 50)));
        }
    }

    #[test]
    fn an_uneven_spacing_does_not_drift() {
        let mut cbr = Cbr::new(3e6, 50); // every 133333.33 ns
        let last = (0..3_000_001).filter_map(|_| cbr.next()).last();
        assert_eq!(last, Some((400_000_000_000, 50)));
    }

    #[test]
    fn a_source_at_rate_zero_is_silent() {
        assert_eq!(Cbr::new(0.0, 50).next(), None);
    }
}
