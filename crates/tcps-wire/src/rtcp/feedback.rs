//! Feedback packets (RFC 4585): transport layer (205) and payload (206).
//!
//! ```text
//! SSRC of the sender │ SSRC of the media source │ feedback control information
//! generic NACK (205, format 1): lost packet (16) │ the 16 that follow it, a bit each (16) │ ...
//! picture loss (206, format 1): nothing more
//! ```

use super::{push_u32, Packet};
use crate::{
    bytes::{u16_at, u32_at},
    Error,
};

/// Packet type of feedback about transport.
pub const TRANSPORT: u8 = 205;
/// Packet type of feedback about payload.
pub const PAYLOAD: u8 = 206;
/// Format of a generic NACK.
pub const NACK: u8 = 1;

/// What all feedback begins with, and the information behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feedback<'a> {
    /// 205 or 206.
    pub kind: u8,
    /// Format of the information.
    pub format: u8,
    /// Who sends the feedback.
    pub sender: u32,
    /// The source that it is about.
    pub media: u32,
    /// Feedback control information.
    pub information: &'a [u8],
}

impl<'a> Feedback<'a> {
    /// The content of a packet of type 205 or 206.
    // [RFC 4585 §6.1]
    pub fn parse(packet: &Packet<'a>) -> Result<Self, Error> {
        if !matches!(packet.kind, TRANSPORT | PAYLOAD) {
            return Err(Error::Unknown);
        }
        let information = packet.body.get(8..).ok_or(Error::Truncated)?;
        let (sender, media) = (u32_at(packet.body, 0), u32_at(packet.body, 4));
        Ok(Self { kind: packet.kind, format: packet.count, sender, media, information })
    }

    /// Appends the packet to `out`.
    // [RFC 4585 §6.1]
    pub fn emit(&self, out: &mut Vec<u8>) {
        super::emit(self.kind, self.format, out, |out| {
            push_u32(out, self.sender);
            push_u32(out, self.media);
            out.extend_from_slice(self.information);
        });
    }

    /// Sequence numbers that a generic NACK names.
    // [RFC 4585 §6.2.1]
    pub fn nacked(&self) -> impl Iterator<Item = u16> + 'a {
        let mine = self.kind == TRANSPORT && self.format == NACK;
        let information = if mine { self.information } else { &[] };
        information.chunks_exact(4).flat_map(|item| {
            let (first, mask) = (u16_at(item, 0), u16_at(item, 2));
            let follows = (0..16).filter(move |i| mask >> i & 1 == 1);
            std::iter::once(first).chain(follows.map(move |i| first.wrapping_add(i + 1)))
        })
    }
}

/// Appends the information of a generic NACK for `lost`, which ascends, to `out`.
// [RFC 4585 §6.2.1]
pub fn emit_nack(lost: &[u16], out: &mut Vec<u8>) {
    let mut rest = lost;
    while let Some((&first, after)) = rest.split_first() {
        let near = |n: &&u16| (1..=16).contains(&n.wrapping_sub(first));
        let count = after.iter().take_while(near).count();
        let mask = after[..count].iter().fold(0u16, |m, n| m | 1 << (n.wrapping_sub(first) - 1));
        out.extend_from_slice(&first.to_be_bytes());
        out.extend_from_slice(&mask.to_be_bytes());
        rest = &after[count..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::Packets;
    use proptest::prelude::*;

    // [RFC 4585 §6.1] [RFC 4585 §6.2.1]
    #[test]
    fn the_golden_nack_is_read_and_written() {
        let golden = [
            0x81, 205, 0, 4, 0, 0, 0, 1, 0, 0, 0, 2, // format 1, from 1 about 2
            0x00, 0x64, 0x80, 0x01, // 100, 101 and 116
            0xff, 0xff, 0x00, 0x01, // 65535 and 0
        ];
        let packet = Packets::reduced(&golden).unwrap().next().unwrap();
        let nack = Feedback::parse(&packet).unwrap();
        assert_eq!((nack.sender, nack.media, nack.format), (1, 2, NACK));
        let lost = [100, 101, 116, 65_535, 0];
        assert_eq!(nack.nacked().collect::<Vec<_>>(), lost);
        let (mut information, mut out) = (Vec::new(), Vec::new());
        emit_nack(&lost, &mut information);
        Feedback { information: &information, ..nack }.emit(&mut out);
        assert_eq!(out, golden);
        assert_eq!(Feedback { kind: PAYLOAD, ..nack }.nacked().count(), 0, "picture loss names no packets");
        assert_eq!(Feedback::parse(&Packet { kind: 200, ..packet }), Err(Error::Unknown));
        assert_eq!(Feedback::parse(&Packet { body: &[0; 7], ..packet }), Err(Error::Truncated));
    }

    proptest! {
        #[test]
        fn every_lost_number_is_named(first: u16, steps in proptest::collection::vec(1u16..40, 0..30)) {
            let mut at = first;
            let lost: Vec<u16> = steps.into_iter().map(|s| { at = at.wrapping_add(s); at }).collect();
            let mut information = Vec::new();
            emit_nack(&lost, &mut information);
            let nack = Feedback { kind: TRANSPORT, format: NACK, sender: 0, media: 0, information: &information };
            prop_assert_eq!(nack.nacked().collect::<Vec<_>>(), lost);
        }
    }
}
