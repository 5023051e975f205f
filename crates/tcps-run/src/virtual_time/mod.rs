//! The virtual driver: one thread, the earliest event first, the same bytes for the same seed.
//!
//! ```text
//!  scenario events ─┐
//!  network ─────────┤ earliest (time, rank) ─► node ─► Host ─► network, cores, recorder
//!  cores ───────────┤
//!  nodes ───────────┘
//! ```
//! At one moment scenario events come before attackers, these before the network, the network before datagrams that cross the boundary of a node,
//! these before cores, cores before nodes, nodes in the order of the plan, and samples queues last.

mod host;
mod ledger;

use crate::assets::Disk;
use crate::{
    boundary::Crossing,
    carrier::{Carrier, ForeignSpec},
    kernel_tcp, network_rows,
};
use host::{InFlight, SimHost};
use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};
use tcps_core::{
    ids::{ChannelId, ComponentId, NodeId},
    record::{Kind, Record},
    time::{Time, NEVER},
};
use tcps_net::ForeignCode;
use tcps_net::NetEvent;
use tcps_node::{assets::Assets, rounds::Rounds, secrets::Seeded, Node, HALT_NS};
use tcps_plan::{
    report::{self, Report, Split},
    Action, EventPlan, Places, Plan, RunError,
};

/// Steps between looks at the machine's clock.
const STEPS_PER_LOOK: u64 = 1 << 8;
/// Time between calls of `Options::progress`.
const PROGRESS_EVERY: Duration = Duration::from_millis(20);

/// Where a virtual run writes, and who hears of its progress.
pub struct Options<'a> {
    /// File of rows; absent: only the hash.
    pub records: Option<&'a Path>,
    /// Capture of all packets at nodes.
    pub pcapng: Option<&'a Path>,
    /// Called now and then with the simulated time; with `every_ns` also with where the time of samples went until then.
    pub progress: Option<Progress<'a>>,
    /// Simulated time between calls of it, for who watches; rows from before a call are then handed to the disk.
    pub every_ns: Option<Time>,
}

/// What is told how far a run is.
pub type Progress<'a> = &'a mut dyn FnMut(Time, Vec<Split>) -> Goes;

/// How a run goes on after its progress was told.
pub enum Goes {
    /// It stops.
    Stop,
    /// It goes on, with these events beside those of its plan; those of the past take place now.
    On(Vec<EventPlan>),
}

/// Runs a plan in virtual time.
pub fn run(plan: &Plan, assets: &mut dyn Assets, options: Options<'_>) -> Result<Report, RunError> {
    run_over(plan, assets, options, None, &mut Disk)
}

/// Runs a plan in virtual time over the network that another program simulates, if one is named; `code` makes what
/// the user wrote for the built-in one.
pub fn run_over(
    plan: &Plan,
    assets: &mut dyn Assets,
    options: Options<'_>,
    foreign: Option<&ForeignSpec>,
    code: &mut dyn ForeignCode,
) -> Result<Report, RunError> {
    kernel_tcp::refuse(plan, "simulated nodes have no kernel")?;
    let mut driver = Driver::new(plan, assets, &options, foreign, code)?;
    let begun = Instant::now();
    let interrupted = driver.simulate(options.progress, options.every_ns);
    driver.finish(begun, interrupted)
}

struct Driver<'p> {
    plan: &'p Plan,
    world: SimHost,
    nodes: Vec<Node>,
    wakes: Rounds,
    /// Those of the plan, and those that came while it ran.
    all_events: Vec<EventPlan>,
    /// Numbers of those to come, the next one last.
    events: Vec<usize>,
    probe_at: Time,
    errors: Vec<String>,
    steps: u64,
    now: Time,
    /// Something has died at a node.
    dead: bool,
    /// When the run ends because of that.
    last: Time,
}

impl<'p> Driver<'p> {
    fn new(
        plan: &'p Plan,
        assets: &mut dyn Assets,
        options: &Options<'_>,
        foreign: Option<&ForeignSpec>,
        code: &mut dyn ForeignCode,
    ) -> Result<Self, RunError> {
        plan.check()?;
        let network = Carrier::new(plan, foreign, false, code)?;
        let places = Places::new(plan);
        let has_robot =
            |id: &NodeId| places.components[*id].iter().any(|&c| plan.components[c].robot.is_some());
        // A camera may look at a robot of another node: those come first.
        let (first, others): (Vec<_>, Vec<_>) =
            NodeId::each(&plan.nodes).map(|(id, _)| id).partition(has_robot);
        let mut nodes = BTreeMap::new();
        for id in first.into_iter().chain(others) {
            nodes.insert(id, Node::new(plan, &places, id, None, assets, &mut Seeded(plan.seed))?);
        }
        let nodes: Vec<Node> = nodes.into_values().collect();
        let mut events: Vec<usize> = (0..plan.events.len()).collect();
        events.sort_by_key(|&i| std::cmp::Reverse((plan.events[i].at_ns, i)));
        let world = SimHost::new(plan, network, options.records, options.pcapng)?;
        let wakes = Rounds::new(nodes.len());
        let probe_at = if plan.queue_probe_ns.is_some() { 0 } else { NEVER };
        let mut driver = Self {
            plan,
            world,
            nodes,
            wakes,
            all_events: plan.events.clone(),
            events,
            probe_at,
            errors: Vec::new(),
            steps: 0,
            now: 0,
            dead: false,
            last: NEVER,
        };
        (0..driver.nodes.len()).for_each(|id| driver.set_timer(id));
        Ok(driver)
    }

    /// Looks again when a node wants to be woken, and whether it has died; to be asked for whatever it has done.
    fn set_timer(&mut self, id: usize) {
        self.wakes.set(id, self.world.boundary.wakes(id, self.nodes[id].poll_timeout()));
        self.dead |= self.nodes[id].has_died();
    }

    /// Works off all events; true if it was interrupted.
    fn simulate(&mut self, progress: Option<Progress<'_>>, every_ns: Option<Time>) -> bool {
        let end = self.plan.duration_ns;
        let mut told = Instant::now();
        let (mut progress, every_ns) = (progress, every_ns.map(|every_ns| every_ns.max(1)));
        let mut tell_at = every_ns.unwrap_or(NEVER);
        while self.step(end) {
            if self.world.cannot_write() || self.ends_early() {
                return true;
            }
            let due = self.steps.is_multiple_of(STEPS_PER_LOOK) && told.elapsed() >= PROGRESS_EVERY;
            if due || self.now >= tell_at {
                told = Instant::now();
                let mut split = Vec::new();
                if let Some(every_ns) = every_ns {
                    tell_at = self.now.saturating_add(every_ns);
                    self.world.recorder.flush();
                    split = report::splits(self.plan, self.world.ledger.flows(), &[]);
                }
                match progress.as_mut().map(|p| p(self.now, split)) {
                    Some(Goes::Stop) => return true,
                    Some(Goes::On(events)) => self.add(events),
                    None => {}
                }
            }
        }
        false
    }

    /// Whether something has died at a node, and supervisors have had time to hold.
    fn ends_early(&mut self) -> bool {
        if self.last == NEVER && self.dead {
            self.last = self.now + HALT_NS;
        }
        self.now >= self.last
    }

    /// The next moment at which something happens; false when that is at or after the end.
    fn step(&mut self, end: Time) -> bool {
        let event = self.next_event();
        let cpu = self.world.cores.next();
        let node = self.wakes.next();
        let crossing = self.world.boundary.next();
        let attack = self.world.attacker.next();
        let beside = event.min(attack).min(crossing).min(cpu).min(node).min(self.probe_at);
        let network = self.world.network.next_before(beside.min(end));
        // A deadline by a clock that was put forward lies in the past: it is late, and time does not go back to it.
        let now = beside.min(network).max(self.now);
        if now >= end {
            return false;
        }
        self.now = now;
        self.steps += 1;
        while self.next_event() <= now {
            self.apply_event();
        }
        if attack <= now {
            self.attack();
        }
        if network <= now {
            self.world.network.handle_timeout(now);
            self.carry();
        }
        if crossing <= now {
            self.cross();
        }
        if cpu <= now {
            self.finish_work();
        }
        if node <= now {
            self.wake_nodes();
        }
        if self.probe_at <= now {
            self.probe_queues();
        }
        true
    }

    fn next_event(&self) -> Time {
        self.events.last().map_or(NEVER, |&i| self.all_events[i].at_ns)
    }

    fn wake_nodes(&mut self) {
        self.wakes.begin(self.now);
        while let Some(id) = self.wakes.turn() {
            self.world.at = NodeId(id as u16);
            self.nodes[id].handle_timeout(self.now, &mut self.world);
            self.set_timer(id);
            self.carry();
        }
    }

    fn finish_work(&mut self) {
        self.world.cores.begin(self.now);
        while let Some(id) = self.world.cores.turn() {
            while let Some(job) = self.world.cpus[id].poll_done(self.now) {
                self.world.at = NodeId(id as u16);
                self.nodes[id].resume(self.now, job, &mut self.world);
                self.set_timer(id);
                self.carry();
            }
            self.world.cores.set(id, self.world.cpus[id].poll_timeout());
        }
    }

    /// Takes what the network gives out, and what needs no network, to the nodes.
    fn carry(&mut self) {
        loop {
            if let Some((to, flight)) = self.world.direct.pop_front() {
                self.deliver(to, flight);
                continue;
            }
            match self.world.network.poll_event() {
                None => return self.world.record_hops(),
                Some(NetEvent::Arrived { packet, spent, .. }) => {
                    self.world.passed(&packet, spent);
                    self.deliver(NodeId(packet.dst.0), packet.payload);
                }
                Some(NetEvent::Duplicated { packet, .. }) => {
                    self.world.flights[packet.payload as usize].copies += 1
                }
                Some(NetEvent::Dropped { at, packet, link, reason }) => {
                    self.world.drop_packet(at, &packet, link, reason);
                }
            }
        }
    }

    /// Takes datagrams across the boundaries of nodes.
    fn cross(&mut self) {
        while let Some(crossing) = self.world.boundary.across(self.now) {
            match crossing {
                Crossing::Out { from, packet } => {
                    self.world.at = from;
                    self.world.enter(self.now, packet);
                }
                Crossing::In { to, flight, arrived } => self.hand_over(to, flight, arrived),
            }
            self.carry();
        }
    }

    fn deliver(&mut self, to: NodeId, flight: u32) {
        if !self.world.boundary.waits(self.now, to, flight) {
            self.hand_over(to, flight, self.now);
        }
    }

    fn hand_over(&mut self, to: NodeId, flight: u32, arrived: Time) {
        let bytes = std::mem::take(&mut self.world.flights[flight as usize].bytes);
        let InFlight { from, channel, ecn, attack, .. } = self.world.flights[flight as usize];
        if let Some(row) = attack {
            self.world.receive_attack(channel, arrived, row);
        }
        self.world.at = to;
        let node = &mut self.nodes[to];
        if channel == ChannelId::NONE {
            node.handle_aside(self.now, from, arrived, &bytes, &mut self.world);
        } else {
            (self.world.received, self.world.completed) = (Some((flight, arrived)), false);
            node.handle_datagram(self.now, channel, (arrived, ecn), &bytes, &mut self.world);
            self.world.received = None;
            if !self.world.completed {
                let flight = &self.world.flights[flight as usize];
                self.world.ledger.pass(
                    channel,
                    flight.flow,
                    flight.index,
                    &flight.transit(arrived, self.now),
                );
            }
        }
        self.set_timer(to.index());
        self.world.flights[flight as usize].bytes = bytes;
        self.world.let_go(flight);
    }

    /// Takes events that came while it runs.
    fn add(&mut self, events: Vec<EventPlan>) {
        for mut event in events {
            event.at_ns = event.at_ns.max(self.now);
            let at = self.events.partition_point(|&id| self.all_events[id].at_ns > event.at_ns);
            self.events.insert(at, self.all_events.len());
            self.all_events.push(event);
        }
    }

    fn apply_event(&mut self) {
        let Some(id) = self.events.pop() else { return };
        let now = self.now;
        let event = self.all_events[id].clone();
        match &event.action {
            Action::Link(change) => {
                for link in &change.links {
                    if let Err(e) = self.world.network.change_link(now, *link, change) {
                        self.errors.push(format!("events.{}: {e}", event.name));
                    }
                }
            }
            Action::Reroute => self.world.network.reroute(now),
            Action::Traffic { traffic, running } => {
                traffic.iter().for_each(|t| self.world.network.set_traffic(now, *t, *running));
            }
            Action::Flow { flow, running } => {
                if let Some(first) = self.plan.flows[*flow].path.first() {
                    self.at_node(self.node_of(first.component), |n| n.set_running(now, *flow, *running));
                }
            }
            Action::Component { component, alive } => {
                self.at_node(self.node_of(*component), |n| n.set_alive(*component, *alive));
            }
            Action::Attack(attack) => {
                let SimHost { attacker, network, .. } = &mut self.world;
                let (event, route) = ((id as u32, event.name.as_str()), |from, to| network.route(from, to));
                if let Err(e) = attacker.begin(now, self.plan, event, attack, &route) {
                    self.errors.push(e.to_string());
                }
            }
            Action::Clock { node, step_ns } => self.at_node(*node, |n| n.step_clock(*node, *step_ns)),
        }
        self.world.recorder.push(&Record { index: id as u32, ..Record::new(now, Kind::Event) });
        self.carry();
    }

    fn node_of(&self, component: ComponentId) -> NodeId {
        self.plan.components[component].node
    }

    fn at_node(&mut self, node: NodeId, act: impl Fn(&mut Node)) {
        act(&mut self.nodes[node]);
        self.set_timer(usize::from(node));
    }

    fn attack(&mut self) {
        while let Some(shot) = self.world.attacker.poll_shot(self.now) {
            self.world.shoot(self.now, &shot);
            self.carry();
        }
    }

    fn probe_queues(&mut self) {
        for link in network_rows::queued_links(self.plan) {
            let found = self.world.network.queue(self.now, link);
            self.world.recorder.push(&network_rows::queue(self.now, link, found));
        }
        self.probe_at += self.plan.queue_probe_ns.unwrap_or(NEVER).max(1);
    }

    fn finish(mut self, begun: Instant, interrupted: bool) -> Result<Report, RunError> {
        let end = if interrupted { self.now } else { self.plan.duration_ns };
        self.world.network.handle_timeout(end);
        self.world.network.settle_passages();
        self.world.record_hops();
        let (links, traffic) = self.world.network.accounts();
        if let Some(why) = self.world.network.failure() {
            return Err(RunError::world(why));
        }
        let busy = self.world.cpus.iter().map(|c| c.busy_ns(end)).collect::<Vec<_>>();
        if let Some(capture) = self.world.capture.take() {
            capture.finish()?;
        }
        let recorded = self.world.recorder.finish()?;
        let simulate_s = begun.elapsed().as_secs_f64();
        let nodes: Vec<_> = self.nodes.iter_mut().map(Node::report).collect();
        let mut report = Report::new(recorded.rows, recorded.sha256, interrupted);
        report.simulate_s = simulate_s;
        report.events = self.steps;
        report.errors = self.errors;
        report.errors.extend(self.world.network.failures());
        let hops = self.world.network.hops();
        report.split = report::splits(self.plan, self.world.ledger.flows(), &hops);
        report.accounts(links, traffic);
        for (id, node) in nodes.into_iter().enumerate() {
            report.node(self.plan, NodeId(id as u16), node);
            report.virtual_node(id, busy[id]);
        }
        report::true_clock_errors(self.plan, &mut report.clocks);
        Ok(report)
    }
}
