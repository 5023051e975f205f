//! Packetizer: collects fragments until there are as many as the rate controller asks for.
//!
//! ```text
//! haptic sample + media bytes ─► pending ─► [header│sub-headers│samples│audio│video│trailer]
//! ```
//! How large a packet is depends on the number of fragments in it and on nothing else.

use super::multiplexer::{Frame, Medium, Multiplexer};
use tcps_core::{
    sample::Meta,
    time::{Time, MS},
};
use tcps_wire::{
    echo,
    telehaptic::{
        trailer::{self, FrameStart, Position, FRAME},
        Repr, SubHeader,
    },
};

/// The bytes of one medium in the packet.
#[derive(Debug, Default)]
struct Part {
    first: Option<(u16, u8)>,
    bytes: Vec<u8>,
}

impl Part {
    fn sub_header(&self) -> Option<SubHeader> {
        self.first.map(|(frame, part)| SubHeader { frame, bytes: self.bytes.len() as u16, part })
    }
}

/// The packet that is being filled. Its memory is used again for the next one.
#[derive(Debug, Default)]
pub(super) struct Pending {
    serial: u32,
    period_ns: Time,
    samples: Vec<u8>,
    metas: Vec<Meta>,
    positions: Vec<Position>,
    media: [Part; 2],
    frames: Vec<FrameStart>,
    echoes: Vec<echo::Repr>,
}

impl Pending {
    /// An empty packet of a flow with this time between samples.
    pub(super) fn new(period_ns: Time) -> Self {
        Self { period_ns, ..Self::default() }
    }

    /// Samples collected.
    pub(super) fn fragments(&self) -> usize {
        self.metas.len()
    }

    /// The oldest sample.
    pub(super) fn first(&self) -> Option<Meta> {
        self.metas.first().copied()
    }

    /// Bytes of samples and frames collected.
    pub(super) fn payload_bytes(&self) -> usize {
        self.samples.len() + self.media.iter().map(|p| p.bytes.len()).sum::<usize>()
    }

    /// Bytes of a medium collected.
    #[cfg(test)]
    pub(super) fn media_bytes(&self, medium: Medium) -> usize {
        self.media[medium as usize].bytes.len()
    }

    /// Sub-headers that the packet needs.
    pub(super) fn sub_headers(&self) -> usize {
        self.media.iter().filter(|p| p.first.is_some()).count()
    }

    /// Echo commands collected.
    pub(super) fn echoes(&self) -> usize {
        self.echoes.len()
    }

    /// Whether a sample of `bytes` has the size of those collected: a packet holds one size only.
    pub(super) fn fits(&self, bytes: usize) -> bool {
        self.metas.is_empty() || self.samples.len() == bytes * self.metas.len()
    }

    /// Adds a haptic sample.
    pub(super) fn add_sample(&mut self, meta: Meta, bytes: &[u8]) {
        if let Some(echo) = meta.echo {
            self.echoes.push(echo::Repr { sample: self.metas.len() as u8, echo });
        }
        let follows = |m: &Meta| {
            m.index.wrapping_add(1) == meta.index
                && m.origin_ns.wrapping_add(self.period_ns) == meta.origin_ns
        };
        if !self.metas.last().is_some_and(follows) {
            let (sample, index, origin_ns) = (self.metas.len() as u8, meta.index, meta.origin_ns);
            self.positions.push(Position { sample, index, origin_ns });
        }
        self.metas.push(meta);
        self.samples.extend_from_slice(bytes);
    }

    /// Adds the sound and picture of one fragment, at most `room` bytes.
    pub(super) fn fill(&mut self, room: usize, from: &mut Multiplexer) {
        from.take(room.min(from.media_bytes()), |medium, frame, room| self.add_media(medium, frame, room));
    }

    /// Adds at most `room` bytes of a frame; how many.
    pub(super) fn add_media(&mut self, medium: Medium, frame: &mut Frame, room: usize) -> usize {
        let part = &mut self.media[medium as usize];
        if frame.sent == 0 {
            if let Some(echo) = frame.meta.echo {
                self.echoes.push(echo::Repr { sample: FRAME | self.frames.len() as u8, echo });
            }
            self.frames.push(FrameStart {
                video: medium == Medium::Video,
                at: part.bytes.len() as u16,
                index: frame.meta.index,
                length: frame.bytes.len() as u32,
                origin_ns: frame.meta.origin_ns,
            });
        }
        part.first.get_or_insert((frame.meta.index as u16, frame.parts));
        if frame.packet != Some(self.serial) {
            frame.packet = Some(self.serial);
            frame.parts = frame.parts.wrapping_add(1);
        }
        let end = frame.bytes.len().min(frame.sent + room);
        let taken = frame.bytes.get(frame.sent..end).unwrap_or(&[]);
        part.bytes.extend_from_slice(taken);
        let count = taken.len();
        frame.sent = end;
        count
    }

    /// Appends the packet to `out`, with the notification delay and whether it has been told before.
    pub(super) fn emit(&self, notice: (Option<u32>, bool), out: &mut Vec<u8>) {
        let first_ns = self.metas.first().map_or(0, |m| m.origin_ns);
        let repr = Repr {
            fragments: self.metas.len() as u8,
            repeated: notice.1,
            delay_us: notice.0,
            timestamp_ms: first_ns.div_euclid(MS) as u32,
            audio: self.media[0].sub_header(),
            video: self.media[1].sub_header(),
            has_trailer: true,
        };
        repr.emit(out);
        out.extend_from_slice(&self.samples);
        self.media.iter().for_each(|p| out.extend_from_slice(&p.bytes));
        trailer::emit(&self.echoes, &self.positions, &self.frames, out);
    }

    /// Empties it for the next packet.
    pub(super) fn clear(&mut self) {
        self.serial = self.serial.wrapping_add(1);
        self.samples.clear();
        self.metas.clear();
        self.positions.clear();
        self.frames.clear();
        self.echoes.clear();
        for part in &mut self.media {
            part.first = None;
            part.bytes.clear();
        }
    }
}
