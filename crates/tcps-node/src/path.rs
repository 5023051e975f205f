//! The way of a sample through a node: entry point, steps, exit point, and on.

use super::{
    board::Back,
    call::After,
    context::Context,
    doors::Doors,
    flow::MOST_WAITING,
    job::{coded, decoded, Job, Stage},
    jobs::Jobs,
    pipeline::Pipeline,
    robot::Robots,
};
use crate::{host::Host, sample_codec};
use tcps_core::{
    ids::{ChannelId, ComponentId, FlowId, NONE},
    record::{DropReason, Kind, Record, StepKind},
    sample::{Echo, PointId},
    split::Part,
    time::Time,
};
use tcps_plan::SinkPlan;

impl Pipeline {
    /// Moves every job in `todo` as far as it goes.
    #[inline]
    pub(super) fn run<O: Host>(&mut self, now: Time, doors: &mut Doors, cx: &mut Context<'_, O>) {
        while let Some(job) = cx.jobs.next() {
            self.advance(cx.out.now(now), job, doors, cx);
        }
    }

    /// Moves a job until it waits or is over.
    fn advance<O: Host>(
        &mut self,
        mut now: Time,
        mut job: Box<Job>,
        doors: &mut Doors,
        cx: &mut Context<'_, O>,
    ) {
        loop {
            match job.stage {
                Stage::Enter => match self.enter(now, job, doors, cx) {
                    Some(j) => job = j,
                    None => return,
                },
                Stage::Begin => match self.begin(now, job, cx) {
                    Some(j) => job = j,
                    None => return,
                },
                Stage::Release => return self.sent(now, job, doors, cx),
                Stage::Next => {
                    job.parts.spend(Part::Delay, now);
                    job.step += 1;
                    job.stage = Stage::Call;
                    self.give(&job, cx);
                }
                Stage::Call | Stage::Delay => {
                    let visit = self.flows[job.flow].visits.get(job.visit);
                    if job.step as usize >= visit.map_or(0, |v| v.steps.len()) {
                        return self.leave(now, job, doors, cx);
                    }
                    let (left, after) = self.step(now, job, doors, cx);
                    match (left, after) {
                        (Some(j), After::Goes(t)) => (job, now) = (j, t),
                        _ => return,
                    }
                }
            }
        }
    }

    /// The entry point. `None`: the job is over or waits for its turn.
    fn enter<O: Host>(
        &mut self,
        now: Time,
        mut job: Box<Job>,
        doors: &mut Doors,
        cx: &mut Context<'_, O>,
    ) -> Option<Box<Job>> {
        let visit = self.flows[job.flow].visits.get(job.visit)?;
        let (component, point, plain_first) =
            (visit.component, visit.entry, visit.first && visit.steps.is_empty());
        let kind = match (visit.first, visit.last) {
            (true, _) => Kind::Sent,
            (_, true) => Kind::Delivered,
            _ => Kind::Enter,
        };
        let point_shown = if plain_first { visit.exit } else { point };
        let (board, plays_out) = (visit.board, visit.plays_out);
        job.life = cx.here.life(component);
        if job.parts.is_known() {
            job.before = job.at_components();
        }
        if !cx.here.is_alive(component) {
            self.end(now, job, DropReason::Dead, cx);
            return None;
        }
        if let Some(board) = board {
            if let Err((job, why)) = doors.boards.ride(now, job, board, cx) {
                self.end(now, job, why, cx);
            }
            return None;
        }
        cx.stamp(now, kind, point_shown.0, &job);
        self.remember(component, &mut job);
        cx.show_sample(now, point, &mut job);
        cx.check_echo(now, point, &mut job);
        job.stage = Stage::Begin;
        if !plays_out {
            return Some(job);
        }
        doors.displays.take(now, job, cx)
    }

    /// The first step. `None`: the job is over or waits for its turn.
    fn begin<O: Host>(&mut self, now: Time, mut job: Box<Job>, cx: &mut Context<'_, O>) -> Option<Box<Job>> {
        job.stage = Stage::Call;
        let visit = self.flows[job.flow].visits.get_mut(job.visit)?;
        if visit.serial {
            if visit.busy && visit.waiting.len() >= visit.most_waiting {
                self.end(now, job, DropReason::Overload, cx);
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

    /// Whoever is behind a stage with states goes by what reaches a device, or the end of the visit, in the component's life.
    fn give<O: Host>(&mut self, job: &Job, cx: &Context<'_, O>) {
        let Some(visit) = self.flows[job.flow].visits.get_mut(job.visit) else { return };
        let (passed, ahead) = visit.steps.split_at_mut(usize::from(job.step));
        let reached = ahead.first().is_none_or(|next| next.kind == StepKind::Feedback);
        if !reached || job.life != cx.here.life(visit.component) {
            return;
        }
        let before = passed.iter_mut().rev().take_while(|step| step.kind != StepKind::Feedback);
        for step in before.filter(|step| step.has_states()) {
            step.given.clone_from(&job.values);
        }
    }

    /// The end of a visit. A blocking send holds up those that come behind it.
    fn leave<O: Host>(&mut self, now: Time, job: Box<Job>, doors: &mut Doors, cx: &mut Context<'_, O>) {
        let (flow, at) = (job.flow, job.visit);
        let Some(visit) = self.flows[flow].visits.get_mut(at) else { return };
        if !visit.sending {
            self.pass_on(now, job, doors, cx);
            return self.send_waiting(now, flow, at, doors, cx);
        }
        if visit.unsent.len() >= MOST_WAITING {
            return self.end(now, job, DropReason::Overload, cx);
        }
        visit.unsent.push_back(job);
    }

    /// A blocking send is over: the next sample may come, and what waited to be sent has its turn.
    fn sent<O: Host>(&mut self, now: Time, mut job: Box<Job>, doors: &mut Doors, cx: &mut Context<'_, O>) {
        let (flow, at) = (job.flow, job.visit);
        self.release(&mut job, cx.jobs);
        cx.recycle(job);
        if let Some(visit) = self.flows[flow].visits.get_mut(at) {
            visit.sending = false;
        }
        self.send_waiting(now, flow, at, doors, cx);
    }

    fn send_waiting<O: Host>(
        &mut self,
        now: Time,
        flow: FlowId,
        at: u16,
        doors: &mut Doors,
        cx: &mut Context<'_, O>,
    ) {
        while let Some(visit) = self.flows[flow].visits.get_mut(at).filter(|v| !v.sending) {
            let Some(next) = visit.unsent.pop_front() else { return };
            self.pass_on(now, next, doors, cx);
        }
    }

    /// The exit point, and on to the next component, the network or the sink.
    fn pass_on<O: Host>(&mut self, now: Time, mut job: Box<Job>, doors: &mut Doors, cx: &mut Context<'_, O>) {
        let Some(visit) = self.flows[job.flow].visits.get_mut(job.visit) else { return };
        job.parts.spend(Part::Waiting, now);
        if job.parts.is_known() {
            let ([waited, worked], [waiting, working]) = (job.before, job.at_components());
            visit.visited.samples += 1;
            visit.visited.waiting_ns += waiting - waited;
            visit.visited.working_ns += working - worked;
        }
        let (component, exit, last) = (visit.component, visit.exit, visit.last);
        let silent = visit.steps.is_empty() && (visit.first || visit.last && !visit.plays_out);
        if job.life != cx.here.life(component) {
            return self.end(now, job, DropReason::Dead, cx);
        }
        if !silent {
            cx.stamp(now, Kind::Exit, exit.0, &job);
        }
        cx.show_sample(now, exit, &mut job);
        cx.check_echo(now, exit, &mut job);
        if last {
            if job.decoded && self.was_shown(&job) {
                cx.show_shown(now, exit, &job);
            }
            self.sink(now, &mut job, &mut doors.robots, cx);
            if job.parts.is_known() {
                let clock = cx.read(now) - job.meta.origin_ns - job.parts.total();
                cx.out.has_come(job.flow, &job.parts, clock);
            }
        }
        self.go_on(now, job, doors, cx);
    }

    /// Behind the exit point: to the next component or into the network, unless the last one has had it.
    pub(super) fn go_on<O: Host>(
        &mut self,
        now: Time,
        mut job: Box<Job>,
        doors: &mut Doors,
        cx: &mut Context<'_, O>,
    ) {
        let Some(visit) = self.flows[job.flow].visits.get(job.visit) else { return };
        let (channel, last) = (visit.channel, visit.last);
        let mut taken = now;
        if last {
            // It has come to its sink.
        } else if channel == ChannelId::NONE {
            self.release(&mut job, cx.jobs);
            job.visit += 1;
            (job.step, job.stage, job.received_ns) = (0, Stage::Enter, None);
            return cx.jobs.go(job);
        } else {
            taken = doors.ports.send(now, channel, &mut job, cx);
        }
        if taken > now && self.flows[job.flow].blocking_send {
            return self.block(taken, job, cx.jobs);
        }
        self.release(&mut job, cx.jobs);
        cx.recycle(job);
    }

    /// The job's send blocks until the first link has taken the datagram.
    fn block(&mut self, taken: Time, mut job: Box<Job>, jobs: &mut Jobs) {
        if let Some(visit) = self.flows[job.flow].visits.get_mut(job.visit) {
            visit.sending = true;
        }
        job.stage = Stage::Release;
        jobs.delay(taken, job);
    }

    /// A sample ends at its component.
    pub(super) fn end<O: Host>(
        &mut self,
        now: Time,
        mut job: Box<Job>,
        why: DropReason,
        cx: &mut Context<'_, O>,
    ) {
        let visit = self.flows[job.flow].visits.get(job.visit);
        let component = visit.map_or(ComponentId::NONE, |v| v.component);
        cx.drop_sample(now, &job.meta, component, why);
        self.release(&mut job, cx.jobs);
        cx.recycle(job);
    }

    /// A sample ends here on purpose: a hook has kept it back.
    pub(super) fn suppress<O: Host>(&mut self, now: Time, mut job: Box<Job>, cx: &mut Context<'_, O>) {
        let visit = self.flows[job.flow].visits.get(job.visit);
        let point = visit.map_or(NONE, |v| v.component.0);
        let (index, flow) = (job.meta.index, job.flow);
        cx.out.record(Record { index, flow, point, ..cx.here.row(now, Kind::Suppressed) });
        self.release(&mut job, cx.jobs);
        cx.recycle(job);
    }

    /// Hands a sample to the sink of its flow.
    fn sink<O: Host>(&mut self, now: Time, job: &mut Job, robots: &mut Robots, cx: &mut Context<'_, O>) {
        let flow = &self.flows[job.flow];
        let path_end = flow.visits.get(job.visit).map_or(ComponentId::NONE, |v| v.component);
        match flow.sink {
            SinkPlan::Count => {}
            SinkPlan::Robot => self.obey(now, path_end, job, robots, cx),
            SinkPlan::Verify => self.verify(now, path_end, job, cx),
        }
    }

    /// Commands a robot.
    fn obey<O: Host>(
        &mut self,
        now: Time,
        component: ComponentId,
        job: &mut Job,
        robots: &mut Robots,
        cx: &mut Context<'_, O>,
    ) {
        let flow = &self.flows[job.flow];
        decoded(job);
        let Some(r) = robots.at(component) else { return };
        r.command(now, job.flow, flow.period_ns, flow.authority, &job.values);
        let echo = job.meta.echo.filter(|e| e.target == PointId::held(component));
        if let Some(old) = echo.and_then(|e| r.hold(job.flow, e)) {
            self.echo_superseded(now, job.flow, job.visit, old, cx);
        }
    }

    /// Compares a sample's checksum with that of the source's sample.
    fn verify<O: Host>(&mut self, now: Time, component: ComponentId, job: &mut Job, cx: &mut Context<'_, O>) {
        let flow = &self.flows[job.flow];
        coded(job);
        let want = flow.expected.as_ref().map(|s| {
            let (bytes, values) = (&mut self.scratch.twin, &mut self.scratch.other);
            if s.fill(job.codec, job.meta.index, bytes, values) {
                sample_codec::encode(job.codec, values, bytes);
            }
            crc32fast::hash(bytes)
        });
        let row = Record {
            detail: u8::from(want == Some(crc32fast::hash(&job.bytes))),
            size: job.bytes.len() as u32,
            index: job.meta.index,
            flow: job.flow,
            point: component.0,
            ..cx.here.row(now, Kind::Verified)
        };
        cx.out.record(row);
    }

    /// Lets the next sample of a serial visit come, if this one held it up.
    pub(super) fn release(&mut self, job: &mut Job, jobs: &mut Jobs) {
        if !std::mem::take(&mut job.holds) {
            return;
        }
        if let Some(v) = self.flows[job.flow].visits.get_mut(job.visit) {
            v.busy = false;
            if let Some(mut next) = v.waiting.pop_front() {
                v.busy = true;
                next.holds = true;
                jobs.go(next);
            }
        }
    }

    /// A sample is back from its board, or was lost there. The board's own stamps answer echoes.
    // [Polachan 2022: echoes]
    pub(super) fn came_back<O: Host>(
        &mut self,
        now: Time,
        back: Back,
        doors: &mut Doors,
        cx: &mut Context<'_, O>,
    ) {
        let (mut job, [entry_ns, exit_ns]) = match back {
            Back::Through(mut job, stamps) => {
                job.parts.spend(Part::Board, now);
                (job, stamps)
            }
            Back::Lost(job) => return self.end(now, job, DropReason::Line, cx),
        };
        let Some(visit) = self.flows[job.flow].visits.get(job.visit) else { return };
        let (entry, exit) = (visit.entry, visit.exit);
        if job.life != cx.here.life(visit.component) {
            return self.end(now, job, DropReason::Dead, cx);
        }
        for (kind, point, at) in [(Kind::Enter, entry, entry_ns), (Kind::Exit, exit, exit_ns)] {
            cx.stamp_at(now, at, kind, point.0, &job);
            cx.show_sample(now, point, &mut job);
            cx.check_echo_at(now, at, point, &mut job);
        }
        self.go_on(now, job, doors, cx);
    }

    /// A sample was replaced before its stage could use it, and with it the command on it.
    pub(super) fn superseded<O: Host>(
        &mut self,
        now: Time,
        component: ComponentId,
        old: &Job,
        cx: &mut Context<'_, O>,
    ) {
        let (index, flow) = (old.meta.index, old.flow);
        cx.out.record(Record { index, flow, point: component.0, ..cx.here.row(now, Kind::Superseded) });
        if let Some(echo) = old.meta.echo {
            self.echo_superseded(now, old.flow, old.visit, echo, cx);
        }
    }

    /// A newer sample or command took the place of one whose command may not have reached its point.
    pub(super) fn echo_superseded<O: Host>(
        &mut self,
        now: Time,
        flow: FlowId,
        visit: u16,
        echo: Echo,
        cx: &mut Context<'_, O>,
    ) {
        if self.flows[flow].is_ahead(visit, echo.target) {
            cx.echo_superseded(now, flow, echo);
        }
    }
}
