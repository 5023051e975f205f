//! A node: the sources, stages, endpoints and sinks of one computer (or of one session on it), without I/O.
//!
//! ```text
//! ticks ──► emitter ─┐                              ┌─► sink, robot
//! datagrams ► port ──┴─► visit: entry · steps · exit ┴─► port ──► datagrams
//!                          │ work ─► core   │ echo ─► aside
//! ```
//! Both drivers run this object. What differs between worlds (how time passes, how a datagram travels, what a core
//! is) is asked of `Outside`; files and code that is not built in are handed in as `Assets`.

#![forbid(unsafe_code)]

pub mod assets;
mod board;
mod call;
mod delegate;
mod emitter;
mod flow;
mod job;
mod latest;
mod marks;
pub mod outside;
mod path;
mod periodic;
mod playout;
mod port;
mod robot;
pub mod sample_codec;
mod signals;
mod source;
mod step;
mod sync;

pub use board::{BoardAt, Model as BoardModel, Timetable, LOST_NS, MOST_RIDING};

use assets::Assets;
use emitter::Emitter;
use flow::FlowAt;
use job::Job;
use latest::Latest;
use outside::Outside;
use playout::Display;
use port::Port;
use robot::RobotAt;
use serde_json::Value;
use source::Source;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};
use sync::Sync;
use tcps_core::{
    endpoint::{Endpoint, Input},
    hook::Notice,
    record::{Kind, Record, NONE},
    report::NodeReport,
    time::{NodeClock, Time, MS, NEVER},
};
use tcps_plan::{Level, Plan, RunError};
use tcps_transport::{kernel_tcp, ChannelContext, Side};
use tcps_wire::Format;

/// How long a run goes on once something has died or it is to be stopped, so that supervisors hold.
pub const HALT_NS: Time = 100 * MS;
/// Most values a hook may write.
const MAX_VALUES: usize = 256;

/// A node with everything that runs on it.
pub struct Node {
    id: u16,
    /// What stamps, hooks, playout and clock synchronisation go by: events put it forward or back.
    clock: NodeClock,
    /// The same without steps: what timers of endpoints go by, as those of a kernel do.
    steady: NodeClock,
    level: Level,
    flows: Vec<FlowAt>,
    emitters: Vec<Emitter>,
    robots: Vec<RobotAt>,
    boards: Vec<BoardAt>,
    ports: Vec<Port>,
    port_of: Vec<u16>,
    /// Periodic steps as (flow, visit, step).
    periodic: Vec<(u16, u16, u16)>,
    /// Flows that play out here.
    displays: Vec<Display>,
    /// Per component, how often it died or was restarted: dead while that is odd.
    life: Vec<u32>,
    /// Makes Python code again at restarts.
    assets: Box<dyn Assets + Send>,
    /// Newest values per component, where a hook may look at the other side's signal.
    latest: Vec<Option<Latest>>,
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
    /// Points whose values are recorded.
    signals: Vec<u16>,
    /// Periodic stages fall silent here, as sources do.
    end: Time,
    /// What has died, and when: component and reason.
    died: Option<(Time, u16, String)>,
    /// Supervisors hold, also those that are restarted.
    halted: bool,
}

/// Room for what hooks write.
struct Scratch {
    values: Vec<f64>,
    bytes: Vec<u8>,
    other: Vec<f64>,
}

impl Node {
    /// Node `id` of a plan, with all its sessions or only those of one loop.
    pub fn new(
        plan: &Plan,
        id: u16,
        sessions: Option<&[u16]>,
        assets: &mut dyn Assets,
    ) -> Result<Self, RunError> {
        let here = |c: u16| {
            let c = &plan.components[c as usize];
            c.node == id && sessions.is_none_or(|s| s.contains(&c.session))
        };
        // A camera may look at a robot: that comes first.
        let robots = robot::robots(plan, here, assets)?;
        let boards = board::boards(plan, here);
        let mut flows = Vec::new();
        for flow in &plan.flows {
            flows.push(FlowAt::new(plan, flow, here, &boards, assets)?);
        }
        let room = flows.iter().map(FlowAt::most_bytes).fold(assets::MOST_BYTES, usize::max);
        let mut node = Self {
            id,
            clock: plan.nodes[id as usize].clock,
            steady: plan.nodes[id as usize].clock,
            level: plan.records,
            flows,
            emitters: Vec::new(),
            robots,
            boards,
            ports: Vec::new(),
            port_of: vec![NONE; plan.channels.len()],
            periodic: Vec::new(),
            displays: playout::displays(plan, here)?,
            life: vec![0; plan.components.len()],
            assets: assets.again(),
            latest: plan.components.iter().map(|_| None).collect(),
            sync: sync::sync(plan, id, sessions),
            todo: VecDeque::new(),
            parked: Vec::new(),
            free: Vec::new(),
            pool: Vec::new(),
            delayed: BinaryHeap::new(),
            order: 0,
            datagram: Vec::with_capacity(2048),
            scratch: Scratch { values: vec![0.0; MAX_VALUES], bytes: vec![0; room], other: Vec::new() },
            missed_ticks: 0,
            asides_refused: 0,
            signals: plan.signals.clone(),
            end: plan.duration_ns,
            died: None,
            halted: false,
        };
        node.add_emitters(plan, assets)?;
        node.add_ports(plan, sessions, assets)?;
        node.find_hooks();
        Ok(node)
    }

    fn add_emitters(&mut self, plan: &Plan, assets: &mut dyn Assets) -> Result<(), RunError> {
        for (id, flow) in plan.flows.iter().enumerate() {
            if self.flows[id].visits.first().is_some_and(Option::is_some) {
                let first = flow.path[0].component;
                let robot = self.robots.iter().position(|r| r.component == first);
                let probe = plan.probes.iter().find(|p| p.flow as usize == id);
                let source = Source::open(flow, assets)?;
                self.emitters.push(Emitter::new(
                    id,
                    flow,
                    source,
                    probe,
                    robot,
                    plan.duration_ns,
                    plan.seed,
                )?);
            }
        }
        Ok(())
    }

    fn add_ports(
        &mut self,
        plan: &Plan,
        sessions: Option<&[u16]>,
        assets: &mut dyn Assets,
    ) -> Result<(), RunError> {
        for (id, c) in plan.channels.iter().enumerate() {
            let (side, peer) = match (c.a == self.id, c.b == self.id) {
                (true, _) => (Side::A, c.b),
                (_, true) => (Side::B, c.a),
                _ => continue,
            };
            if sessions.is_some_and(|s| !s.contains(&c.session)) {
                continue;
            }
            let context = ChannelContext {
                name: c.name.clone(),
                seed: plan.seed,
                flows: port::carried(plan, id as u16),
            };
            let endpoint = assets::endpoint(&c.transport, &c.params, side, &context, assets)
                .map_err(|e| RunError::new(format!("channels.{}: {e}", c.name)))?;
            let arrives = plan.flows.iter().map(|f| port::arrival(plan, f, id as u16, self.id)).collect();
            self.port_of[id] = self.ports.len() as u16;
            let by_kernel = c.transport == kernel_tcp::NAME;
            let given = c.params.get("overhead_bytes").and_then(Value::as_u64).map(|o| o as u32);
            self.ports.push(Port {
                channel: id as u16,
                peer,
                endpoint,
                arrives,
                strays: 0,
                plain: c.transport == "udp" || by_kernel,
                overhead_bytes: given.or(by_kernel.then_some(kernel_tcp::OVERHEAD_BYTES)),
            });
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
                        self.latest[visit.component as usize].get_or_insert_default().keep(&step.other);
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
        for b in &self.boards {
            next = next.min(b.next());
        }
        for &(f, v, s) in &self.periodic {
            let step = self.flows[f as usize].visits[v as usize].as_ref().map(|v| &v.steps[s as usize]);
            next = next.min(step.and_then(|s| s.periodic.as_ref()).map_or(NEVER, |p| p.next));
        }
        for d in &self.displays {
            next = next.min(self.next_display(d));
        }
        for p in &self.ports {
            next = next.min(endpoint_time(&self.steady, p));
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
        // What is done takes time on sockets: rows bear the time at which they are written.
        for i in 0..self.robots.len() {
            self.step_robot(i, out.now(now), out);
        }
        for i in 0..self.boards.len() {
            self.tick_board(i, out.now(now), out);
        }
        for i in 0..self.periodic.len() {
            self.tick_periodic(i, out.now(now), out);
        }
        for i in 0..self.displays.len() {
            self.tick_display(i, out.now(now), out);
        }
        for i in 0..self.emitters.len() {
            self.tick_emitter(i, out.now(now), out);
        }
        for i in 0..self.ports.len() {
            if endpoint_time(&self.steady, &self.ports[i]) <= now {
                let now = out.now(now);
                self.ports[i].endpoint.handle_input(self.steady.read(now), Input::Timeout);
                self.pump(i, now, None, out);
                self.run(now, out);
            }
        }
        self.synchronise(out.now(now), out);
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

    /// A job's core time is over.
    pub fn resume<O: Outside>(&mut self, now: Time, job: u32, out: &mut O) {
        if let Some(job) = self.unpark(job) {
            self.todo.push_back(job);
            self.run(now, out);
        }
    }

    fn is_alive(&self, component: u16) -> bool {
        self.life[component as usize].is_multiple_of(2)
    }

    /// Kills a component, whose samples are lost, or restarts it: then its hooks, playout and robot begin anew.
    pub fn set_alive(&mut self, component: u16, alive: bool) {
        if self.is_alive(component) == alive {
            return;
        }
        self.life[component as usize] += 1;
        if !alive {
            return;
        }
        let visits = self.flows.iter_mut().flat_map(|f| f.visits.iter_mut().flatten());
        for visit in visits.filter(|v| v.component == component) {
            visit.steps.iter_mut().for_each(|s| s.restart(&mut *self.assets));
        }
        let robots = self.robots.iter_mut().filter(|r| r.component == component);
        robots.for_each(|r| r.restart(&mut *self.assets));
        self.latest[component as usize].iter_mut().for_each(Latest::clear);
        if self.halted {
            self.halt();
        }
    }

    /// What a component works with has died: supervisors hold, and its driver ends the run.
    fn die<O: Outside>(&mut self, now: Time, component: u16, why: String, out: &mut O) {
        if self.died.is_none() {
            out.record(Record { point: component, node: self.id, ..Record::new(now, Kind::Died) });
            self.died = Some((now, component, why));
            self.halt();
        }
    }

    /// Whether something has died without which the run cannot go on.
    pub fn has_died(&self) -> bool {
        self.died.is_some()
    }

    /// Lets supervisors hold, whatever comes; whether there are any.
    pub fn halt(&mut self) -> bool {
        self.halted = true;
        let visits = self.flows.iter_mut().flat_map(|f| f.visits.iter_mut().flatten());
        let hooks = visits.flat_map(|v| &mut v.steps).filter_map(|s| s.hook.as_mut());
        let watching = hooks.filter(|h| h.told().is_some()).map(|h| h.notice(Notice::Halt));
        watching.count() > 0
    }

    /// Puts the clock of a node forward, or back by a negative step, if it is this one.
    pub fn step_clock(&mut self, node: u16, step_ns: Time) {
        if node == self.id {
            self.clock.offset_ns = self.clock.offset_ns.saturating_add(step_ns);
        }
    }

    /// Stops or starts a flow's source; ticks in between are left out.
    pub fn set_running(&mut self, now: Time, flow: u16, running: bool) {
        for e in self.emitters.iter_mut().filter(|e| e.flow == flow && e.running != running) {
            e.running = running;
            let passed = (now - e.start_ns).max(0) as u64;
            e.tick = e.tick.max(passed.div_ceil(e.period_ns as u64));
        }
    }

    /// Counts and costs at the end: robots with a loop of their own end it.
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
            died: self.died.take(),
            failed_robots: self
                .robots
                .iter()
                .filter_map(|r| Some((r.component, r.robot.failure().or(r.refused.clone())?)))
                .collect(),
            paces: self.robots.iter_mut().filter_map(|r| Some((r.component, r.robot.pace()?))).collect(),
            failed_endpoints: self
                .ports
                .iter()
                .filter_map(|p| Some((p.channel, p.endpoint.failure()?)))
                .collect(),
            clock: match &self.sync {
                Sync::Client { client, .. } => client.estimate(),
                _ => None,
            },
            boards: self.boards.iter().map(|b| (b.component, b.line())).collect(),
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
}

/// Run time at which an endpoint wants to be called.
fn endpoint_time(steady: &NodeClock, port: &Port) -> Time {
    port.endpoint.poll_timeout().map_or(NEVER, |t| steady.when(t))
}
