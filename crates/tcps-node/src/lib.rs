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
mod due;
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
pub mod rounds;
pub mod sample_codec;
mod signals;
mod source;
mod sparse;
mod step;
mod sync;

pub use board::{BoardAt, Model as BoardModel, Timetable, LOST_NS, MOST_RIDING};

use assets::Assets;
use due::Item;
use emitter::Emitter;
use flow::FlowAt;
use job::Job;
use latest::Latest;
use outside::Outside;
use playout::Display;
use port::Port;
use robot::RobotAt;
use rounds::Rounds;
use serde_json::Value;
use source::Source;
use sparse::Sparse;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};
use sync::Sync;
use tcps_core::{
    endpoint::Endpoint,
    hook::Notice,
    record::{Kind, Record},
    report::NodeReport,
    time::{NodeClock, Time, MS, NEVER},
};
use tcps_plan::{Level, Places, Plan, RunError};
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
    /// Those that visit a component here.
    flows: Sparse<FlowAt>,
    /// How many the plan has.
    all_flows: usize,
    emitters: Vec<Emitter>,
    robots: Vec<RobotAt>,
    boards: Vec<BoardAt>,
    ports: Vec<Port>,
    /// Place among `ports` of each channel that ends here.
    port_of: Sparse<u16>,
    /// Periodic steps as (flow, visit, step), in that order.
    periodic: Vec<(u16, u16, u16)>,
    /// Flows that play out here.
    displays: Vec<Display>,
    /// Per component here, how often it died or was restarted: dead while that is odd.
    life: Sparse<u32>,
    /// Makes Python code again at restarts.
    assets: Box<dyn Assets + Send>,
    /// Newest values per component, where a hook may look at the other side's signal.
    latest: Sparse<Option<Latest>>,
    /// Robots, boards, periodic steps, displays, emitters and ports, which are called in this order when they are due.
    due: Rounds,
    /// The number of the first of each sort in it.
    first: [usize; 6],
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
    /// Points here whose values are recorded, in rising order.
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

impl Scratch {
    /// Room for the hooks of these flows; none where there are none.
    fn new(flows: &Sparse<FlowAt>) -> Self {
        let (values, bytes) = match flows.iter().any(FlowAt::has_hooks) {
            true => (MAX_VALUES, flows.iter().map(FlowAt::most_bytes).fold(assets::MOST_BYTES, usize::max)),
            false => (0, 0),
        };
        Self { values: vec![0.0; values], bytes: vec![0; bytes], other: Vec::new() }
    }
}

impl Node {
    /// Node `id` of a plan, with all its sessions or only those of one loop.
    pub fn new(
        plan: &Plan,
        places: &Places,
        id: u16,
        sessions: Option<&[u16]>,
        assets: &mut dyn Assets,
    ) -> Result<Self, RunError> {
        let here = |c: u16| {
            let c = &plan.components[c as usize];
            c.node == id && sessions.is_none_or(|s| s.contains(&c.session))
        };
        let at = usize::from(id);
        let components: Vec<u16> = places.components[at].iter().copied().filter(|c| here(*c)).collect();
        let flows_here = &places.flows[at];
        // A camera may look at a robot: that comes first.
        let robots = robot::robots(plan, &components, assets)?;
        let boards = board::boards(plan, &components, flows_here);
        let mut flows = Sparse::from_iter([]);
        for &flow in flows_here {
            flows.push(flow, FlowAt::new(plan, &plan.flows[usize::from(flow)], here, &boards, assets)?);
        }
        let scratch = Scratch::new(&flows);
        let mut node = Self {
            id,
            clock: plan.nodes[id as usize].clock,
            steady: plan.nodes[id as usize].clock,
            level: plan.records,
            flows,
            all_flows: plan.flows.len(),
            emitters: Vec::new(),
            robots,
            boards,
            ports: Vec::new(),
            port_of: Sparse::from_iter([]),
            periodic: Vec::new(),
            displays: playout::displays(plan, flows_here, here)?,
            life: components.iter().map(|c| (*c, 0)).collect(),
            assets: assets.again(),
            latest: components.iter().map(|c| (*c, None)).collect(),
            due: Rounds::default(),
            first: [0; 6],
            sync: sync::sync(plan, id, sessions),
            todo: VecDeque::new(),
            parked: Vec::new(),
            free: Vec::new(),
            pool: Vec::new(),
            delayed: BinaryHeap::new(),
            order: 0,
            datagram: Vec::with_capacity(2048),
            scratch,
            missed_ticks: 0,
            asides_refused: 0,
            signals: places.signals[at].clone(),
            end: plan.duration_ns,
            died: None,
            halted: false,
        };
        node.add_emitters(plan, places, assets)?;
        node.add_ports(plan, places, sessions, assets)?;
        node.find_hooks();
        node.number_all();
        node.arm_all();
        Ok(node)
    }

    fn add_emitters(
        &mut self,
        plan: &Plan,
        places: &Places,
        assets: &mut dyn Assets,
    ) -> Result<(), RunError> {
        for (id, at) in self.flows.numbered() {
            if at.visits.first().is_some_and(Option::is_some) {
                let flow = &plan.flows[usize::from(id)];
                let robot = robot::of(&self.robots, flow.path[0].component);
                let probe = places.probe[usize::from(id)].map(|p| &plan.probes[p]);
                let source = Source::open(flow, assets)?;
                let (end, seed) = (plan.duration_ns, plan.seed);
                self.emitters.push(Emitter::new(id, flow, source, probe, robot, end, seed)?);
            }
        }
        Ok(())
    }

    fn add_ports(
        &mut self,
        plan: &Plan,
        places: &Places,
        sessions: Option<&[u16]>,
        assets: &mut dyn Assets,
    ) -> Result<(), RunError> {
        for &id in &places.channels[usize::from(self.id)] {
            let c = &plan.channels[usize::from(id)];
            let (side, peer) = if c.a == self.id { (Side::A, c.b) } else { (Side::B, c.a) };
            if sessions.is_some_and(|s| !s.contains(&c.session)) {
                continue;
            }
            let carried = &places.carried[usize::from(id)];
            let flows = port::carried(plan, id, carried);
            let context = ChannelContext { name: c.name.clone(), seed: plan.seed, flows };
            let endpoint = assets::endpoint(&c.transport, &c.params, side, &context, assets)
                .map_err(|e| RunError::new(format!("channels.{}: {e}", c.name)))?;
            let arrival = |f: &u16| (*f, port::arrival(plan, &plan.flows[usize::from(*f)], id, self.id));
            let arrives = carried.iter().map(arrival).collect();
            self.port_of.push(id, self.ports.len() as u16);
            let by_kernel = c.transport == kernel_tcp::NAME;
            let given = c.params.get("overhead_bytes").and_then(Value::as_u64).map(|o| o as u32);
            self.ports.push(Port {
                channel: id,
                peer,
                endpoint,
                arrives,
                strays: 0,
                plain: tcps_transport::has_plain_header(&c.transport),
                overhead_bytes: given.or(by_kernel.then_some(kernel_tcp::OVERHEAD_BYTES)),
            });
        }
        Ok(())
    }

    fn find_hooks(&mut self) {
        for (f, flow) in self.flows.numbered() {
            for (v, visit) in flow.visits.iter().enumerate() {
                let Some(visit) = visit else { continue };
                for (s, step) in visit.steps.iter().enumerate() {
                    if step.periodic.is_some() {
                        self.periodic.push((f, v as u16, s as u16));
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
        debug_assert!(
            self.is_armed(),
            "something wants to be called at another moment than it was armed for"
        );
        let delayed = self.delayed.peek().map_or(NEVER, |Reverse((t, ..))| *t);
        let exchange = match &self.sync {
            Sync::Client { client, .. } => self.true_time(client.poll_timeout()),
            _ => NEVER,
        };
        delayed.min(self.due.next()).min(exchange)
    }

    /// Run time at which this node's clock has reached `local`.
    fn true_time(&self, local: Option<Time>) -> Time {
        local.map_or(NEVER, |t| self.clock.when(t))
    }

    /// Does everything that is due at `now`.
    pub fn handle_timeout<O: Outside>(&mut self, now: Time, out: &mut O) {
        self.wake_delayed(now);
        self.run(now, out);
        self.due.begin(now);
        while let Some(item) = self.turn() {
            // What is done takes time on sockets: rows bear the time at which they are written.
            let now = out.now(now);
            match item {
                Item::Robot(i) => self.step_robot(i, now, out),
                Item::Board(i) => self.tick_board(i, now, out),
                Item::Periodic(i) => self.tick_periodic(i, now, out),
                Item::Display(i) => self.tick_display(i, now, out),
                Item::Emitter(i) => self.tick_emitter(i, now, out),
                Item::Port(i) => self.tick_port(i, now, out),
            }
            self.arm(item);
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
        let Some(life) = self.life.get_mut(usize::from(component)) else { return };
        if life.is_multiple_of(2) == alive {
            return;
        }
        *life += 1;
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
        self.arm_all();
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
            self.arm_all();
        }
    }

    /// Stops or starts a flow's source; ticks in between are left out.
    pub fn set_running(&mut self, now: Time, flow: u16, running: bool) {
        let Some(i) = emitter::of(&self.emitters, flow) else { return };
        let e = &mut self.emitters[i];
        if e.running != running {
            e.running = running;
            let passed = (now - e.start_ns).max(0) as u64;
            e.tick = e.tick.max(passed.div_ceil(e.period_ns as u64));
            self.arm(Item::Emitter(i));
        }
    }

    /// Counts and costs at the end: robots with a loop of their own end it.
    pub fn report(&mut self) -> NodeReport {
        let mut stages = Vec::new();
        for (f, flow) in self.flows.numbered_mut() {
            for visit in flow.visits.iter_mut().flatten() {
                for s in &mut visit.steps {
                    let stats = std::mem::take(&mut s.stats);
                    stages.push((visit.component, f, s.kind, s.name.clone(), stats));
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
