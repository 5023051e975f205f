//! What a node asks of its world; each driver answers in its own way.

use crate::job::Job;
use tcps_core::{
    endpoint::Transmit,
    hook::Verdict,
    ids::{ChannelId, FlowId, NodeId},
    record::Record,
    sample::Meta,
    split::Parts,
    time::Time,
};

/// Whether work that occupies a core is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// It is over; this is the time now.
    Done(Time),
    /// The driver will call `Node::resume` with the job.
    Later,
}

/// Samples that are over, whose memory the next one takes: nodes of one driver share it, so that it stays in the processor's caches.
#[derive(Debug, Default)]
pub struct Spare {
    #[expect(clippy::vec_box, reason = "jobs move between places; a box moves as one pointer")]
    jobs: Vec<Box<Job>>,
    /// What endpoints write: one for all nodes of a driver, so that it stays in fast memory.
    pub(super) datagram: Vec<u8>,
}

impl Spare {
    /// A job that is over or new.
    pub(super) fn take(&mut self) -> Box<Job> {
        self.jobs.pop().unwrap_or_else(Job::empty)
    }

    /// Keeps the memory of a job that is over.
    pub(super) fn keep(&mut self, job: Box<Job>) {
        self.jobs.push(job);
    }
}

/// The world around a node.
pub trait Host {
    /// Sends a datagram of a channel, which has a code point, to the node at its other side; tells when the first link has
    /// taken it.
    fn transmit(
        &mut self,
        now: Time,
        channel: ChannelId,
        to: NodeId,
        bytes: &[u8],
        datagram: &Transmit,
    ) -> Time;
    /// Sends a datagram that belongs to no channel: an echo's answer, a clock exchange.
    fn aside(&mut self, now: Time, to: NodeId, bytes: &[u8]);
    /// What its nodes have to spare.
    fn spare(&mut self) -> &mut Spare;
    /// Writes a row.
    fn record(&mut self, row: Record);
    /// Occupies a core for `cost` from `started` on (a real driver has already used part of it).
    fn work(&mut self, started: Started, job: u32, cost: Time, priority: i32) -> Work;
    /// Stamps taken before a hook is called.
    fn start(&mut self, now: Time) -> Started;
    /// Processor time used since `started`; 0 in virtual time, where only modelled costs exist.
    fn used(&mut self, started: Started) -> Time;
    /// Gives a sample to a worker, whose outcome comes back through `Node::finished`; gives it back if too many wait for
    /// it. A world without workers leaves hooks where they are and is never asked.
    fn delegate(&mut self, _worker: u16, task: Task) -> Result<(), Task> {
        Err(task)
    }
    /// Hands a sample to the line of a board of the node: whether it was taken. The board's answer comes back through
    /// `Node::hear`. A world without lines says nothing, and the node models line and board.
    fn board(&mut self, _now: Time, _board: usize, _ride: &BoardRequest<'_>) -> Option<bool> {
        None
    }
    /// A sample goes into a channel: where its time went so far.
    fn hand_over(&mut self, _channel: ChannelId, _meta: &Meta, _parts: &Parts) {}
    /// A sample comes out of a channel, complete with a datagram that was received then, by a clock of the node without steps.
    fn delivered(&mut self, _now: Time, _channel: ChannelId, _meta: &Meta, _received_ns: Time) {}
    /// A sample comes out of a channel: where its time went until now goes into `parts`. `at_once` tells that the datagram
    /// which was just received has completed it.
    fn take_over(&mut self, now: Time, _channel: ChannelId, _meta: &Meta, _at_once: bool, parts: &mut Parts) {
        parts.forget(now);
    }
    /// A sample has come to its sink; its age by the clocks of nodes is wrong by `clock`.
    fn has_come(&mut self, _flow: FlowId, _parts: &Parts, _clock: Time) {}
    /// The time now; in virtual time it does not move while a node works.
    fn now(&self, now: Time) -> Time {
        now
    }
}

/// A sample for a board.
#[derive(Debug)]
pub struct BoardRequest<'a> {
    /// The number under which it is parked.
    pub job: u32,
    /// The board's channel.
    pub channel: u8,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// What comes of a board.
#[derive(Debug, PartialEq)]
pub enum BoardEvent {
    /// A sample is through.
    Answered {
        /// The number under which it is parked.
        job: u32,
        /// When it entered the board, in run time.
        entry_ns: Time,
        /// When it left it.
        exit_ns: Time,
        /// Its bytes, as the board gives them out.
        bytes: Vec<u8>,
    },
    /// Line or board have lost a sample.
    Lost {
        /// The number under which it is parked.
        job: u32,
    },
    /// The watchdog has gone to the safe output: these values, 4 bytes each.
    Safe(Vec<u8>),
}

/// A sample for the worker of a stage.
#[derive(Debug)]
pub struct Task {
    /// The number under which it is parked.
    pub job: u32,
    /// The time at which it is given, on the node's clock.
    pub now_ns: Time,
    /// When the sample was made.
    pub origin_ns: Time,
    /// Its number.
    pub index: u32,
    /// Its flow.
    pub flow: FlowId,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The newest values of other flows at its component.
    pub other: Vec<f64>,
    /// What the transport on the way out allows the flow, in bit/s; negative where it does not say.
    pub allowed_bps: f64,
    /// Processor time that it takes at least, if that is said.
    pub cost_ns: Option<Time>,
}

/// What a worker has made of a sample.
#[derive(Debug)]
pub struct Outcome {
    /// The number of its task.
    pub job: u32,
    /// What the hook decided.
    pub verdict: Verdict,
    /// The values that it wrote.
    pub values: Vec<f64>,
    /// The bytes that it wrote.
    pub bytes: Vec<u8>,
    /// Processor time of the call.
    pub used_ns: Time,
    /// That of its task.
    pub cost_ns: Option<Time>,
}

/// When a hook was started.
#[derive(Debug, Clone, Copy, Default)]
pub struct Started {
    /// Run time.
    pub at: Time,
    /// Processor time of the thread.
    pub processor: Time,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of pictures would else ask the system for the room of each.
    #[test]
    fn the_next_sample_takes_the_memory_of_one_that_is_over() {
        let mut spare = Spare::default();
        let mut picture = spare.take();
        picture.bytes = Vec::with_capacity(100_000);
        spare.keep(picture);
        assert!(spare.take().bytes.capacity() >= 100_000);
        assert!(spare.take().bytes.capacity() < 100_000, "another sample has memory of its own");
    }
}
