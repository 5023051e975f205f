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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::plan;
    use serde_json::{json, Value};
    use tcps_core::time::Time;

    fn refusal(changes: &[(&str, Value)]) -> Option<String> {
        plan(changes).check().err().map(|e| e.to_string())
    }

    fn hook(kind: &str, run: &str) -> Value {
        json!({"kind": kind, "run": {"kind": run, "name": "m", "symbol": "C"}})
    }

    /// Nodes, hooks and networks index lists by these numbers without looking: one past the end is the first that would panic.
    #[test]
    fn numbers_that_name_nothing_are_refused_from_the_first_on() {
        let probe =
            |flow, reply_to| json!([{"flow": flow, "points": [], "period_ns": 0, "reply_to": reply_to}]);
        for (place, good, bad, found) in [
            ("/components/0/node", json!(0), json!(2), "components.op: node 2, and there are 2"),
            ("/components/0/session", json!(0), json!(1), "components.op: session 1, and there are 1"),
            ("/channels/0/a", json!(0), json!(2), "channels.c: node 2, and there are 2"),
            ("/channels/0/b", json!(1), json!(2), "channels.c: node 2, and there are 2"),
            ("/channels/0/dscp", json!(63), json!(64), "channels.c: dscp 64, and there are 64"),
            ("/flows/0/path/2/component", json!(2), json!(3), "flows.f: component 3, and there are 3"),
            (
                "/flows/0/path/0/steps",
                json!([{"kind": "feedback", "other": [0]}]),
                json!([{"kind": "feedback", "other": [0, 1]}]),
                "flows.f: other 1, and there are 1",
            ),
            ("/probes", probe(0, 1), probe(1, 1), "probe: flow 1, and there are 1"),
            ("/probes", probe(0, 1), probe(0, 2), "probe: reply_to 2, and there are 2"),
            (
                "/sync",
                json!({"reference": 1, "period_ns": 1}),
                json!({"reference": 2, "period_ns": 1}),
                "sync: reference 2, and there are 2",
            ),
        ] {
            assert_eq!(refusal(&[(place, good)]), None, "{place}");
            assert_eq!(refusal(&[(place, bad)]), Some(format!("plan: {found}")));
        }
    }

    /// They come from scenarios, and during a run from whoever steers it.
    #[test]
    fn events_about_what_is_not_there_are_refused() {
        let attack = |link, flow| {
            let what = json!({"kind": "tamper", "flow": flow, "share": 1.0});
            json!({"kind": "attack", "link": link, "duration_ns": 1, "what": what})
        };
        let lie = json!({"kind": "attack", "link": 0, "duration_ns": 1, "what": {"kind": "clock_lie", "offset_ns": 1}});
        let flow = |flow| json!({"kind": "flow", "flow": flow, "running": false});
        let component = |component| json!({"kind": "component", "component": component, "alive": false});
        let clock = |node| json!({"kind": "clock", "node": node, "step_ns": 1});
        let traffic = |traffic: &[u16]| json!({"kind": "traffic", "traffic": traffic, "running": false});
        for (good, bad, found) in [
            (flow(0), flow(1), "flow 1, and there are 1"),
            (component(2), component(3), "component 3, and there are 3"),
            (clock(1), clock(2), "node 2, and there are 2"),
            (traffic(&[0]), traffic(&[0, 1]), "traffic 1, and there are 1"),
            (attack(0, 0), attack(1, 0), "attack.link 1, and there are 1"),
            (lie, attack(0, 1), "attack.flow 1, and there are 1"),
        ] {
            let refused = |action: Value| {
                let network = json!({
                    "links": [{"name": "l", "from": 0, "to": 1}],
                    "traffic": [{"name": "t", "from": 0, "to": 1, "model": {"kind": "cbr"}}],
                });
                let event = json!([{"at_ns": 0, "name": "e", "action": action}]);
                refusal(&[("/network", network), ("/events", event)])
            };
            assert_eq!(refused(good), None, "{found}");
            assert_eq!(refused(bad), Some(format!("plan: events.e: {found}")));
        }
    }

    /// A sample that finds no channel to its next node would never arrive.
    #[test]
    fn a_path_that_no_channel_carries_is_refused() {
        let back = json!([{"component": 2, "channel": 0}, {"component": 1}, {"component": 0}]);
        assert_eq!(refusal(&[("/flows/0/path", back)]), None, "a channel leads both ways");
        for (place, channel, step) in [
            ("/flows/0/path/1/channel", json!(null), "com to arm"),
            ("/flows/0/path/1/channel", json!(1), "com to arm"),
            ("/flows/0/path/0/channel", json!(0), "op to com"),
        ] {
            let text = format!("plan: flows.f: no channel leads from {step}");
            assert_eq!(refusal(&[(place, channel)]), Some(text));
        }
    }

    /// Shares of what operators command are divided by the sum of these: a negative or infinite one would make them no numbers.
    #[test]
    fn a_weight_is_a_number_from_0_on() {
        for (authority, is_good) in
            [(0.0, true), (2.5, true), (-0.5, false), (f64::INFINITY, false), (f64::NAN, false)]
        {
            let mut plan = plan(&[]);
            plan.flows[0].authority = authority;
            let refused = plan.check().err().map(|e| e.to_string());
            let text = "flows.f.authority: it must be 0 or more".to_string();
            assert_eq!(refused, (!is_good).then_some(text), "{authority}");
        }
    }

    /// A board only answers what comes over its line, and runs its firmware: it can neither make, end nor hook samples.
    #[test]
    fn a_board_is_between_two_components_and_has_no_hooks() {
        let board = json!({"rate_bps": 1e6, "watchdog_ms": 0, "safe": "hold", "work_us": 0});
        let hooks = |at: usize| {
            (["/flows/0/path/0/steps", "/flows/0/path/1/steps"][at], json!([hook("work", "python")]))
        };
        let at = |place: &'static str| (place, board.clone());
        let text = |name: &str| {
            Some(format!("flows.f: the board {name} must be between two components and have no hooks"))
        };
        assert_eq!(refusal(&[at("/components/1/board")]), None);
        assert_eq!(refusal(&[at("/components/1/board"), hooks(0)]), None, "hooks of another component");
        assert_eq!(refusal(&[at("/components/1/board"), hooks(1)]), text("com"));
        assert_eq!(refusal(&[at("/components/0/board")]), text("op"));
        assert_eq!(refusal(&[at("/components/2/board")]), text("arm"));
    }

    /// Its samples have no counterpart at the source: each would count as damaged.
    #[test]
    fn what_a_periodic_stage_makes_is_not_compared_with_its_source() {
        let refused = |sink: &str, period_ns: Option<Time>| {
            let steps = json!([{"kind": "predict", "period_ns": period_ns}]);
            refusal(&[("/flows/0/sink", json!({"kind": sink})), ("/flows/0/path/1/steps", steps)])
        };
        let text = refused("verify", Some(5)).expect("a refusal");
        assert!(text.starts_with("flows.f.sink: verify compares") && text.contains("at com makes"), "{text}");
        assert_eq!(refused("verify", None), None);
        assert_eq!(refused("count", Some(5)), None);
    }

    /// Values that nothing makes bytes of would stay behind at the channel, and the receiver would see the old ones.
    #[test]
    fn raw_carries_the_values_of_a_hook_only_if_a_hook_codes_them() {
        let refused = |codec: &str, at: usize, steps: &[Value]| {
            let place = format!("/flows/0/path/{at}/steps");
            refusal(&[("/flows/0/codec", json!(codec)), (&place, json!(steps))])
        };
        let (writes, codes) = (hook("kinematics", "python"), hook("code", "python"));
        let text = refused("raw", 0, std::slice::from_ref(&writes)).expect("a refusal");
        assert!(text.starts_with("flows.f.codec: raw") && text.contains("the hook at op writes"), "{text}");
        assert!(refused("raw", 1, &[codes.clone(), writes.clone()]).is_some(), "coded too early");
        let mut aside = writes.clone();
        aside["worker"] = json!({"queue": 1, "most_bytes": 1});
        for (codec, at, steps) in [
            ("f32", 0, vec![writes.clone()]),
            ("raw", 0, vec![writes.clone(), codes]),
            ("raw", 2, vec![writes]),
            ("raw", 0, vec![aside]),
            ("raw", 0, vec![hook("kinematics", "library")]),
            ("raw", 0, vec![hook("decode", "python")]),
            ("raw", 0, vec![json!({"kind": "work"})]),
        ] {
            assert_eq!(refused(codec, at, &steps), None, "{codec} {at} {steps:?}");
        }
    }

    /// One more would get the number of something else in rows, packets or captures.
    #[test]
    fn there_are_at_most_as_many_things_as_can_be_numbered() {
        type Grow = fn(&mut Plan, usize);
        let components: Grow = |plan, count| plan.components.resize(count, plan.components[0].clone());
        let channels: Grow = |plan, count| plan.channels.resize(count, plan.channels[0].clone());
        let flows: Grow = |plan, count| plan.flows.resize(count, plan.flows[0].clone());
        for (what, grow, most) in
            [("components", components, 16_384), ("channels", channels, 16_384), ("flows", flows, 32_767)]
        {
            let mut plan = plan(&[]);
            grow(&mut plan, most);
            assert_eq!(plan.check(), Ok(()), "{what}");
            grow(&mut plan, most + 1);
            let text = plan.check().expect_err(what).to_string();
            assert!(
                text.starts_with(&format!("plan: found {} {what}; at most {most}, ", most + 1)),
                "{text}"
            );
        }
    }
}
