//! One side of a channel at its node: samples to its endpoint, datagrams from it, samples from it.

use super::{
    assets::{self, Assets},
    context::Context,
    due::Item,
    here::Here,
    job::{coded, Job, Stage},
    sparse::Sparse,
};
use crate::outside::Outside;
use serde_json::Value;
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output},
    record::{Kind, Record, NONE},
    sample::Meta,
    time::{Time, NEVER},
};
use tcps_plan::{Codec, FlowPlan, Level, Places, Plan, RunError, OVERHEAD_BYTES};
use tcps_transport::{kernel_tcp, ChannelContext, ChannelFlow, Side};
use tcps_wire::header;

/// One side of a channel.
struct Port {
    channel: u16,
    peer: u16,
    endpoint: Box<dyn Endpoint>,
    /// The flows that it carries.
    carried: Sparse<Carried>,
    /// Samples of flows that this channel does not carry.
    strays: u64,
    /// Whether datagrams begin with the plain header.
    plain: bool,
    /// Accounted bytes of all headers of a datagram.
    overhead_bytes: Option<u32>,
}

/// A flow that a channel carries.
struct Carried {
    /// The visit at which its samples arrive here, or `NONE`.
    arrives: u16,
    codec: Codec,
    dscp: u8,
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

/// The sides of channels that are at a node.
#[derive(Default)]
pub(super) struct Ports {
    ports: Vec<Port>,
    /// Place among them of each channel.
    of: Sparse<u16>,
    datagram: Vec<u8>,
}

impl Ports {
    /// Those of a node, or of some of its sessions.
    pub(super) fn new(
        plan: &Plan,
        places: &Places,
        node: u16,
        sessions: Option<&[u16]>,
        assets: &mut dyn Assets,
    ) -> Result<Self, RunError> {
        let mut all = Self { datagram: Vec::with_capacity(2048), ..Self::default() };
        for &id in &places.channels[usize::from(node)] {
            let c = &plan.channels[usize::from(id)];
            let (side, peer) = if c.a == node { (Side::A, c.b) } else { (Side::B, c.a) };
            if sessions.is_some_and(|s| !s.contains(&c.session)) {
                continue;
            }
            let numbers = &places.carried[usize::from(id)];
            let flows = carried(plan, id, numbers);
            let context = ChannelContext { name: c.name.clone(), seed: plan.seed, flows };
            let endpoint = assets::endpoint(&c.transport, &c.params, side, &context, assets)
                .map_err(|e| RunError::new(format!("channels.{}: {e}", c.name)))?;
            let carried = numbers.iter().map(|f| {
                let flow = &plan.flows[usize::from(*f)];
                let arrives = arrival(plan, flow, id, node);
                (*f, Carried { arrives, codec: flow.codec, dscp: flow.dscp })
            });
            all.of.push(id, all.ports.len() as u16);
            let by_kernel = c.transport == kernel_tcp::NAME;
            let given = c.params.get("overhead_bytes").and_then(Value::as_u64).map(|o| o as u32);
            all.ports.push(Port {
                channel: id,
                peer,
                endpoint,
                carried: carried.collect(),
                strays: 0,
                plain: tcps_transport::has_plain_header(&c.transport),
                overhead_bytes: given.or(by_kernel.then_some(kernel_tcp::OVERHEAD_BYTES)),
            });
        }
        Ok(all)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.ports.len()
    }

    fn at(&self, channel: u16) -> Option<&Port> {
        self.of.get(channel as usize).and_then(|&p| self.ports.get(p as usize))
    }

    /// Samples that the endpoint of a channel merges into a packet now.
    pub(super) fn merging(&self, channel: u16) -> u16 {
        self.at(channel).map_or(1, |p| p.endpoint.merging())
    }

    /// What the first of these channels that is here allows a flow, in bit/s, if its transport says so.
    pub(super) fn allowance_bps(&self, flow: u16, mut channels: impl Iterator<Item = u16>) -> Option<f64> {
        channels.find_map(|c| self.at(c))?.endpoint.allowance_bps(flow)
    }

    /// Run time at which an endpoint wants to be called.
    pub(super) fn next(&self, port: usize, here: &Here) -> Time {
        self.ports[port].endpoint.poll_timeout().map_or(NEVER, |t| here.steady.when(t))
    }

    /// Gives a sample to the endpoint of its channel; tells when the first link has taken the last datagram.
    pub(super) fn send<O: Outside>(
        &mut self,
        now: Time,
        channel: u16,
        job: &mut Job,
        cx: &mut Context<'_, O>,
    ) -> Time {
        coded(job);
        let port = self.of[channel as usize] as usize;
        if job.parts.is_known() {
            cx.out.hand_over(channel, &job.meta, &job.parts);
        }
        let input = Input::Sample { meta: job.meta, bytes: &job.bytes };
        self.ports[port].endpoint.handle_input(cx.here.steady.read(now), input);
        self.pump(port, now, None, cx)
    }

    /// A datagram of a channel has arrived; `received` is when the kernel had it. False: no such channel is here.
    pub(super) fn receive<O: Outside>(
        &mut self,
        now: Time,
        channel: u16,
        received: Time,
        bytes: &[u8],
        cx: &mut Context<'_, O>,
    ) -> bool {
        let port = self.of.get(channel as usize).map_or(NONE, |p| *p) as usize;
        if port >= self.ports.len() {
            return false;
        }
        if cx.here.level >= Level::Packets {
            let (flow, index, size) = self.ports[port].account(bytes);
            self.show_packet(now, Kind::Receive, port, (flow, index, size), cx);
        }
        let received_ns = cx.here.steady.read(received);
        let input = Input::Datagram { bytes, received_ns };
        self.ports[port].endpoint.handle_input(cx.here.steady.read(now), input);
        self.pump(port, now, Some(received_ns), cx);
        true
    }

    /// An endpoint's timer has run out.
    pub(super) fn tick<O: Outside>(&mut self, port: usize, now: Time, cx: &mut Context<'_, O>) {
        self.ports[port].endpoint.handle_input(cx.here.steady.read(now), Input::Timeout);
        self.pump(port, now, None, cx);
    }

    /// Does what the endpoint of a port wants done; tells when the first link has taken the last datagram.
    ///
    /// `received_ns` is when the kernel had the datagram that was just given to it.
    fn pump<O: Outside>(
        &mut self,
        port: usize,
        now: Time,
        received_ns: Option<Time>,
        cx: &mut Context<'_, O>,
    ) -> Time {
        let mut taken = now;
        while let Some(output) = self.ports[port].endpoint.poll_output(&mut self.datagram) {
            let p = &self.ports[port];
            match output {
                Output::Transmit(t) => {
                    let of_flow = p.carried.get(t.flow as usize).map_or(0, |f| f.dscp);
                    let dscp = p.endpoint.dscp().unwrap_or(of_flow);
                    if cx.here.level >= Level::Packets {
                        self.show_packet(now, Kind::Transmit, port, (t.flow, t.index, t.wire_bytes), cx);
                    }
                    taken = cx.out.transmit(now, p.channel, p.peer, dscp, &self.datagram, &t);
                }
                Output::Record(r) if r.kind == Kind::Told && cx.here.level < Level::Packets => {}
                Output::Record(r) => cx.out.record(row_of_endpoint(cx.here, now, r)),
                Output::Deliver(d) => {
                    let at_once = received_ns.filter(|&t| t == d.received_ns);
                    let received_ns = at_once.map(|t| t.saturating_add(cx.here.stepped_ns()));
                    self.arrive(port, now, d.meta, received_ns, cx);
                }
            }
        }
        cx.due.set(Item::Port(port), self.next(port, cx.here));
        taken
    }

    /// A sample comes out of a channel, in the datagram buffer.
    fn arrive<O: Outside>(
        &mut self,
        port: usize,
        now: Time,
        meta: Meta,
        received_ns: Option<Time>,
        cx: &mut Context<'_, O>,
    ) {
        let port = &mut self.ports[port];
        let Some(flow) = port.carried.get(meta.flow as usize).filter(|f| f.arrives != NONE) else {
            port.strays += 1;
            return;
        };
        let mut job = cx.jobs.empty();
        std::mem::swap(&mut job.bytes, &mut self.datagram);
        (job.flow, job.visit, job.step, job.stage) = (meta.flow, flow.arrives, 0, Stage::Enter);
        (job.meta, job.codec, job.coded, job.decoded) = (meta, flow.codec, true, false);
        job.received_ns = received_ns;
        cx.out.take_over(now, port.channel, &meta, received_ns.is_some(), &mut job.parts);
        cx.jobs.go(job);
    }

    /// A row of a datagram: flow, sample and accounted size.
    fn show_packet<O: Outside>(
        &self,
        now: Time,
        kind: Kind,
        port: usize,
        (flow, index, size): (u16, u32, u32),
        cx: &mut Context<'_, O>,
    ) {
        let point = self.ports[port].channel;
        cx.out.record(Record { index, size, flow, point, ..cx.here.row(now, kind) });
    }

    /// What endpoints have counted, by channel, with stray samples.
    pub(super) fn stats(&self) -> Vec<(u16, EndpointStats, u64)> {
        self.ports.iter().map(|p| (p.channel, p.endpoint.stats(), p.strays)).collect()
    }

    /// Endpoints whose code failed, by channel.
    pub(super) fn failures(&self) -> Vec<(u16, String)> {
        self.ports.iter().filter_map(|p| Some((p.channel, p.endpoint.failure()?))).collect()
    }
}

/// A row of an endpoint, whose ages are from stamps of this node to the clock of its timers.
fn row_of_endpoint(here: &Here, now: Time, row: Record) -> Record {
    let stepped_ns = if row.kind == Kind::Dropped { here.stepped_ns() } else { 0 };
    Record { time_ns: now, node: here.id, value: row.value.saturating_add(stepped_ns), ..row }
}

/// The visit at which samples of `flow` arrive at `node` through `channel`, or `NONE`.
fn arrival(plan: &Plan, flow: &FlowPlan, channel: u16, node: u16) -> u16 {
    let mut steps = flow.path.windows(2).enumerate();
    let found = steps.find(|(_, w)| {
        w[0].channel == Some(channel) && plan.components[w[1].component as usize].node == node
    });
    found.map_or(NONE, |(i, _)| i as u16 + 1)
}

/// The flows that a channel carries, with the side they go to; their numbers are known.
fn carried(plan: &Plan, channel: u16, numbers: &[u16]) -> Vec<ChannelFlow> {
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
