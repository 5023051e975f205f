//! What is told of one flow.

use super::{
    fit::Fits,
    jitter::{Jitters, MeanMax},
    order::Reordering,
    path::{PathReport, PointAges},
    shown::ShownReport,
    tally::Distribution,
};
use serde::Serialize;

/// Packets of a flow dropped at a place for a reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// Link or component.
    pub at: String,
    /// Why.
    pub reason: &'static str,
    /// Packets.
    pub packets: u64,
}

/// Frames compared with their checksum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// As sent.
    pub good: u64,
    /// Not as sent.
    pub bad: u64,
}

/// Quantiles at `p` of the analysis.
#[derive(Debug, Serialize)]
pub struct FlowCdf {
    /// Of the delay, ns.
    pub delay_ns: Vec<f64>,
    /// Of the time between packets, ns.
    pub interarrival_ns: Vec<f64>,
}

/// What a flow did.
#[derive(Debug, Serialize)]
pub struct FlowReport {
    /// Its name.
    pub name: String,
    /// Samples sent after the warm-up.
    pub sent: u64,
    /// Of these, delivered (each once).
    pub delivered: u64,
    /// Delivered beside them: samples of a periodic stage with nothing new in them. They count for the age of data alone.
    pub repeated: u64,
    /// Sent early enough that their fate is known.
    pub judged: u64,
    /// Of these, neither delivered nor given up on purpose.
    pub lost: u64,
    /// `lost / judged`.
    pub loss: f64,
    /// Sent within the grace time and not delivered by the end.
    pub in_flight: u64,
    /// Copies: delivered again, or recognised and dropped by an endpoint.
    pub duplicated: u64,
    /// Of these, dropped by an endpoint.
    pub duplicates_dropped: u64,
    /// Replaced on purpose by a periodic stage.
    pub superseded: u64,
    /// Kept back on purpose by a sampler or an endpoint.
    pub suppressed: u64,
    /// Components whose periodic stage makes new samples of old ones: `lost` adds what was lost before and after.
    pub resampled_at: Vec<String>,
    /// Deliveries so late that the sample had already been counted as lost.
    pub beyond_window: u64,
    /// Delivered with an origin before the run or in the future: they have no delay.
    pub undated: u64,
    /// An attacker's samples that came to the sink, and samples that a periodic stage made of them: no samples of the flow.
    pub forged: u64,
    /// Order of arrival.
    pub reordering: Reordering,
    /// Packets dropped on the way.
    pub drops: Vec<Drops>,
    /// One-way delay, ns.
    pub delay_ns: Option<Distribution>,
    /// Jitters.
    pub jitter: Jitters,
    /// Delay above the smallest delay, ns.
    pub pdv_ns: Option<Distribution>,
    /// Ratio of signal to noise of what is displayed, if values were recorded at source and sink.
    pub snr_db: Option<f64>,
    /// Delay of a sample minus that of the one sent before it, ns.
    pub ipdv_ns: Option<Distribution>,
    /// Time between packets, ns.
    pub interarrival_ns: Option<Distribution>,
    /// Laws fitted to it.
    pub interarrival_fits: Option<Fits>,
    /// Age of data over time, ns.
    pub age_ns: Option<MeanMax>,
    /// Payload delivered.
    pub payload_bytes: u64,
    /// Its rate while the flow ran.
    pub rate_bps: f64,
    /// Checksums.
    pub verified: Verified,
    /// What playout did, where the flow has one.
    pub playout: Option<ShownReport>,
    /// Ages at the echo points.
    pub points: Vec<PointAges>,
    /// Where the time went.
    pub path: PathReport,
    /// Cumulative curves.
    pub cdf: FlowCdf,
}
