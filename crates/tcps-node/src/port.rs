//! One side of a channel at its node: samples to its endpoint, datagrams from it, samples from it.

use super::{
    assets::{self, Assets},
    context::Context,
    due::Item,
    here::Here,
    job::{coded, Job, Stage},
    sparse::Sparse,
};
use crate::{host::Host, secrets::Secrets};
use tcps_core::{
    endpoint::{ConnectionStats, Ecn, Endpoint, EndpointStats, Input, Output, Transmit},
    ids::{ChannelId, FlowId, NodeId, SessionId, NONE},
    record::{Kind, Place, Record},
    sample::Meta,
    time::{Time, NEVER},
};
use tcps_plan::{Codec, FlowPlan, Level, Places, Plan, RunError, OVERHEAD_BYTES};
use tcps_transport::{kernel_tcp, security, ChannelContext, ChannelFlow, Side};

/// One side of a channel.
struct Port {
    channel: ChannelId,
    peer: NodeId,
    endpoint: Box<dyn Endpoint>,
    /// The flows that it carries.
    carried: Sparse<FlowId, Carried>,
    /// Samples of flows that this channel does not carry.
    strays: u64,
    /// Whether datagrams begin with the plain header.
    plain: bool,
    /// Code point of its datagrams; none: that of their flows.
    dscp: Option<u8>,
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
    fn account(&self, bytes: &[u8]) -> (FlowId, u32, u32) {
        let wire_bytes = bytes.len() as u32 + OVERHEAD_BYTES;
        let plain = self.plain.then(|| tcps_plan::accounted(bytes, wire_bytes, self.overhead_bytes));
        plain.flatten().unwrap_or((FlowId::NONE, 0, wire_bytes))
    }
}

/// The sides of channels that are at a node.
#[derive(Default)]
pub(super) struct Ports {
    ports: Sparse<ChannelId, Port>,
}

impl Ports {
    /// Those of a node, or of some of its sessions.
    pub(super) fn new(
        plan: &Plan,
        places: &Places,
        node: NodeId,
        sessions: Option<&[SessionId]>,
        assets: &mut dyn Assets,
        secrets: &mut dyn Secrets,
    ) -> Result<Self, RunError> {
        let mut all = Self::default();
        for &id in &places.channels[usize::from(node)] {
            let c = &plan.channels[id];
            let (side, peer) = if c.a == node { (Side::A, c.b) } else { (Side::B, c.a) };
            if sessions.is_some_and(|s| !s.contains(&c.session)) {
                continue;
            }
            let numbers = &places.carried[id];
            let flows = carried(plan, id, numbers);
            let methods = tcps_transport::methods(&c.transport);
            if let Some(named) = c.security.as_ref().filter(|named| !methods.contains(&named.kind.as_str())) {
                let allowed = if methods.is_empty() { "none".into() } else { methods.join(", ") };
                return Err(RunError::config(format!(
                    "channels.{}.security: found {:?} at the transport {}; allowed there: {allowed}",
                    c.name, named.kind, c.transport
                )));
            }
            let is_inside = c.security.as_ref().is_some_and(security::is_inside);
            let tls = is_inside.then(|| secrets.tls(id, &c.name)).transpose()?;
            let start_ns = plan.nodes[node].clock.read(0);
            let context = ChannelContext { name: c.name.clone(), seed: plan.seed, start_ns, flows, tls };
            let endpoint = assets::endpoint(&c.transport, &c.params, side, &context, assets)
                .and_then(|endpoint| match &c.security {
                    Some(named) if !is_inside => {
                        let secret = secrets.secret(Some(id), &c.name, side)?;
                        security::secured(endpoint, named, side, &context, secret)
                            .map_err(|fault| RunError::of(&fault, Some(fault.clone())))
                    }
                    _ => Ok(endpoint),
                })
                .map_err(|e| e.within(format!("channels.{}", c.name)))?;
            let carried = numbers.iter().map(|f| {
                let flow = &plan.flows[*f];
                let arrives = arrival(plan, flow, id, node);
                (*f, Carried { arrives, codec: flow.codec, dscp: flow.dscp })
            });
            let by_kernel = c.transport == kernel_tcp::NAME;
            let given = plan.overhead_bytes(id);
            let port = Port {
                channel: id,
                peer,
                endpoint,
                carried: carried.collect(),
                strays: 0,
                dscp: c.dscp,
                plain: c.security.is_none() && tcps_transport::has_plain_header(&c.transport),
                overhead_bytes: given.or(by_kernel.then_some(kernel_tcp::OVERHEAD_BYTES)),
            };
            all.ports.push(id, port);
        }
        Ok(all)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.ports.len()
    }

    fn at(&self, channel: ChannelId) -> Option<&Port> {
        self.ports.get(channel)
    }

    /// Samples that the endpoint of a channel merges into a packet now.
    pub(super) fn merging(&self, channel: ChannelId) -> u16 {
        self.at(channel).map_or(1, |p| p.endpoint.merging())
    }

    /// What the first of these channels that is here allows a flow, in bit/s, if its transport says so.
    pub(super) fn allowance_bps(
        &self,
        flow: FlowId,
        mut channels: impl Iterator<Item = ChannelId>,
    ) -> Option<f64> {
        channels.find_map(|c| self.at(c))?.endpoint.allowance_bps(flow)
    }

    /// Run time at which an endpoint wants to be called.
    pub(super) fn next(&self, port: usize, here: &Here) -> Time {
        self.ports.at(port).endpoint.poll_timeout().map_or(NEVER, |t| here.steady.when(t))
    }

    /// Gives a sample to the endpoint of its channel; tells when the first link has taken the last datagram.
    pub(super) fn send<O: Host>(
        &mut self,
        now: Time,
        channel: ChannelId,
        job: &mut Job,
        cx: &mut Context<'_, O>,
    ) -> Time {
        coded(job);
        let Some(port) = self.ports.place(channel) else { return now };
        if job.parts.is_known() {
            cx.out.hand_over(channel, &job.meta, &job.parts);
        }
        let input = Input::Sample { meta: job.meta, bytes: &job.bytes };
        self.ports.at_mut(port).endpoint.handle_input(cx.here.steady.read(now), input);
        self.pump(port, now, None, cx)
    }

    /// A datagram of a channel has arrived; `received` is when the kernel had it and how it was marked. False: no such channel is here.
    pub(super) fn receive<O: Host>(
        &mut self,
        now: Time,
        channel: ChannelId,
        (received, ecn): (Time, Ecn),
        bytes: &[u8],
        cx: &mut Context<'_, O>,
    ) -> bool {
        let Some(port) = self.ports.place(channel) else { return false };
        if cx.here.level >= Level::Packets {
            let (flow, index, size) = self.ports.at(port).account(bytes);
            self.show_packet(now, Kind::Receive, port, (flow, index, size), cx);
        }
        let received_ns = cx.here.steady.read(received);
        let input = Input::Datagram { bytes, received_ns, ecn };
        self.ports.at_mut(port).endpoint.handle_input(cx.here.steady.read(now), input);
        self.pump(port, now, Some(received_ns), cx);
        true
    }

    /// An endpoint's timer has run out.
    pub(super) fn tick<O: Host>(&mut self, port: usize, now: Time, cx: &mut Context<'_, O>) {
        self.ports.at_mut(port).endpoint.handle_input(cx.here.steady.read(now), Input::Timeout);
        self.pump(port, now, None, cx);
    }

    /// Does what the endpoint of a port wants done; tells when the first link has taken the last datagram.
    ///
    /// `received_ns` is when the kernel had the datagram that was just given to it.
    fn pump<O: Host>(
        &mut self,
        port: usize,
        now: Time,
        received_ns: Option<Time>,
        cx: &mut Context<'_, O>,
    ) -> Time {
        let mut taken = now;
        let mut datagram = std::mem::take(&mut cx.out.spare().datagram);
        while let Some(output) = self.ports.at_mut(port).endpoint.poll_output(&mut datagram) {
            let p = self.ports.at(port);
            match output {
                Output::Transmit(t) => {
                    let of_flow = p.carried.get(t.flow).map_or(0, |f| f.dscp);
                    let dscp = t.dscp.or(p.dscp).or(Some(of_flow));
                    if cx.here.level >= Level::Packets {
                        self.show_packet(now, Kind::Transmit, port, (t.flow, t.index, t.wire_bytes), cx);
                    }
                    taken = cx.out.transmit(now, p.channel, p.peer, &datagram, &Transmit { dscp, ..t });
                }
                Output::Record(r) if is_of_packet(&r) && cx.here.level < Level::Packets => {}
                Output::Record(r) => cx.out.record(row_of_endpoint(cx.here, p.channel, now, r)),
                Output::Deliver(d) => {
                    cx.out.delivered(now, p.channel, &d.meta, d.received_ns);
                    let at_once = received_ns.filter(|&t| t == d.received_ns);
                    let received_ns = at_once.map(|t| t.saturating_add(cx.here.stepped_ns()));
                    self.arrive(port, now, d.meta, received_ns, &mut datagram, cx);
                }
            }
        }
        cx.out.spare().datagram = datagram;
        cx.due.set(Item::Port(port), self.next(port, cx.here));
        taken
    }

    /// A sample comes out of a channel, in `datagram`.
    fn arrive<O: Host>(
        &mut self,
        port: usize,
        now: Time,
        meta: Meta,
        received_ns: Option<Time>,
        datagram: &mut Vec<u8>,
        cx: &mut Context<'_, O>,
    ) {
        let port = self.ports.at_mut(port);
        let Some(flow) = port.carried.get(meta.flow).filter(|f| f.arrives != NONE) else {
            port.strays += 1;
            return;
        };
        let mut job = cx.out.spare().take();
        std::mem::swap(&mut job.bytes, datagram);
        (job.flow, job.visit, job.step, job.stage) = (meta.flow, flow.arrives, 0, Stage::Enter);
        (job.meta, job.codec, job.coded, job.decoded) = (meta, flow.codec, true, false);
        job.received_ns = received_ns;
        cx.out.take_over(now, port.channel, &meta, received_ns.is_some(), &mut job.parts);
        cx.jobs.go(job);
    }

    /// A row of a datagram: flow, sample and accounted size.
    fn show_packet<O: Host>(
        &self,
        now: Time,
        kind: Kind,
        port: usize,
        (flow, index, size): (FlowId, u32, u32),
        cx: &mut Context<'_, O>,
    ) {
        let point = self.ports.at(port).channel;
        cx.out.record(Record { index, size, flow, point: point.0, ..cx.here.row(now, kind) });
    }

    /// What endpoints have counted, by channel, with stray samples.
    pub(super) fn stats(&self, here: &Here) -> Vec<(ChannelId, EndpointStats, u64)> {
        let of_run = |of: ConnectionStats| {
            let [first_lost_ns, down_since_ns] =
                [of.first_lost_ns, of.down_since_ns].map(|t| t.map(|t| here.steady.when(t)));
            ConnectionStats { first_lost_ns, down_since_ns, ..of }
        };
        let stats = |p: &Port| {
            let stats = p.endpoint.stats();
            EndpointStats { connections: stats.connections.map(of_run), ..stats }
        };
        self.ports.iter().map(|p| (p.channel, stats(p), p.strays)).collect()
    }

    /// Endpoints whose code failed, by channel.
    pub(super) fn failures(&self) -> Vec<(ChannelId, String)> {
        self.ports.iter().filter_map(|p| Some((p.channel, p.endpoint.failure()?))).collect()
    }
}

/// A row of an endpoint, whose ages are from stamps of this node to the clock of its timers.
fn row_of_endpoint(here: &Here, channel: ChannelId, now: Time, row: Record) -> Record {
    let of_channel = row.place() == Place::Channel;
    let stepped_ns = if row.kind == Kind::Dropped && !of_channel { here.stepped_ns() } else { 0 };
    let point = if of_channel { channel.0 } else { row.point };
    Record { time_ns: now, node: here.id, value: row.value.saturating_add(stepped_ns), point, ..row }
}

/// Whether a row is about a packet that is no sample's as far as it is known, and about nothing else.
fn is_of_packet(row: &Record) -> bool {
    let is_nobodys = row.kind == Kind::Dropped && row.place() == Place::Channel && row.flow == FlowId::NONE;
    row.kind == Kind::Told || is_nobodys
}

/// The visit at which samples of `flow` arrive at `node` through `channel`, or `NONE`.
fn arrival(plan: &Plan, flow: &FlowPlan, channel: ChannelId, node: NodeId) -> u16 {
    let mut steps = flow.path.windows(2).enumerate();
    let found =
        steps.find(|(_, w)| w[0].channel == Some(channel) && plan.components[w[1].component].node == node);
    found.map_or(NONE, |(i, _)| i as u16 + 1)
}

/// The flows that a channel carries, with the side they go to.
pub fn channel_flows(plan: &Plan, channel: ChannelId) -> Vec<ChannelFlow> {
    let by_it = |(_, flow): &(FlowId, &FlowPlan)| flow.path.iter().any(|v| v.channel == Some(channel));
    let numbers: Vec<FlowId> = FlowId::each(&plan.flows).filter(by_it).map(|(id, _)| id).collect();
    carried(plan, channel, &numbers)
}

/// The same; their numbers are known.
fn carried(plan: &Plan, channel: ChannelId, numbers: &[FlowId]) -> Vec<ChannelFlow> {
    let mut flows = Vec::new();
    for &id in numbers {
        let flow = &plan.flows[id];
        for w in flow.path.windows(2).filter(|w| w[0].channel == Some(channel)) {
            let to = plan.components[w[1].component].node;
            let to = if to == plan.channels[channel].a { Side::A } else { Side::B };
            let name = flow.short_name().to_string();
            flows.push(ChannelFlow { flow: id, to, name, period_ns: flow.period_ns });
        }
    }
    flows
}
