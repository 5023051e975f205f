//! Normal, cut at zero.

use super::spans::{Spans, LENGTHS};
use crate::{
    param::{Draws, Entry, Make, Params},
    params,
    seed::Stream,
    time::Time,
};

params! {
    /// Normal.
    pub struct Normal {
        mean_ns: f64 = Ns, GIVEN, LENGTHS, "the mean span";
        sd_ns: f64 = Ns, GIVEN, LENGTHS, "the standard deviation";
    }
}

/// In a scenario.
pub const ENTRY: Entry<Make<dyn Spans>> = Entry {
    id: 2,
    name: "normal",
    doc: "normal, cut at zero",
    params: &[Normal::TABLE],
    draws: Draws::Yes,
    make: |params| Ok(Box::new(Normal::read(params)?)),
};

impl Spans for Normal {
    fn next(&mut self, stream: &mut Stream) -> Time {
        (self.mean_ns + self.sd_ns * stream.normal()) as Time
    }
}
