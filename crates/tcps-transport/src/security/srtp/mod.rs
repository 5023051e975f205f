//! SRTP and SRTCP (RFC 3711; AES-GCM: RFC 7714): the packets of RTP and RTCP, sealed.
//!
//! ```text
//! RTP ──► index = 65536 · rollover counter + SEQ ──► seal under (SSRC, index) ──► SRTP
//! SRTP ──► index, from SEQ and the greatest one that verified ──► verify ──► new? ──► mark ──► RTP
//! RTCP ──► index 0, 1, 2 … of its source, in the packet ──► SRTCP
//! ```
//! Each direction has a master key of its own, so that both sides may use the same sources. A session begins with rollover
//! counter 0 at both sides. Without a key identifier (MKI), and with all of RTCP encrypted.

#[cfg(test)]
mod tests;
mod transform;

use super::replay::Replay;
use std::collections::BTreeMap;
use tcps_core::record::DropReason;
use tcps_wire::{
    rtp::{is_rtcp, Packet},
    srtcp::{self, Word},
    Error,
};
use transform::{Kind, Place, Transform};

pub use transform::Profile;

/// SEQ counts so many packets, then the rollover counter steps.
const CYCLE: u64 = 1 << 16;
/// Packets of a source under one master key.
// [RFC 3711 §3.3.1]
const MOST_PACKETS: u64 = 1 << 48;

/// One direction: at its sender it seals, at its receiver it opens.
#[derive(Debug)]
pub struct Srtp {
    media: Transform,
    control: Transform,
    sources: BTreeMap<u32, Replay>,
    reporters: BTreeMap<u32, Replay>,
}

impl Srtp {
    /// By a master key with its salt behind it; `None`: their length is not the profile's.
    pub fn new(profile: Profile, master: &[u8]) -> Option<Self> {
        let [media, control] = [Kind::Media, Kind::Control].map(|k| Transform::derived(profile, k, master));
        Some(Self::of(media?, control?))
    }

    fn of(media: Transform, control: Transform) -> Self {
        Self { media, control, sources: BTreeMap::new(), reporters: BTreeMap::new() }
    }

    /// Seals an RTP or RTCP packet into `out`; false: it is neither, or its number was used before under this key.
    pub fn seal(&mut self, packet: &[u8], out: &mut Vec<u8>) -> bool {
        let place = if is_rtcp(packet) { self.next_report(packet) } else { self.next_packet(packet) };
        let Ok((place, header)) = place else { return false };
        let (transform, windows) = self.of_kind(place.kind);
        let window = windows.entry(place.ssrc).or_insert_with(Replay::new);
        if !window.is_new(place.index) {
            return false;
        }
        window.mark(place.index);
        out.clear();
        out.extend_from_slice(packet);
        transform.seal(place, header, out)
    }

    /// Opens an SRTP or SRTCP packet of anybody into `out`; what does not verify changes nothing.
    pub fn open(&mut self, packet: &[u8], out: &mut Vec<u8>) -> Result<(), DropReason> {
        out.clear();
        let (places, header) = if is_rtcp(packet) { self.report(packet) } else { self.packet(packet) }
            .map_err(|_| DropReason::Unverified)?;
        for place in places.into_iter().flatten() {
            let (transform, windows) = self.of_kind(place.kind);
            if !transform.open(place, header, packet, out) {
                continue;
            }
            // Not before: a number that is not new may be that of another cycle.
            let window = windows.entry(place.ssrc).or_insert_with(Replay::new);
            if !window.is_new(place.index) {
                out.clear();
                return Err(DropReason::Replayed);
            }
            window.mark(place.index);
            return Ok(());
        }
        Err(DropReason::Unverified)
    }

    fn of_kind(&mut self, kind: Kind) -> (&Transform, &mut BTreeMap<u32, Replay>) {
        match kind {
            Kind::Media => (&self.media, &mut self.sources),
            Kind::Control => (&self.control, &mut self.reporters),
        }
    }

    fn next_packet(&self, packet: &[u8]) -> Result<(Place, usize), Error> {
        let (places, header) = self.packet(packet)?;
        places[0].map(|place| (place, header)).ok_or(Error::Contradiction)
    }

    // [RFC 3711 §3.4]
    fn next_report(&self, packet: &[u8]) -> Result<(Place, usize), Error> {
        let ssrc = srtcp::ssrc(packet)?;
        let index = self.reporters.get(&ssrc).map_or(0, |window| window.greatest() + 1);
        match index < srtcp::MOST_PACKETS.into() {
            true => Ok((Place { kind: Kind::Control, ssrc, index }, srtcp::HEADER_BYTES)),
            false => Err(Error::Contradiction),
        }
    }

    /// Where an RTP packet may stand, and the length of its header: at the number nearest to the greatest one, or a cycle later. That
    /// bears the loss of 98,302 packets in a row, and of a session's first ones at a rollover.
    fn packet(&self, packet: &[u8]) -> Result<([Option<Place>; 2], usize), Error> {
        let view = Packet::new_sealed(packet)?;
        let ssrc = view.ssrc();
        let index = nearest(self.sources.get(&ssrc).map(Replay::greatest), view.sequence());
        let place = |index| (index < MOST_PACKETS).then_some(Place { kind: Kind::Media, ssrc, index });
        Ok(([place(index), place(index + CYCLE)], view.header_bytes()))
    }

    /// Where an RTCP packet says it stands. One that is not encrypted is refused.
    fn report(&self, packet: &[u8]) -> Result<([Option<Place>; 2], usize), Error> {
        let (ssrc, word) = (srtcp::ssrc(packet)?, Word::parse(packet, self.control.behind_word())?);
        let place = Place { kind: Kind::Control, ssrc, index: word.index.into() };
        match word.encrypted {
            true => Ok(([Some(place), None], srtcp::HEADER_BYTES)),
            false => Err(Error::Unknown),
        }
    }
}

/// The index with this SEQ that is nearest to the greatest one; of a new source that of rollover counter 0.
// [RFC 3711 §3.3.1]
fn nearest(greatest: Option<u64>, sequence: u16) -> u64 {
    let Some(greatest) = greatest else { return sequence.into() };
    let (last, half) = (greatest as u16, 1 << 15);
    let ahead = sequence.wrapping_sub(last);
    match ahead < half || (ahead == half && last < half) {
        true => greatest + u64::from(ahead),
        false => (greatest + u64::from(ahead)).checked_sub(CYCLE).unwrap_or(sequence.into()),
    }
}
