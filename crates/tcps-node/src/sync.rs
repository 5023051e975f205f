//! Clock synchronisation at a node.

use super::{asides::Asides, here::Here};
use crate::host::Host;
use std::collections::BTreeMap;
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    ids::{NodeId, SessionId},
    record::Record,
    report::ClockEstimate,
    time::{Time, NEVER},
};
use tcps_plan::Plan;
use tcps_transport::clocksync;

/// What a node is in clock synchronisation.
enum Role {
    Off,
    Client {
        client: Box<clocksync::Client>,
        reference: NodeId,
    },
    /// One for each node that asks: two may ask the same at the same time of their clocks.
    Server(BTreeMap<NodeId, clocksync::Server>),
}

/// Clock synchronisation at a node.
pub(super) struct Sync {
    role: Role,
    datagram: Vec<u8>,
}

impl Sync {
    /// A node has one clock: of its loops, the first one keeps it.
    pub(super) fn new(plan: &Plan, id: NodeId, sessions: Option<&[SessionId]>) -> Self {
        let first = sessions.is_none_or(|s| plan.loops(id).first().is_some_and(|l| l == s));
        let role = match plan.sync.as_ref().filter(|_| first) {
            None => Role::Off,
            Some(s) if s.reference == id => Role::Server(BTreeMap::new()),
            Some(s) => {
                Role::Client { client: Box::new(clocksync::Client::new(s.period_ns)), reference: s.reference }
            }
        };
        Self { role, datagram: Vec::new() }
    }

    /// Run time at which an exchange begins.
    pub(super) fn next(&self, here: &Here) -> Time {
        match &self.role {
            Role::Client { client, .. } => here.true_time(client.poll_timeout()),
            _ => NEVER,
        }
    }

    /// A clock exchange has arrived; false if this node waits for none, or for another one.
    pub(super) fn exchange<O: Host>(
        &mut self,
        now: Time,
        (from, received): (NodeId, Time),
        bytes: &[u8],
        here: &Here,
        asides: &mut Asides,
        out: &mut O,
    ) -> bool {
        let input = Input::datagram(bytes, here.clock.read(received));
        let at = here.clock.read(now);
        let end: &mut dyn Endpoint = match &mut self.role {
            Role::Server(servers) => servers.entry(from).or_default(),
            Role::Client { client, reference } if *reference == from => &mut **client,
            _ => return false,
        };
        let refused = end.stats().malformed;
        end.handle_input(at, input);
        let understood = end.stats().malformed == refused;
        self.pump(now, from, here, asides, out);
        understood
    }

    /// Begins an exchange if one is due.
    pub(super) fn begin<O: Host>(&mut self, now: Time, here: &Here, asides: &mut Asides, out: &mut O) {
        if let Role::Client { client, reference } = &mut self.role {
            let to = *reference;
            client.handle_input(here.clock.read(now), Input::Timeout);
            self.pump(now, to, here, asides, out);
        }
    }

    fn pump<O: Host>(&mut self, now: Time, to: NodeId, here: &Here, asides: &mut Asides, out: &mut O) {
        loop {
            let output = match &mut self.role {
                Role::Off => None,
                Role::Client { client, .. } => client.poll_output(&mut self.datagram),
                Role::Server(servers) => servers.get_mut(&to).and_then(|s| s.poll_output(&mut self.datagram)),
            };
            match output {
                Some(Output::Transmit(_)) => asides.send(now, to, None, &self.datagram, out),
                Some(Output::Record(row)) => {
                    out.record(Record { time_ns: now, node: here.id, point: to.0, ..row });
                }
                Some(Output::Deliver(_)) => {}
                None => return,
            }
        }
    }

    /// What is known of the clock.
    pub(super) fn estimate(&self) -> Option<ClockEstimate> {
        match &self.role {
            Role::Client { client, .. } => client.estimate(),
            _ => None,
        }
    }
}
