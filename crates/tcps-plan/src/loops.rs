//! Which sessions of a node share a loop, and which loops run Python code.

use super::{ChannelPlan, CodeKind, CodePlan, Plan};
use serde_json::Value;
use std::collections::BTreeMap;
use tcps_core::ids::{ComponentId, NodeId, SessionId};

impl Plan {
    /// The sessions of each loop of a node: one session each, but those that share a component share a loop.
    pub fn loops(&self, node: NodeId) -> Vec<Vec<SessionId>> {
        // Sessions by the lowest one that they share a loop with, as far as is known.
        let mut lowest: BTreeMap<SessionId, SessionId> = BTreeMap::new();
        let own = self.components.iter().filter(|c| c.node == node).map(|c| [c.session, c.session]);
        let visits =
            self.flows.iter().flat_map(|f| f.path.iter().map(move |v| (f, &self.components[v.component])));
        for pair in own.chain(visits.filter(|(_, c)| c.node == node).map(|(f, c)| [f.session, c.session])) {
            let [a, b] = pair.map(|session| lead(&mut lowest, session));
            lowest.insert(a.max(b), a.min(b));
        }
        let mut loops: BTreeMap<SessionId, Vec<SessionId>> = BTreeMap::new();
        for session in lowest.keys().copied().collect::<Vec<_>>() {
            loops.entry(lead(&mut lowest, session)).or_default().push(session);
        }
        loops.into_values().collect()
    }

    /// Whether any node runs Python code.
    pub fn runs_python(&self) -> bool {
        let mut steps = self.flows.iter().flat_map(|f| &f.path).flat_map(|v| &v.steps);
        steps.any(|s| s.run.as_ref().is_some_and(is_python))
            || self.components.iter().any(|c| c.robot.as_ref().is_some_and(|r| is_python(&r.run)))
            || self.channels.iter().any(ChannelPlan::is_python)
            || self.network.codes().any(|code| is_python(&CodePlan::named(&code.kind, Value::Null)))
    }

    /// What of a loop at a node is Python code.
    pub fn needs_python(&self, node: NodeId, sessions: &[SessionId]) -> Need {
        let here = |c: ComponentId| {
            let c = &self.components[c];
            c.node == node && sessions.contains(&c.session)
        };
        let visits = self.flows.iter().flat_map(|f| &f.path).filter(|v| here(v.component));
        let steps = visits.flat_map(|v| &v.steps).filter(|s| s.run.as_ref().is_some_and(is_python));
        let (aside, inside): (Vec<_>, Vec<_>) = steps.partition(|s| s.worker.is_some());
        let mut robots = self.components.iter().filter(|c| c.node == node && sessions.contains(&c.session));
        let mut channels =
            self.channels.iter().filter(|c| (c.a == node || c.b == node) && sessions.contains(&c.session));
        let inside = channels.any(ChannelPlan::is_python)
            || !inside.is_empty()
            || robots.any(|c| c.robot.as_ref().is_some_and(|r| is_python(&r.run)));
        match (inside, aside.is_empty()) {
            (true, _) => Need::Loop,
            (false, false) => Need::Workers,
            (false, true) => Need::None,
        }
    }
}

/// The lowest session of the loop of a session, which is remembered.
fn lead(lowest: &mut BTreeMap<SessionId, SessionId>, session: SessionId) -> SessionId {
    let next = *lowest.entry(session).or_insert(session);
    if next == session {
        return session;
    }
    let lead = lead(lowest, next);
    lowest.insert(session, lead);
    lead
}

impl ChannelPlan {
    /// Whether its endpoints, or what parameters of theirs name, are Python.
    fn is_python(&self) -> bool {
        let named = |value: &Value| value.get("kind").is_some_and(|kind| kind == "python");
        let params = self.params.as_object();
        is_python(&CodePlan::named(&self.transport, Value::Null))
            || params.is_some_and(|p| p.values().any(named))
    }
}

/// Whether code, the agent of a supervisor or the plant of a step is Python.
fn is_python(code: &CodePlan) -> bool {
    let within = ["/agent/kind", "/plant/run/kind"].map(|place| code.params.pointer(place));
    code.kind == CodeKind::Python || within.into_iter().flatten().any(|kind| kind == "python")
}

/// What of a loop is Python code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Nothing.
    None,
    /// Stages in threads of their own only: the loop itself never waits for the interpreter.
    Workers,
    /// Something that the loop calls itself.
    Loop,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_loop_needs_the_interpreter_only_for_what_it_calls_itself() {
        let need = |worker: Value, robot: Value| {
            let plan: Plan = serde_json::from_value(json!({
                "name": "p", "seed": 1, "duration_ns": 1, "sessions": ["a"], "nodes": [{"name": "left"}],
                "components": [{"name": "eye", "kind": "x", "session": 0, "node": 0, "robot": robot}],
                "flows": [{"name": "f", "session": 0, "direction": "backward", "period_ns": 1, "codec": "raw",
                           "source": {"kind": "generated", "bytes": 0}, "sink": {"kind": "count"},
                           "path": [{"component": 0, "steps": [
                               {"kind": "capture", "run": {"kind": "python", "name": "m", "symbol": "C"}, "worker": worker}]}]}],
            }))
            .expect("a plan");
            plan.needs_python(NodeId(0), &[SessionId(0)])
        };
        let worker = json!({"queue": 2, "most_bytes": 100});
        let robot =
            json!({"run": {"kind": "python", "name": "m", "symbol": "R"}, "period_ns": 1, "senses": 1});
        assert_eq!(need(worker.clone(), Value::Null), Need::Workers);
        assert_eq!(need(Value::Null, Value::Null), Need::Loop);
        assert_eq!(need(worker.clone(), robot), Need::Loop);
        let plant = json!({"kind": "code", "run": {"kind": "python", "name": "m", "symbol": "P"}});
        let run = json!({"kind": "builtin", "name": "step", "params": {"plant": plant}});
        let step = json!({"run": run, "period_ns": 1, "senses": 1});
        assert_eq!(need(worker, step), Need::Loop);
    }

    #[test]
    fn only_loops_at_the_ends_of_a_channel_need_its_python() {
        let by_name = json!({"transport": "/a/mine.py:Mine"});
        let by_parameter =
            json!({"transport": "dpm", "params": {"controller": {"kind": "python", "name": "m"}}});
        for python in [by_name, by_parameter, json!({"transport": "udp", "params": {"rate_bps": 1}})] {
            let mut channel = json!({"name": "c", "session": 0, "a": 0, "b": 1});
            channel.as_object_mut().unwrap().extend(python.as_object().unwrap().clone());
            let plan: Plan = serde_json::from_value(json!({
                "name": "p", "seed": 1, "duration_ns": 1, "sessions": ["a", "b"], "components": [], "flows": [],
                "nodes": [{"name": "left"}, {"name": "right"}, {"name": "far"}], "channels": [channel],
            }))
            .expect("a plan");
            let is = plan.runs_python();
            assert_eq!(is, python["transport"] != "udp");
            for (node, session, ends) in [(0, 0, true), (1, 0, true), (2, 0, false), (0, 1, false)] {
                let found = plan.needs_python(NodeId(node), &[SessionId(session)]);
                assert_eq!(
                    found,
                    if is && ends { Need::Loop } else { Need::None },
                    "{python} {node} {session}"
                );
            }
        }
    }

    #[test]
    fn sessions_that_share_a_robot_share_its_loop() {
        let component = |name: &str, session: u16, node: NodeId| json!({"name": name, "kind": "x", "session": session, "node": node});
        let flow = |session: u16, from: u16, to: u16| {
            json!({"name": "f", "session": session, "direction": "forward", "period_ns": 1, "codec": "raw",
                   "source": {"kind": "generated", "bytes": 1}, "sink": {"kind": "count"},
                   "path": [{"component": from, "channel": 0}, {"component": to}]})
        };
        let plan: Plan = serde_json::from_value(json!({
            "name": "p", "seed": 1, "duration_ns": 1, "sessions": ["a", "b", "c"],
            "nodes": [{"name": "left"}, {"name": "right"}],
            "components": [component("op-a", 0, NodeId(0)), component("op-b", 1, NodeId(0)), component("robot", 0, NodeId(1)), component("c", 2, NodeId(1))],
            "flows": [flow(0, 0, 2), flow(1, 1, 2)],
        }))
        .expect("a plan");
        assert!(!plan.runs_python());
        let loops = |node| {
            plan.loops(node).into_iter().map(|l| l.iter().map(|s| s.0).collect()).collect::<Vec<Vec<_>>>()
        };
        assert_eq!(loops(NodeId(0)), [[0], [1]]);
        assert_eq!(loops(NodeId(1)), [vec![0, 1], vec![2]]);
    }

    /// A run without the interpreter cannot call what it needs, and one with it is slower.
    #[test]
    fn one_piece_of_python_anywhere_makes_a_run_need_it() {
        use crate::tests::plan;
        let run = |kind: &str| json!({"kind": kind, "name": "m", "symbol": "C"});
        let hook = |kind| ("/flows/0/path/1/steps", json!([{"kind": "work", "run": run(kind)}]));
        let robot = |kind| ("/components/2/robot", json!({"run": run(kind), "period_ns": 1, "senses": 1}));
        let channel = |transport: &str| ("/channels/0/transport", json!(transport));
        let network = |loss: &str| {
            ("/network", json!({"links": [{"name": "l", "from": 0, "to": 1, "loss": {"kind": loss}}]}))
        };
        let without = [hook("builtin"), robot("library"), channel("tcp"), network("/l.so:l")];
        assert!(!plan(&without).runs_python());
        for (at, python) in
            [hook("python"), robot("python"), channel("m:C"), network("m:C")].into_iter().enumerate()
        {
            let mut changes = without.clone();
            changes[at] = python;
            assert!(plan(&changes).runs_python(), "{}", changes[at].0);
        }
    }

    /// Else a loop would wait for the interpreter on account of another session, or of another node.
    #[test]
    fn only_the_loop_of_its_session_and_node_needs_the_python_of_a_component() {
        let run = json!({"kind": "python", "name": "m", "symbol": "C"});
        let component = json!([{"kind": "work", "run": run}]);
        let robot = json!({"run": run, "period_ns": 1, "senses": 1});
        for python in [("/flows/0/path/0/steps", component), ("/components/0/robot", robot)] {
            let plan = crate::tests::plan(&[("/sessions", json!(["a", "b"])), python.clone()]);
            for (node, session, need) in
                [(0, 0, Need::Loop), (1, 0, Need::None), (0, 1, Need::None), (1, 1, Need::None)]
            {
                let found = plan.needs_python(NodeId(node), &[SessionId(session)]);
                assert_eq!(found, need, "{} at {node} in {session}", python.0);
            }
        }
    }
}
