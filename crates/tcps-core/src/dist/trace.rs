//! A measured trace, replayed in order and repeated.

use super::spans::{Spans, LENGTHS};
use crate::{
    param::{Draws, Entry, Fault, Make, Params},
    params,
    seed::Stream,
    time::Time,
};

params! {
    /// A trace.
    pub struct Given {
        spans_ns: Vec<Time> = List(&Ns), GIVEN, LENGTHS, "spans in their order";
    }
}

/// In a scenario.
pub const ENTRY: Entry<Make<dyn Spans>> = Entry {
    id: 7,
    name: "trace",
    doc: "measured spans, replayed in order and repeated",
    params: &[Given::TABLE],
    draws: Draws::No,
    make: |params| {
        let Given { spans_ns } = Given::read(params)?;
        match spans_ns.is_empty() {
            true => Err(Fault::new("spans_ns", "no span", "one or more")),
            false => Ok(Box::new(Trace { spans_ns, position: 0 })),
        }
    },
};

#[derive(Debug, Clone)]
struct Trace {
    spans_ns: Vec<Time>,
    position: usize,
}

impl Spans for Trace {
    fn next(&mut self, _stream: &mut Stream) -> Time {
        let span = self.spans_ns[self.position];
        self.position = if self.position + 1 < self.spans_ns.len() { self.position + 1 } else { 0 };
        span
    }
}
