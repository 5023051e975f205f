//! The way of a sample through a node: entry point, steps, exit point, and on.

use super::{
    parts::{Job, Stage, StepStats},
    Node,
};
use crate::{
    outside::{Outside, Started, Work},
    plan::{Codec, Direction, Level, SinkPlan, StepKind},
    sample_codec,
    snr::Log,
};
use std::cmp::Reverse;
use tcps_core::{
    endpoint::{Input, Output},
    hook::{HookIn, HookOut, Verdict},
    record::{DropReason, Kind, Record, NONE},
    sample::{Echo, EchoReply, Meta, PointId, HELD},
    time::{Time, MS, NEVER},
};
use tcps_wire::reply;

/// A call of a hook that stood still for longer marks the run as disturbed.
const STALL_NS: Time = MS;

/// Samples that may wait for a busy stage, as in a socket's buffer; more are dropped.
const MOST_WAITING: usize = 4096;

/// What becomes of a job after a step.
enum After {
    /// It goes on at once.
    Goes(Time),
    /// It waits for a core, a delay or its turn, or it is over.
    Waits,
}

impl Default for StepStats {
    fn default() -> Self {
        Self { calls: 0, failures: 0, error: None, cost_ns: super::parts::histogram() }
    }
}

impl Node {
    /// Moves every job in `todo` as far as it goes.
    pub(super) fn run<O: Outside>(&mut self, now: Time, out: &mut O) {
        while let Some(job) = self.todo.pop_front() {
            self.advance(out.now(now), job, out);
        }
    }

    fn advance<O: Outside>(&mut self, mut now: Time, mut job: Box<Job>, out: &mut O) {
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
        if !self.alive[component as usize] {
            self.drop_sample(now, &job.meta, component, DropReason::Dead, out);
            self.recycle(job);
            return None;
        }
        self.stamp(now, kind, point_shown, &job, out);
        self.remember(component, &mut job);
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

    /// One micro-step: the code of a step with its core time, or its delay.
    fn step<O: Outside>(&mut self, now: Time, mut job: Box<Job>, out: &mut O) -> (Option<Box<Job>>, After) {
        if job.stage == Stage::Call {
            let visit = self.flows[job.flow as usize].visits[job.visit as usize].as_mut();
            let periodic = visit.and_then(|v| v.steps[job.step as usize].periodic.as_mut());
            if let Some(p) = periodic {
                if p.next == NEVER {
                    p.next = now;
                }
                p.origin_ns = Some(job.meta.origin_ns);
                let old = p.waiting.take();
                self.release(&mut job);
                self.offer(job);
                if let Some(old) = old {
                    let component = self.component_of(&old);
                    self.given_up(now, Kind::Superseded, &old.meta, component, out);
                    self.recycle(old);
                }
                return (None, After::Waits);
            }
            return self.call(now, job, out);
        }
        let visit = self.flows[job.flow as usize].visits[job.visit as usize].as_mut();
        let step = visit.map(|v| &mut v.steps[job.step as usize]);
        job.stage = Stage::Next;
        if let Some((step, delay)) = step.and_then(|s| s.delay.as_mut().map(|d| d.draw()).map(|d| (s, d))) {
            let until = (now + delay).max(step.last_exit);
            step.last_exit = until;
            if until > now {
                self.release(&mut job);
                let id = self.park(job);
                self.order += 1;
                self.delayed.push(Reverse((until, self.order, id)));
                return (None, After::Waits);
            }
        }
        (Some(job), After::Goes(now))
    }

    /// Calls the hook of the job's step and takes its core time.
    fn call<O: Outside>(&mut self, now: Time, mut job: Box<Job>, out: &mut O) -> (Option<Box<Job>>, After) {
        let started = out.start(now);
        let verdict = self.call_hook(now, &mut job, true);
        let cost = self.account(started, &job, &verdict, out);
        if verdict != Verdict::Emit {
            let component = self.component_of(&job);
            match verdict {
                Verdict::Failed(_) => self.drop_sample(now, &job.meta, component, DropReason::Hook, out),
                _ => self.given_up(now, Kind::Suppressed, &job.meta, component, out),
            }
            self.release(&mut job);
            self.recycle(job);
            return (None, After::Waits);
        }
        self.occupy(started, job, cost, out)
    }

    /// Notes what a call of the job's step took and whether it failed; its cost, if it has one.
    fn account<O: Outside>(&mut self, started: Started, job: &Job, verdict: &Verdict, out: &mut O) -> Time {
        let Some(visit) = self.flows[job.flow as usize].visits[job.visit as usize].as_mut() else { return 0 };
        let component = visit.component;
        let step = &mut visit.steps[job.step as usize];
        let cost = step.cost.as_mut().map_or(0, |c| c.draw());
        let own = out.used(started);
        let used = own.max(cost).max(0);
        step.stats.calls += 1;
        let _ = step.stats.cost_ns.record(used as u64);
        if let Verdict::Failed(text) = verdict {
            step.stats.failures += 1;
            step.stats.error.get_or_insert_with(|| text.clone());
        }
        let after = out.now(started.at);
        let (detail, node) = (step.kind as u8, self.id);
        // Time that was neither the hook's nor its cost's: it slept, or was kept from its core.
        let stood_still = after - started.at - own;
        if stood_still > STALL_NS {
            out.record(Record { value: stood_still, node, ..Record::new(after, Kind::Gap) });
        }
        if self.level >= Level::Events {
            let row = Record {
                value: used,
                point: component,
                detail,
                node,
                index: job.meta.index,
                flow: job.flow,
                ..Record::new(after, Kind::Stage)
            };
            out.record(row);
        }
        cost
    }

    /// Takes the core time of a call that gave something out; its delay comes next.
    fn occupy<O: Outside>(
        &mut self,
        started: Started,
        mut job: Box<Job>,
        cost: Time,
        out: &mut O,
    ) -> (Option<Box<Job>>, After) {
        job.stage = Stage::Delay;
        if cost <= 0 {
            return (Some(job), After::Goes(out.now(started.at)));
        }
        let priority = self.flows[job.flow as usize].priority;
        let id = self.park(job);
        match out.work(started, id, cost, priority) {
            Work::Done(t) => (self.unpark(id), After::Goes(t)),
            Work::Later => (None, After::Waits),
        }
    }

    fn call_hook(&mut self, now: Time, job: &mut Job, present: bool) -> Verdict {
        let flow = &mut self.flows[job.flow as usize];
        let (codec, direction) = (flow.codec, flow.direction);
        let Some(visit) = flow.visits[job.visit as usize].as_mut() else { return Verdict::Nothing };
        let way_out = self.port_of.get(visit.channel as usize).and_then(|&p| self.ports.get(p as usize));
        let merging = way_out.map_or(1, |p| p.endpoint.merging());
        let step = &mut visit.steps[job.step as usize];
        let Some(hook) = step.hook.as_mut() else { return Verdict::Emit };
        match step.kind {
            StepKind::Decode => coded(codec, job),
            _ => decoded(codec, job),
        }
        let latest = self.latest[visit.component as usize].as_ref();
        let other: &[f64] = latest.map_or(&[], |l| &l[1 - side(direction)]);
        let (x, bytes) = (&job.values, if job.coded { job.bytes.as_slice() } else { &[] });
        let input = HookIn {
            now_ns: self.clock.read(now),
            origin_ns: job.meta.origin_ns,
            index: job.meta.index,
            flow: job.flow,
            present: present as u16,
            n: if present { x.len() as u32 } else { 0 },
            n_bytes: if present { bytes.len() as u32 } else { 0 },
            n_other: other.len() as u32,
            tagged: u16::from(present && job.meta.echo.is_some()),
            merging,
            x: x.as_ptr(),
            bytes: bytes.as_ptr(),
            other: other.as_ptr(),
        };
        let s = &mut self.scratch;
        let mut output = HookOut {
            n: 0,
            cap: s.values.len() as u32,
            n_bytes: 0,
            cap_bytes: s.bytes.len() as u32,
            y: s.values.as_mut_ptr(),
            bytes: s.bytes.as_mut_ptr(),
        };
        let verdict = hook.call(&input, &mut output);
        if output.n > 0 {
            job.values.clear();
            job.values.extend_from_slice(&s.values[..(output.n as usize).min(s.values.len())]);
            (job.decoded, job.coded) = (true, false);
        }
        if output.n_bytes > 0 {
            job.bytes.clear();
            job.bytes.extend_from_slice(&s.bytes[..(output.n_bytes as usize).min(s.bytes.len())]);
            job.coded = true;
            job.decoded &= step.kind == StepKind::Code;
        }
        verdict
    }

    /// A periodic stage gives an output made of the newest sample, or of none.
    pub(super) fn tick_periodic<O: Outside>(&mut self, i: usize, now: Time, out: &mut O) {
        let (f, v, s) = self.periodic[i];
        let Some(visit) = self.flows[f as usize].visits[v as usize].as_mut() else { return };
        let Some(p) = visit.steps[s as usize].periodic.as_mut().filter(|p| p.next <= now) else { return };
        if now >= self.end {
            p.next = NEVER;
            return;
        }
        p.next += p.period_ns * ((now - p.next) / p.period_ns.max(1) + 1);
        let (waiting, origin, index) = (p.waiting.take(), p.origin_ns.unwrap_or(0), p.index);
        p.index = p.index.wrapping_add(1);
        let present = waiting.is_some();
        let mut job = waiting.unwrap_or_else(|| self.pool.pop().unwrap_or_else(Job::empty));
        if !present {
            (job.flow, job.visit, job.step) = (f, v, s);
            (job.coded, job.decoded) = (false, true);
            job.values.clear();
            job.meta = Meta { flow: f, index, origin_ns: origin, echo: None };
        }
        job.meta.index = index;
        let component = visit.component;
        let started = out.start(now);
        let verdict = self.call_hook(now, &mut job, present);
        let cost = self.account(started, &job, &verdict, out);
        if verdict == Verdict::Emit && self.alive[component as usize] {
            if let (Some(job), _) = self.occupy(started, job, cost, out) {
                self.todo.push_back(job);
                self.run(now, out);
            }
        } else {
            self.recycle(job);
        }
    }

    /// The exit point, and on to the next component, the network or the sink.
    fn leave<O: Outside>(&mut self, now: Time, mut job: Box<Job>, out: &mut O) {
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

    fn send<O: Outside>(&mut self, now: Time, channel: u16, job: &mut Job, out: &mut O) -> Time {
        coded(self.flows[job.flow as usize].codec, job);
        let port = self.port_of[channel as usize] as usize;
        let input = Input::Sample { meta: job.meta, bytes: &job.bytes };
        self.ports[port].endpoint.handle_input(self.clock.read(now), input);
        self.pump(port, now, out)
    }

    /// Does what the endpoint of a port wants done; tells when the first link has taken the last datagram.
    pub(super) fn pump<O: Outside>(&mut self, port: usize, now: Time, out: &mut O) -> Time {
        let mut taken = now;
        while let Some(output) = self.ports[port].endpoint.poll_output(&mut self.datagram) {
            let p = &self.ports[port];
            match output {
                Output::Transmit(t) => {
                    let dscp = self.flows.get(t.flow as usize).map_or(0, |f| f.dscp);
                    if self.level >= Level::Packets {
                        let row = self.packet_row(now, Kind::Transmit, port, t.flow, t.index, t.wire_bytes);
                        out.record(row);
                    }
                    taken = out.transmit(now, p.channel, p.peer, dscp, &self.datagram, &t);
                }
                Output::Record(r) => out.record(Record { time_ns: now, node: self.id, ..r }),
                Output::Deliver(d) => self.arrive(port, now, d.meta, out),
            }
        }
        taken
    }

    fn arrive<O: Outside>(&mut self, port: usize, now: Time, meta: Meta, out: &mut O) {
        let visit = self.ports[port].arrives.get(meta.flow as usize).map_or(NONE, |v| *v);
        if visit == NONE {
            self.ports[port].strays += 1;
            return;
        }
        if self.level >= Level::Packets {
            let row =
                self.packet_row(now, Kind::Receive, port, meta.flow, meta.index, self.datagram.len() as u32);
            out.record(row);
        }
        let mut job = self.pool.pop().unwrap_or_else(Job::empty);
        std::mem::swap(&mut job.bytes, &mut self.datagram);
        (job.flow, job.visit, job.step, job.stage) = (meta.flow, visit, 0, Stage::Enter);
        (job.meta, job.coded, job.decoded) = (meta, true, false);
        self.todo.push_back(job);
    }

    /// Keeps the values of a job, where values are compared.
    pub(super) fn log(&mut self, now: Time, job: &mut Job, keep: fn(&mut Log, Time, Time, &[f64])) {
        let codec = self.flows[job.flow as usize].codec;
        if let Some(log) = self.logs.get_mut(job.flow as usize).filter(|_| codec != Codec::Raw) {
            decoded(codec, job);
            keep(log, now, job.meta.origin_ns, &job.values);
        }
    }

    fn sink<O: Outside>(&mut self, now: Time, job: &mut Job, out: &mut O) {
        self.log(now, job, Log::shown);
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

    fn stamp<O: Outside>(&mut self, now: Time, kind: Kind, point: PointId, job: &Job, out: &mut O) {
        let origin = job.meta.origin_ns;
        let value = if kind == Kind::Sent { origin } else { self.clock.read(now).saturating_sub(origin) };
        let size = if job.coded {
            job.bytes.len()
        } else {
            job.values.len() * width(self.flows[job.flow as usize].codec)
        };
        let row = Record {
            value,
            index: job.meta.index,
            size: size as u32,
            flow: job.flow,
            point,
            node: self.id,
            ..Record::new(now, kind)
        };
        out.record(row);
    }

    fn packet_row(&self, now: Time, kind: Kind, port: usize, flow: u16, index: u32, size: u32) -> Record {
        Record { index, size, flow, point: self.ports[port].channel, node: self.id, ..Record::new(now, kind) }
    }

    fn drop_sample<O: Outside>(
        &mut self,
        now: Time,
        meta: &Meta,
        component: u16,
        why: DropReason,
        out: &mut O,
    ) {
        let value = self.clock.read(now).saturating_sub(meta.origin_ns);
        let (detail, node) = (why as u8, self.id);
        let row = Record {
            value,
            index: meta.index,
            flow: meta.flow,
            point: component,
            detail,
            node,
            ..Record::new(now, Kind::Dropped)
        };
        out.record(row);
    }

    /// A sample ends here on purpose: replaced before it was used, or kept back.
    fn given_up<O: Outside>(&self, now: Time, kind: Kind, meta: &Meta, component: u16, out: &mut O) {
        let Meta { flow, index, .. } = *meta;
        out.record(Record { index, flow, point: component, node: self.id, ..Record::new(now, kind) });
    }

    fn component_of(&self, job: &Job) -> u16 {
        self.flows[job.flow as usize].visits[job.visit as usize].as_ref().map_or(NONE, |v| v.component)
    }

    fn check_echo<O: Outside>(&mut self, now: Time, point: PointId, job: &mut Job, out: &mut O) {
        if let Some(echo) = job.meta.echo.filter(|e| e.target == point) {
            self.answer(now, job.flow, echo, out);
        }
    }

    /// Sends the answer of an echo command on its way.
    pub(super) fn answer<O: Outside>(&mut self, now: Time, flow: u16, echo: Echo, out: &mut O) {
        let reached_ns = self.clock.read(now);
        let Echo { target, sequence, injected_ns, reply_to } = echo;
        let reply = EchoReply { point: target, flow, sequence, injected_ns, reached_ns };
        let mut bytes = Vec::with_capacity(32);
        reply::Repr(reply).emit(&mut bytes);
        if reply_to == self.id {
            self.handle_aside(now, self.id, now, &bytes, out);
        } else {
            out.aside(now, reply_to, &bytes);
        }
    }

    /// Keeps the newest values seen at a component where a hook may want them.
    fn remember(&mut self, component: u16, job: &mut Job) {
        let flow = &self.flows[job.flow as usize];
        let Some(latest) = self.latest[component as usize].as_mut().filter(|_| flow.codec != Codec::Raw)
        else {
            return;
        };
        decoded(flow.codec, job);
        let values = &mut latest[side(flow.direction)];
        values.clear();
        values.extend_from_slice(&job.values);
    }

    /// Puts a sample where its periodic stage will find it.
    fn offer(&mut self, job: Box<Job>) {
        let visit = self.flows[job.flow as usize].visits[job.visit as usize].as_mut();
        if let Some(p) = visit.and_then(|v| v.steps[job.step as usize].periodic.as_mut()) {
            p.waiting = Some(job);
        }
    }

    /// Lets the next sample of a serial visit come, if this one held it up.
    fn release(&mut self, job: &mut Job) {
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

    fn park(&mut self, job: Box<Job>) -> u32 {
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

    fn recycle(&mut self, mut job: Box<Job>) {
        if std::mem::take(&mut job.buffered) {
            if let Some(e) = self.emitters.iter_mut().find(|e| e.flow == job.flow) {
                e.buffers.0 = e.buffers.0.saturating_sub(1);
            }
        }
        self.pool.push(job);
    }
}

fn side(direction: Direction) -> usize {
    match direction {
        Direction::Forward => 0,
        Direction::Backward => 1,
    }
}

fn width(codec: Codec) -> usize {
    match codec {
        Codec::F32 => 4,
        Codec::F64 => 8,
        Codec::Raw => 1,
    }
}

fn coded(codec: Codec, job: &mut Job) {
    if !job.coded {
        sample_codec::encode(codec, &job.values, &mut job.bytes);
        job.coded = true;
    }
}

fn decoded(codec: Codec, job: &mut Job) {
    if !job.decoded {
        sample_codec::decode(codec, &job.bytes, &mut job.values);
        job.decoded = true;
    }
}
