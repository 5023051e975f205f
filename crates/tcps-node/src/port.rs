//! One side of a channel at its node: samples to its endpoint, datagrams from it, samples from it.

use super::{
    due::Item,
    job::{coded, Job, Stage},
    sparse::Sparse,
    Node,
};
use crate::outside::Outside;
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    record::{Kind, Record, NONE},
    sample::Meta,
    time::Time,
};
use tcps_plan::{FlowPlan, Level, Plan, OVERHEAD_BYTES};
use tcps_transport::{ChannelFlow, Side};
use tcps_wire::header;

/// One side of a channel.
pub(super) struct Port {
    pub(super) channel: u16,
    pub(super) peer: u16,
    pub(super) endpoint: Box<dyn Endpoint>,
    /// For each flow that it carries, the visit at which its samples arrive here, or `NONE`.
    pub(super) arrives: Sparse<u16>,
    /// Samples of flows that this channel does not carry.
    pub(super) strays: u64,
    /// Whether datagrams begin with the plain header.
    pub(super) plain: bool,
    /// Accounted bytes of all headers of a datagram.
    pub(super) overhead_bytes: Option<u32>,
}

impl Port {
    /// Flow, sample and accounted size of a datagram, as far as its bytes tell. [model: wire size]
    fn account(&self, bytes: &[u8]) -> (u16, u32, u32) {
        let wire_bytes = bytes.len() as u32 + OVERHEAD_BYTES;
        let packet = header::Packet::new_checked(bytes).ok().filter(|_| self.plain);
        match packet.and_then(|p| header::Repr::parse(&p).ok()) {
            Some(h) => {
                let payload = h.payload_bytes() as u32;
                (h.flow, h.index, self.overhead_bytes.map_or(wire_bytes, |o| payload + o))
            }
            None => (NONE, 0, wire_bytes),
        }
    }
}

impl Node {
    /// Gives a sample to the endpoint of its channel; tells when the first link has taken the last datagram.
    pub(super) fn send<O: Outside>(&mut self, now: Time, channel: u16, job: &mut Job, out: &mut O) -> Time {
        coded(self.flows[job.flow as usize].codec, job);
        let port = self.port_of[channel as usize] as usize;
        let input = Input::Sample { meta: job.meta, bytes: &job.bytes };
        self.ports[port].endpoint.handle_input(self.steady.read(now), input);
        self.pump(port, now, None, out)
    }

    /// A datagram of a channel has arrived; `received` is when the kernel had it.
    pub fn handle_datagram<O: Outside>(
        &mut self,
        now: Time,
        channel: u16,
        received: Time,
        bytes: &[u8],
        out: &mut O,
    ) {
        let port = self.port_of.get(channel as usize).map_or(NONE, |p| *p) as usize;
        if port >= self.ports.len() {
            self.asides_refused += 1;
            return;
        }
        if self.level >= Level::Packets {
            let (flow, index, size) = self.ports[port].account(bytes);
            out.record(self.packet_row(now, Kind::Receive, port, flow, index, size));
        }
        let received_ns = self.steady.read(received);
        self.ports[port].endpoint.handle_input(self.steady.read(now), Input::Datagram { bytes, received_ns });
        self.pump(port, now, Some(received_ns), out);
        self.run(now, out);
    }

    /// Does what the endpoint of a port wants done; tells when the first link has taken the last datagram.
    ///
    /// `received_ns` is when the kernel had the datagram that was just given to it.
    pub(super) fn pump<O: Outside>(
        &mut self,
        port: usize,
        now: Time,
        received_ns: Option<Time>,
        out: &mut O,
    ) -> Time {
        let mut taken = now;
        while let Some(output) = self.ports[port].endpoint.poll_output(&mut self.datagram) {
            let p = &self.ports[port];
            match output {
                Output::Transmit(t) => {
                    let of_flow = self.flows.get(t.flow as usize).map_or(0, |f| f.dscp);
                    let dscp = p.endpoint.dscp().unwrap_or(of_flow);
                    if self.level >= Level::Packets {
                        let row = self.packet_row(now, Kind::Transmit, port, t.flow, t.index, t.wire_bytes);
                        out.record(row);
                    }
                    taken = out.transmit(now, p.channel, p.peer, dscp, &self.datagram, &t);
                }
                Output::Record(r) if r.kind == Kind::Told && self.level < Level::Packets => {}
                Output::Record(r) => out.record(self.row_of_endpoint(now, r)),
                Output::Deliver(d) => {
                    let at_once = received_ns.filter(|&t| t == d.received_ns);
                    let stepped_ns = self.stepped_ns();
                    self.arrive(port, d.meta, at_once.map(|t| t.saturating_add(stepped_ns)));
                }
            }
        }
        self.arm(Item::Port(port));
        taken
    }

    /// An endpoint's timer has run out.
    pub(super) fn tick_port<O: Outside>(&mut self, port: usize, now: Time, out: &mut O) {
        self.ports[port].endpoint.handle_input(self.steady.read(now), Input::Timeout);
        self.pump(port, now, None, out);
        self.run(now, out);
    }

    /// By how much the clock of stamps is ahead of that of timers.
    fn stepped_ns(&self) -> Time {
        self.clock.offset_ns.saturating_sub(self.steady.offset_ns)
    }

    /// A row of an endpoint, whose ages are from stamps of this node to the clock of its timers.
    fn row_of_endpoint(&self, now: Time, row: Record) -> Record {
        let stepped_ns = if row.kind == Kind::Dropped { self.stepped_ns() } else { 0 };
        Record { time_ns: now, node: self.id, value: row.value.saturating_add(stepped_ns), ..row }
    }

    /// A sample comes out of a channel, in the datagram buffer.
    fn arrive(&mut self, port: usize, meta: Meta, received_ns: Option<Time>) {
        let visit = self.ports[port].arrives.get(meta.flow as usize).map_or(NONE, |v| *v);
        if visit == NONE {
            self.ports[port].strays += 1;
            return;
        }
        let mut job = self.pool.pop().unwrap_or_else(Job::empty);
        std::mem::swap(&mut job.bytes, &mut self.datagram);
        (job.flow, job.visit, job.step, job.stage) = (meta.flow, visit, 0, Stage::Enter);
        (job.meta, job.coded, job.decoded) = (meta, true, false);
        job.received_ns = received_ns;
        self.todo.push_back(job);
    }

    fn packet_row(&self, now: Time, kind: Kind, port: usize, flow: u16, index: u32, size: u32) -> Record {
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

/// The flows that a channel carries, with the side they go to; their numbers are known.
pub(super) fn carried(plan: &Plan, channel: u16, numbers: &[u16]) -> Vec<ChannelFlow> {
    let mut flows = Vec::new();
    for &id in numbers {
        let flow = &plan.flows[usize::from(id)];
        for w in flow.path.windows(2).filter(|w| w[0].channel == Some(channel)) {
            let to = plan.components[w[1].component as usize].node;
            let to = if to == plan.channels[channel as usize].a { Side::A } else { Side::B };
            let name = flow.name.rsplit('/').next().unwrap_or_default().to_string();
            flows.push(ChannelFlow { flow: id, to, name, period_ns: flow.period_ns });
        }
    }
    flows
}
