//! Refuses plans whose numbers name nothing, and what cannot mean anything.

use super::{Action, ChannelPlan, CodeKind, Codec, EventPlan, FlowPlan, Plan, SinkPlan, StepPlan, VisitPlan};
use crate::{net::ASIDE_CLASS, RunError};
use tcps_core::record::StepKind;

/// Echo points of components have 15 bits, and every component has two.
const MOST_COMPONENTS: usize = 1 << 14;
/// Channels have UDP ports of their own in captures, from 47000 on.
const MOST_CHANNELS: usize = 1 << 14;
/// What is above stands for datagrams that are of no flow.
const MOST_FLOWS: usize = ASIDE_CLASS as usize;

fn below(what: &str, number: impl Into<usize>, count: usize) -> Result<(), RunError> {
    let number = number.into();
    match number < count {
        true => Ok(()),
        false => Err(RunError::config(format!("plan: {what} {number}, and there are {count}"))),
    }
}

impl Plan {
    /// Refuses numbers that name nothing, so that nothing later looks past an end.
    pub fn check(&self) -> Result<(), RunError> {
        let (nodes, components, channels) = (self.nodes.len(), self.components.len(), self.channels.len());
        at_most("components", components, MOST_COMPONENTS, "echo points are numbered with 15 bits")?;
        at_most("channels", channels, MOST_CHANNELS, "each has a UDP port of its own in captures")?;
        at_most("flows", self.flows.len(), MOST_FLOWS, "rows and packets number them with 15 bits")?;
        for c in &self.components {
            below(&format!("components.{}: node", c.name), c.node, nodes)?;
            below(&format!("components.{}: session", c.name), c.session, self.sessions.len())?;
        }
        for c in &self.channels {
            below(&format!("channels.{}: node", c.name), c.a.max(c.b), nodes)?;
            below(&format!("channels.{}: dscp", c.name), c.dscp.unwrap_or_default(), 64)?;
        }
        for flow in &self.flows {
            for visit in &flow.path {
                below(&format!("flows.{}: component", flow.name), visit.component, components)?;
            }
            for told in flow.path.iter().flat_map(|v| &v.steps).flat_map(|s| &s.other) {
                below(&format!("flows.{}: other", flow.name), *told, self.flows.len())?;
            }
            flow.path.windows(2).try_for_each(|w| self.check_step(flow, &w[0], &w[1]))?;
            if !(flow.authority.is_finite() && flow.authority >= 0.0) {
                return Err(RunError::config(format!("flows.{}.authority: it must be 0 or more", flow.name)));
            }
            self.check_verify(flow)?;
            self.check_boards(flow)?;
            self.check_raw(flow)?;
        }
        for p in &self.probes {
            below("probe: flow", p.flow, self.flows.len())?;
            below("probe: reply_to", p.reply_to, nodes)?;
        }
        self.sync.iter().try_for_each(|s| below("sync: reference", s.reference, nodes))?;
        self.events.iter().try_for_each(|e| self.check_event(e))
    }

    /// Refuses an event, of the plan or of somebody who steers the run, that is about what is not there.
    pub fn check_event(&self, e: &EventPlan) -> Result<(), RunError> {
        let of = |what: &str| format!("events.{}: {what}", e.name);
        match e.action {
            Action::Flow { flow, .. } => below(&of("flow"), flow, self.flows.len()),
            Action::Component { component, .. } => below(&of("component"), component, self.components.len()),
            Action::Clock { node, .. } => below(&of("node"), node, self.nodes.len()),
            Action::Traffic { ref traffic, .. } => {
                traffic.iter().try_for_each(|t| below(&of("traffic"), *t, self.network.traffic.len()))
            }
            Action::Attack(ref a) => {
                below(&of("attack.link"), a.link, self.network.links.len())?;
                a.what.flow().map_or(Ok(()), |flow| below(&of("attack.flow"), flow, self.flows.len()))
            }
            Action::Link(_) | Action::Reroute => Ok(()),
        }
    }

    /// A periodic stage gives samples of its own, of which the source knows nothing.
    fn check_verify(&self, flow: &FlowPlan) -> Result<(), RunError> {
        let periodic = |v: &&VisitPlan| v.steps.iter().any(|s| s.period_ns.is_some());
        let stage = flow.path.iter().find(periodic).filter(|_| matches!(flow.sink, SinkPlan::Verify));
        stage.map_or(Ok(()), |v| {
            Err(RunError::config(format!(
                "flows.{}.sink: verify compares what arrives with the source's samples, but the periodic stage at {} \
                 makes samples of its own; allowed: count, robot",
                flow.name, self.components[v.component].name
            )))
        })
    }

    /// A board is between two components and runs its firmware; it has no hooks.
    fn check_boards(&self, flow: &FlowPlan) -> Result<(), RunError> {
        let board = |v: &VisitPlan| self.components[v.component].board.is_some();
        let ends = [flow.path.first(), flow.path.last()];
        let misplaced = |v: &&VisitPlan| {
            let at_end = ends.iter().flatten().any(|e| e.component == v.component);
            board(v) && (at_end || !v.steps.is_empty())
        };
        flow.path.iter().find(misplaced).map_or(Ok(()), |v| {
            Err(RunError::config(format!(
                "flows.{}: the board {} must be between two components and have no hooks",
                flow.name, self.components[v.component].name
            )))
        })
    }

    /// Values that a hook writes travel on if something makes bytes of them: the codec, or a hook.
    fn check_raw(&self, flow: &FlowPlan) -> Result<(), RunError> {
        let mut uncoded: Option<&VisitPlan> = None;
        for visit in flow.path.iter().filter(|_| flow.codec == Codec::Raw) {
            for step in &visit.steps {
                match step.kind {
                    StepKind::Code => uncoded = None,
                    _ if writes_values(step) => uncoded = Some(visit),
                    _ => {}
                }
            }
            if let Some(at) = uncoded.filter(|_| visit.channel.is_some()) {
                return Err(RunError::config(format!(
                    "flows.{}.codec: raw carries bytes only, and nothing makes bytes of the values that the hook at \
                     {} writes; allowed: f32, f64, or a hook `code` behind it",
                    flow.name, self.components[at.component].name
                )));
            }
        }
        Ok(())
    }

    fn check_step(&self, flow: &FlowPlan, from: &VisitPlan, to: &VisitPlan) -> Result<(), RunError> {
        let node = |v: &VisitPlan| self.components[v.component].node;
        let joins =
            |c: &ChannelPlan| [c.a, c.b] == [node(from), node(to)] || [c.b, c.a] == [node(from), node(to)];
        let leads = match from.channel {
            None => node(from) == node(to),
            Some(c) => self.channels.get(c.index()).is_some_and(joins),
        };
        let name = |v: &VisitPlan| &self.components[v.component].name;
        let text =
            || format!("plan: flows.{}: no channel leads from {} to {}", flow.name, name(from), name(to));
        leads.then_some(()).ok_or_else(|| RunError::config(text()))
    }
}

/// Refuses what has more of a sort than can be numbered.
fn at_most(what: &str, found: usize, most: usize, why: &str) -> Result<(), RunError> {
    match found <= most {
        true => Ok(()),
        false => Err(RunError::config(format!(
            "plan: found {found} {what}; at most {most}, for {why}: spread them over several scenarios (shards)"
        ))),
    }
}

/// Whether a step's code writes values; a C function may write bytes anywhere, and what a worker measures goes nowhere.
fn writes_values(step: &StepPlan) -> bool {
    let native = |kind| kind != CodeKind::Library;
    step.worker.is_none()
        && step.kind != StepKind::Decode
        && step.run.as_ref().is_some_and(|run| native(run.kind))
}
