//! Gumbel (largest extreme value), cut at zero; the shape of blocked transfers (Al-Mouhamed).

use super::spans::{Spans, LENGTHS};
use crate::{
    param::{Draws, Entry, Make, Params},
    params,
    seed::Stream,
    time::Time,
};

params! {
    /// Gumbel.
    pub struct Gumbel {
        mode_ns: f64 = Ns, GIVEN, LENGTHS, "the most frequent span";
        scale_ns: f64 = Ns, GIVEN, SPAN, "the scale of the spread";
    }
}

/// In a scenario.
pub const ENTRY: Entry<Make<dyn Spans>> = Entry {
    id: 4,
    name: "gumbel",
    doc: "Gumbel (largest extreme value), cut at zero",
    params: &[Gumbel::TABLE],
    draws: Draws::Yes,
    make: |params| Ok(Box::new(Gumbel::read(params)?)),
};

impl Spans for Gumbel {
    fn next(&mut self, stream: &mut Stream) -> Time {
        (self.mode_ns - self.scale_ns * libm::log(-libm::log(1.0 - stream.unit()))) as Time
    }
}
