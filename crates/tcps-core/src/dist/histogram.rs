//! Draws a bin of a measured histogram by its count, and uniformly within it.

use super::spans::{Spans, LENGTHS};
use crate::{
    param::{Draws, Entry, Fault, Make, Params},
    params,
    seed::Stream,
    time::Time,
};

params! {
    /// Edges of the bins.
    pub struct Edges {
        edges_ns: Vec<Time> = List(&Ns), GIVEN, LENGTHS, "starts of all bins in rising order, then the end of the last bin";
    }
}
params! {
    /// What was counted.
    pub struct Counts {
        counts: Vec<u32> = List(&Count), GIVEN, 0.0..=4_294_967_295.0, "number of spans in each bin, one number fewer than `edges`";
    }
}

/// In a scenario.
pub const ENTRY: Entry<Make<dyn Spans>> = Entry {
    id: 8,
    name: "histogram",
    doc: "drawn from a measured histogram, uniform within a bin",
    params: &[Edges::TABLE, Counts::TABLE],
    draws: Draws::Yes,
    make: |params| {
        let (Edges { edges_ns }, Counts { counts }) = (Edges::read(params)?, Counts::read(params)?);
        let bins = edges_ns.len().saturating_sub(1);
        if !edges_ns.is_sorted_by(|a, b| a < b) {
            return Err(Fault::new("edges_ns", "edges that do not rise", "spans, each above the one before"));
        }
        if bins == 0 || counts.len() != bins {
            let found = format!("{} for {bins} bin{}", counts.len(), if bins == 1 { "" } else { "s" });
            return Err(Fault::new("counts", found, "one count a bin, which is one fewer than edges"));
        }
        let mut sum = 0;
        let cumulated: Vec<_> = counts.iter().map(|&c| (sum += u64::from(c), sum).1).collect();
        match sum {
            0 => Err(Fault::new("counts", "nothing counted", "a span in one bin or more")),
            _ => Ok(Box::new(Histogram { edges_ns, cumulated })),
        }
    },
};

#[derive(Debug, Clone)]
struct Histogram {
    edges_ns: Vec<Time>,
    /// How many spans are in each bin and those before it.
    cumulated: Vec<u64>,
}

impl Spans for Histogram {
    fn next(&mut self, stream: &mut Stream) -> Time {
        let drawn = stream.below(self.cumulated[self.cumulated.len() - 1]);
        let bin = self.cumulated.partition_point(|&c| c <= drawn);
        let (low, high) = (self.edges_ns[bin], self.edges_ns[bin + 1]);
        low + (stream.unit() * (high - low) as f64) as Time
    }
}
