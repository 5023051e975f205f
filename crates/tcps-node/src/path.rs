//! The way of a sample through a node: entry point, steps, exit point, and on.

use super::{
    call::After,
    emitter,
    job::{coded, decoded, Job, Stage},
    robot, Node,
};
use crate::{outside::Outside, sample_codec};
use std::cmp::Reverse;
use tcps_core::{
    record::{DropReason, Kind, Record, NONE},
    sample::HELD,
    time::Time,
};
use tcps_plan::SinkPlan;

/// Samples that may wait for a busy stage without a worker, as in a socket's buffer; more are dropped.
pub(super) const MOST_WAITING: usize = 4096;

impl Node {
    /// Moves every job in `todo` as far as it goes.
    pub(super) fn run<O: Outside>(&mut self, now: Time, out: &mut O) {
        while let Some(job) = self.todo.pop_front() {
            self.advance(out.now(now), job, out);
        }
    }

    /// Moves a job until it waits or is over.
    fn advance<O: Outside>(&mut self, mut now: Time, mut job: Box<Job>, out: &mut O) {
        loop {
            match job.stage {
                Stage::Enter => match self.enter(now, job, out) {
                    Some(j) => job = j,
                    None => return,
                },
                Stage::Begin => match self.begin(now, job, out) {
                    Some(j) => job = j,
                    None => return,
                },
                Stage::Release => return self.sent(now, job, out),
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
    fn enter<O: Outside>(&mut self, now: Time, mut job: Box<Job>, out: &mut O) -> Option<Box<Job>> {
        let visit = self.flows[job.flow as usize].visits[job.visit as usize].as_mut()?;
        let (component, point, plain_first) =
            (visit.component, visit.entry, visit.first && visit.steps.is_empty());
        let kind = match (visit.first, visit.last) {
            (true, _) => Kind::Sent,
            (_, true) => Kind::Delivered,
            _ => Kind::Enter,
        };
        let point_shown = if plain_first { visit.exit } else { point };
        let board = visit.board;
        job.life = self.life[component as usize];
        if !self.is_alive(component) {
            self.end(now, job, DropReason::Dead, out);
            return None;
        }
        if let Some(board) = board {
            self.ride(now, job, board, out);
            return None;
        }
        self.stamp(now, kind, point_shown, &job, out);
        self.remember(component, &mut job);
        self.show_sample(now, point, &mut job, out);
        self.check_echo(now, point, &mut job, out);
        job.stage = Stage::Begin;
        match self.display_of(&job) {
            Some(display) => {
                self.wait_for_display(display, now, job, out);
                None
            }
            None => Some(job),
        }
    }

    /// The first step. `None`: the job is over or waits for its turn.
    fn begin<O: Outside>(&mut self, now: Time, mut job: Box<Job>, out: &mut O) -> Option<Box<Job>> {
        job.stage = Stage::Call;
        let visit = self.flows[job.flow as usize].visits[job.visit as usize].as_mut()?;
        if visit.serial {
            if visit.busy && visit.waiting.len() >= visit.most_waiting {
                self.end(now, job, DropReason::Overload, out);
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

    /// The end of a visit. A blocking send holds up those that come behind it.
    fn leave<O: Outside>(&mut self, now: Time, job: Box<Job>, out: &mut O) {
        let (flow, at) = (job.flow, job.visit);
        let Some(visit) = self.flows[flow as usize].visits[at as usize].as_mut() else { return };
        if !visit.sending {
            self.pass_on(now, job, out);
            return self.send_waiting(now, flow, at, out);
        }
        if visit.unsent.len() >= MOST_WAITING {
            return self.end(now, job, DropReason::Overload, out);
        }
        visit.unsent.push_back(job);
    }

    /// A blocking send is over: the next sample may come, and what waited to be sent has its turn.
    fn sent<O: Outside>(&mut self, now: Time, mut job: Box<Job>, out: &mut O) {
        let (flow, at) = (job.flow, job.visit);
        self.release(&mut job);
        self.recycle(job);
        if let Some(visit) = self.flows[flow as usize].visits[at as usize].as_mut() {
            visit.sending = false;
        }
        self.send_waiting(now, flow, at, out);
    }

    fn send_waiting<O: Outside>(&mut self, now: Time, flow: u16, at: u16, out: &mut O) {
        while let Some(visit) = self.flows[flow as usize].visits[at as usize].as_mut().filter(|v| !v.sending)
        {
            let Some(next) = visit.unsent.pop_front() else { return };
            self.pass_on(now, next, out);
        }
    }

    /// The exit point, and on to the next component, the network or the sink.
    fn pass_on<O: Outside>(&mut self, now: Time, mut job: Box<Job>, out: &mut O) {
        let Some(visit) = self.flows[job.flow as usize].visits[job.visit as usize].as_ref() else { return };
        let (component, exit, last) = (visit.component, visit.exit, visit.last);
        let silent = visit.steps.is_empty() && (visit.first || visit.last && !visit.plays_out);
        if job.life != self.life[component as usize] {
            return self.end(now, job, DropReason::Dead, out);
        }
        if !silent {
            self.stamp(now, Kind::Exit, exit, &job, out);
        }
        self.show_sample(now, exit, &mut job, out);
        self.check_echo(now, exit, &mut job, out);
        if last {
            self.show_shown(now, exit, &job, out);
            self.sink(now, &mut job, out);
        }
        self.go_on(now, job, out);
    }

    /// Behind the exit point: to the next component or into the network, unless the last one has had it.
    pub(super) fn go_on<O: Outside>(&mut self, now: Time, mut job: Box<Job>, out: &mut O) {
        let Some(visit) = self.flows[job.flow as usize].visits[job.visit as usize].as_ref() else { return };
        let (channel, last) = (visit.channel, visit.last);
        let mut taken = now;
        if last {
            // It has come to its sink.
        } else if channel == NONE {
            self.release(&mut job);
            job.visit += 1;
            (job.step, job.stage, job.received_ns) = (0, Stage::Enter, None);
            return self.todo.push_back(job);
        } else {
            taken = self.send(now, channel, &mut job, out);
        }
        if taken > now && self.flows[job.flow as usize].blocking_send {
            return self.block(taken, job);
        }
        self.release(&mut job);
        self.recycle(job);
    }

    /// The job's send blocks until the first link has taken the datagram.
    fn block(&mut self, taken: Time, mut job: Box<Job>) {
        if let Some(visit) = self.flows[job.flow as usize].visits[job.visit as usize].as_mut() {
            visit.sending = true;
        }
        job.stage = Stage::Release;
        let id = self.park(job);
        self.order += 1;
        self.delayed.push(Reverse((taken, self.order, id)));
    }

    /// A sample ends at its component.
    pub(super) fn end<O: Outside>(&mut self, now: Time, mut job: Box<Job>, why: DropReason, out: &mut O) {
        let visit = self.flows[job.flow as usize].visits[job.visit as usize].as_ref();
        let component = visit.map_or(NONE, |v| v.component);
        self.drop_sample(now, &job.meta, component, why, out);
        self.release(&mut job);
        self.recycle(job);
    }

    /// A sample ends here on purpose: a hook has kept it back.
    pub(super) fn suppress<O: Outside>(&mut self, now: Time, mut job: Box<Job>, out: &mut O) {
        let visit = self.flows[job.flow as usize].visits[job.visit as usize].as_ref();
        let point = visit.map_or(NONE, |v| v.component);
        let (index, flow, node) = (job.meta.index, job.flow, self.id);
        out.record(Record { index, flow, point, node, ..Record::new(now, Kind::Suppressed) });
        self.release(&mut job);
        self.recycle(job);
    }

    /// Hands a sample to the sink of its flow.
    fn sink<O: Outside>(&mut self, now: Time, job: &mut Job, out: &mut O) {
        let flow = &self.flows[job.flow as usize];
        let path_end = flow.visits[job.visit as usize].as_ref().map_or(NONE, |v| v.component);
        match flow.sink {
            SinkPlan::Count => {}
            SinkPlan::Robot => self.obey(now, path_end, job, out),
            SinkPlan::Verify => self.verify(now, path_end, job, out),
        }
    }

    /// Commands a robot.
    fn obey<O: Outside>(&mut self, now: Time, component: u16, job: &mut Job, out: &mut O) {
        let flow = &self.flows[job.flow as usize];
        decoded(flow.codec, job);
        let Some(r) = robot::of(&self.robots, component).map(|i| &mut self.robots[i]) else { return };
        r.command(now, job.flow, flow.period_ns, flow.authority, &job.values);
        let echo = job.meta.echo.filter(|e| e.target == HELD | component);
        if let Some(old) = echo.and_then(|e| r.hold(job.flow, e)) {
            self.echo_superseded(now, job.flow, job.visit, old, out);
        }
    }

    /// Compares a sample's checksum with that of the source's sample.
    fn verify<O: Outside>(&mut self, now: Time, component: u16, job: &mut Job, out: &mut O) {
        let flow = &self.flows[job.flow as usize];
        coded(flow.codec, job);
        let want = flow.expected.as_ref().map(|s| {
            let (mut bytes, mut values) = (std::mem::take(&mut self.datagram), Vec::new());
            if s.fill(flow.codec, job.meta.index, &mut bytes, &mut values) {
                sample_codec::encode(flow.codec, &values, &mut bytes);
            }
            let crc = crc32fast::hash(&bytes);
            self.datagram = bytes;
            crc
        });
        let row = Record {
            detail: u8::from(want == Some(crc32fast::hash(&job.bytes))),
            size: job.bytes.len() as u32,
            index: job.meta.index,
            flow: job.flow,
            node: self.id,
            point: component,
            ..Record::new(now, Kind::Verified)
        };
        out.record(row);
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

    /// Keeps the memory of a job that is over.
    pub(super) fn recycle(&mut self, mut job: Box<Job>) {
        if std::mem::take(&mut job.buffered) {
            if let Some(i) = emitter::of(&self.emitters, job.flow) {
                let e = &mut self.emitters[i];
                e.buffers.0 = e.buffers.0.saturating_sub(1);
            }
        }
        self.pool.push(job);
    }
}
