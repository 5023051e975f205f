//! Pareto.

use super::spans::Spans;
use crate::{
    param::{Draws, Entry, Make, Params},
    params,
    seed::Stream,
    time::Time,
};

params! {
    /// Pareto.
    pub struct Pareto {
        scale_ns: f64 = Ns, GIVEN, SPAN, "the smallest span";
        shape: f64 = Number, GIVEN, POSITIVE, "the tail index, above 1 for a finite mean";
    }
}

/// In a scenario.
pub const ENTRY: Entry<Make<dyn Spans>> = Entry {
    id: 5,
    name: "pareto",
    doc: "Pareto with a smallest span and a tail index",
    params: &[Pareto::TABLE],
    draws: Draws::Yes,
    make: |params| Ok(Box::new(Pareto::read(params)?)),
};

impl Spans for Pareto {
    fn next(&mut self, stream: &mut Stream) -> Time {
        (self.scale_ns * libm::pow(1.0 - stream.unit(), -1.0 / self.shape)) as Time
    }
}
