//! What travels outside channels: answers of echoes and clock exchanges, sealed if the plan has a secured channel.
//!
//! ```text
//! node a, loop of session s ◄── association "a-b/s" ──► node b, loop of session s      made when first needed
//! ```
//! Every pair of nodes has an association for each session whose echoes are answered, and one for clocks.

use crate::{host::Host, secrets::Secrets};
use std::collections::{BTreeMap, VecDeque};
use tcps_core::{
    ids::{FlowId, NodeId, SessionId, NONE},
    param::Named,
    time::{Time, NEVER},
};
use tcps_plan::{Plan, RunError};
use tcps_transport::{
    security::{self, Association, Opened},
    Side,
};
use tcps_wire::secure;

/// Datagrams that wait for the first keys of an association: the newest.
const MOST_HELD: usize = 16;
/// What seals them.
const METHOD: &str = "aead";

/// The association with a loop of another node.
struct Pair {
    association: Association,
    held: VecDeque<Vec<u8>>,
}

/// The associations of a node for what travels outside channels.
#[derive(Default)]
pub(super) struct Asides {
    /// By other node and session; absent where no channel is secured.
    pairs: Option<BTreeMap<(NodeId, u16), Pair>>,
    /// Session of each flow, with them.
    sessions: Vec<SessionId>,
    /// When the first of them may have something to send again.
    due: Option<Time>,
    sealed: Vec<u8>,
    datagram: Vec<u8>,
}

impl Asides {
    pub(super) fn new(
        plan: &Plan,
        id: NodeId,
        sessions: Option<&[SessionId]>,
        secrets: &mut dyn Secrets,
    ) -> Result<Self, RunError> {
        if plan.channels.iter().all(|c| c.security.is_none()) {
            return Ok(Self::default());
        }
        let here = |s: &u16| sessions.is_none_or(|all| all.contains(&SessionId(*s)));
        let numbers: Vec<u16> = (0..plan.sessions.len() as u16).filter(here).chain([NONE]).collect();
        let mut pairs = BTreeMap::new();
        let meets = |session: u16, node: NodeId| {
            session == NONE
                || plan
                    .flows
                    .iter()
                    .filter(|f| f.session == SessionId(session))
                    .any(|f| f.path.iter().any(|visit| plan.components[visit.component].node == node))
        };
        let numbers: Vec<u16> = numbers.into_iter().filter(|s| meets(*s, id)).collect();
        for (other, _) in NodeId::each(&plan.nodes).filter(|(other, _)| *other != id) {
            for &session in numbers.iter().filter(|s| meets(**s, other)) {
                let (side, low, high) = if id < other { (Side::A, id, other) } else { (Side::B, other, id) };
                let name = format!("outside channels: {low}-{high}/{session}");
                let secret = secrets.secret(None, &name, side)?;
                let method = Named::new(METHOD, serde_json::Value::Null);
                let association = security::association(&method, &name, side, secret)
                    .map_err(|fault| RunError::of(&fault, Some(fault.clone())))?;
                pairs.insert((other, session), Pair { association, held: VecDeque::new() });
            }
        }
        let sessions = plan.flows.iter().map(|f| f.session).collect();
        Ok(Self { pairs: Some(pairs), sessions, ..Self::default() })
    }

    /// Sends a datagram about a flow, or about clocks, to a node, once there are keys.
    pub(super) fn send<O: Host>(
        &mut self,
        now: Time,
        to: NodeId,
        flow: Option<FlowId>,
        bytes: &[u8],
        out: &mut O,
    ) {
        let Some(pairs) = &mut self.pairs else { return out.aside(now, to, bytes) };
        let session = flow.and_then(|f| self.sessions.get(f.index())).map_or(NONE, |s| s.0);
        let key = (to, session);
        let Some(pair) = pairs.get_mut(&key) else { return };
        pair.association.want_keys(now);
        if pair.association.has_keys() && pair.held.is_empty() {
            pair.association.handle_timeout(now);
            self.pump(now, key, Some(bytes), out);
            return;
        }
        // An exchange of stamps that waits for keys would measure the wait.
        if flow.is_some() || pair.association.has_keys() {
            if pair.held.len() == MOST_HELD {
                pair.held.pop_front();
            }
            pair.held.push_back(bytes.to_vec());
        }
        pair.association.handle_timeout(now);
        self.pump(now, key, None, out);
    }

    /// A datagram has arrived; whether there is a content of it for the node, or `Err`: it is refused.
    pub(super) fn receive<O: Host>(
        &mut self,
        now: Time,
        from: NodeId,
        bytes: &[u8],
        out: &mut O,
        content: &mut Vec<u8>,
    ) -> Result<bool, ()> {
        let (session, sealed) = secure::parse_aside(bytes).map_err(|_| ())?;
        let pair = self.pairs.as_mut().and_then(|pairs| pairs.get_mut(&(from, session))).ok_or(())?;
        let opened = pair.association.open(now, sealed, content);
        self.pump(now, (from, session), None, out);
        match opened {
            Opened::Payload => Ok(true),
            Opened::Own => Ok(false),
            Opened::Refused(_) => Err(()),
        }
    }

    /// Whether everything is sealed.
    pub(super) fn are_sealed(&self) -> bool {
        self.pairs.is_some()
    }

    /// When something is to be sent again.
    pub(super) fn next(&self) -> Time {
        self.due.unwrap_or(NEVER)
    }

    /// Sends again what is due.
    pub(super) fn tick<O: Host>(&mut self, now: Time, out: &mut O) {
        if self.next() > now {
            return;
        }
        let due = |pair: &Pair| pair.association.poll_timeout().is_some_and(|at| at <= now);
        let keys = self.pairs.iter().flatten().filter(|(_, pair)| due(pair)).map(|(key, _)| *key);
        for key in keys.collect::<Vec<_>>() {
            let pair = self.pairs.as_mut().and_then(|pairs| pairs.get_mut(&key));
            pair.into_iter().for_each(|pair| pair.association.handle_timeout(now));
            self.pump(now, key, None, out);
        }
        let left = self.pairs.iter().flat_map(BTreeMap::values);
        self.due = left.filter_map(|pair| pair.association.poll_timeout()).min();
    }

    /// Sends what an association has to send, what waited for its keys, and a datagram that need not wait.
    fn pump<O: Host>(&mut self, now: Time, key: (NodeId, u16), datagram_now: Option<&[u8]>, out: &mut O) {
        let Self { pairs, sealed, datagram, due, .. } = self;
        let Some(pair) = pairs.as_mut().and_then(|pairs| pairs.get_mut(&key)) else { return };
        let mut emit = |sealed: &[u8]| {
            datagram.clear();
            secure::emit_aside(key.1, datagram);
            datagram.extend_from_slice(sealed);
            out.aside(now, key.0, datagram);
        };
        while pair.association.poll_message(sealed) {
            emit(sealed);
        }
        while pair.association.has_keys() {
            let Some(held) = pair.held.pop_front() else { break };
            if pair.association.seal(now, &held, sealed) {
                emit(sealed);
            }
        }
        if datagram_now.is_some_and(|bytes| pair.association.seal(now, bytes, sealed)) {
            emit(sealed);
        }
        *due = due.iter().copied().chain(pair.association.poll_timeout()).min();
    }
}
