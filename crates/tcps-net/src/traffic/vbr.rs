//! Variable bit rate, uniform between two rates. [Gokhale 2017: dumbbell]

use super::{cbr::Cbr, moment, spacing_ns, Arrivals};
use tcps_core::{seed::Stream, time::Time};
use tcps_plan::net::VbrModel;

/// The source for what varies.
pub fn build(bps: (f64, f64), packet_bytes: u32, vary: &VbrModel, stream: Stream) -> Box<dyn Arrivals> {
    let mean_bps = (bps.0 + bps.1) / 2.0;
    match vary {
        _ if mean_bps <= 0.0 => Box::new(Cbr::new(0.0, packet_bytes)),
        VbrModel::Constant => Box::new(Cbr::new(mean_bps, packet_bytes)),
        VbrModel::PerPacket => Box::new(PerPacket { bps, bytes: packet_bytes, at_ns: 0.0, stream }),
        VbrModel::Piecewise { period_ns } => {
            Box::new(Piecewise::new(bps, packet_bytes, *period_ns as f64, stream))
        }
        VbrModel::Size => Box::new(Size {
            beat: Cbr::new(mean_bps, packet_bytes),
            scale: f64::from(packet_bytes) / mean_bps,
            bps,
            stream,
        }),
    }
}

/// The gap after each packet is that of a rate drawn for it. The long-run rate is the harmonic mean
/// `(high - low) / ln(high / low)`, a little below the middle.
struct PerPacket {
    bps: (f64, f64),
    bytes: u32,
    at_ns: f64,
    stream: Stream,
}

impl Arrivals for PerPacket {
    fn next(&mut self) -> Option<(Time, u32)> {
        let at = moment(self.at_ns)?;
        self.at_ns += spacing_ns(self.bytes, self.stream.uniform(self.bps.0, self.bps.1));
        Some((at, self.bytes))
    }
}

/// The rate holds for a period; a packet comes whenever its bits have accumulated, across changes of the rate.
struct Piecewise {
    bps: (f64, f64),
    bytes: u32,
    period_ns: f64,
    at_ns: f64,
    rate_bps: f64,
    pieces: u64,
    stream: Stream,
}

impl Piecewise {
    fn new(bps: (f64, f64), bytes: u32, period_ns: f64, mut stream: Stream) -> Self {
        let rate_bps = stream.uniform(bps.0, bps.1);
        Self { bps, bytes, period_ns, at_ns: 0.0, rate_bps, pieces: 1, stream }
    }

    /// Moves to the moment at which the next packet is complete.
    fn accumulate(&mut self) {
        let mut bits = f64::from(self.bytes) * 8.0;
        loop {
            let end_ns = self.pieces as f64 * self.period_ns;
            let room = self.rate_bps * (end_ns - self.at_ns) / 1e9;
            if bits <= room {
                self.at_ns += bits * 1e9 / self.rate_bps;
                return;
            }
            bits -= room;
            self.at_ns = end_ns;
            self.pieces += 1;
            self.rate_bps = self.stream.uniform(self.bps.0, self.bps.1);
        }
    }
}

impl Arrivals for Piecewise {
    fn next(&mut self) -> Option<(Time, u32)> {
        let at = moment(self.at_ns)?;
        self.accumulate();
        Some((at, self.bytes))
    }
}

/// Packets at a constant spacing whose size makes up the drawn rate.
struct Size {
    beat: Cbr,
    scale: f64,
    bps: (f64, f64),
    stream: Stream,
}

impl Arrivals for Size {
    fn next(&mut self) -> Option<(Time, u32)> {
        let (at, _) = self.beat.next()?;
        let bytes = self.stream.uniform(self.bps.0, self.bps.1) * self.scale + 0.5;
        Some((at, bytes.max(1.0) as u32))
    }
}
