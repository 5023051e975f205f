//! Samples inside a node: those that go on, those that are asked for by number, those that wait for a moment.

use super::{job::Job, sparse::Sparse};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};
use tcps_core::{
    ids::FlowId,
    time::{Time, NEVER},
};

/// All samples inside a node that no stage or queue of a visit holds.
#[derive(Default)]
pub(super) struct Jobs {
    todo: VecDeque<Box<Job>>,
    parked: Vec<Option<Box<Job>>>,
    free: Vec<u32>,
    delayed: BinaryHeap<Reverse<(Time, u64, u32)>>,
    order: u64,
    /// Samples that have not left the node, of sources here that have buffers for so many only.
    buffered: Sparse<FlowId, u32>,
}

impl Jobs {
    /// None; these sources have buffers for so many.
    pub(super) fn new(sources: impl Iterator<Item = FlowId>) -> Self {
        Self { buffered: sources.map(|flow| (flow, 0)).collect(), ..Self::default() }
    }

    /// A job goes on.
    pub(super) fn go(&mut self, job: Box<Job>) {
        self.todo.push_back(job);
    }

    /// The next one that goes on.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Box<Job>> {
        self.todo.pop_front()
    }

    /// Keeps a job until it is asked for by number.
    pub(super) fn park(&mut self, job: Box<Job>) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self.parked[id as usize] = Some(job);
                id
            }
            None => {
                self.parked.push(Some(job));
                self.parked.len() as u32 - 1
            }
        }
    }

    /// The job with this number.
    pub(super) fn unpark(&mut self, id: u32) -> Option<Box<Job>> {
        let job = self.parked.get_mut(id as usize).and_then(Option::take);
        if job.is_some() {
            self.free.push(id);
        }
        job
    }

    /// Keeps a job until a moment.
    pub(super) fn delay(&mut self, until: Time, job: Box<Job>) {
        let id = self.park(job);
        self.order += 1;
        self.delayed.push(Reverse((until, self.order, id)));
    }

    /// When the next of these is to go on.
    pub(super) fn next_delayed(&self) -> Time {
        self.delayed.peek().map_or(NEVER, |Reverse((t, ..))| *t)
    }

    /// Lets those go on whose moment has come.
    pub(super) fn wake(&mut self, now: Time) {
        while self.next_delayed() <= now {
            let delayed = self.delayed.pop();
            if let Some(job) = delayed.and_then(|Reverse((_, _, id))| self.unpark(id)) {
                self.go(job);
            }
        }
    }

    /// Samples of a source here that have not left the node, if that is counted.
    pub(super) fn buffered(&self, flow: FlowId) -> u32 {
        self.buffered.get(flow).copied().unwrap_or(0)
    }

    /// A job takes one of the buffers of its source, if these are counted.
    pub(super) fn buffer(&mut self, job: &mut Job) {
        if let Some(taken) = self.buffered.get_mut(job.flow) {
            *taken += 1;
            job.buffered = true;
        }
    }

    /// A job that is over gives back the buffer of its source.
    pub(super) fn unbuffer(&mut self, job: &mut Job) {
        if std::mem::take(&mut job.buffered) {
            if let Some(taken) = self.buffered.get_mut(job.flow) {
                *taken = taken.saturating_sub(1);
            }
        }
    }
}
