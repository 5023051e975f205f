//! Retransmission (RFC 4588), multiplexed by source: a packet again, with a number of its own in a stream of its own.
//!
//! ```text
//! original        header, number n      │ extension │ payload
//! retransmission  header, own number, own source, payload type RTX │ extension │ n (16) │ payload
//! ```
//! The stream of originals stays as it was, so that losses counted there are those of the network.

use super::format::RTX;
use tcps_wire::{rtp::Packet, Error};

/// Packets that a sender keeps.
const KEPT: usize = 512;
/// Bytes of the original's number.
const OSN_BYTES: usize = 2;
/// Bits of the payload type in the second byte.
const TYPE_BITS: u8 = 0x7f;

/// Packets that may be asked for, by their numbers.
#[derive(Debug)]
pub(crate) struct Kept {
    ssrc: u32,
    sequence: u16,
    packets: Vec<Copied>,
}

#[derive(Debug, Default)]
struct Copied {
    sequence: u16,
    index: u32,
    payload_bytes: usize,
    bytes: Vec<u8>,
}

/// A retransmission that is ready.
pub(crate) struct Again {
    pub(crate) index: u32,
    pub(crate) payload_bytes: usize,
    pub(crate) bytes: Vec<u8>,
}

impl Kept {
    /// Nothing kept; `ssrc` and `sequence` are those of the stream of retransmissions.
    pub(crate) fn new(ssrc: u32, sequence: u16) -> Self {
        Self { ssrc, sequence, packets: Vec::new() }
    }

    /// Keeps a copy of a packet that leaves.
    pub(crate) fn keep(&mut self, sequence: u16, index: u32, payload_bytes: usize, bytes: &[u8]) {
        let at = usize::from(sequence) % KEPT;
        if self.packets.len() <= at {
            self.packets.resize_with(at + 1, Copied::default);
        }
        let place = &mut self.packets[at];
        (place.sequence, place.index, place.payload_bytes) = (sequence, index, payload_bytes);
        place.bytes.clear();
        place.bytes.extend_from_slice(bytes);
    }

    /// The retransmission of a packet, if it is still kept.
    // [RFC 4588 §4]
    pub(crate) fn again(&mut self, sequence: u16) -> Option<Again> {
        let kept = self.packets.get(usize::from(sequence) % KEPT);
        let kept = kept.filter(|k| k.sequence == sequence && !k.bytes.is_empty())?;
        let mut bytes = kept.bytes.clone();
        let payload_at = payload_at(&bytes).ok()?;
        rewrite(&mut bytes, RTX, self.sequence, self.ssrc);
        bytes.splice(payload_at..payload_at, sequence.to_be_bytes());
        self.sequence = self.sequence.wrapping_add(1);
        Some(Again { index: kept.index, payload_bytes: kept.payload_bytes + OSN_BYTES, bytes })
    }
}

/// The original of a retransmission, and its number.
// [RFC 4588 §4]
pub(crate) fn original(bytes: &[u8], payload_type: u8, ssrc: u32) -> Result<(u16, Vec<u8>), Error> {
    let packet = Packet::new_checked(bytes)?;
    let osn = packet.payload().first_chunk::<OSN_BYTES>().copied().ok_or(Error::Truncated)?;
    let at = payload_at(bytes)?;
    let mut original = [&bytes[..at], &bytes[at + OSN_BYTES..]].concat();
    let sequence = u16::from_be_bytes(osn);
    rewrite(&mut original, payload_type, sequence, ssrc);
    Ok((sequence, original))
}

/// Where the payload of a packet begins.
fn payload_at(bytes: &[u8]) -> Result<usize, Error> {
    let packet = Packet::new_checked(bytes)?;
    Ok(bytes.len() - packet.padding_bytes() - packet.payload().len())
}

fn rewrite(bytes: &mut [u8], payload_type: u8, sequence: u16, ssrc: u32) {
    if let Some(second) = bytes.get_mut(1) {
        *second = *second & !TYPE_BITS | payload_type;
    }
    if let Some(place) = bytes.get_mut(2..4) {
        place.copy_from_slice(&sequence.to_be_bytes());
    }
    if let Some(place) = bytes.get_mut(8..12) {
        place.copy_from_slice(&ssrc.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_wire::rtp::Repr;

    fn packet(sequence: u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        let repr = Repr { marker: true, payload_type: 99, sequence, timestamp: 5, ssrc: 9 };
        repr.emit(&[], &[], &mut bytes);
        bytes.extend_from_slice(b"force");
        bytes
    }

    // [RFC 4588 §4]
    #[test]
    fn a_retransmission_holds_its_original_and_has_a_stream_of_its_own() {
        let mut kept = Kept::new(77, 500);
        for sequence in [65_535, 0] {
            kept.keep(sequence, 3, 5, &packet(sequence));
        }
        let again = kept.again(65_535).unwrap();
        let sent = Packet::new_checked(&again.bytes[..]).unwrap();
        assert_eq!((sent.ssrc(), sent.sequence(), sent.payload_type()), (77, 500, RTX));
        assert_eq!((sent.timestamp(), sent.payload()), (5, &b"\xff\xffforce"[..]));
        assert_eq!((again.payload_bytes, again.index), (7, 3));
        assert_eq!(original(&again.bytes, 99, 9), Ok((65_535, packet(65_535))));
        assert_eq!(kept.again(0).map(|a| a.bytes[3]), Some((501u16 & 0xff) as u8));
    }

    #[test]
    fn what_is_no_longer_kept_or_no_retransmission_gives_nothing() {
        let mut kept = Kept::new(77, 0);
        kept.keep(1, 0, 5, &packet(1));
        assert!(kept.again(1 + KEPT as u16).is_none() && kept.again(2).is_none() && kept.again(0).is_none());
        let short = &packet(1)[..13];
        assert_eq!(original(short, 99, 9), Err(Error::Truncated), "one byte is no number");
        assert_eq!(original(&[], 99, 9), Err(Error::Truncated));
    }
}
