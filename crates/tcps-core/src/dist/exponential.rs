//! A smallest span and an exponential one.

use super::spans::{Spans, LENGTHS};
use crate::{
    param::{Draws, Entry, Make, Params},
    params,
    seed::Stream,
    time::Time,
};

params! {
    /// Exponential.
    pub struct Exponential {
        mean_ns: f64 = Ns, GIVEN, LENGTHS, "the mean of the exponential part";
        shift_ns: Time = Ns, "0 ms", LENGTHS, "the smallest span";
    }
}

/// In a scenario.
pub const ENTRY: Entry<Make<dyn Spans>> = Entry {
    id: 3,
    name: "exponential",
    doc: "a smallest span plus an exponentially distributed span",
    params: &[Exponential::TABLE],
    draws: Draws::Yes,
    make: |params| Ok(Box::new(Exponential::read(params)?)),
};

impl Spans for Exponential {
    fn next(&mut self, stream: &mut Stream) -> Time {
        self.shift_ns + stream.exponential(self.mean_ns) as Time
    }
}
