//! Where datagrams outside channels go: a node has a socket for them in each of its loops.

use std::{collections::BTreeMap, net::SocketAddr};
use tcps_plan::Plan;
use tcps_wire::{reply, Format};

/// The loops of every node, by session, and the addresses of their sockets.
#[derive(Debug, Clone, Default)]
pub struct Asides {
    /// Addresses per node, in the order of its loops; a gate stands for all of them.
    addresses: BTreeMap<u16, Vec<SocketAddr>>,
    /// Loop per (node, session).
    loops: BTreeMap<(u16, u16), usize>,
    /// Session of each flow.
    sessions: Vec<u16>,
}

impl Asides {
    /// With the addresses that nodes told.
    pub fn new(plan: &Plan, addresses: BTreeMap<u16, Vec<SocketAddr>>) -> Self {
        let mut loops = BTreeMap::new();
        for node in 0..plan.nodes.len() as u16 {
            for (number, sessions) in plan.loops(node).iter().enumerate() {
                sessions.iter().for_each(|&s| {
                    loops.insert((node, s), number);
                });
            }
        }
        Self { addresses, loops, sessions: plan.flows.iter().map(|f| f.session).collect() }
    }

    /// Where node `to` wants this datagram: an echo's answer at the loop of its flow's session, the rest at the first.
    pub fn of(&self, to: u16, bytes: &[u8]) -> Option<SocketAddr> {
        let addresses = self.addresses.get(&to)?;
        let number = self.session(bytes).and_then(|s| self.loops.get(&(to, s))).copied().unwrap_or(0);
        addresses.get(number).or(addresses.first()).copied()
    }

    fn session(&self, bytes: &[u8]) -> Option<u16> {
        if tcps_wire::format(bytes) != Some(Format::Reply) {
            return None;
        }
        let packet = reply::Packet::new_checked(bytes).ok()?;
        self.sessions.get(usize::from(reply::Repr::parse(&packet).0.flow)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tcps_core::sample::EchoReply;

    fn plan() -> Plan {
        let flow = |session: u16| {
            json!({"name": "f", "session": session, "direction": "forward", "period_ns": 1, "codec": "raw",
                   "source": {"kind": "generated", "bytes": 1}, "sink": {"kind": "count"},
                   "path": [{"component": 2 * session, "channel": session}, {"component": 2 * session + 1}]})
        };
        let component =
            |session: u16, node: u16| json!({"name": "c", "kind": "x", "session": session, "node": node});
        serde_json::from_value(json!({
            "name": "p", "seed": 1, "duration_ns": 1, "sessions": ["a", "b"], "nodes": [{"name": "left"}, {"name": "right"}],
            "components": [component(0, 0), component(0, 1), component(1, 0), component(1, 1)],
            "flows": [flow(0), flow(1)],
        }))
        .unwrap()
    }

    #[test]
    fn an_answer_goes_to_the_loop_of_its_session_and_a_clock_exchange_to_the_first() {
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let asides = Asides::new(&plan(), BTreeMap::from([(0, vec![at(10), at(11)]), (1, vec![at(20)])]));
        let answer = |flow: u16| {
            let mut bytes = Vec::new();
            reply::Repr(EchoReply { point: 0, flow, sequence: 0, injected_ns: 0, reached_ns: 0 })
                .emit(&mut bytes);
            bytes
        };
        assert_eq!(asides.of(0, &answer(0)), Some(at(10)));
        assert_eq!(asides.of(0, &answer(1)), Some(at(11)));
        assert_eq!(asides.of(1, &answer(1)), Some(at(20)), "a gate stands for all loops");
        assert_eq!(asides.of(0, b"a clock exchange"), Some(at(10)));
        assert_eq!((asides.of(0, &answer(77)), asides.of(2, &answer(0))), (Some(at(10)), None));
    }
}
