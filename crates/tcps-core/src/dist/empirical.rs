//! Drawn from quantiles of measured spans: the inverse of the empirical distribution, linear between its points.

use super::spans::{Spans, LENGTHS};
use crate::{
    param::{Draws, Entry, Fault, Make, Params},
    params,
    seed::Stream,
    time::Time,
};

params! {
    /// Quantiles.
    pub struct Empirical {
        quantiles_ns: Vec<Time> = List(&Ns), GIVEN, LENGTHS, "spans at equally spaced probabilities from 0 to 1";
    }
}

/// In a scenario.
pub const ENTRY: Entry<Make<dyn Spans>> = Entry {
    id: 6,
    name: "empirical",
    doc: "drawn from quantiles, with linear interpolation",
    params: &[Empirical::TABLE],
    draws: Draws::Yes,
    make: |params| {
        let own = Empirical::read(params)?;
        let (q, key) = (&own.quantiles_ns, "quantiles_ns");
        if q.len() < 2 {
            return Err(Fault::new(key, format!("{} of them", q.len()), "two or more spans"));
        }
        match q.is_sorted() {
            true => Ok(Box::new(own)),
            false => Err(Fault::new(key, "quantiles out of order", "spans from the shortest to the longest")),
        }
    },
};

impl Spans for Empirical {
    fn next(&mut self, stream: &mut Stream) -> Time {
        let (q, u) = (&self.quantiles_ns, stream.unit());
        let last = q.len() - 1;
        let x = u * last as f64;
        let i = (x as usize).min(last);
        let next = q[(i + 1).min(last)];
        q[i] + ((next - q[i]) as f64 * (x - i as f64)) as Time
    }
}
