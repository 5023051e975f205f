//! A sample inside a node, and where it stands.

use crate::sample_codec;
use tcps_core::{
    ids::FlowId,
    sample::Meta,
    split::{Part, Parts},
    time::Time,
};
use tcps_plan::Codec;

/// A sample inside a node, on its way along the stages of a visit.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) flow: FlowId,
    pub(super) visit: u16,
    pub(super) step: u16,
    pub(super) stage: Stage,
    pub(super) meta: Meta,
    /// How its values become bytes.
    pub(super) codec: Codec,
    /// Coded sample; valid if `coded`.
    pub(super) bytes: Vec<u8>,
    /// Decoded sample; valid if `decoded`.
    pub(super) values: Vec<f64>,
    pub(super) coded: bool,
    pub(super) decoded: bool,
    /// It holds up the next sample of its visit.
    pub(super) holds: bool,
    /// It takes one of the buffers of its source.
    pub(super) buffered: bool,
    /// Where its time went.
    pub(super) parts: Parts,
    /// What it had waited and worked when it entered its component.
    pub(super) before: [Time; 2],
    /// What its present stage costs.
    pub(super) cost_ns: Time,
    /// Life of the component that it entered.
    pub(super) life: u32,
    /// When the kernel had its last byte, on the node's clock, if the transport gave it out at once.
    pub(super) received_ns: Option<Time>,
}

impl Job {
    pub(super) fn empty() -> Box<Self> {
        let meta = Meta { flow: FlowId(0), index: 0, origin_ns: 0, echo: None };
        let (bytes, values) = (Vec::with_capacity(256), Vec::with_capacity(16));
        let (coded, decoded, holds) = (false, false, false);
        Box::new(Self {
            flow: FlowId(0),
            visit: 0,
            step: 0,
            stage: Stage::Enter,
            meta,
            codec: Codec::Raw,
            bytes,
            values,
            coded,
            decoded,
            holds,
            buffered: false,
            parts: Parts::NONE,
            before: [0; 2],
            cost_ns: 0,
            life: 0,
            received_ns: None,
        })
    }
}

impl Job {
    /// What it has waited and worked.
    #[inline]
    pub(super) fn at_components(&self) -> [Time; 2] {
        [self.parts.of(Part::Waiting), self.parts.of(Part::Working)]
    }

    /// The core time of its stage is over: what that did not need, it waited for a core. Without a cost the stage had it all.
    pub(super) fn worked(&mut self, now: Time) {
        let took = now - self.parts.since;
        let cost = std::mem::take(&mut self.cost_ns);
        let worked = if cost > 0 { cost.min(took) } else { took };
        self.parts.take(Part::Waiting, took - worked);
        self.parts.spend(Part::Working, now);
    }
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Before the entry point of its visit.
    Enter,
    /// Behind the entry point, and playout has its turn over.
    Begin,
    /// Before the code of its step.
    Call,
    /// The step's core time is over; its delay comes next.
    Delay,
    /// The step is over.
    Next,
    /// The visit is over and the datagram has left: the next sample may come.
    Release,
}

/// Makes its bytes valid.
pub(super) fn coded(job: &mut Job) {
    if !job.coded {
        sample_codec::encode(job.codec, &job.values, &mut job.bytes);
        job.coded = true;
    }
}

/// Makes its values valid.
pub(super) fn decoded(job: &mut Job) {
    if !job.decoded {
        sample_codec::decode(job.codec, &job.bytes, &mut job.values);
        job.decoded = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stage without a cost, as on sockets, worked all the time; one with a cost waited for its core beyond it.
    #[test]
    fn what_a_stage_did_not_work_it_waited() {
        for (cost_ns, waited, worked) in [(0, 0, 500), (300, 200, 300), (500, 0, 500), (900, 0, 500)] {
            let mut job = Job::empty();
            (job.parts, job.cost_ns) = (Parts::new(1000), cost_ns);
            job.worked(1500);
            assert_eq!(job.at_components(), [waited, worked], "{cost_ns}");
            assert_eq!((job.cost_ns, job.parts.since), (0, 1500));
        }
    }
}
