//! Boards at their node: samples go to a board over its line and come back, and the board says when it had them.
//!
//! ```text
//! component ──► line ──► [ entry · board · exit ] ──► line ──► component        the board: firmware, or the model here
//!                            both moments come back with the sample
//! ```
//! The line carries both directions of a flow, and the sample to the robot or from the hand as well: what hangs on the
//! board is simulated at its node. That way is a link of the path like the one to the com component.

mod model;
mod timetable;

use super::{
    context::Context,
    due::Item,
    job::{coded, Job},
    robot::Robots,
};
use crate::{
    host::{BoardEvent, BoardRequest, Host},
    sample_codec,
};
use tcps_core::{
    hook::State,
    ids::{ComponentId, FlowId},
    record::{DropReason, Kind, Record},
    report::BoardLine,
    time::{Time, MS},
};
use tcps_plan::{BoardPlan, Codec, Direction, Plan, SafeOutput, SinkPlan};
use tcps_wire::board::{Role, MAX_PAYLOAD};

pub use model::{Model, MOST_RIDING};
pub use timetable::{Timetable, LOST_NS};

/// A board as its node sees it.
pub struct BoardAt {
    /// Its component.
    pub component: ComponentId,
    /// Its line, its watchdog, what is attached.
    pub plan: BoardPlan,
    /// Flows that pass it, and what it does with them; a channel's number is its place here.
    pub channels: Vec<(FlowId, Role)>,
    /// What it drives.
    driven: Option<Driven>,
    /// Whether its outputs are the safe ones.
    safe: bool,
    model: Model,
    counted: Counted,
}

/// What a node counts of a board.
#[derive(Debug, Default, Clone, Copy)]
struct Counted {
    sent: u64,
    answered: u64,
    lost: u64,
    safe: u64,
}

/// The flow that drives a board.
struct Driven {
    flow: FlowId,
    codec: Codec,
    period_ns: Time,
    authority: f64,
    /// The component whose robot it commands.
    robot: Option<ComponentId>,
}

impl Driven {
    fn new(plan: &Plan, id: FlowId) -> Self {
        let flow = &plan.flows[id];
        let last = flow.path.last().map(|v| v.component);
        Self {
            flow: id,
            codec: flow.codec,
            period_ns: flow.period_ns,
            authority: flow.authority,
            robot: last.filter(|_| matches!(flow.sink, SinkPlan::Robot)),
        }
    }
}

/// What a board is for in a flow: it drives what the flow commands, for the first such flow, and reads what it comes from.
fn role(plan: &Plan, flow: FlowId, master: bool, drives: bool) -> Role {
    let flow = &plan.flows[flow];
    let commands = (flow.direction == Direction::Backward) == master;
    match (flow.codec == Codec::F32, commands) {
        (true, true) if !drives => Role::Drive,
        (true, false) if master => Role::Capture,
        (true, false) => Role::Sense,
        _ => Role::Relay,
    }
}

impl BoardAt {
    /// The channel and the role of a flow.
    fn channel(&self, flow: FlowId) -> Option<(u8, Role)> {
        let at = self.channels.iter().position(|c| c.0 == flow)?;
        Some((u8::try_from(at).ok()?, self.channels[at].1))
    }

    /// What its node has counted.
    fn line(&self) -> BoardLine {
        let Counted { sent, answered, lost, safe } = self.counted;
        let refused_values = Some(self.model.refused());
        BoardLine { sent, answered, lost, safe, refused_values, ..BoardLine::default() }
    }
}

/// What comes back of a sample that went to a board.
pub(super) enum Back {
    /// The sample, with the moments of its entry and its exit.
    Through(Box<Job>, [Time; 2]),
    /// It was lost.
    Lost(Box<Job>),
}

/// The boards of a node, in the order of components.
pub(super) struct Boards(Vec<BoardAt>);

impl Boards {
    /// The boards of the components that are here, and what of these flows passes them.
    pub(super) fn new(plan: &Plan, here: &[ComponentId], flows: &[FlowId]) -> Self {
        let found = here.iter().filter_map(|&component| {
            let c = &plan.components[component];
            let board = c.board.as_ref()?;
            let mut channels: Vec<(FlowId, Role)> = Vec::new();
            let passes = |f: &FlowId| plan.flows[*f].path.iter().any(|v| v.component == component);
            for flow in flows.iter().copied().filter(passes) {
                let drives = channels.iter().any(|c| c.1 == Role::Drive);
                channels.push((flow, role(plan, flow, c.kind.starts_with("ms-"), drives)));
            }
            let driven = channels.iter().find(|c| c.1 == Role::Drive).map(|c| Driven::new(plan, c.0));
            let model = Model::new(board);
            let plan = board.clone();
            Some(BoardAt {
                component,
                plan,
                channels,
                driven,
                safe: false,
                model,
                counted: Counted::default(),
            })
        });
        Self(found.collect())
    }

    /// All of them.
    pub(super) fn all(&self) -> &[BoardAt] {
        &self.0
    }

    /// The number of a component's board.
    pub(super) fn of(&self, component: ComponentId) -> Option<usize> {
        self.0.binary_search_by_key(&component, |b| b.component).ok()
    }

    /// When the model of one has something to do.
    pub(super) fn next(&self, board: usize) -> Time {
        self.0[board].model.next()
    }

    /// Sends a job to a board, or tells why it does not go there.
    pub(super) fn ride<O: Host>(
        &mut self,
        now: Time,
        mut job: Box<Job>,
        board: usize,
        cx: &mut Context<'_, O>,
    ) -> Result<(), (Box<Job>, DropReason)> {
        let b = &mut self.0[board];
        coded(&mut job);
        let Some((channel, role)) = b.channel(job.flow) else { return Err((job, DropReason::Line)) };
        if job.bytes.len() > MAX_PAYLOAD {
            return Err((job, DropReason::Malformed));
        }
        let bytes = std::mem::take(&mut job.bytes);
        let id = cx.jobs.park(job);
        let ride = BoardRequest { job: id, channel, bytes: &bytes };
        let taken = cx.out.board(now, board, &ride);
        let taken = taken.unwrap_or_else(|| b.model.ride(now, &ride, role));
        b.counted.sent += u64::from(taken);
        cx.due.set(Item::Board(board), b.model.next());
        let refused = if taken { None } else { cx.jobs.unpark(id) };
        refused.map_or(Ok(()), |mut job| {
            job.bytes = bytes;
            Err((job, DropReason::Line))
        })
    }

    /// What is due at a board that is modelled.
    pub(super) fn work(&mut self, now: Time, board: usize) -> Option<BoardEvent> {
        self.0[board].model.work(now)
    }

    /// What a board tells; the sample that came back of it.
    pub(super) fn handle<O: Host>(
        &mut self,
        now: Time,
        board: usize,
        event: BoardEvent,
        robots: &mut Robots,
        cx: &mut Context<'_, O>,
    ) -> Option<Back> {
        let b = &mut self.0[board];
        match event {
            BoardEvent::Answered { job, entry_ns, exit_ns, bytes } => {
                let mut job = cx.jobs.unpark(job)?;
                b.counted.answered += 1;
                job.bytes = bytes;
                (job.coded, job.decoded) = (true, false);
                let drives = b.channel(job.flow).is_some_and(|c| c.1 == Role::Drive);
                if drives && std::mem::take(&mut b.safe) {
                    b.show_state(now, false, cx);
                }
                Some(Back::Through(job, [entry_ns, exit_ns]))
            }
            BoardEvent::Lost { job } => {
                let job = cx.jobs.unpark(job)?;
                b.counted.lost += 1;
                Some(Back::Lost(job))
            }
            BoardEvent::Safe(values) => {
                b.went_safe(now, &values, robots, cx);
                None
            }
        }
    }

    /// What was counted of each, by component.
    pub(super) fn lines(&self) -> Vec<(ComponentId, BoardLine)> {
        self.0.iter().map(|b| (b.component, b.line())).collect()
    }
}

impl BoardAt {
    /// The watchdog has acted: what hangs on the board gets the safe output.
    fn went_safe<O: Host>(&mut self, now: Time, values: &[u8], robots: &mut Robots, cx: &mut Context<'_, O>) {
        self.counted.safe += 1;
        if !std::mem::replace(&mut self.safe, true) {
            self.show_state(now, true, cx);
        }
        let Some(driven) = &self.driven else { return };
        if let Some(robot) = driven.robot.and_then(|component| robots.at(component)) {
            let mut commands = Vec::new();
            sample_codec::decode(driven.codec, values, &mut commands);
            robot.command(now, driven.flow, driven.period_ns, driven.authority, &commands);
        }
    }

    /// A row about the state of a board's outputs.
    fn show_state<O: Host>(&self, now: Time, safe: bool, cx: &mut Context<'_, O>) {
        let Some(driven) = &self.driven else { return };
        let stopped = match self.plan.safe {
            SafeOutput::Hold => State::Hold,
            SafeOutput::Values(_) => State::SafeStop,
        };
        let (to, from) = if safe { (stopped, State::Normal) } else { (State::Normal, stopped) };
        let value = if safe { Time::from(self.plan.watchdog_ms) * MS } else { 0 };
        let (size, detail, point, flow) = (from as u32, to as u8, self.component.0, driven.flow);
        cx.out.record(Record { value, size, detail, flow, point, ..cx.here.row(now, Kind::State) });
    }
}
