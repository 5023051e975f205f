//! Variable bit rate, uniform between two rates. [Gokhale 2017: dumbbell]

use super::{
    arrivals::{moment, spacing_ns, Arrivals, MakeSource},
    cbr::{Cbr, Packets},
};
use serde_json::Value;
use tcps_core::{
    param::{Draws, Entry, Fault, Params},
    params,
    seed::Stream,
    time::Time,
};

params! {
    /// Of what varies.
    pub struct Vary {
        spread: f64 = Share, "20 %", SHARE, "largest deviation of the rate from its mean, up and down";
        vary: String = Choice(&["constant", "per-packet", "piecewise", "size"]), "piecewise", ANY,
            "what varies. `constant`: nothing, so `spread` has no effect. `per-packet`: the rate, at each packet. \
             `piecewise`: the rate, at each new piece. `size`: the size of packets";
        piecewise_ns: Time = Ns, "100 ms", 1e3..=1e15, "length of a piece, for `vary = \"piecewise\"`";
    }
}

/// In a scenario.
pub const ENTRY: Entry<MakeSource> = Entry {
    id: 2,
    name: "vbr",
    doc: "variable bit rate, uniform about a mean",
    params: &[Packets::TABLE, Vary::TABLE],
    draws: Draws::Unless("vary", "constant"),
    make,
};

fn make(params: &Value, stream: Stream) -> Result<Box<dyn Arrivals>, Fault> {
    let Packets { rate_bps, packet_bytes: bytes } = Packets::read(params)?;
    let Vary { spread, vary, piecewise_ns } = Vary::read(params)?;
    let bps = (rate_bps * (1.0 - spread), rate_bps * (1.0 + spread));
    let mean_bps = (bps.0 + bps.1) / 2.0;
    Ok(match vary.as_str() {
        _ if mean_bps <= 0.0 => Box::new(Cbr::new(0.0, bytes)),
        "constant" => Box::new(Cbr::new(mean_bps, bytes)),
        "per-packet" => Box::new(PerPacket { bps, bytes, at_ns: 0.0, stream }),
        "size" => {
            let (beat, scale) = (Cbr::new(mean_bps, bytes), f64::from(bytes) / mean_bps);
            Box::new(Size { beat, scale, bps, stream })
        }
        _ => Box::new(Piecewise::new(bps, bytes, piecewise_ns as f64, stream)),
    })
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

    fn mean_rate_bps(&self) -> f64 {
        let (low, high) = self.bps;
        if high > low {
            (high - low) / libm::log(high / low)
        } else {
            high
        }
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

    fn mean_rate_bps(&self) -> f64 {
        (self.bps.0 + self.bps.1) / 2.0
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

    fn mean_rate_bps(&self) -> f64 {
        (self.bps.0 + self.bps.1) / 2.0
    }
}
