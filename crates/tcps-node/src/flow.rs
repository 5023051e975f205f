//! A flow as seen at a node, with the components of the node that it visits.

use super::{board::Boards, job::Job, sparse::Sparse, step::Step};
use crate::{assets::Assets, source::Source};
use std::collections::VecDeque;
use tcps_core::{
    ids::{ChannelId, ComponentId},
    report::Visited,
    sample::PointId,
    time::Time,
};
use tcps_plan::{Codec, Direction, FlowPlan, Plan, RunError, SinkPlan};

/// Samples that may wait for a busy stage without a worker, as in a socket's buffer; more are dropped.
pub(super) const MOST_WAITING: usize = 4096;

/// A component on a flow's way, as seen at its node.
pub(super) struct Visit {
    pub(super) component: ComponentId,
    pub(super) entry: PointId,
    pub(super) exit: PointId,
    pub(super) first: bool,
    pub(super) last: bool,
    /// What arrives is shown when playout says so.
    pub(super) plays_out: bool,
    pub(super) steps: Vec<Step>,
    /// Number of the board that does the work of this component.
    pub(super) board: Option<usize>,
    /// Channel to the next component, or `NONE`.
    pub(super) channel: ChannelId,
    /// One sample at a time: a stage costs core time, or sends block.
    pub(super) serial: bool,
    pub(super) busy: bool,
    pub(super) waiting: VecDeque<Box<Job>>,
    /// Samples that may wait; more are dropped.
    pub(super) most_waiting: usize,
    /// A blocking send is in progress; what comes meanwhile waits for its turn.
    pub(super) sending: bool,
    pub(super) unsent: VecDeque<Box<Job>>,
    pub(super) visited: Visited,
}

/// A flow, as seen at a node.
pub(super) struct FlowAt {
    pub(super) codec: Codec,
    pub(super) direction: Direction,
    pub(super) priority: i32,
    pub(super) period_ns: Time,
    pub(super) authority: f64,
    pub(super) blocking_send: bool,
    pub(super) sink: SinkPlan,
    /// The source's twin at a verifying sink.
    pub(super) expected: Option<Source>,
    /// Its visits here, by their number on its path.
    pub(super) visits: Sparse<u16, Visit>,
    /// Most bytes of a frame, of flows whose stages have workers.
    frame_bytes: usize,
    /// All components on its way.
    way: Vec<ComponentId>,
}

impl FlowAt {
    pub(super) fn new(
        plan: &Plan,
        flow: &FlowPlan,
        here: impl Fn(ComponentId) -> bool,
        boards: &Boards,
        assets: &mut dyn Assets,
    ) -> Result<Self, RunError> {
        let last = flow.path.len().saturating_sub(1);
        let mut visits = Sparse::default();
        for (i, v) in flow.path.iter().enumerate() {
            if !here(v.component) {
                continue;
            }
            let component = &plan.components[v.component].name;
            let mut steps = Vec::new();
            for (n, s) in v.steps.iter().enumerate() {
                steps.push(Step::new(s, &format!("{}.{component}.{n}", flow.name), plan.seed, assets)?);
            }
            let queues = steps.iter().filter_map(|s| s.worker.as_ref().map(|w| usize::from(w.plan.queue)));
            let most_waiting = queues.min().unwrap_or(MOST_WAITING);
            let serial = flow.blocking_send || steps.iter().any(|s| s.cost.is_some());
            let visit = Visit {
                component: v.component,
                entry: PointId::entry(v.component),
                exit: PointId::exit(v.component),
                first: i == 0,
                last: i == last,
                plays_out: i == last && flow.playout.is_some(),
                steps,
                board: boards.of(v.component),
                channel: v.channel.unwrap_or(ChannelId::NONE),
                serial,
                busy: false,
                waiting: VecDeque::new(),
                most_waiting,
                sending: false,
                unsent: VecDeque::new(),
                visited: Visited::default(),
            };
            visits.push(i as u16, visit);
        }
        let verifies_here = matches!(flow.sink, SinkPlan::Verify) && visits.get(last as u16).is_some();
        Ok(Self {
            codec: flow.codec,
            direction: flow.direction,
            priority: flow.priority,
            authority: flow.authority,
            period_ns: flow.period_ns,
            blocking_send: flow.blocking_send,
            sink: flow.sink.clone(),
            expected: if verifies_here { Some(Source::open(flow, assets)?) } else { None },
            visits,
            frame_bytes: frame_bytes(flow),
            way: flow.path.iter().map(|v| v.component).collect(),
        })
    }

    /// Whether any stage here has code.
    pub(super) fn has_hooks(&self) -> bool {
        self.visits.iter().flat_map(|v| &v.steps).any(|s| s.hook.is_some())
    }

    /// Most bytes that a hook of the loop gives out: those of frames, where it handles them here.
    pub(super) fn most_bytes(&self) -> usize {
        let mut steps = self.visits.iter().flat_map(|v| &v.steps);
        let handled = steps.any(|s| s.hook.is_some() && s.worker.is_none());
        if handled {
            self.frame_bytes
        } else {
            0
        }
    }

    /// Whether a sample that has passed the entry of visit `v` has an echo point still before it.
    pub(super) fn is_ahead(&self, v: u16, target: PointId) -> bool {
        if target.is_held() {
            return self.way.last() == Some(&target.owner());
        }
        let mut rest = self.way.iter().skip(usize::from(v));
        rest.next().is_some_and(|&c| target == PointId::exit(c)) || rest.any(|&c| target.owner() == c)
    }
}

/// Most bytes that the workers of a flow's stages are given or give out; 0 without workers.
fn frame_bytes(flow: &FlowPlan) -> usize {
    let workers = flow.path.iter().flat_map(|v| &v.steps).filter_map(|s| s.worker);
    workers.map(|w| w.most_bytes as usize).max().unwrap_or(0)
}

/// Place of a direction in a pair.
pub(super) fn side(direction: Direction) -> usize {
    match direction {
        Direction::Forward => 0,
        Direction::Backward => 1,
    }
}

/// Bytes a value.
pub(super) fn width(codec: Codec) -> usize {
    match codec {
        Codec::F32 => 4,
        Codec::F64 => 8,
        Codec::Raw => 1,
    }
}
