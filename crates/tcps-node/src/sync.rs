//! Clock synchronisation at a node.

use super::Node;
use crate::outside::Outside;
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    record::Record,
    time::Time,
};
use tcps_plan::Plan;
use tcps_transport::clocksync;

/// Clock synchronisation at a node.
pub(super) enum Sync {
    Off,
    Client { client: Box<clocksync::Client>, reference: u16 },
    Server(Box<clocksync::Server>),
}

impl Node {
    /// A clock exchange has arrived.
    pub(super) fn exchange<O: Outside>(
        &mut self,
        now: Time,
        from: u16,
        received: Time,
        bytes: &[u8],
        out: &mut O,
    ) {
        let input = Input::Datagram { bytes, received_ns: self.clock.read(received) };
        let here = self.clock.read(now);
        match &mut self.sync {
            Sync::Server(server) => server.handle_input(here, input),
            Sync::Client { client, reference } if *reference == from => client.handle_input(here, input),
            _ => return self.asides_refused += 1,
        }
        self.pump_sync(now, from, out);
    }

    /// Begins an exchange if one is due.
    pub(super) fn synchronise<O: Outside>(&mut self, now: Time, out: &mut O) {
        let here = self.clock.read(now);
        if let Sync::Client { client, reference } = &mut self.sync {
            let to = *reference;
            client.handle_input(here, Input::Timeout);
            self.pump_sync(now, to, out);
        }
    }

    fn pump_sync<O: Outside>(&mut self, now: Time, to: u16, out: &mut O) {
        loop {
            let output = match &mut self.sync {
                Sync::Off => None,
                Sync::Client { client, .. } => client.poll_output(&mut self.datagram),
                Sync::Server(server) => server.poll_output(&mut self.datagram),
            };
            match output {
                Some(Output::Transmit(_)) => out.aside(now, to, &self.datagram),
                Some(Output::Record(row)) => {
                    out.record(Record { time_ns: now, node: self.id, point: to, ..row })
                }
                Some(Output::Deliver(_)) => {}
                None => return,
            }
        }
    }
}

/// A node has one clock: of its loops, the first one keeps it.
pub(super) fn sync(plan: &Plan, id: u16, sessions: Option<&[u16]>) -> Sync {
    let first = sessions.is_none_or(|s| plan.loops(id).first().is_some_and(|l| l == s));
    match &plan.sync {
        Some(_) if !first => Sync::Off,
        None => Sync::Off,
        Some(s) if s.reference == id => Sync::Server(Box::default()),
        Some(s) => {
            Sync::Client { client: Box::new(clocksync::Client::new(s.period_ns)), reference: s.reference }
        }
    }
}
