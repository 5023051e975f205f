//! A flow that is received: packets of its source become samples.

use super::{
    clock,
    extras::{extras, Extras},
    format::{Format, Framing, FLEXFEC, RED, ULPFEC},
    frames::Frames,
    motion::{Motion, MOTION_BYTES},
    repair::Repair,
    rtx,
    settings::{Nack, Redundancy, Settings},
    source::{Source, Verdict},
};
use crate::{
    had::Had,
    missing::Missing,
    reassembly::{Outcome, Reassembly},
    udp::MAX_SAMPLE_BYTES,
};
use tcps_core::{
    ids::FlowId,
    sample::{Echo, Meta},
    time::Time,
};
use tcps_wire::{
    header,
    rtcp::report::SenderInfo,
    rtp::{extension::Identity, red, Packet, Repr},
    Error,
};

/// Packets that are asked for at once.
const MOST_ASKED: usize = 64;

/// Where samples go, and what is counted.
pub(crate) trait Deliver {
    /// A sample is whole.
    fn deliver(&mut self, meta: Meta, received_ns: Time, bytes: &[u8], motion: &mut Motion);
    /// Bytes of a sample came again.
    fn repeated(&mut self, flow: FlowId, index: u32, bytes: usize);
    /// A sample was had only by its redundancy.
    fn recovered(&mut self);
}

/// A flow that is received.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub(crate) flow: FlowId,
    pub(crate) format: Format,
    pub(crate) source: Option<Source>,
    period_ns: Time,
    expected_ssrc: u32,
    rival: Option<Source>,
    held: Option<(Time, Vec<u8>)>,
    /// A report of a source of which no packet has come: SSRC, arrival, NTP time, RTP time.
    early: Option<(u32, Time, u64, u32)>,
    had: Had,
    parts: Reassembly,
    frames: Frames,
    repair: Repair,
    /// The source of retransmissions, and what they are asked for.
    asks: Option<(u32, Missing)>,
    motion: Motion,
    /// Packets of sources that did not prove to be the flow's, and those far from all others.
    refused: u64,
}

impl Inbound {
    pub(crate) fn new(flow: FlowId, format: Format, period_ns: Time, expected_ssrc: u32) -> Self {
        Self {
            flow,
            format,
            source: None,
            period_ns: period_ns.max(1),
            expected_ssrc,
            rival: None,
            held: None,
            early: None,
            had: Had::new(),
            parts: Reassembly::new(),
            frames: Frames::new(),
            repair: Repair::new(),
            asks: None,
            motion: [0; MOTION_BYTES],
            refused: 0,
        }
    }

    /// Asks for what is missing; it comes from the source `ssrc`.
    pub(crate) fn asking(mut self, ssrc: u32, nack: Nack) -> Self {
        self.asks = Some((ssrc, Missing::new(nack.reorder_ns, nack.tries)));
        self
    }

    /// What to ask for now: the source, and the numbers of its packets.
    // [RFC 4585 §6.2.1]
    pub(crate) fn missing(&mut self, now: Time) -> Option<(u32, Vec<u16>)> {
        let media = self.source.as_ref()?.ssrc;
        let numbers = self.asks.as_mut()?.1.due(now, MOST_ASKED);
        (!numbers.is_empty()).then_some((media, numbers))
    }

    /// When to ask.
    pub(crate) fn asks_at(&self) -> Option<Time> {
        self.source.as_ref()?;
        self.asks.as_ref()?.1.poll_timeout()
    }

    /// Whether retransmissions of this source are for it.
    pub(crate) fn is_again(&self, ssrc: u32) -> bool {
        self.asks.as_ref().is_some_and(|(own, _)| *own == ssrc)
    }

    /// A retransmission came: it is taken if its original is still missing.
    // [RFC 4588 §4]
    pub(crate) fn again(
        &mut self,
        now: Time,
        received_ns: Time,
        bytes: &[u8],
        settings: &Settings,
        to: &mut dyn Deliver,
    ) -> Result<(), Error> {
        let (Some(source), Some((_, missing))) = (&self.source, &mut self.asks) else { return Ok(()) };
        let payload_type = match settings.redundancy {
            Redundancy::Red { .. } => RED,
            _ => self.format.payload_type,
        };
        let (sequence, original) = rtx::original(bytes, payload_type, source.ssrc)?;
        let number = source.near(sequence);
        if !missing.found(now, sequence) {
            to.repeated(self.flow, number, original.len());
            return Ok(());
        }
        to.recovered();
        self.media(now, received_ns, number, &Packet::new_checked(&original[..])?, to)
    }

    /// Whether packets of this source are its own.
    pub(crate) fn owns_source(&self, ssrc: u32) -> bool {
        let bound = |s: &Option<Source>| s.as_ref().is_some_and(|s| s.ssrc == ssrc);
        ssrc == self.expected_ssrc || bound(&self.source) || bound(&self.rival)
    }

    /// Whether it is known as the source `ssrc`.
    pub(crate) fn is_source(&self, ssrc: u32) -> bool {
        self.source.as_ref().is_some_and(|s| s.ssrc == ssrc) || ssrc == self.expected_ssrc
    }

    pub(crate) fn incomplete(&self) -> u64 {
        self.parts.incomplete() + self.frames.incomplete()
    }

    /// Gives up what has waited too long; when to look again.
    pub(crate) fn expire(&mut self, now: Time) -> Option<Time> {
        self.parts.expire(now)
    }

    pub(crate) fn oldest_ns(&self) -> Option<Time> {
        self.parts.oldest_ns()
    }

    /// The source says who it is: it needs no probation.
    // [RFC 3550 §6.2.1]
    pub(crate) fn announce(&mut self, ssrc: u32) {
        if let Some(s) = self.source.as_mut().filter(|s| s.ssrc == ssrc) {
            s.believe();
        }
    }

    /// A report of the source `ssrc` came; whether that is, or may become, the flow's.
    pub(crate) fn reported(&mut self, at: Time, ssrc: u32, info: &SenderInfo) -> bool {
        if let Some(source) = self.source.as_mut() {
            if source.ssrc == ssrc {
                source.reported(at, info.ntp, info.timestamp);
                return true;
            }
            if self.rival.as_ref().is_none_or(|rival| rival.ssrc != ssrc) {
                return false;
            }
        } else if self.early.is_some_and(|early| early.0 != ssrc) && ssrc != self.expected_ssrc {
            return false;
        }
        self.early = Some((ssrc, at, info.ntp, info.timestamp));
        true
    }

    /// The source `ssrc` says that it leaves; whether that is the flow's.
    pub(crate) fn leaves(&mut self, ssrc: u32) -> bool {
        let source = self.source.as_mut().filter(|s| s.ssrc == ssrc);
        source.map(|s| s.left = true).is_some()
    }

    /// Packets that it did not take for the peer's; one that waits for the next of its source is not among them yet.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// An RTP packet came; whether its source is known and it counts. The second of an unknown source brings the first
    /// with it.
    // [RFC 3550 §A.1] [RFC 3550 §6.2.1]
    pub(crate) fn packet(
        &mut self,
        now: Time,
        received_ns: Time,
        bytes: &[u8],
        settings: &Settings,
        to: &mut dyn Deliver,
    ) -> Result<bool, Error> {
        let packet = Packet::new_checked(bytes)?;
        let (ssrc, seq) = (packet.ssrc(), packet.sequence());
        if self.source.as_ref().is_none_or(|s| s.ssrc != ssrc) {
            return self.stranger(now, received_ns, bytes, settings, to);
        }
        let Some(source) = self.source.as_mut() else { return Ok(false) };
        match source.update(seq) {
            Verdict::Probation | Verdict::Bad => {
                self.refused += 1;
                Ok(false)
            }
            Verdict::Valid(number) => {
                source.arrived(received_ns, packet.timestamp());
                self.valid(now, received_ns, number, bytes, settings, to).map(|()| true)
            }
        }
    }

    /// A packet of another source than the one that is known.
    fn stranger(
        &mut self,
        now: Time,
        received_ns: Time,
        bytes: &[u8],
        settings: &Settings,
        to: &mut dyn Deliver,
    ) -> Result<bool, Error> {
        let packet = Packet::new_checked(bytes)?;
        let (ssrc, seq) = (packet.ssrc(), packet.sequence());
        let known = ssrc == self.expected_ssrc;
        let mut rival = match self.rival.take().filter(|r| r.ssrc == ssrc) {
            Some(r) => r,
            None => {
                self.refused += u64::from(self.held.take().is_some());
                Source::new(ssrc, self.format.rate, self.period_ns, seq, known)
            }
        };
        let verdict = rival.update(seq);
        let Verdict::Valid(number) = verdict else {
            self.refused += u64::from(self.held.replace((received_ns, bytes.to_vec())).is_some());
            self.rival = Some(rival);
            return Ok(false);
        };
        rival.arrived(received_ns, packet.timestamp());
        if let Some((_, at, ntp, timestamp)) = self.early.take().filter(|e| e.0 == ssrc) {
            rival.reported(at, ntp, timestamp);
        }
        self.source = Some(rival);
        self.frames = Frames::new();
        if let Some((held_ns, first)) = self.held.take().filter(|_| !known) {
            self.valid(now, held_ns, number.wrapping_sub(1), &first, settings, to)?;
        }
        self.valid(now, received_ns, number, bytes, settings, to).map(|()| true)
    }

    fn valid(
        &mut self,
        now: Time,
        received_ns: Time,
        number: u32,
        bytes: &[u8],
        settings: &Settings,
        to: &mut dyn Deliver,
    ) -> Result<(), Error> {
        let packet = Packet::new_checked(bytes)?;
        if let Some((_, missing)) = &mut self.asks {
            missing.note(now, packet.sequence());
        }
        let protects = matches!(settings.redundancy, Redundancy::Ulpfec { .. } | Redundancy::Flexfec { .. });
        match packet.payload_type() {
            ULPFEC => self.repair.ulpfec(packet.payload())?,
            _ => self.media(now, received_ns, number, &packet, to)?,
        }
        if protects {
            self.repair.keep(packet.sequence(), bytes);
            self.recover(now, received_ns, to);
        }
        Ok(())
    }

    /// A repair packet of a stream of its own came.
    pub(crate) fn flexfec(
        &mut self,
        now: Time,
        received_ns: Time,
        packet: &Packet<&[u8]>,
        to: &mut dyn Deliver,
    ) -> Result<(), Error> {
        if packet.payload_type() != FLEXFEC {
            return Err(Error::Unknown);
        }
        self.repair.flexfec(packet.payload())?;
        self.recover(now, received_ns, to);
        Ok(())
    }

    // [RFC 8627]
    fn recover(&mut self, now: Time, received_ns: Time, to: &mut dyn Deliver) {
        let Some(ssrc) = self.source.as_ref().map(|s| s.ssrc) else { return };
        while let Some(bytes) = self.repair.recover(ssrc) {
            let Ok(packet) = Packet::new_checked(&bytes[..]) else { continue };
            if packet.payload_type() == ULPFEC {
                continue;
            }
            let number = self.source.as_ref().map_or(0, |s| s.near(packet.sequence()));
            to.recovered();
            let _ = self.media(now, received_ns, number, &packet, to);
        }
    }

    fn media<T: AsRef<[u8]>>(
        &mut self,
        now: Time,
        received_ns: Time,
        number: u32,
        packet: &Packet<T>,
        to: &mut dyn Deliver,
    ) -> Result<(), Error> {
        let Extras { identity, echo, older } = extras(packet);
        if packet.payload_type() != RED {
            return self.payload(now, received_ns, number, packet, packet.payload(), identity, echo, to);
        }
        let blocks = red::parse(packet.payload())?;
        let Some((primary, again)) = blocks.split_last() else { return Ok(()) };
        for block in again {
            self.older(received_ns, packet, block, older, to);
        }
        self.payload(now, received_ns, number, packet, primary.data, identity, echo, to)
    }

    /// A redundant block: the sample whole periods before that of the packet.
    // [RFC 2198 §3] [RFC 2198]
    fn older<T: AsRef<[u8]>>(
        &mut self,
        received_ns: Time,
        packet: &Packet<T>,
        block: &red::Block<'_>,
        older: Option<(u32, Time)>,
        to: &mut dyn Deliver,
    ) {
        let back_ns = clock::span(block.offset as i32, self.format.rate);
        let periods = (back_ns + self.period_ns / 2) / self.period_ns;
        let (index, origin_ns) = match older {
            Some(older) => older,
            None => {
                let (newest, at) = self.place(received_ns, packet.timestamp());
                (newest.wrapping_sub(periods as u32), at - periods * self.period_ns)
            }
        };
        if (older.is_some() || periods > 0) && self.had.is_new(index, origin_ns) {
            self.had.mark(index, origin_ns);
            to.recovered();
            let meta = Meta { flow: self.flow, index, origin_ns, echo: None };
            to.deliver(meta, received_ns, block.data, &mut self.motion);
        }
    }

    #[allow(clippy::too_many_arguments)] // all of one packet
    fn payload<T: AsRef<[u8]>>(
        &mut self,
        now: Time,
        received_ns: Time,
        number: u32,
        packet: &Packet<T>,
        payload: &[u8],
        identity: Option<Identity>,
        echo: Option<Echo>,
        to: &mut dyn Deliver,
    ) -> Result<(), Error> {
        let repr = Repr::parse(packet);
        match identity {
            Some(Identity { index, origin_ns, part: None }) => {
                self.whole(received_ns, Meta { flow: self.flow, index, origin_ns, echo }, payload, to);
            }
            Some(Identity { index, origin_ns, part: Some(part) }) => {
                self.part(now, received_ns, (index, origin_ns, part), payload, echo, to)?;
            }
            None if self.format.framing == Framing::Packet => {
                let (index, origin_ns) = self.place(received_ns, repr.timestamp);
                self.whole(received_ns, Meta { flow: self.flow, index, origin_ns, echo }, payload, to);
            }
            None => {
                if !self.frames.add(number, repr.timestamp, repr.marker, payload) {
                    to.repeated(self.flow, number, payload.len());
                    self.source.iter_mut().for_each(Source::repeated);
                }
                while let Some((timestamp, sample)) = self.frames.complete() {
                    let (index, origin_ns) = self.place(received_ns, timestamp);
                    self.whole(received_ns, Meta { flow: self.flow, index, origin_ns, echo }, &sample, to);
                }
            }
        }
        Ok(())
    }

    fn part(
        &mut self,
        now: Time,
        received_ns: Time,
        (index, origin_ns, (length, fragment, fragments)): (u32, Time, (u32, u16, u16)),
        payload: &[u8],
        echo: Option<Echo>,
        to: &mut dyn Deliver,
    ) -> Result<(), Error> {
        let flow = self.flow;
        let repr = header::Repr { flow, index, origin_ns, length, fragment, fragments, has_echo: false };
        if length as usize > MAX_SAMPLE_BYTES {
            return Err(Error::TooLong);
        }
        if fragment >= fragments || payload.len() != repr.payload_bytes() || payload.is_empty() {
            return Err(Error::Contradiction);
        }
        if !self.had.is_new(index, origin_ns) {
            self.had(index, payload.len(), to);
            return Ok(());
        }
        match self.parts.add(now, &repr, payload, echo)? {
            Outcome::Kept | Outcome::TooLate => {}
            Outcome::Repeated => self.had(index, payload.len(), to),
            Outcome::Complete(meta, sample) => {
                self.had.mark(index, origin_ns);
                to.deliver(meta, received_ns, sample, &mut self.motion);
            }
        }
        Ok(())
    }

    fn whole(&mut self, received_ns: Time, meta: Meta, sample: &[u8], to: &mut dyn Deliver) {
        if !self.had.is_new(meta.index, meta.origin_ns) {
            return self.had(meta.index, sample.len(), to);
        }
        self.had.mark(meta.index, meta.origin_ns);
        to.deliver(meta, received_ns, sample, &mut self.motion);
    }

    fn had(&mut self, index: u32, bytes: usize, to: &mut dyn Deliver) {
        self.source.iter_mut().for_each(Source::repeated);
        to.repeated(self.flow, index, bytes);
    }

    /// Number and origin of a sample that does not say them: its moment by the sender's reports, in periods.
    fn place(&mut self, received_ns: Time, timestamp: u32) -> (u32, Time) {
        let origin_ns = self.source.as_mut().map_or(received_ns, |s| s.moment(received_ns, timestamp));
        ((origin_ns + self.period_ns / 4).div_euclid(self.period_ns) as u32, origin_ns)
    }
}
