//! Which sessions of a node share a loop, and which loops run Python code.

use super::{ChannelPlan, CodeKind, CodePlan, Plan};
use serde_json::Value;

impl Plan {
    /// The sessions of each loop of a node: one session each, but those that share a component share a loop.
    pub fn loops(&self, node: u16) -> Vec<Vec<u16>> {
        let mut loops: Vec<Vec<u16>> = Vec::new();
        let own = self.components.iter().filter(|c| c.node == node).map(|c| [c.session, c.session]);
        let visits = self
            .flows
            .iter()
            .flat_map(|f| f.path.iter().map(move |v| (f, &self.components[v.component as usize])));
        for pair in own.chain(visits.filter(|(_, c)| c.node == node).map(|(f, c)| [f.session, c.session])) {
            let (mut joined, others): (Vec<_>, Vec<_>) =
                loops.into_iter().partition(|l| l.contains(&pair[0]) || l.contains(&pair[1]));
            joined.push(pair.to_vec());
            let mut joined = joined.concat();
            joined.sort_unstable();
            joined.dedup();
            loops = others;
            loops.push(joined);
        }
        loops.sort_unstable();
        loops
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
    pub fn needs_python(&self, node: u16, sessions: &[u16]) -> Need {
        let here = |c: u16| {
            let c = &self.components[c as usize];
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

impl ChannelPlan {
    /// Whether its endpoints, or what parameters of theirs name, are Python.
    fn is_python(&self) -> bool {
        let named = |value: &Value| value.get("kind").is_some_and(|kind| kind == "python");
        let params = self.params.as_object();
        is_python(&CodePlan::named(&self.transport, Value::Null))
            || params.is_some_and(|p| p.values().any(named))
    }
}

/// Whether code, or the agent of a supervisor, is Python.
fn is_python(code: &CodePlan) -> bool {
    let agent = code.params.get("agent").and_then(|agent| agent.get("kind"));
    code.kind == CodeKind::Python || agent.is_some_and(|kind| kind == "python")
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
            plan.needs_python(0, &[0])
        };
        let worker = json!({"queue": 2, "most_bytes": 100});
        let robot =
            json!({"run": {"kind": "python", "name": "m", "symbol": "R"}, "period_ns": 1, "senses": 1});
        assert_eq!(need(worker.clone(), Value::Null), Need::Workers);
        assert_eq!(need(Value::Null, Value::Null), Need::Loop);
        assert_eq!(need(worker, robot), Need::Loop);
    }

    #[test]
    fn sessions_that_share_a_robot_share_its_loop() {
        let component = |name: &str, session: u16, node: u16| json!({"name": name, "kind": "x", "session": session, "node": node});
        let flow = |session: u16, from: u16, to: u16| {
            json!({"name": "f", "session": session, "direction": "forward", "period_ns": 1, "codec": "raw",
                   "source": {"kind": "generated", "bytes": 1}, "sink": {"kind": "count"},
                   "path": [{"component": from, "channel": 0}, {"component": to}]})
        };
        let plan: Plan = serde_json::from_value(json!({
            "name": "p", "seed": 1, "duration_ns": 1, "sessions": ["a", "b", "c"],
            "nodes": [{"name": "left"}, {"name": "right"}],
            "components": [component("op-a", 0, 0), component("op-b", 1, 0), component("robot", 0, 1), component("c", 2, 1)],
            "flows": [flow(0, 0, 2), flow(1, 1, 2)],
        }))
        .expect("a plan");
        assert!(!plan.runs_python());
        assert_eq!(plan.loops(0), [[0], [1]]);
        assert_eq!(plan.loops(1), [vec![0, 1], vec![2]]);
    }
}
