//! What a connection's side is to keep to, and what both sides have agreed on.

use crate::congestion::window::{Control, Cubic, Reno};
use tcps_core::time::{Time, MS, SECOND};
use tcps_wire::tcp::{Options, HEADER_BYTES};

/// Bytes of time stamps in each segment.
const STAMP_BYTES: usize = 12;
/// Largest shift of a window.
// RFC 7323 §2.3
const MOST_SHIFT: u8 = 14;
/// The smallest segment that a peer may ask for.
const LEAST_SEGMENT: u16 = 64;

/// Settings of a connection's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How the congestion window moves.
    pub congestion: Congestion,
    /// Whether small segments go out at once (no Nagle algorithm).
    pub no_delay: bool,
    /// Bytes that the sender keeps until they are acknowledged.
    pub send_buffer_bytes: usize,
    /// Bytes that the receiver keeps until they are read: the largest window that it offers.
    pub receive_buffer_bytes: usize,
    /// The most bytes of a packet, IP header included.
    pub mtu_bytes: usize,
    /// Whether to ask for marks of congestion in place of losses; they are always granted. [RFC 3168 §6.1.1]
    pub ecn: bool,
}

/// Congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Congestion {
    /// Reno (RFC 5681).
    Reno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// None: the peer's window alone limits.
    None,
}

impl Congestion {
    pub(super) fn control(self) -> Option<Box<dyn Control>> {
        match self {
            Self::Reno => Some(Box::new(Reno)),
            Self::Cubic => Some(Box::<Cubic>::default()),
            Self::None => None,
        }
    }
}

impl Settings {
    /// What is offered in SYN.
    pub(super) fn offer(&self) -> Options {
        Options {
            mss: Some(self.mtu_bytes.saturating_sub(HEADER_BYTES).min(usize::from(u16::MAX)) as u16),
            scale: Some(self.shift()),
            sack_permitted: true,
            ..Options::default()
        }
    }

    /// How far windows are shifted, so that the largest fits its field.
    pub(super) fn shift(&self) -> u8 {
        (0..MOST_SHIFT)
            .find(|s| self.receive_buffer_bytes >> s <= usize::from(u16::MAX))
            .unwrap_or(MOST_SHIFT)
    }
}

/// What both sides understand.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Agreed {
    /// Bytes of a segment.
    pub(super) segment_bytes: u64,
    /// Shifts of the peer's windows and of ours, where windows are shifted.
    pub(super) shifts: [u8; 2],
    pub(super) scales: bool,
    pub(super) sack: bool,
    pub(super) stamps: bool,
    pub(super) ecn: bool,
}

impl Agreed {
    /// What holds after a SYN with these options.
    // [RFC 9293 §3.7.1] [RFC 7323 §2.2]
    pub(super) fn new(settings: &Settings, peer: &Options) -> Self {
        let ours = settings.offer();
        let mss = peer.mss.unwrap_or(536).max(LEAST_SEGMENT).min(ours.mss.unwrap_or(u16::MAX));
        let stamps = peer.stamps.is_some();
        let segment_bytes = usize::from(mss) - if stamps { STAMP_BYTES } else { 0 };
        let shifts = peer.scale.map_or([0, 0], |theirs| [theirs.min(MOST_SHIFT), settings.shift()]);
        let (sack, scales) = (peer.sack_permitted, peer.scale.is_some());
        Self { segment_bytes: segment_bytes as u64, shifts, scales, sack, stamps, ecn: false }
    }
}

/// Time stamps of a connection: milliseconds from a number that nobody knows.
// RFC 7323 §5.4
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stamps {
    offset: u32,
    /// The peer's stamp that is answered, and when it came.
    pub(super) recent: u32,
    recent_ns: Time,
}

/// A stamp that came so long ago says nothing of the order of segments: it has wrapped since, or may have.
// [RFC 7323 §5.5]
const VALID_NS: Time = 24 * 24 * 3600 * SECOND;

impl Stamps {
    pub(super) fn new(offset: u32) -> Self {
        Self { offset, recent: 0, recent_ns: 0 }
    }

    /// Takes the peer's stamp that is to be answered.
    pub(super) fn take(&mut self, now: Time, stamp: u32) {
        (self.recent, self.recent_ns) = (stamp, now);
    }

    /// The stamp of a moment.
    pub(super) fn at(&self, now: Time) -> u32 {
        self.offset.wrapping_add(now.div_euclid(MS) as u32)
    }

    /// When a stamp was made, to a millisecond; none if that is still to come.
    pub(super) fn time_of(&self, stamp: u32, now: Time) -> Option<Time> {
        let age_ms = self.at(now).wrapping_sub(stamp) as i32;
        (age_ms >= 0).then(|| (now.div_euclid(MS) - Time::from(age_ms)).saturating_mul(MS))
    }

    /// Whether a segment with this stamp is older than what was received.
    // RFC 7323 §5.2
    pub(super) fn is_old(&self, now: Time, stamp: u32) -> bool {
        now - self.recent_ns < VALID_NS && (stamp.wrapping_sub(self.recent) as i32) < 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [RFC 7323 §5.2] [RFC 7323 §5.5]
    #[test]
    fn a_stamp_tells_old_segments_for_24_days() {
        let mut stamps = Stamps::new(0);
        stamps.take(0, 1_000);
        let day_ns = 86_400 * SECOND;
        let is_old = |days: Time| stamps.is_old(days * day_ns, 999);
        assert_eq!([0, 1, 3, 23, 24, 25].map(is_old), [true, true, true, true, false, false]);
        assert!(!stamps.is_old(day_ns, 1_000) && !stamps.is_old(day_ns, 1_001));
    }
}
