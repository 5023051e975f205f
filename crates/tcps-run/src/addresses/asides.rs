//! Where datagrams outside channels go: a node has a socket for them in each of its loops.

use std::{collections::BTreeMap, net::SocketAddr};
use tcps_core::ids::{NodeId, SessionId};
use tcps_plan::Plan;
use tcps_wire::{reply, secure, Format};

/// The loops of every node, by session, and the addresses of their sockets.
#[derive(Debug, Clone, Default)]
pub struct Asides {
    /// Addresses per node, in the order of its loops; a gate stands for all of them.
    addresses: BTreeMap<NodeId, Vec<SocketAddr>>,
    /// Loop per (node, session).
    loops: BTreeMap<(NodeId, SessionId), usize>,
    /// Session of each flow.
    sessions: Vec<SessionId>,
}

impl Asides {
    /// With the addresses that nodes told.
    pub fn new(plan: &Plan, addresses: BTreeMap<NodeId, Vec<SocketAddr>>) -> Self {
        let mut loops = BTreeMap::new();
        for (node, _) in NodeId::each(&plan.nodes) {
            for (number, sessions) in plan.loops(node).iter().enumerate() {
                sessions.iter().for_each(|&s| {
                    loops.insert((node, s), number);
                });
            }
        }
        Self { addresses, loops, sessions: plan.flows.iter().map(|f| f.session).collect() }
    }

    /// Where node `to` wants this datagram: an echo's answer at the loop of its flow's session, as what is sealed says its own, the rest at the first.
    pub fn of(&self, to: NodeId, bytes: &[u8]) -> Option<SocketAddr> {
        let addresses = self.addresses.get(&to)?;
        let number = self.session(bytes).and_then(|s| self.loops.get(&(to, s))).copied().unwrap_or(0);
        addresses.get(number).or(addresses.first()).copied()
    }

    fn session(&self, bytes: &[u8]) -> Option<SessionId> {
        match tcps_wire::format(bytes) {
            Some(Format::Reply) => {
                let reply::Repr(reply) = reply::Repr::parse(bytes).ok()?;
                self.sessions.get(reply.flow.index()).copied()
            }
            Some(Format::Secured) => Some(SessionId(secure::parse_aside(bytes).ok()?.0)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tcps_core::{
        ids::FlowId,
        sample::{EchoReply, PointId},
    };

    fn plan() -> Plan {
        let flow = |session: u16| {
            json!({"name": "f", "session": session, "direction": "forward", "period_ns": 1, "codec": "raw",
                   "source": {"kind": "generated", "bytes": 1}, "sink": {"kind": "count"},
                   "path": [{"component": 2 * session, "channel": session}, {"component": 2 * session + 1}]})
        };
        let component =
            |session: u16, node: NodeId| json!({"name": "c", "kind": "x", "session": session, "node": node});
        serde_json::from_value(json!({
            "name": "p", "seed": 1, "duration_ns": 1, "sessions": ["a", "b"], "nodes": [{"name": "left"}, {"name": "right"}],
            "components": [component(0, NodeId(0)), component(0, NodeId(1)), component(1, NodeId(0)), component(1, NodeId(1))],
            "flows": [flow(0), flow(1)],
        }))
        .unwrap()
    }

    #[test]
    fn an_answer_goes_to_the_loop_of_its_session_and_a_clock_exchange_to_the_first() {
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let asides = Asides::new(
            &plan(),
            BTreeMap::from([(NodeId(0), vec![at(10), at(11)]), (NodeId(1), vec![at(20)])]),
        );
        let answer = |flow: u16| {
            let mut bytes = Vec::new();
            let (point, flow) = (PointId(0), FlowId(flow));
            reply::Repr(EchoReply { point, flow, sequence: 0, injected_ns: 0, reached_ns: 0 })
                .emit(&mut bytes);
            bytes
        };
        assert_eq!(asides.of(NodeId(0), &answer(0)), Some(at(10)));
        assert_eq!(asides.of(NodeId(0), &answer(1)), Some(at(11)));
        assert_eq!(asides.of(NodeId(1), &answer(1)), Some(at(20)), "a gate stands for all loops");
        assert_eq!(asides.of(NodeId(0), b"a clock exchange"), Some(at(10)));
        let sealed = |session: u16| {
            let mut bytes = Vec::new();
            secure::emit_aside(session, &mut bytes);
            bytes
        };
        let looked = [0, 1, u16::MAX].map(|session| asides.of(NodeId(0), &sealed(session)));
        assert_eq!(looked, [Some(at(10)), Some(at(11)), Some(at(10))]);
        assert_eq!(
            (asides.of(NodeId(0), &answer(77)), asides.of(NodeId(2), &answer(0))),
            (Some(at(10)), None)
        );
    }
}
