//! Always the same span.

use super::spans::{Spans, LENGTHS};
use crate::{
    param::{Draws, Entry, Make, Params},
    params,
    seed::Stream,
    time::Time,
};

params! {
    /// Always the same span.
    pub struct Constant {
        span_ns: Time = Ns, GIVEN, LENGTHS, "the span (a plain time means the same)";
    }
}

/// In a scenario.
pub const ENTRY: Entry<Make<dyn Spans>> = Entry {
    id: 0,
    name: "constant",
    doc: "always the same",
    params: &[Constant::TABLE],
    draws: Draws::No,
    make: |params| Ok(Box::new(Constant::read(params)?)),
};

impl Spans for Constant {
    fn next(&mut self, _stream: &mut Stream) -> Time {
        self.span_ns
    }
}
