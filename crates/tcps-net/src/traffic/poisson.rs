//! Poisson arrivals of packets of constant (M/D/1) or exponential (M/M/1) size.

use super::{
    arrivals::{moment, spacing_ns, Arrivals, MakeSource},
    cbr::Packets,
};
use tcps_core::{
    param::{Draws, Entry, Params},
    params,
    seed::Stream,
    time::Time,
};

params! {
    /// Of sizes.
    pub struct Sizes {
        size: String = Choice(&["constant", "exponential"]), "constant", ANY, "distribution of the sizes of packets";
    }
}

/// In a scenario.
pub const ENTRY: Entry<MakeSource> = Entry {
    id: 1,
    name: "poisson",
    doc: "Poisson arrivals",
    params: &[Packets::TABLE, Sizes::TABLE],
    draws: Draws::Yes,
    make: |params, stream| {
        let Packets { rate_bps, packet_bytes } = Packets::read(params)?;
        let exponential = Sizes::read(params)?.size == "exponential";
        Ok(Box::new(Poisson::new(rate_bps, packet_bytes, exponential, stream)))
    },
};

/// A Poisson source.
pub struct Poisson {
    rate_bps: f64,
    mean_ns: f64,
    bytes: u32,
    exponential_size: bool,
    at_ns: f64,
    stream: Stream,
}

impl Poisson {
    /// Mean rate and mean size on the wire.
    pub fn new(rate_bps: f64, packet_bytes: u32, exponential_size: bool, stream: Stream) -> Self {
        let mean_ns = spacing_ns(packet_bytes, rate_bps);
        Self { rate_bps, mean_ns, bytes: packet_bytes, exponential_size, at_ns: 0.0, stream }
    }
}

impl Arrivals for Poisson {
    fn next(&mut self) -> Option<(Time, u32)> {
        if self.mean_ns.is_infinite() {
            return None;
        }
        self.at_ns += self.stream.exponential(self.mean_ns);
        let bytes = match self.exponential_size {
            true => (self.stream.exponential(f64::from(self.bytes)) + 0.5).max(1.0) as u32,
            false => self.bytes,
        };
        Some((moment(self.at_ns)?, bytes))
    }

    fn mean_rate_bps(&self) -> f64 {
        self.rate_bps
    }
}
