//! What a part of a node is handed when it works.

use super::{asides::Asides, due::Due, here::Here, job::Job, jobs::Jobs};
use crate::host::Host;
use tcps_core::time::Time;

/// The node that a part is at, the samples in it, who is called when, and the world around it.
pub(super) struct Context<'a, O> {
    pub(super) here: &'a Here,
    pub(super) jobs: &'a mut Jobs,
    pub(super) due: &'a mut Due,
    pub(super) asides: &'a mut Asides,
    pub(super) out: &'a mut O,
}

impl<O: Host> Context<'_, O> {
    /// Keeps the memory of a job that is over.
    pub(super) fn recycle(&mut self, mut job: Box<Job>) {
        self.jobs.unbuffer(&mut job);
        self.out.spare().keep(job);
    }
}

impl<O> Context<'_, O> {
    /// The time on the clock that stamps go by.
    pub(super) fn read(&self, now: Time) -> Time {
        self.here.clock.read(now)
    }
}
