//! RTCP of an endpoint: what is sent when, and what is understood of what comes.

use super::{
    clock,
    feedback::ArrivalFeedback,
    inbound::Inbound,
    out::Out,
    outbound::Outbound,
    settings::Settings,
    timing::{Group, Timing},
};
use std::collections::BTreeMap;
use tcps_core::{endpoint::EndpointStats, ids::FlowId, seed::Stream, time::Time};
use tcps_wire::{
    rtcp::{
        bye::{Bye, BYE},
        ccfb::{self, Ccfb},
        feedback::{emit_nack, Feedback, NACK, PAYLOAD, TRANSPORT},
        report::{Block, Report, RR, SR},
        sdes::{self, Chunk, Item},
        xr::{self, Dlrr},
        Packet, Packets,
    },
    Error,
};

/// Intervals of silence after which a source counts no more.
const SILENT_INTERVALS: i64 = 5;
/// Packets that one NACK brings at most, so that a small datagram from anybody causes no flood.
const MOST_ASKED: usize = 64;

/// RTCP of an endpoint.
#[derive(Debug)]
pub(crate) struct Reports {
    timing: Timing,
    cname: String,
    receiver_ssrc: u32,
    extended: bool,
    feedback: Option<ArrivalFeedback>,
    references: BTreeMap<u32, (u32, Time)>,
    members: BTreeMap<u32, Time>,
    understood: u64,
    feedbacks: u64,
    rtt_ns: Option<Time>,
    fraction_lost: Option<u8>,
    interval_ns: Time,
}

impl Reports {
    pub(crate) fn new(settings: &Settings, cname: String, mut chance: Stream) -> Self {
        let receiver_ssrc = chance.bits() as u32;
        Self {
            timing: Timing::new(settings.profile, f64::from(settings.bandwidth_bps), chance),
            cname,
            receiver_ssrc,
            extended: settings.extended,
            feedback: settings.feedback_ns.map(|ns| ArrivalFeedback::new(ns, settings.mtu_bytes)),
            references: BTreeMap::new(),
            members: BTreeMap::new(),
            understood: 0,
            feedbacks: 0,
            rtt_ns: None,
            fraction_lost: None,
            interval_ns: Time::MAX / 16,
        }
    }

    /// What it adds to the counters of an endpoint.
    pub(crate) fn stats(&self, stats: EndpointStats) -> EndpointStats {
        let Self { understood: reports, rtt_ns, fraction_lost, .. } = *self;
        EndpointStats {
            reports: reports + self.feedbacks,
            rtt_ns,
            peer_fraction_lost: fraction_lost,
            ..stats
        }
    }

    /// When to come back.
    pub(crate) fn next(&self) -> Option<Time> {
        let feedback = self.feedback.as_ref().and_then(ArrivalFeedback::next);
        self.timing.next().into_iter().chain(feedback).min()
    }

    /// Begins with the first input. A sender's first report goes before its first packet, as unicast allows: with
    /// it the receiver knows the source, its name and its clock.
    // [RFC 3550 §6.2]
    pub(crate) fn start(
        &mut self,
        now: Time,
        outbound: &mut [Outbound],
        inbound: &mut [Inbound],
        out: &mut Out,
    ) {
        if self.timing.next().is_some() {
            return;
        }
        self.timing.start(now, self.group(now, outbound, inbound));
        self.feedback.iter_mut().for_each(|f| f.start(now));
        if !outbound.is_empty() {
            outbound.iter_mut().for_each(|o| o.sent_ns = Some(now));
            self.send(now, outbound, inbound, &[], out);
        }
    }

    /// Who takes part now: whoever was silent for two intervals counts as a receiver.
    fn group(&self, now: Time, outbound: &[Outbound], inbound: &[Inbound]) -> Group {
        let lately = |at: Time| now.saturating_sub(at) < self.interval_ns.saturating_mul(2);
        let we_sent = outbound.iter().filter(|o| o.sent_ns.is_some_and(lately)).count();
        let sources = inbound.iter().filter_map(|i| i.source.as_ref()).filter(|s| !s.left);
        let others = sources.filter(|s| lately(s.heard_ns)).count();
        let members = outbound.len().max(1) + self.members.len().max(others);
        Group { members, senders: we_sent + others, we_sent: we_sent > 0 }
    }

    /// Does what is due.
    pub(crate) fn timeout(
        &mut self,
        now: Time,
        outbound: &mut [Outbound],
        inbound: &mut [Inbound],
        out: &mut Out,
    ) {
        let silent_ns = self.interval_ns.saturating_mul(SILENT_INTERVALS);
        self.members.retain(|_, heard_ns| now.saturating_sub(*heard_ns) < silent_ns);
        let group = self.group(now, outbound, inbound);
        if self.timing.is_due(now, group) {
            self.send(now, outbound, inbound, &[], out);
        }
        self.send_feedback(now, outbound, out);
    }

    /// Sends a compound: report, names, and what else there is.
    // [RFC 3550 §6.1]
    fn send(
        &mut self,
        now: Time,
        outbound: &[Outbound],
        inbound: &mut [Inbound],
        leaving: &[u32],
        out: &mut Out,
    ) {
        let lately = |o: &&Outbound| {
            o.sent_ns.is_some_and(|t| now.saturating_sub(t) < self.interval_ns.saturating_mul(2))
        };
        let valid = inbound.iter_mut().filter_map(|i| i.source.as_mut()).filter(|s| s.is_valid() && !s.left);
        let mut summaries = Vec::new();
        let blocks: Vec<Block> = valid
            .map(|s| {
                summaries.push(xr::Block::Summary(s.summary()));
                s.report(now)
            })
            .collect();
        let (mut bytes, mut blocks) = (Vec::new(), Some(blocks));
        let ssrc = outbound.first().map_or(self.receiver_ssrc, |o| o.ssrc);
        let senders: Vec<_> = outbound.iter().filter(lately).collect();
        for o in &senders {
            let blocks = blocks.take().unwrap_or_default();
            Report { ssrc: o.ssrc, sender: Some(o.info(now)), blocks }.emit(&mut bytes);
        }
        if let Some(blocks) = blocks {
            Report { ssrc, sender: None, blocks }.emit(&mut bytes);
        }
        self.names(ssrc, outbound, &mut bytes);
        self.extended_report(now, ssrc, summaries, &mut bytes);
        if !leaving.is_empty() {
            Bye { ssrc: leaving.to_vec(), reason: b"end of the run" }.emit(&mut bytes);
        }
        let group = self.group(now, outbound, inbound);
        self.timing.sent(now, bytes.len(), group);
        self.interval_ns = self.timing.next().map_or(self.interval_ns, |t| t - now);
        Self::transmit(outbound, inbound, &bytes, out);
    }

    /// RTCP is accounted for whole, in the name of the first flow.
    fn transmit(outbound: &[Outbound], inbound: &[Inbound], bytes: &[u8], out: &mut Out) {
        let flow = outbound.first().map(|o| o.flow).or(inbound.first().map(|i| i.flow)).unwrap_or(FlowId(0));
        out.control(flow, bytes);
    }

    // [RFC 3550 §6.5.1]
    fn names(&self, ssrc: u32, outbound: &[Outbound], bytes: &mut Vec<u8>) {
        let item = Item { kind: sdes::CNAME, text: self.cname.as_bytes() };
        let others = outbound.iter().map(|o| o.ssrc).filter(|s| *s != ssrc);
        let chunks: Vec<_> =
            [ssrc].into_iter().chain(others).map(|ssrc| Chunk { ssrc, items: vec![item] }).collect();
        sdes::emit(&chunks, bytes);
    }

    // [RFC 3611 §4.4] [RFC 3611 §4.5] [RFC 3611]
    fn extended_report(&self, now: Time, ssrc: u32, summaries: Vec<xr::Block>, bytes: &mut Vec<u8>) {
        if !self.extended {
            return;
        }
        let line = |(ssrc, (last_rr, at)): (&u32, &(u32, Time))| Dlrr {
            ssrc: *ssrc,
            last_rr: *last_rr,
            delay: clock::short(now - at),
        };
        let lines: Vec<_> = self.references.iter().map(line).collect();
        let mut blocks = vec![xr::Block::Reference(clock::ntp(now))];
        if !lines.is_empty() {
            blocks.push(xr::Block::Dlrr(lines));
        }
        blocks.extend(summaries);
        xr::emit(ssrc, &blocks, bytes);
    }

    /// A packet of a known source has come.
    pub(crate) fn arrived(&mut self, at: Time, ssrc: u32, sequence: u16) {
        if let Some(feedback) = &mut self.feedback {
            feedback.arrived(at, ssrc, sequence);
        }
    }

    /// Sends when each packet since the last feedback arrived.
    fn send_feedback(&mut self, now: Time, outbound: &[Outbound], out: &mut Out) {
        let sender = self.voice(outbound);
        let Some(feedback) = &mut self.feedback else { return };
        for packet in feedback.due(now, sender) {
            let mut bytes = Vec::new();
            packet.emit(&mut bytes);
            out.control(outbound.first().map_or(out.fallback_flow, |o| o.flow), &bytes);
        }
    }

    /// Asks for packets of a source that are missing.
    // [RFC 4585 §6.2.1] [RFC 5506 §3.4]
    pub(crate) fn ask(&self, media: u32, missing: &[u16], outbound: &[Outbound], out: &mut Out) {
        let (mut information, mut bytes) = (Vec::new(), Vec::new());
        emit_nack(missing, &mut information);
        let (kind, format, sender) = (TRANSPORT, NACK, self.voice(outbound));
        Feedback { kind, format, sender, media, information: &information }.emit(&mut bytes);
        out.control(outbound.first().map_or(out.fallback_flow, |o| o.flow), &bytes);
    }

    /// Who speaks for this side.
    fn voice(&self, outbound: &[Outbound]) -> u32 {
        outbound.first().map_or(self.receiver_ssrc, |o| o.ssrc)
    }

    /// Says good-bye.
    // [RFC 3550 §6.6]
    pub(crate) fn leave(
        &mut self,
        now: Time,
        outbound: &mut [Outbound],
        inbound: &mut [Inbound],
        out: &mut Out,
    ) {
        let mut own: Vec<u32> = outbound.iter().map(|o| o.ssrc).collect();
        if own.is_empty() {
            own.push(self.receiver_ssrc);
        }
        self.send(now, outbound, inbound, &own, out);
    }

    /// RTCP came. A datagram is taken whole or refused.
    // [RFC 3550 §A.2] [RFC 5506 §3.4]
    pub(crate) fn receive(
        &mut self,
        at: Time,
        bytes: &[u8],
        outbound: &mut [Outbound],
        inbound: &mut [Inbound],
        out: &mut Out,
    ) -> Result<(), Error> {
        let packets = Packets::reduced(bytes)?;
        for packet in packets.clone() {
            check(&packet)?;
        }
        self.timing.heard(bytes.len());
        for packet in packets {
            self.understand(at, &packet, outbound, inbound, out)?;
        }
        Ok(())
    }

    fn understand(
        &mut self,
        at: Time,
        packet: &Packet<'_>,
        outbound: &mut [Outbound],
        inbound: &mut [Inbound],
        out: &mut Out,
    ) -> Result<(), Error> {
        match packet.kind {
            SR | RR => {
                let is_known = self.report(at, &Report::parse(packet)?, outbound, inbound);
                out.stats.malformed += u64::from(!is_known);
            }
            sdes::SDES => {
                for chunk in sdes::parse(packet)?.iter().filter(|c| c.cname().is_some()) {
                    self.note(at, chunk.ssrc);
                    inbound.iter_mut().for_each(|i| i.announce(chunk.ssrc));
                }
            }
            BYE => {
                for ssrc in Bye::parse(packet)?.ssrc {
                    let was_member = self.members.remove(&ssrc).is_some();
                    let left: u64 = inbound.iter_mut().map(|i| u64::from(i.leaves(ssrc))).sum();
                    out.stats.malformed += u64::from(!was_member && left == 0);
                }
            }
            TRANSPORT if packet.count == ccfb::FORMAT => {
                // [RFC 8888 §3.1]
                let understood = out.told(at, &Ccfb::parse(packet)?);
                self.feedbacks += u64::from(understood);
                out.stats.malformed += u64::from(!understood);
            }
            TRANSPORT | PAYLOAD => {
                let feedback = Feedback::parse(packet)?;
                self.feedbacks += u64::from(packet.count == NACK && feedback.kind == TRANSPORT);
                if let Some(flow) = outbound.iter_mut().find(|o| o.ssrc == feedback.media) {
                    feedback.nacked().take(MOST_ASKED).for_each(|lost| flow.send_again(lost, out));
                }
            }
            xr::XR => self.extended(at, packet, outbound)?,
            _ => {}
        }
        Ok(())
    }

    fn note(&mut self, at: Time, ssrc: u32) {
        if self.members.len() < 256 || self.members.contains_key(&ssrc) {
            self.members.insert(ssrc, at);
        }
    }

    /// Whether a sender that reports is one of those whose flows arrive here.
    // [RFC 3550 §6.4.1] [RFC 3550]
    fn report(&mut self, at: Time, report: &Report, outbound: &[Outbound], inbound: &mut [Inbound]) -> bool {
        if let Some(info) = &report.sender {
            let own: u64 = inbound.iter_mut().map(|i| u64::from(i.reported(at, report.ssrc, info))).sum();
            if own == 0 {
                return false;
            }
        }
        self.note(at, report.ssrc);
        for block in report.blocks.iter().filter(|b| outbound.iter().any(|o| o.ssrc == b.ssrc)) {
            self.understood += 1;
            self.fraction_lost = Some(block.fraction_lost);
            self.round_trip(at, block.last_sr, block.delay);
        }
        true
    }

    fn round_trip(&mut self, at: Time, last: u32, delay: u32) {
        let units = clock::middle(clock::ntp(at)).wrapping_sub(last).wrapping_sub(delay);
        if last != 0 && (units as i32) >= 0 {
            self.rtt_ns = Some(clock::from_short(units));
        }
    }

    fn extended(&mut self, at: Time, packet: &Packet<'_>, outbound: &[Outbound]) -> Result<(), Error> {
        let (ssrc, blocks) = xr::parse(packet)?;
        let own = |s: u32| s == self.receiver_ssrc || outbound.iter().any(|o| o.ssrc == s);
        let mut answer = None;
        for block in &blocks {
            match block {
                xr::Block::Reference(ntp)
                    if self.references.len() < 32 || self.references.contains_key(&ssrc) =>
                {
                    self.references.insert(ssrc, (clock::middle(*ntp), at));
                }
                xr::Block::Dlrr(lines) => answer = lines.iter().find(|l| own(l.ssrc)).copied().or(answer),
                _ => {}
            }
        }
        if let Some(line) = answer {
            self.round_trip(at, line.last_rr, line.delay);
        }
        Ok(())
    }
}

/// Whether a packet of a known type can be read.
fn check(packet: &Packet<'_>) -> Result<(), Error> {
    match packet.kind {
        SR | RR => Report::parse(packet).map(drop),
        sdes::SDES => sdes::parse(packet).map(drop),
        BYE => Bye::parse(packet).map(drop),
        TRANSPORT if packet.count == ccfb::FORMAT => Ccfb::parse(packet).map(drop),
        TRANSPORT | PAYLOAD => Feedback::parse(packet).map(drop),
        xr::XR => xr::parse(packet).map(drop),
        _ => Ok(()),
    }
}
