//! Uniform between two spans.

use super::spans::{Spans, LENGTHS};
use crate::{
    param::{Draws, Entry, Fault, Make, Params},
    params,
    seed::Stream,
    time::Time,
};

params! {
    /// Uniform between two spans.
    pub struct Uniform {
        low_ns: Time = Ns, GIVEN, LENGTHS, "the smallest span";
        high_ns: Time = Ns, GIVEN, LENGTHS, "the largest span";
    }
}

/// In a scenario.
pub const ENTRY: Entry<Make<dyn Spans>> = Entry {
    id: 1,
    name: "uniform",
    doc: "uniform between two spans",
    params: &[Uniform::TABLE],
    draws: Draws::Yes,
    make: |params| {
        let Uniform { low_ns, high_ns } = Uniform::read(params)?;
        match low_ns <= high_ns {
            true => Ok(Box::new(Uniform { low_ns, high_ns })),
            false => Err(Fault::new("low_ns", format!("{low_ns} ns"), format!("at most high, {high_ns} ns"))),
        }
    },
};

impl Spans for Uniform {
    fn next(&mut self, stream: &mut Stream) -> Time {
        self.low_ns + (stream.unit() * (self.high_ns - self.low_ns) as f64) as Time
    }
}
