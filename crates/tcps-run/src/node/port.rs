//! One side of a channel at its node: samples to its endpoint, datagrams from it, samples from it.

use super::{
    job::{coded, Job, Stage},
    Node,
};
use crate::{
    outside::Outside,
    plan::{FlowPlan, Level, Plan},
};
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    record::{Kind, Record, NONE},
    sample::Meta,
    time::Time,
};
use tcps_transport::{ChannelFlow, Side};

/// One side of a channel.
pub(super) struct Port {
    pub(super) channel: u16,
    pub(super) peer: u16,
    pub(super) endpoint: Box<dyn Endpoint>,
    /// For each flow, the visit at which its samples arrive here, or `NONE`.
    pub(super) arrives: Vec<u16>,
    /// Samples of flows that this channel does not carry.
    pub(super) strays: u64,
}

impl Node {
    pub(super) fn send<O: Outside>(&mut self, now: Time, channel: u16, job: &mut Job, out: &mut O) -> Time {
        coded(self.flows[job.flow as usize].codec, job);
        let port = self.port_of[channel as usize] as usize;
        let input = Input::Sample { meta: job.meta, bytes: &job.bytes };
        self.ports[port].endpoint.handle_input(self.clock.read(now), input);
        self.pump(port, now, out)
    }

    /// Does what the endpoint of a port wants done; tells when the first link has taken the last datagram.
    pub(super) fn pump<O: Outside>(&mut self, port: usize, now: Time, out: &mut O) -> Time {
        let mut taken = now;
        while let Some(output) = self.ports[port].endpoint.poll_output(&mut self.datagram) {
            let p = &self.ports[port];
            match output {
                Output::Transmit(t) => {
                    let dscp = self.flows.get(t.flow as usize).map_or(0, |f| f.dscp);
                    if self.level >= Level::Packets {
                        let row = self.packet_row(now, Kind::Transmit, port, t.flow, t.index, t.wire_bytes);
                        out.record(row);
                    }
                    taken = out.transmit(now, p.channel, p.peer, dscp, &self.datagram, &t);
                }
                Output::Record(r) => out.record(Record { time_ns: now, node: self.id, ..r }),
                Output::Deliver(d) => self.arrive(port, now, d.meta, out),
            }
        }
        taken
    }

    pub(super) fn arrive<O: Outside>(&mut self, port: usize, now: Time, meta: Meta, out: &mut O) {
        let visit = self.ports[port].arrives.get(meta.flow as usize).map_or(NONE, |v| *v);
        if visit == NONE {
            self.ports[port].strays += 1;
            return;
        }
        if self.level >= Level::Packets {
            let row =
                self.packet_row(now, Kind::Receive, port, meta.flow, meta.index, self.datagram.len() as u32);
            out.record(row);
        }
        let mut job = self.pool.pop().unwrap_or_else(Job::empty);
        std::mem::swap(&mut job.bytes, &mut self.datagram);
        (job.flow, job.visit, job.step, job.stage) = (meta.flow, visit, 0, Stage::Enter);
        (job.meta, job.coded, job.decoded) = (meta, true, false);
        self.todo.push_back(job);
    }

    pub(super) fn packet_row(
        &self,
        now: Time,
        kind: Kind,
        port: usize,
        flow: u16,
        index: u32,
        size: u32,
    ) -> Record {
        Record { index, size, flow, point: self.ports[port].channel, node: self.id, ..Record::new(now, kind) }
    }
}

/// The visit at which samples of `flow` arrive at `node` through `channel`, or `NONE`.
pub(super) fn arrival(plan: &Plan, flow: &FlowPlan, channel: u16, node: u16) -> u16 {
    let mut steps = flow.path.windows(2).enumerate();
    let found = steps.find(|(_, w)| {
        w[0].channel == Some(channel) && plan.components[w[1].component as usize].node == node
    });
    found.map_or(NONE, |(i, _)| i as u16 + 1)
}

/// The flows that a channel carries, with the side they go to.
pub(super) fn carried(plan: &Plan, channel: u16) -> Vec<ChannelFlow> {
    let mut flows = Vec::new();
    for (id, flow) in plan.flows.iter().enumerate() {
        for w in flow.path.windows(2).filter(|w| w[0].channel == Some(channel)) {
            let to = plan.components[w[1].component as usize].node;
            let to = if to == plan.channels[channel as usize].a { Side::A } else { Side::B };
            let name = flow.name.rsplit('/').next().unwrap_or_default().to_string();
            flows.push(ChannelFlow { flow: id as u16, to, name, period_ns: flow.period_ns });
        }
    }
    flows
}
