//! A node: the sources, stages, endpoints and sinks of one computer (or of one session on it), without I/O.
//!
//! ```text
//! ticks ──► emitter ─┐                              ┌─► sink, robot
//! datagrams ► port ──┴─► visit: entry · steps · exit ┴─► port ──► datagrams
//!                          │ work ─► core   │ echo ─► aside
//! ```
//! Both drivers run this object. What differs between worlds (how time passes, how a datagram travels, what a core
//! is) is asked of `Host`; files and code that is not built in are handed in as `Assets`.

#![forbid(unsafe_code)]

mod asides;
pub mod assets;
mod board;
mod call;
mod context;
mod delegate;
mod doors;
mod due;
mod emitter;
mod flow;
mod here;
pub mod host;
mod job;
mod jobs;
mod latest;
mod marks;
mod path;
mod periodic;
mod pipeline;
mod playout;
mod port;
mod robot;
pub mod rounds;
pub mod sample_codec;
pub mod secrets;
mod signals;
mod source;
mod sparse;
mod step;
mod sync;

pub use port::channel_flows;

pub use board::{BoardAt, Model as BoardModel, Timetable, LOST_NS, MOST_RIDING};

use asides::Asides;
use assets::Assets;
use board::Boards;
use context::Context;
use doors::Doors;
use due::{Due, Item};
use emitter::Emitters;
use flow::FlowAt;
use here::Here;
use host::{BoardEvent, Host, Outcome};
use jobs::Jobs;
use pipeline::Pipeline;
use playout::Displays;
use port::Ports;
use robot::Robots;
use secrets::Secrets;
use sparse::Sparse;
use sync::Sync;
use tcps_core::{
    endpoint::Ecn,
    hook::Hook,
    ids::{ChannelId, ComponentId, FlowId, NodeId, SessionId},
    report::NodeReport,
    time::{Time, MS},
};
use tcps_plan::{Places, Plan, RunError, WorkerPlan};
use tcps_wire::Format;

/// How long a run goes on once something has died or it is to be stopped, so that supervisors hold.
pub const HALT_NS: Time = 100 * MS;

/// A node with everything that runs on it.
pub struct Node {
    here: Here,
    jobs: Jobs,
    due: Due,
    pipeline: Pipeline,
    emitters: Emitters,
    doors: Doors,
    sync: Sync,
    asides: Asides,
    /// Makes Python code again at restarts.
    assets: Box<dyn Assets + Send>,
    asides_refused: u64,
    /// Room for the content of a sealed datagram.
    opened: Vec<u8>,
}

impl Node {
    /// Node `id` of a plan, with all its sessions or only those of one loop.
    pub fn new(
        plan: &Plan,
        places: &Places,
        id: NodeId,
        sessions: Option<&[SessionId]>,
        assets: &mut dyn Assets,
        secrets: &mut dyn Secrets,
    ) -> Result<Self, RunError> {
        let here = |c: ComponentId| {
            let c = &plan.components[c];
            c.node == id && sessions.is_none_or(|s| s.contains(&c.session))
        };
        let at = usize::from(id);
        let components: Vec<ComponentId> =
            places.components[at].iter().copied().filter(|c| here(*c)).collect();
        let flows_here = &places.flows[at];
        // A camera may look at a robot: that comes first.
        let robots = Robots::new(plan, &components, assets)?;
        let boards = Boards::new(plan, &components, flows_here);
        let mut flows = Sparse::default();
        for &flow in flows_here {
            flows.push(flow, FlowAt::new(plan, &plan.flows[flow], here, &boards, assets)?);
        }
        let begin = |(id, f): (FlowId, &FlowAt)| f.visits.get(0).map(|_| id);
        let sources = flows.numbered().filter_map(begin);
        let displays = Displays::new(plan, flows_here, here)?;
        let again = assets.again();
        let emitters = Emitters::new(plan, places, sources, &robots, assets)?;
        let ports = Ports::new(plan, places, id, sessions, assets, secrets)?;
        let pipeline = Pipeline::new(flows);
        let counts = [
            robots.count(),
            boards.all().len(),
            pipeline.periodic.len(),
            displays.count(),
            emitters.count(),
            ports.count(),
        ];
        let mut node = Self {
            here: Here::new(plan, places, id, &components),
            jobs: Jobs::new(emitters.with_buffers()),
            due: Due::new(counts),
            pipeline,
            emitters,
            doors: Doors { ports, robots, boards, displays },
            sync: Sync::new(plan, id, sessions),
            asides: Asides::new(plan, id, sessions, secrets)?,
            assets: again,
            asides_refused: 0,
            opened: Vec::new(),
        };
        node.arm_all();
        Ok(node)
    }

    /// When this node wants to be woken; `NEVER` if nothing is due.
    pub fn poll_timeout(&self) -> Time {
        debug_assert!(
            self.due.items().all(|item| self.due.wish(item) == self.wish(item)),
            "something wants to be called at another moment than it was armed for"
        );
        self.jobs.next_delayed().min(self.due.next()).min(self.sync.next(&self.here)).min(self.asides.next())
    }

    /// When something wants to be called.
    #[inline]
    fn wish(&self, item: Item) -> Time {
        match item {
            Item::Robot(i) => self.doors.robots.next(i),
            Item::Board(i) => self.doors.boards.next(i),
            Item::Periodic(i) => self.pipeline.next_periodic(i),
            Item::Display(i) => self.doors.displays.next(i, &self.here),
            Item::Emitter(i) => self.emitters.next(i),
            Item::Port(i) => self.doors.ports.next(i, &self.here),
        }
    }

    /// Looks again when something wants to be called; to be asked for wherever that may have changed.
    #[inline]
    fn arm(&mut self, item: Item) {
        self.due.set(item, self.wish(item));
    }

    fn arm_all(&mut self) {
        self.due.items().for_each(|item| self.arm(item));
    }

    /// Does everything that is due at `now`.
    pub fn handle_timeout<O: Host>(&mut self, now: Time, out: &mut O) {
        self.jobs.wake(now);
        self.run(now, out);
        self.due.begin(now);
        while let Some(item) = self.due.turn() {
            // What is done takes time on sockets: rows carry the time at which they are written.
            self.call(item, out.now(now), out);
            self.arm(item);
        }
        self.sync.begin(out.now(now), &self.here, &mut self.asides, out);
        self.asides.tick(out.now(now), out);
    }

    /// Does what is due at one of its parts.
    fn call<O: Host>(&mut self, item: Item, now: Time, out: &mut O) {
        let Self { here, jobs, due, pipeline, emitters, doors, asides, .. } = self;
        let cx = &mut Context { here, jobs, due, asides, out };
        match item {
            Item::Robot(i) => {
                if let Err((component, why)) = doors.robots.step(i, now, cx) {
                    pipeline.die(now, component, why, cx);
                }
            }
            Item::Board(i) => {
                while let Some(event) = doors.boards.work(now, i) {
                    if let Some(back) = doors.boards.handle(now, i, event, &mut doors.robots, cx) {
                        pipeline.came_back(now, back, doors, cx);
                        pipeline.run(now, doors, cx);
                    }
                }
            }
            Item::Periodic(i) => pipeline.tick_periodic(i, now, doors, cx),
            Item::Display(i) => {
                doors.displays.tick(i, now, cx);
                pipeline.run(now, doors, cx);
            }
            Item::Emitter(i) => {
                while emitters.tick(i, now, &doors.robots, cx) {
                    pipeline.run(now, doors, cx);
                }
            }
            Item::Port(i) => {
                doors.ports.tick(i, now, cx);
                pipeline.run(now, doors, cx);
            }
        }
    }

    /// Moves all samples as far as they go.
    fn run<O: Host>(&mut self, now: Time, out: &mut O) {
        let Self { here, jobs, due, pipeline, doors, asides, .. } = self;
        pipeline.run(now, doors, &mut Context { here, jobs, due, asides, out });
    }

    /// A datagram of a channel has arrived: when the kernel had it, and what its IP header says of congestion.
    pub fn handle_datagram<O: Host>(
        &mut self,
        now: Time,
        channel: ChannelId,
        received: (Time, Ecn),
        bytes: &[u8],
        out: &mut O,
    ) {
        let Self { here, jobs, due, pipeline, doors, asides, .. } = self;
        let cx = &mut Context { here, jobs, due, asides, out };
        match doors.ports.receive(now, channel, received, bytes, cx) {
            true => pipeline.run(now, doors, cx),
            false => self.asides_refused += 1,
        }
    }

    /// A datagram outside channels has arrived: an echo's answer or a clock exchange.
    pub fn handle_aside<O: Host>(
        &mut self,
        now: Time,
        from: NodeId,
        received: Time,
        bytes: &[u8],
        out: &mut O,
    ) {
        let Self { here, jobs, due, sync, asides, .. } = self;
        let sealed = asides.are_sealed();
        let mut content = std::mem::take(&mut self.opened);
        let bytes = match tcps_wire::format(bytes) {
            Some(Format::Secured) if sealed => match asides.receive(now, from, bytes, out, &mut content) {
                Ok(true) => &content[..],
                Ok(false) => {
                    self.opened = content;
                    return;
                }
                Err(()) => &[],
            },
            _ if sealed => &[],
            _ => bytes,
        };
        let understood = match tcps_wire::format(bytes) {
            Some(Format::Reply) => {
                Context { here, jobs, due, asides, out }.handle_reply(now, received, bytes)
            }
            Some(Format::Clock) => sync.exchange(now, (from, received), bytes, here, asides, out),
            _ => false,
        };
        self.asides_refused += u64::from(!understood);
        self.opened = content;
    }

    /// A job's core time is over.
    pub fn resume<O: Host>(&mut self, now: Time, job: u32, out: &mut O) {
        if let Some(job) = self.jobs.unpark(job) {
            self.jobs.go(job);
            self.run(now, out);
        }
    }

    /// The hooks that want a thread of their own, by the number of their worker; from then on their samples go to
    /// `Host::delegate`.
    pub fn take_workers(&mut self) -> Vec<(Box<dyn Hook>, WorkerPlan)> {
        self.pipeline.take_workers()
    }

    /// A worker is done with a sample, which goes on.
    pub fn finished<O: Host>(&mut self, now: Time, outcome: Outcome, out: &mut O) {
        let Self { here, jobs, due, pipeline, doors, asides, .. } = self;
        pipeline.finished(now, outcome, doors, &mut Context { here, jobs, due, asides, out });
    }

    /// A worker has ended; what was wrong with the end of its hook.
    pub fn ended(&mut self, worker: u16, told: Vec<String>) {
        self.pipeline.ended(worker, told);
    }

    /// The boards of this node, by number.
    pub fn boards(&self) -> &[BoardAt] {
        self.doors.boards.all()
    }

    /// What a board tells.
    pub fn handle_board<O: Host>(&mut self, now: Time, board: usize, event: BoardEvent, out: &mut O) {
        let Self { here, jobs, due, pipeline, doors, asides, .. } = self;
        let cx = &mut Context { here, jobs, due, asides, out };
        if let Some(back) = doors.boards.handle(now, board, event, &mut doors.robots, cx) {
            pipeline.came_back(now, back, doors, cx);
            pipeline.run(now, doors, cx);
        }
    }

    /// Kills a component, whose samples are lost, or restarts it: then its hooks, playout and robot begin anew.
    pub fn set_alive(&mut self, component: ComponentId, alive: bool) {
        if !self.here.set_alive(component, alive) || !alive {
            return;
        }
        self.pipeline.restart(component, &mut *self.assets);
        if let Some(robot) = self.doors.robots.at(component) {
            robot.restart(&mut *self.assets);
        }
        self.arm_all();
    }

    /// Whether something has died without which the run cannot go on.
    pub fn has_died(&self) -> bool {
        self.pipeline.has_died()
    }

    /// Lets supervisors hold, whatever comes; whether there are any.
    pub fn halt(&mut self) -> bool {
        self.pipeline.halt()
    }

    /// Puts the clock of a node forward, or back by a negative step, if it is this one.
    pub fn step_clock(&mut self, node: NodeId, step_ns: Time) {
        if node == self.here.id {
            let clock = &mut self.here.clock;
            clock.offset_ns = clock.offset_ns.saturating_add(step_ns);
            self.arm_all();
        }
    }

    /// Stops or starts a flow's source; ticks in between are left out.
    pub fn set_running(&mut self, now: Time, flow: FlowId, running: bool) {
        if let Some(item) = self.emitters.set_running(now, flow, running) {
            self.arm(item);
        }
    }

    /// Counts and costs at the end: hooks end, and robots with a loop of their own end it.
    pub fn report(&mut self) -> NodeReport {
        let Doors { ports, robots, boards, .. } = &mut self.doors;
        NodeReport {
            stages: self.pipeline.report(),
            visits: self.pipeline.visits(),
            endpoints: ports.stats(&self.here),
            missed_ticks: self.emitters.missed + robots.missed,
            asides_refused: self.asides_refused,
            died: self.pipeline.take_died(),
            failed_robots: robots.failures(),
            paces: robots.paces(),
            failed_endpoints: ports.failures(),
            clock: self.sync.estimate(),
            boards: boards.lines(),
        }
    }
}
