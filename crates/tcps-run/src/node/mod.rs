//! A node: the sources, stages, endpoints and sinks of one computer (or of one session on it), without I/O.
//!
//! ```text
//! ticks ──► emitter ─┐                              ┌─► sink, robot
//! datagrams ► port ──┴─► visit: entry · steps · exit ┴─► port ──► datagrams
//!                          │ work ─► core   │ echo ─► aside
//! ```
//! Both drivers run this object. What differs between worlds (how time passes, how a datagram travels, what a core
//! is) is asked of `Outside`.

mod parts;
mod path;

pub use parts::{histogram, StepStats};
use parts::{Emitter, FlowAt, Job, Port, RobotAt, Stage};

use crate::{
    code::{self, PythonCode},
    error::RunError,
    outside::Outside,
    plan::{Level, Plan, StepKind},
    snr::Log,
};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output},
    record::{Kind, Record, NONE},
    sample::Meta,
    time::{NodeClock, Time, NEVER},
};
use tcps_transport::{clockfit::ClockEstimate, clocksync, ChannelContext, ChannelFlow, Side};
use tcps_wire::{reply, Format};

/// Most values a hook may write.
const MAX_VALUES: usize = 256;
/// Most bytes a hook may write.
const MAX_BYTES: usize = 1 << 16;
/// A synchronisation exchange that is this much longer than the shortest still counts as an exchange.
const LEAST_WAIT: Time = 1;

/// A node with everything that runs on it.
pub struct Node {
    id: u16,
    clock: NodeClock,
    level: Level,
    flows: Vec<FlowAt>,
    emitters: Vec<Emitter>,
    robots: Vec<RobotAt>,
    ports: Vec<Port>,
    port_of: Vec<u16>,
    /// Periodic steps as (flow, visit, step).
    periodic: Vec<(u16, u16, u16)>,
    alive: Vec<bool>,
    /// Newest values per component and direction, where a hook may look at the other side's signal.
    latest: Vec<Option<[Vec<f64>; 2]>>,
    sync: Sync,
    todo: VecDeque<Box<Job>>,
    parked: Vec<Option<Box<Job>>>,
    free: Vec<u32>,
    #[expect(clippy::vec_box, reason = "jobs move between places; a box moves as one pointer")]
    pool: Vec<Box<Job>>,
    delayed: BinaryHeap<Reverse<(Time, u64, u32)>>,
    order: u64,
    datagram: Vec<u8>,
    scratch: Scratch,
    missed_ticks: u64,
    asides_refused: u64,
    /// Periodic stages fall silent here, as sources do.
    end: Time,
    /// Values of the flows, if they are compared.
    logs: Vec<Log>,
}

/// Clock synchronisation at a node.
enum Sync {
    Off,
    Client { client: Box<clocksync::Client>, reference: u16 },
    Server(clocksync::Server),
}

/// Room for what hooks write.
struct Scratch {
    values: Vec<f64>,
    bytes: Vec<u8>,
}

/// What a node tells about itself at the end.
pub struct NodeReport {
    /// Calls and costs of stages: component, flow, kind, name, statistics.
    pub stages: Vec<(u16, u16, StepKind, String, StepStats)>,
    /// Counters of endpoints by channel, with stray samples.
    pub endpoints: Vec<(u16, EndpointStats, u64)>,
    /// Ticks that passed while the loop was away.
    pub missed_ticks: u64,
    /// Datagrams outside channels that were not what they should be.
    pub asides_refused: u64,
    /// Robots that failed: component and what went wrong.
    pub failed_robots: Vec<(u16, String)>,
    /// Estimate of the clock relative to the reference node.
    pub clock: Option<ClockEstimate>,
}

impl Node {
    /// Node `id` of a plan, with all its sessions or only those of one loop.
    pub fn new(
        plan: &Plan,
        id: u16,
        sessions: Option<&[u16]>,
        python: &mut dyn PythonCode,
    ) -> Result<Self, RunError> {
        let here = |c: u16| {
            let c = &plan.components[c as usize];
            c.node == id && sessions.is_none_or(|s| s.contains(&c.session))
        };
        let mut flows = Vec::new();
        for flow in &plan.flows {
            flows.push(FlowAt::new(plan, flow, here, python)?);
        }
        let mut node = Self {
            id,
            clock: plan.nodes[id as usize].clock,
            level: plan.records,
            flows,
            emitters: Vec::new(),
            robots: robots(plan, here, python)?,
            ports: Vec::new(),
            port_of: vec![NONE; plan.channels.len()],
            periodic: Vec::new(),
            alive: vec![true; plan.components.len()],
            latest: plan.components.iter().map(|_| None).collect(),
            sync: sync(plan, id, sessions),
            todo: VecDeque::new(),
            parked: Vec::new(),
            free: Vec::new(),
            pool: Vec::new(),
            delayed: BinaryHeap::new(),
            order: 0,
            datagram: Vec::with_capacity(2048),
            scratch: Scratch { values: vec![0.0; MAX_VALUES], bytes: vec![0; MAX_BYTES] },
            missed_ticks: 0,
            asides_refused: 0,
            end: plan.duration_ns,
            logs: Vec::new(),
        };
        node.add_emitters(plan)?;
        node.add_ports(plan, sessions)?;
        node.find_hooks();
        Ok(node)
    }

    /// Keeps values of all flows from now on, so that they can be compared.
    pub fn keep_values(&mut self) {
        self.logs = vec![Log::default(); self.flows.len()];
    }

    /// The values kept, by flow.
    pub fn take_values(&mut self) -> Vec<Log> {
        std::mem::take(&mut self.logs)
    }

    fn add_emitters(&mut self, plan: &Plan) -> Result<(), RunError> {
        for (id, flow) in plan.flows.iter().enumerate() {
            if self.flows[id].visits.first().is_some_and(Option::is_some) {
                let first = flow.path[0].component;
                let robot = self.robots.iter().position(|r| r.component == first);
                let probe = plan.probes.iter().find(|p| p.flow as usize == id);
                self.emitters.push(Emitter::new(id, flow, probe, robot, plan.duration_ns, plan.seed)?);
            }
        }
        Ok(())
    }

    fn add_ports(&mut self, plan: &Plan, sessions: Option<&[u16]>) -> Result<(), RunError> {
        for (id, c) in plan.channels.iter().enumerate() {
            let (side, peer) = match (c.a == self.id, c.b == self.id) {
                (true, _) => (Side::A, c.b),
                (_, true) => (Side::B, c.a),
                _ => continue,
            };
            if sessions.is_some_and(|s| !s.contains(&c.session)) {
                continue;
            }
            let context =
                ChannelContext { name: c.name.clone(), seed: plan.seed, flows: carried(plan, id as u16) };
            let endpoint = tcps_transport::endpoint(&c.transport, &c.params, side, &context)
                .map_err(|e| RunError::new(format!("channels.{}: {e}", c.name)))?;
            let arrives = plan.flows.iter().map(|f| arrival(plan, f, id as u16, self.id)).collect();
            self.port_of[id] = self.ports.len() as u16;
            self.ports.push(Port { channel: id as u16, peer, endpoint, arrives, strays: 0 });
        }
        Ok(())
    }

    fn find_hooks(&mut self) {
        for (f, flow) in self.flows.iter().enumerate() {
            for (v, visit) in flow.visits.iter().enumerate() {
                let Some(visit) = visit else { continue };
                for (s, step) in visit.steps.iter().enumerate() {
                    if step.periodic.is_some() {
                        self.periodic.push((f as u16, v as u16, s as u16));
                    }
                    if step.hook.is_some() {
                        self.latest[visit.component as usize].get_or_insert_default();
                    }
                }
            }
        }
    }

    /// When this node wants to be woken; `NEVER` if nothing is due.
    pub fn poll_timeout(&self) -> Time {
        let mut next = self.delayed.peek().map_or(NEVER, |Reverse((t, ..))| *t);
        for e in &self.emitters {
            next = next.min(e.next());
        }
        for r in &self.robots {
            next = next.min(r.next);
        }
        for &(f, v, s) in &self.periodic {
            let step = self.flows[f as usize].visits[v as usize].as_ref().map(|v| &v.steps[s as usize]);
            next = next.min(step.and_then(|s| s.periodic.as_ref()).map_or(NEVER, |p| p.next));
        }
        for p in &self.ports {
            next = next.min(self.true_time(p.endpoint.poll_timeout()));
        }
        if let Sync::Client { client, .. } = &self.sync {
            next = next.min(self.true_time(client.poll_timeout()));
        }
        next
    }

    /// Run time at which this node's clock has reached `local`.
    fn true_time(&self, local: Option<Time>) -> Time {
        local.map_or(NEVER, |t| self.clock.when(t))
    }

    /// Does everything that is due at `now`.
    pub fn handle_timeout<O: Outside>(&mut self, now: Time, out: &mut O) {
        self.wake_delayed(now);
        self.run(now, out);
        for i in 0..self.robots.len() {
            self.step_robot(i, now, out);
        }
        for i in 0..self.periodic.len() {
            self.tick_periodic(i, now, out);
        }
        for i in 0..self.emitters.len() {
            self.tick_emitter(i, now, out);
        }
        for i in 0..self.ports.len() {
            if self.true_time(self.ports[i].endpoint.poll_timeout()) <= now {
                self.ports[i].endpoint.handle_input(self.clock.read(now), Input::Timeout);
                self.pump(i, now, out);
                self.run(now, out);
            }
        }
        self.synchronise(now, out);
    }

    /// A datagram of a channel has arrived; `received` is when the kernel had it.
    pub fn handle_datagram<O: Outside>(
        &mut self,
        now: Time,
        channel: u16,
        received: Time,
        bytes: &[u8],
        out: &mut O,
    ) {
        let port = self.port_of.get(channel as usize).map_or(NONE, |p| *p) as usize;
        if port >= self.ports.len() {
            self.asides_refused += 1;
            return;
        }
        let received_ns = self.clock.read(received);
        self.ports[port].endpoint.handle_input(self.clock.read(now), Input::Datagram { bytes, received_ns });
        self.pump(port, now, out);
        self.run(now, out);
    }

    /// A datagram outside channels has arrived: an echo's answer or a clock exchange.
    pub fn handle_aside<O: Outside>(
        &mut self,
        now: Time,
        from: u16,
        received: Time,
        bytes: &[u8],
        out: &mut O,
    ) {
        match tcps_wire::format(bytes) {
            Some(Format::Reply) => self.handle_reply(now, received, bytes, out),
            Some(Format::Clock) => self.exchange(now, from, received, bytes, out),
            _ => self.asides_refused += 1,
        }
    }

    fn handle_reply<O: Outside>(&mut self, now: Time, received: Time, bytes: &[u8], out: &mut O) {
        if let Ok(packet) = reply::Packet::new_checked(bytes) {
            let (reply, at) = (reply::Repr::parse(&packet).0, self.clock.read(received));
            if usize::from(reply.flow) >= self.flows.len() {
                return self.asides_refused += 1;
            }
            let row = |kind, value| Record {
                value,
                index: reply.sequence,
                flow: reply.flow,
                point: reply.point,
                node: self.id,
                ..Record::new(now, kind)
            };
            out.record(row(Kind::EchoForward, reply.reached_ns.saturating_sub(reply.injected_ns)));
            out.record(row(Kind::EchoReturn, at.saturating_sub(reply.reached_ns)));
            out.record(row(Kind::Echo, at.saturating_sub(reply.injected_ns)));
        } else {
            self.asides_refused += 1;
        }
    }

    fn exchange<O: Outside>(&mut self, now: Time, from: u16, received: Time, bytes: &[u8], out: &mut O) {
        let input = Input::Datagram { bytes, received_ns: self.clock.read(received) };
        let here = self.clock.read(now);
        match &mut self.sync {
            Sync::Server(server) => server.handle_input(here, input),
            Sync::Client { client, reference } if *reference == from => client.handle_input(here, input),
            _ => return self.asides_refused += 1,
        }
        self.pump_sync(now, from, out);
    }

    fn synchronise<O: Outside>(&mut self, now: Time, out: &mut O) {
        let here = self.clock.read(now);
        if let Sync::Client { client, reference } = &mut self.sync {
            let to = *reference;
            client.handle_input(here, Input::Timeout);
            self.pump_sync(now, to, out);
        }
    }

    fn pump_sync<O: Outside>(&mut self, now: Time, to: u16, out: &mut O) {
        loop {
            let output = match &mut self.sync {
                Sync::Off => None,
                Sync::Client { client, .. } => client.poll_output(&mut self.datagram),
                Sync::Server(server) => server.poll_output(&mut self.datagram),
            };
            match output {
                Some(Output::Transmit(_)) => out.aside(now, to, &self.datagram),
                Some(Output::Record(row)) => {
                    out.record(Record { time_ns: now, node: self.id, point: to, ..row })
                }
                Some(Output::Deliver(_)) => {}
                None => return,
            }
        }
    }

    /// A job's core time is over.
    pub fn resume<O: Outside>(&mut self, now: Time, job: u32, out: &mut O) {
        if let Some(job) = self.unpark(job) {
            self.todo.push_back(job);
            self.run(now, out);
        }
    }

    /// Kills a component or restarts it.
    pub fn set_alive(&mut self, component: u16, alive: bool) {
        self.alive[component as usize] = alive;
    }

    /// Stops or starts a flow's source; ticks in between are left out.
    pub fn set_running(&mut self, now: Time, flow: u16, running: bool) {
        for e in self.emitters.iter_mut().filter(|e| e.flow == flow && e.running != running) {
            e.running = running;
            let passed = (now - e.start_ns).max(0) as u64;
            e.tick = e.tick.max(passed.div_ceil(e.period_ns as u64));
        }
    }

    /// Counts and costs so far.
    pub fn report(&mut self) -> NodeReport {
        let mut stages = Vec::new();
        for (f, flow) in self.flows.iter_mut().enumerate() {
            for visit in flow.visits.iter_mut().flatten() {
                for s in &mut visit.steps {
                    let stats = std::mem::take(&mut s.stats);
                    stages.push((visit.component, f as u16, s.kind, s.name.clone(), stats));
                }
            }
        }
        NodeReport {
            stages,
            endpoints: self.ports.iter().map(|p| (p.channel, p.endpoint.stats(), p.strays)).collect(),
            missed_ticks: self.missed_ticks,
            asides_refused: self.asides_refused,
            failed_robots: self
                .robots
                .iter()
                .filter_map(|r| Some((r.component, r.robot.failure()?)))
                .collect(),
            clock: match &self.sync {
                Sync::Client { client, .. } => client.estimate(),
                _ => None,
            },
        }
    }

    fn wake_delayed(&mut self, now: Time) {
        while self.delayed.peek().is_some_and(|Reverse((t, ..))| *t <= now) {
            if let Some(Reverse((_, _, id))) = self.delayed.pop() {
                if let Some(job) = self.unpark(id) {
                    self.todo.push_back(job);
                }
            }
        }
    }

    fn step_robot<O: Outside>(&mut self, i: usize, now: Time, out: &mut O) {
        let r = &mut self.robots[i];
        if r.next > now {
            return;
        }
        // A loop that was away takes one step for all that it missed.
        let behind = (now - r.next) / r.period_ns;
        self.missed_ticks += behind as u64;
        let at = r.next + behind * r.period_ns;
        r.sensed = r.robot.step(at, &r.fused, &mut r.sense).min(r.sense.len());
        r.next = at + r.period_ns;
        if !r.held.is_empty() && r.robot.arrived() {
            for (flow, echo) in std::mem::take(&mut r.held) {
                self.answer(now, flow, echo, out);
            }
        }
    }

    fn is_dead_source(&self, i: usize) -> bool {
        let first = self.flows[self.emitters[i].flow as usize].visits.first().and_then(Option::as_ref);
        first.is_some_and(|v| !self.alive[v.component as usize])
    }

    fn tick_emitter<O: Outside>(&mut self, i: usize, now: Time, out: &mut O) {
        while self.emitters[i].next() <= now {
            // [PROTOCOLS 7] A frame is taken when a buffer is free for it.
            if self.is_dead_source(i) || self.emitters[i].is_full() {
                self.emitters[i].tick += 1;
                continue;
            }
            let here = self.clock.read(now);
            let mut job = self.pool.pop().unwrap_or_else(Job::empty);
            let e = &mut self.emitters[i];
            let behind = (now - e.next()) / e.period_ns;
            self.missed_ticks += behind as u64;
            e.tick += 1 + behind as u64;
            let echo = e.probe.as_mut().and_then(|p| p.command(now, here));
            // Samples are numbered by ticks: what a late loop leaves out leaves a gap, and a recording stays in time.
            job.meta = Meta { flow: e.flow, index: (e.tick - 1) as u32, origin_ns: here, echo };
            e.buffers.0 += 1;
            job.buffered = true;
            (job.flow, job.visit, job.step, job.stage) = (e.flow, 0, 0, Stage::Enter);
            match e.robot.filter(|_| matches!(e.source, crate::source::Source::Robot)) {
                Some(r) => {
                    let robot = &self.robots[r];
                    job.values.clear();
                    job.values.extend_from_slice(&robot.sense[..robot.sensed]);
                    job.decoded = true;
                }
                None => {
                    let codec = self.flows[e.flow as usize].codec;
                    job.decoded = e.source.fill(codec, job.meta.index, &mut job.bytes, &mut job.values);
                }
            }
            job.coded = !job.decoded;
            self.log(now, &mut job, Log::made);
            self.todo.push_back(job);
            self.run(now, out);
        }
    }
}

fn robots(
    plan: &Plan,
    here: impl Fn(u16) -> bool,
    python: &mut dyn PythonCode,
) -> Result<Vec<RobotAt>, RunError> {
    let mut robots = Vec::new();
    for (id, c) in plan.components.iter().enumerate() {
        if let Some(r) = c.robot.as_ref().filter(|_| here(id as u16)) {
            let robot = code::robot(&r.run, python)
                .map_err(|e| RunError::new(format!("components.{}.robot: {e}", c.name)))?;
            robots.push(RobotAt {
                component: id as u16,
                robot,
                period_ns: r.period_ns.max(LEAST_WAIT),
                next: 0,
                commands: Vec::new(),
                fused: Vec::new(),
                sense: vec![0.0; r.senses as usize],
                sensed: 0,
                held: Vec::new(),
            });
        }
    }
    Ok(robots)
}

/// A node has one clock: of its loops, the first one keeps it.
fn sync(plan: &Plan, id: u16, sessions: Option<&[u16]>) -> Sync {
    let first = sessions.is_none_or(|s| plan.loops(id).first().is_some_and(|l| l == s));
    match &plan.sync {
        Some(_) if !first => Sync::Off,
        None => Sync::Off,
        Some(s) if s.reference == id => Sync::Server(clocksync::Server::default()),
        Some(s) => {
            Sync::Client { client: Box::new(clocksync::Client::new(s.period_ns)), reference: s.reference }
        }
    }
}

/// The visit at which samples of `flow` arrive at `node` through `channel`, or `NONE`.
fn arrival(plan: &Plan, flow: &crate::plan::FlowPlan, channel: u16, node: u16) -> u16 {
    let mut steps = flow.path.windows(2).enumerate();
    let found = steps.find(|(_, w)| {
        w[0].channel == Some(channel) && plan.components[w[1].component as usize].node == node
    });
    found.map_or(NONE, |(i, _)| i as u16 + 1)
}

/// The flows that a channel carries, with the side they go to.
fn carried(plan: &Plan, channel: u16) -> Vec<ChannelFlow> {
    let mut flows = Vec::new();
    for (id, flow) in plan.flows.iter().enumerate() {
        for w in flow.path.windows(2).filter(|w| w[0].channel == Some(channel)) {
            let to = plan.components[w[1].component as usize].node;
            let to = if to == plan.channels[channel as usize].a { Side::A } else { Side::B };
            let name = flow.name.rsplit('/').next().unwrap_or_default().to_string();
            flows.push(ChannelFlow { flow: id as u16, to, name, period_ns: flow.period_ns });
        }
    }
    flows
}
