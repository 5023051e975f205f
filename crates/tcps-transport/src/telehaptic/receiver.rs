//! De-multiplexer: from packets to haptic samples, each by itself, and frames of sound and picture.

use super::{
    frames::Frames,
    multiplexer::{Medium, MEDIA, MOST_FRAME_BYTES},
    roles::Roles,
};
use crate::{had::Had, outbox::Outbox};
use tcps_core::{
    endpoint::{Delivery, Output},
    ids::FlowId,
    sample::{Echo, Meta},
    time::Time,
};
use tcps_wire::{
    telehaptic::{
        trailer::{Position, FRAME},
        Packet, SubHeader,
    },
    Error,
};

/// What there is to know of a packet that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Number of its earliest sample.
    pub(super) index: u32,
    /// Samples in it.
    pub(super) fragments: u8,
    /// From the making of its earliest sample to its arrival.
    pub(super) delay_ns: Time,
    /// When it left, by the sender's clock: with its last sample.
    pub(super) left_ns: Time,
}

/// The flows that arrive.
#[derive(Debug)]
pub(super) struct Receiver {
    roles: Roles,
    had: Had,
    frames: [Frames; 2],
}

impl Receiver {
    pub(super) fn new(roles: Roles) -> Self {
        Self { roles, had: Had::new(), frames: Default::default() }
    }

    /// The flow of haptic samples.
    pub(super) fn haptic(&self) -> FlowId {
        self.roles.haptic
    }

    /// Frames that were given up.
    pub(super) fn incomplete(&self) -> u64 {
        self.frames.iter().map(Frames::incomplete).sum()
    }

    /// When a frame is given up.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.frames.iter().filter_map(Frames::deadline).min()
    }

    /// Gives up frames that have waited too long.
    pub(super) fn expire(&mut self, now: Time) {
        self.frames.iter_mut().for_each(|f| f.expire(now));
    }

    /// Takes a packet; `None` if it has been had.
    pub(super) fn receive(
        &mut self,
        now: Time,
        packet: &Packet<&[u8]>,
        received_ns: Time,
        outbox: &mut Outbox,
    ) -> Result<Option<Arrival>, Error> {
        self.check(packet)?;
        let mut at = position(packet, 0).ok_or(Error::Unknown)?;
        if !self.had.is_new(at.index, at.origin_ns) {
            return Ok(None);
        }
        let (first, fragments) = (at, packet.fragments());
        for i in 0..fragments {
            if i > 0 {
                at = position(packet, i).unwrap_or(at.next(i, self.roles.period_ns));
            }
            self.had.mark(at.index, at.origin_ns);
            let echo = echo(packet, i);
            let meta = Meta { flow: self.roles.haptic, index: at.index, origin_ns: at.origin_ns, echo };
            deliver(outbox, meta, received_ns, packet.sample(i.into()));
        }
        for (medium, header) in MEDIA.into_iter().zip([packet.audio_header(), packet.video_header()]) {
            if let Some(header) = header {
                self.media(now, packet, medium, header, received_ns, outbox);
            }
        }
        let delay_ns = received_ns.saturating_sub(first.origin_ns);
        Ok(Some(Arrival { index: first.index, fragments, delay_ns, left_ns: at.origin_ns }))
    }

    /// Refuses media that no flow here is for, and frames that are too long or not where their bytes are.
    fn check(&self, packet: &Packet<&[u8]>) -> Result<(), Error> {
        let parts = [(packet.audio_header(), packet.audio()), (packet.video_header(), packet.video())];
        for (m, (header, _)) in parts.iter().enumerate() {
            if header.is_some() && self.roles.media[m].is_none() {
                return Err(Error::Unknown);
            }
        }
        let frames = packet.trailer().into_iter().flat_map(|t| (0..).map_while(move |i| t.frame(i)));
        let mut ends = [0u16; 2];
        for f in frames {
            let m = usize::from(f.video);
            if usize::from(f.at) >= parts[m].1.len() || f.at < ends[m] || f.length == 0 {
                return Err(Error::Contradiction);
            }
            if f.length as usize > MOST_FRAME_BYTES {
                return Err(Error::TooLong);
            }
            ends[m] = f.at + 1;
        }
        Ok(())
    }

    /// The bytes of one medium, cut where frames begin.
    fn media(
        &mut self,
        now: Time,
        packet: &Packet<&[u8]>,
        medium: Medium,
        header: SubHeader,
        received_ns: Time,
        outbox: &mut Outbox,
    ) {
        let bytes = if medium == Medium::Audio { packet.audio() } else { packet.video() };
        let flow = self.roles.media[medium as usize].unwrap_or_default();
        let frames = &mut self.frames[medium as usize];
        let trailer = packet.trailer();
        let all = (0..).map_while(|i| trailer.and_then(|t| t.frame(i)).map(|f| (i, f)));
        let mut starts = all.filter(|(_, f)| f.video == (medium == Medium::Video)).peekable();
        let (mut frame, mut part, mut from) = (header.frame, header.part, 0);
        while from < bytes.len() {
            let start = starts.next_if(|(_, f)| usize::from(f.at) == from);
            if let Some((_, f)) = start {
                (frame, part) = (f.index as u16, 0);
            }
            let to = starts.peek().map_or(bytes.len(), |(_, f)| usize::from(f.at));
            let start = start.map(|(i, f)| (f, echo(packet, FRAME | i as u8)));
            let piece = bytes.get(from..to).unwrap_or(&[]);
            if let Some((meta, whole)) = frames.add(now, frame, part, start, piece) {
                deliver(outbox, Meta { flow, ..meta }, received_ns, whole);
            }
            from = to;
        }
    }
}

/// Where sample `sample` of a packet says that it stands.
fn position(packet: &Packet<&[u8]>, sample: u8) -> Option<Position> {
    let trailer = packet.trailer()?;
    (0..).map_while(|i| trailer.position(i)).find(|p| p.sample == sample)
}

/// The echo command with this number in the packet's trailer.
// [Polachan 2022: echoes]
fn echo(packet: &Packet<&[u8]>, number: u8) -> Option<Echo> {
    let trailer = packet.trailer()?;
    let mut all = (0..trailer.echoes()).filter_map(|i| trailer.echo(i));
    all.find(|e| e.sample == number).map(|e| e.echo)
}

fn deliver(outbox: &mut Outbox, meta: Meta, received_ns: Time, bytes: &[u8]) {
    outbox.push(Output::Deliver(Delivery { meta, received_ns }), |out| out.extend_from_slice(bytes));
}
