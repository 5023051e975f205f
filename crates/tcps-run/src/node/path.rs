//! The way of a sample through a node: entry point, steps, exit point, and on.

use super::{
    call::After,
    job::{coded, decoded, Job, Stage},
    Node,
};
use crate::{outside::Outside, plan::SinkPlan, sample_codec};
use std::cmp::Reverse;
use tcps_core::{
    record::{DropReason, Kind, Record, NONE},
    sample::HELD,
    time::Time,
};

/// Samples that may wait for a busy stage, as in a socket's buffer; more are dropped.
const MOST_WAITING: usize = 4096;

impl Node {
    /// Moves every job in `todo` as far as it goes.
    pub(super) fn run<O: Outside>(&mut self, now: Time, out: &mut O) {
        while let Some(job) = self.todo.pop_front() {
            self.advance(out.now(now), job, out);
        }
    }

    pub(super) fn advance<O: Outside>(&mut self, mut now: Time, mut job: Box<Job>, out: &mut O) {
        loop {
            match job.stage {
                Stage::Enter => match self.enter(now, job, out) {
                    Some(j) => job = j,
                    None => return,
                },
                Stage::Release => {
                    self.release(&mut job);
                    return self.recycle(job);
                }
                Stage::Next => {
                    job.step += 1;
                    job.stage = Stage::Call;
                }
                Stage::Call | Stage::Delay => {
                    let visit = self.flows[job.flow as usize].visits[job.visit as usize].as_ref();
                    if job.step as usize >= visit.map_or(0, |v| v.steps.len()) {
                        return self.leave(now, job, out);
                    }
                    let (left, after) = self.step(now, job, out);
                    match (left, after) {
                        (Some(j), After::Goes(t)) => (job, now) = (j, t),
                        _ => return,
                    }
                }
            }
        }
    }

    /// The entry point. `None`: the job is over or waits for its turn.
    pub(super) fn enter<O: Outside>(
        &mut self,
        now: Time,
        mut job: Box<Job>,
        out: &mut O,
    ) -> Option<Box<Job>> {
        let visit = self.flows[job.flow as usize].visits[job.visit as usize].as_mut()?;
        let (component, point, plain_first) =
            (visit.component, visit.entry, visit.first && visit.steps.is_empty());
        let kind = match (visit.first, visit.last) {
            (true, _) => Kind::Sent,
            (_, true) => Kind::Delivered,
            _ => Kind::Enter,
        };
        let point_shown = if plain_first { visit.exit } else { point };
        if !self.alive[component as usize] {
            self.drop_sample(now, &job.meta, component, DropReason::Dead, out);
            self.recycle(job);
            return None;
        }
        self.stamp(now, kind, point_shown, &job, out);
        self.remember(component, &mut job);
        self.show_sample(now, point, &mut job, out);
        self.check_echo(now, point, &mut job, out);
        job.stage = Stage::Call;
        let visit = self.flows[job.flow as usize].visits[job.visit as usize].as_mut()?;
        if visit.serial {
            if visit.busy && visit.waiting.len() >= MOST_WAITING {
                self.drop_sample(now, &job.meta, component, DropReason::Overload, out);
                self.recycle(job);
                return None;
            }
            if visit.busy {
                visit.waiting.push_back(job);
                return None;
            }
            visit.busy = true;
            job.holds = true;
        }
        Some(job)
    }

    /// The exit point, and on to the next component, the network or the sink.
    pub(super) fn leave<O: Outside>(&mut self, now: Time, mut job: Box<Job>, out: &mut O) {
        let Some(visit) = self.flows[job.flow as usize].visits[job.visit as usize].as_ref() else { return };
        let (component, exit, channel, last) = (visit.component, visit.exit, visit.channel, visit.last);
        let silent = visit.steps.is_empty() && (visit.first || visit.last);
        if !self.alive[component as usize] {
            self.drop_sample(now, &job.meta, component, DropReason::Dead, out);
            self.release(&mut job);
            return self.recycle(job);
        }
        if !silent {
            self.stamp(now, Kind::Exit, exit, &job, out);
        }
        self.show_sample(now, exit, &mut job, out);
        self.check_echo(now, exit, &mut job, out);
        let mut taken = now;
        if last {
            self.sink(now, &mut job, out);
        } else if channel == NONE {
            self.release(&mut job);
            job.visit += 1;
            (job.step, job.stage) = (0, Stage::Enter);
            self.todo.push_back(job);
            return;
        } else {
            taken = self.send(now, channel, &mut job, out);
        }
        if taken > now && self.flows[job.flow as usize].blocking_send {
            job.stage = Stage::Release;
            let id = self.park(job);
            self.order += 1;
            self.delayed.push(Reverse((taken, self.order, id)));
            return;
        }
        self.release(&mut job);
        self.recycle(job);
    }

    pub(super) fn sink<O: Outside>(&mut self, now: Time, job: &mut Job, out: &mut O) {
        let flow = &self.flows[job.flow as usize];
        let (codec, path_end) =
            (flow.codec, flow.visits[job.visit as usize].as_ref().map_or(NONE, |v| v.component));
        match flow.sink {
            SinkPlan::Count => {}
            SinkPlan::Robot => {
                decoded(codec, job);
                if let Some(r) = self.robots.iter_mut().find(|r| r.component == path_end) {
                    r.command(job.flow, &job.values);
                    if let Some(echo) = job.meta.echo.filter(|e| e.target == HELD | path_end) {
                        r.held.push((job.flow, echo));
                    }
                }
            }
            SinkPlan::Verify => {
                coded(codec, job);
                let got = crc32fast::hash(&job.bytes);
                let want = flow.expected.as_ref().map(|s| {
                    let (mut bytes, mut values) = (std::mem::take(&mut self.datagram), Vec::new());
                    if s.fill(codec, job.meta.index, &mut bytes, &mut values) {
                        sample_codec::encode(codec, &values, &mut bytes);
                    }
                    let crc = crc32fast::hash(&bytes);
                    self.datagram = bytes;
                    crc
                });
                let detail = (want == Some(got)) as u8;
                let size = job.bytes.len() as u32;
                let row = Record {
                    detail,
                    size,
                    index: job.meta.index,
                    flow: job.flow,
                    node: self.id,
                    point: path_end,
                    ..Record::new(now, Kind::Verified)
                };
                out.record(row);
            }
        }
    }

    /// Lets the next sample of a serial visit come, if this one held it up.
    pub(super) fn release(&mut self, job: &mut Job) {
        if !std::mem::take(&mut job.holds) {
            return;
        }
        if let Some(v) = self.flows[job.flow as usize].visits[job.visit as usize].as_mut() {
            v.busy = false;
            if let Some(mut next) = v.waiting.pop_front() {
                v.busy = true;
                next.holds = true;
                self.todo.push_back(next);
            }
        }
    }

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

    pub(super) fn unpark(&mut self, id: u32) -> Option<Box<Job>> {
        let job = self.parked.get_mut(id as usize).and_then(Option::take);
        if job.is_some() {
            self.free.push(id);
        }
        job
    }

    pub(super) fn recycle(&mut self, job: Box<Job>) {
        self.pool.push(job);
    }
}
