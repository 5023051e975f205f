//! RTP and RTCP (RFC 3550, AVPF RFC 4585): one source a flow, both protocols on one port (RFC 5761).
//!
//! ```text
//! sample ──► outbound: cut to the MTU, numbered, stamped [+ older payload | parity] ──► RTP
//! RTP ──► source: valid? lost? jitter ──► inbound: [repair] ──► parts together ──► sample
//! a gap ──► NACK ──► the packet again, in a stream of its own (RFC 4588), where `nack` is set
//! timing ──► SR or RR, SDES [, XR] ──► RTCP ──► round trip, what the peer lost
//! arrivals ──► feedback (RFC 8888), where `feedback` is set ──► what became of each packet ──► the rate that is allowed
//! ```
//! Index and origin time of a sample ride in an RFC 8285 extension unless `identity` is off: then they come from
//! the timestamp, the sender's reports and the flow's period. In `stop_and_wait` every packet is answered with its
//! payload and one byte more, and the next one waits for that (Abdullah 2023).

pub(crate) mod clock;
mod congestion;
mod extras;
mod feedback;
mod format;
mod frames;
mod inbound;
mod ledger;
mod motion;
mod out;
mod outbound;
mod repair;
mod reports;
mod rtx;
mod settings;
mod source;
mod timing;
mod waiting;

use crate::{
    channel::{ChannelContext, Side},
    params::{Mtu, Overhead, Params, Transport, TransportError, MEDIA},
    reassembly::PATIENCE_NS,
    udp::MAX_SAMPLE_BYTES,
};
use congestion::Congestion;
use inbound::Inbound;
use out::Out;
use outbound::Outbound;
use reports::Reports;
use serde_json::Value;
use settings::Settings;
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output},
    ids::FlowId,
    param::{Draws, Entry, Params as _},
    sample::Meta,
    seed::Stream,
    time::Time,
};
use tcps_wire::{
    rtp::{is_rtcp, Packet},
    Error,
};
use waiting::Waiting;

/// In a scenario.
pub(crate) const ENTRY: Entry<Transport> = Entry {
    id: 15,
    name: "rtp",
    doc: "one RTP source per flow, RTP and RTCP on one port",
    params: &crate::congestion::paced::<4, { 4 + crate::congestion::CONTROLLERS.len() }>([
        Mtu::TABLE,
        Overhead::TABLE,
        settings::Given::TABLE,
        settings::CONGESTION,
    ]),
    draws: Draws::Yes,
    make: Transport {
        security: MEDIA,
        ..Transport::of(|params, side, ctx| Ok(Box::new(Rtp::from_params(params, side, ctx)?)))
    },
};

/// An endpoint of the `rtp` transport.
#[derive(Debug)]
pub struct Rtp {
    settings: Settings,
    outbound: Vec<Outbound>,
    inbound: Vec<Inbound>,
    waiting: Vec<Waiting>,
    reports: Reports,
    out: Out,
    wake_ns: Option<Time>,
}

impl Rtp {
    /// The endpoint at `side`; `docs/scenario.md` lists the parameters.
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, TransportError> {
        let settings = Settings::from_params(params)?;
        let name = |what: &str| format!("{}.rtp.{what}", ctx.name);
        let chance = |what: &str| Stream::new(ctx.seed, &name(what));
        let ssrc = |flow: FlowId| chance(&flow.to_string()).bits() as u32;
        let (mut outbound, mut inbound, mut waiting) = (vec![], vec![], vec![]);
        for (f, format) in ctx.flows.iter().zip(format::formats(&ctx.flows)) {
            if settings.stop_and_wait {
                let answers = chance(&format!("answers.{}", f.flow)).bits() as u32;
                waiting.push(Waiting::new(f.flow, answers));
            }
            let mut again = chance(&format!("again.{}", f.flow));
            let (again, first) = (again.bits() as u32, again.bits() as u16);
            if f.to == side {
                let flow = Inbound::new(f.flow, format, f.period_ns, ssrc(f.flow));
                inbound.push(match settings.nack {
                    Some(nack) => flow.asking(again, nack),
                    None => flow,
                });
            } else {
                let stream = chance(&format!("numbers.{}", f.flow));
                let flow = Outbound::new(f.flow, format, ssrc(f.flow), stream);
                outbound.push(if settings.nack.is_some() { flow.keeping(again, first) } else { flow });
            }
        }
        let place = if side == Side::A { "a" } else { "b" };
        let receiver = chance(&format!("receiver.{place}"));
        let reports = Reports::new(&settings, format!("{}@{place}", ctx.name), receiver);
        let (overhead_bytes, motion_every) = (settings.overhead_bytes, settings.motion_every);
        let fallback_flow = ctx.flows.first().map_or(FlowId(0), |f| f.flow);
        let sources: Vec<_> = outbound.iter().map(|o| (o.flow, o.ssrc)).collect();
        let rate = settings::controller(params)?.zip(settings.limits);
        let congestion = settings.feedback_ns.map(|_| Congestion::new(&sources, rate));
        let out = Out { overhead_bytes, motion_every, fallback_flow, congestion, ..Out::default() };
        Ok(Self { settings, outbound, inbound, waiting, reports, out, wake_ns: None })
    }

    /// The endpoint at `side` with `params` (an object, or null for none), for drivers that say good-bye.
    pub fn new(params: &Value, side: Side, ctx: &ChannelContext) -> Result<Self, TransportError> {
        Self::from_params(&Params::new("rtp", params).known(&ENTRY)?, side, ctx)
    }

    /// Says good-bye: the sources of this side leave.
    // [RFC 3550 §6.6]
    pub fn leave(&mut self, now: Time) {
        self.reports.leave(now, &mut self.outbound, &mut self.inbound, &mut self.out);
    }

    fn send(&mut self, now: Time, meta: Meta, sample: &[u8]) {
        let Self { settings, outbound, waiting, out, .. } = self;
        if sample.len() > MAX_SAMPLE_BYTES {
            out.stats.malformed += 1;
            return;
        }
        let Some(flow) = outbound.iter_mut().find(|o| o.flow == meta.flow) else { return };
        match waiting.iter_mut().find(|w| w.flow == meta.flow) {
            Some(w) => w.offer(now, meta, sample, flow, settings, out),
            None => flow.send(now, meta, sample, settings, out),
        }
    }

    fn receive(&mut self, now: Time, bytes: &[u8], received_ns: Time) -> Result<(), Error> {
        if is_rtcp(bytes) {
            let Self { reports, outbound, inbound, out, .. } = self;
            return reports.receive(received_ns, bytes, outbound, inbound, out);
        }
        let packet = Packet::new_checked(bytes)?;
        let Self { settings, inbound, outbound, waiting, reports, out, .. } = self;
        if let Some(w) = waiting.iter_mut().find(|w| w.answers == packet.ssrc()) {
            let flow = outbound.iter_mut().find(|o| o.flow == w.flow).ok_or(Error::Unknown)?;
            w.answered(now, packet.sequence(), bytes.len(), flow, settings, out);
            return Ok(());
        }
        if packet.payload_type() == format::FLEXFEC {
            let media = packet.csrc(0);
            let flow = inbound.iter_mut().find(|i| i.is_source(media)).ok_or(Error::Unknown)?;
            return flow.flexfec(now, received_ns, &packet, out);
        }
        if packet.payload_type() == format::RTX {
            let flow = inbound.iter_mut().find(|i| i.is_again(packet.ssrc())).ok_or(Error::Unknown)?;
            return flow.again(now, received_ns, bytes, settings, out);
        }
        let exact = inbound.iter().position(|i| i.owns_source(packet.ssrc()));
        let by_type = || inbound.iter().position(|i| i.format.payload_type == packet.payload_type());
        let at = exact.or_else(by_type).ok_or(Error::Unknown)?;
        if inbound[at].packet(now, received_ns, bytes, settings, out)? {
            reports.arrived(received_ns, packet.ssrc(), packet.sequence());
        }
        if let Some(w) = waiting.iter().find(|w| w.flow == inbound[at].flow) {
            w.answer(&packet, out);
        }
        Ok(())
    }

    /// The wake-up for samples in parts may come too early, never too late: it looks again then.
    fn set_wake(&mut self, now: Time) {
        if self.inbound.iter().all(|i| i.oldest_ns().is_none()) {
            self.wake_ns = None;
        } else if self.wake_ns.is_none() {
            self.wake_ns = Some(now + PATIENCE_NS);
        }
    }

    fn timeout(&mut self, now: Time) {
        let Self { settings, outbound, inbound, waiting, reports, out, .. } = self;
        if self.wake_ns.is_some_and(|t| t <= now) {
            self.wake_ns = inbound.iter_mut().filter_map(|i| i.expire(now)).min();
        }
        for w in waiting.iter_mut() {
            if let Some(flow) = outbound.iter_mut().find(|o| o.flow == w.flow) {
                w.expire(now, flow, settings, out);
            }
        }
        for flow in inbound.iter_mut() {
            if let Some((media, missing)) = flow.missing(now) {
                reports.ask(media, &missing, outbound, out);
            }
        }
        out.silence(now);
        reports.timeout(now, outbound, inbound, out);
    }
}

impl Endpoint for Rtp {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        self.out.now = now;
        self.reports.start(now, &mut self.outbound, &mut self.inbound, &mut self.out);
        match input {
            Input::Sample { meta, bytes } => self.send(now, meta, bytes),
            Input::Datagram { bytes, received_ns, .. } => {
                if self.receive(now, bytes, received_ns).is_err() {
                    self.out.stats.malformed += 1;
                }
                self.set_wake(now);
            }
            Input::Timeout => self.timeout(now),
        }
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.out.outbox.pop(buf)
    }

    fn poll_timeout(&self) -> Option<Time> {
        let waits = self.waiting.iter().filter_map(Waiting::deadline);
        let asks = self.inbound.iter().filter_map(Inbound::asks_at);
        let silence = self.out.congestion.as_ref().and_then(Congestion::next);
        waits.chain(self.wake_ns).chain(asks).chain(silence).chain(self.reports.next()).min()
    }

    fn failure(&self) -> Option<String> {
        self.out.congestion.as_ref()?.failure()
    }

    fn allowance_bps(&self, flow: FlowId) -> Option<f64> {
        self.out.congestion.as_ref()?.allowance_bps(self.out.now, flow)
    }

    fn stats(&self) -> EndpointStats {
        let incomplete = self.inbound.iter().map(Inbound::incomplete).sum();
        let sources = || self.inbound.iter().filter_map(|i| i.source.as_ref());
        let lost: i64 = sources().map(|s| i64::from(s.lost())).sum();
        let refused: u64 = self.inbound.iter().map(Inbound::refused).sum();
        let malformed = self.out.stats.malformed + refused;
        EndpointStats {
            malformed,
            incomplete,
            lost: lost.max(0) as u64,
            jitter_ns: sources().map(|s| s.jitter_ns()).max(),
            told: self.out.congestion.as_ref().map(Congestion::told),
            ..self.reports.stats(self.out.stats)
        }
    }
}
