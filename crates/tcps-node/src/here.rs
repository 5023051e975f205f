//! What every part of a node may know of it.

use std::collections::BTreeMap;
use tcps_core::{
    ids::{ComponentId, NodeId},
    record::{Kind, Record},
    sample::PointId,
    time::{NodeClock, Time, NEVER},
};
use tcps_plan::{Level, Places, Plan};

/// A node as its parts see it: its name, its clock, what it records, and which of its components live.
pub(super) struct Here {
    pub(super) id: NodeId,
    /// What stamps, hooks, playout and clock synchronisation go by: events put it forward or back.
    pub(super) clock: NodeClock,
    /// The same without steps: what timers of endpoints go by, as those of a kernel do.
    pub(super) steady: NodeClock,
    pub(super) level: Level,
    /// Periodic stages fall silent here, as sources do.
    pub(super) end: Time,
    /// How many flows the plan has.
    pub(super) flows: usize,
    /// Points here whose values are recorded, in rising order.
    signals: Vec<PointId>,
    components: Vec<ComponentId>,
    /// How often a component here died or was restarted, if it did: dead while that is odd.
    lives: BTreeMap<ComponentId, u32>,
}

impl Here {
    pub(super) fn new(plan: &Plan, places: &Places, id: NodeId, components: &[ComponentId]) -> Self {
        let clock = plan.nodes[id].clock;
        Self {
            id,
            clock,
            steady: clock,
            level: plan.records,
            end: plan.duration_ns,
            flows: plan.flows.len(),
            signals: places.signals[usize::from(id)].clone(),
            components: components.to_vec(),
            lives: BTreeMap::new(),
        }
    }

    /// Run time at which this node's clock has reached `local`.
    pub(super) fn true_time(&self, local: Option<Time>) -> Time {
        local.map_or(NEVER, |t| self.clock.when(t))
    }

    /// By how much the clock of stamps is ahead of that of timers.
    pub(super) fn stepped_ns(&self) -> Time {
        self.clock.offset_ns.saturating_sub(self.steady.offset_ns)
    }

    /// The life of a component.
    pub(super) fn life(&self, component: ComponentId) -> u32 {
        self.lives.get(&component).copied().unwrap_or(0)
    }

    pub(super) fn is_alive(&self, component: ComponentId) -> bool {
        self.life(component).is_multiple_of(2)
    }

    /// Ends the life of a component, or begins another; false if it is not here, or is as it should be.
    pub(super) fn set_alive(&mut self, component: ComponentId, alive: bool) -> bool {
        let changes = self.components.contains(&component) && self.is_alive(component) != alive;
        if changes {
            *self.lives.entry(component).or_default() += 1;
        }
        changes
    }

    /// Whether the values at a point are recorded.
    pub(super) fn shows(&self, point: PointId) -> bool {
        self.signals.binary_search(&point).is_ok()
    }

    /// A row of this node with everything else empty.
    pub(super) fn row(&self, now: Time, kind: Kind) -> Record {
        Record { node: self.id, ..Record::new(now, kind) }
    }
}
