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
    due::Item,
    job::{coded, Job},
    Node,
};
use crate::{
    outside::{News, Outside, Ride},
    sample_codec,
};
use tcps_core::{
    hook::State,
    record::{DropReason, Kind, Record},
    report::BoardLine,
    sample::{entry, exit},
    time::{Time, MS},
};
use tcps_plan::{BoardPlan, Codec, Direction, Plan, SafeOutput, SinkPlan};
use tcps_wire::board::{Role, MAX_PAYLOAD};

pub use model::{Model, MOST_RIDING};
pub use timetable::{Timetable, LOST_NS};

/// A board as its node sees it.
pub struct BoardAt {
    /// Its component.
    pub component: u16,
    /// Its line, its watchdog, what is attached.
    pub plan: BoardPlan,
    /// Flows that pass it, and what it does with them; a channel's number is its place here.
    pub channels: Vec<(u16, Role)>,
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

/// What a board is for in a flow: it drives what the flow commands, for the first such flow, and reads what it comes from.
fn role(plan: &Plan, flow: u16, master: bool, drives: bool) -> Role {
    let flow = &plan.flows[usize::from(flow)];
    let commands = (flow.direction == Direction::Backward) == master;
    match (flow.codec == Codec::F32, commands) {
        (true, true) if !drives => Role::Drive,
        (true, false) if master => Role::Capture,
        (true, false) => Role::Sense,
        _ => Role::Relay,
    }
}

/// The boards of the components that are here, and what of these flows passes them.
pub(super) fn boards(plan: &Plan, here: &[u16], flows: &[u16]) -> Vec<BoardAt> {
    let found = here.iter().filter_map(|&component| {
        let c = &plan.components[usize::from(component)];
        let board = c.board.as_ref()?;
        let mut channels: Vec<(u16, Role)> = Vec::new();
        let passes = |f: &u16| plan.flows[usize::from(*f)].path.iter().any(|v| v.component == component);
        for flow in flows.iter().copied().filter(passes) {
            let drives = channels.iter().any(|c| c.1 == Role::Drive);
            channels.push((flow, role(plan, flow, c.kind.starts_with("ms-"), drives)));
        }
        let model = Model::new(board);
        let plan = board.clone();
        Some(BoardAt { component, plan, channels, safe: false, model, counted: Counted::default() })
    });
    found.collect()
}

impl BoardAt {
    /// When its model has something to do.
    pub(super) fn next(&self) -> Time {
        self.model.next()
    }

    /// The channel and the role of a flow.
    fn channel(&self, flow: u16) -> Option<(u8, Role)> {
        let at = self.channels.iter().position(|c| c.0 == flow)?;
        Some((u8::try_from(at).ok()?, self.channels[at].1))
    }

    /// What its node has counted.
    pub(super) fn line(&self) -> BoardLine {
        let Counted { sent, answered, lost, safe } = self.counted;
        let refused_values = Some(self.model.refused());
        BoardLine { sent, answered, lost, safe, refused_values, ..BoardLine::default() }
    }
}

impl Node {
    /// The boards of this node, by number.
    pub fn boards(&self) -> &[BoardAt] {
        &self.boards
    }

    /// Sends a job to the board that it visits.
    pub(super) fn ride<O: Outside>(&mut self, now: Time, mut job: Box<Job>, board: usize, out: &mut O) {
        let flow = &self.flows[job.flow as usize];
        coded(flow.codec, &mut job);
        let Some((channel, role)) = self.boards[board].channel(job.flow) else {
            return self.end(now, job, DropReason::Line, out);
        };
        if job.bytes.len() > MAX_PAYLOAD {
            return self.end(now, job, DropReason::Malformed, out);
        }
        let bytes = std::mem::take(&mut job.bytes);
        let id = self.park(job);
        let ride = Ride { job: id, channel, bytes: &bytes };
        let taken = out.board(now, board, &ride);
        let b = &mut self.boards[board];
        let taken = taken.unwrap_or_else(|| b.model.ride(now, &ride, role));
        b.counted.sent += u64::from(taken);
        self.arm(Item::Board(board));
        if taken {
            return;
        }
        if let Some(mut job) = self.unpark(id) {
            job.bytes = bytes;
            self.end(now, job, DropReason::Line, out);
        }
    }

    /// Does what is due at a board that is modelled.
    pub(super) fn tick_board<O: Outside>(&mut self, board: usize, now: Time, out: &mut O) {
        while let Some(news) = self.boards[board].model.work(now) {
            self.hear(now, board, news, out);
        }
    }

    /// What a board tells.
    pub fn hear<O: Outside>(&mut self, now: Time, board: usize, news: News, out: &mut O) {
        match news {
            News::Answered { job, entry_ns, exit_ns, bytes } => {
                let Some(mut job) = self.unpark(job) else { return };
                self.boards[board].counted.answered += 1;
                job.bytes = bytes;
                (job.coded, job.decoded) = (true, false);
                self.passed_board(now, board, [entry_ns, exit_ns], job, out);
            }
            News::Lost { job } => {
                let Some(job) = self.unpark(job) else { return };
                self.boards[board].counted.lost += 1;
                self.end(now, job, DropReason::Line, out);
            }
            News::Safe(values) => self.went_safe(now, board, &values, out),
        }
        self.run(now, out);
    }

    /// A sample is back from its board, whose echo points answer by the board's own stamps.
    // [Polachan 2022: echoes]
    fn passed_board<O: Outside>(
        &mut self,
        now: Time,
        board: usize,
        [entry_ns, exit_ns]: [Time; 2],
        mut job: Box<Job>,
        out: &mut O,
    ) {
        let b = &mut self.boards[board];
        let component = b.component;
        let drives = b.channel(job.flow).is_some_and(|c| c.1 == Role::Drive);
        if drives && std::mem::take(&mut b.safe) {
            self.board_state(now, board, false, out);
        }
        if job.life != self.life[component as usize] {
            return self.end(now, job, DropReason::Dead, out);
        }
        let point = entry(component);
        self.stamp_at(now, entry_ns, Kind::Enter, point, &job, out);
        self.show_sample(now, point, &mut job, out);
        self.check_echo_at(now, entry_ns, point, &mut job, out);
        let point = exit(component);
        self.stamp_at(now, exit_ns, Kind::Exit, point, &job, out);
        self.show_sample(now, point, &mut job, out);
        self.check_echo_at(now, exit_ns, point, &mut job, out);
        self.go_on(now, job, out);
    }

    /// The watchdog of a board has acted: what hangs on it gets the safe output.
    fn went_safe<O: Outside>(&mut self, now: Time, board: usize, values: &[u8], out: &mut O) {
        let b = &mut self.boards[board];
        b.counted.safe += 1;
        if !std::mem::replace(&mut b.safe, true) {
            self.board_state(now, board, true, out);
        }
        let Some(flow_id) = self.driving(board) else { return };
        let flow = &self.flows[flow_id as usize];
        let last = flow.visits.last().and_then(Option::as_ref).map(|v| v.component);
        let robots = self.robots.iter_mut().filter(|_| matches!(flow.sink, SinkPlan::Robot));
        if let Some(robot) = robots.into_iter().find(|r| Some(r.component) == last) {
            let mut commands = Vec::new();
            sample_codec::decode(flow.codec, values, &mut commands);
            robot.command(now, flow_id, flow.period_ns, flow.authority, &commands);
        }
    }

    /// The flow that drives a board.
    fn driving(&self, board: usize) -> Option<u16> {
        self.boards[board].channels.iter().find(|c| c.1 == Role::Drive).map(|c| c.0)
    }

    /// A row about the state of a board's outputs.
    fn board_state<O: Outside>(&self, now: Time, board: usize, safe: bool, out: &mut O) {
        let b = &self.boards[board];
        let Some(flow) = self.driving(board) else { return };
        let stopped = match b.plan.safe {
            SafeOutput::Hold => State::Hold,
            SafeOutput::Values(_) => State::SafeStop,
        };
        let (to, from) = if safe { (stopped, State::Normal) } else { (State::Normal, stopped) };
        let value = if safe { Time::from(b.plan.watchdog_ms) * MS } else { 0 };
        let (size, detail, point, node) = (from as u32, to as u8, b.component, self.id);
        out.record(Record { value, size, detail, flow, point, node, ..Record::new(now, Kind::State) });
    }
}
