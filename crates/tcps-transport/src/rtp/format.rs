//! What the payload of a flow is called: payload type, clock and framing, by the flow's name.

use crate::channel::ChannelFlow;

/// How packets make samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Every packet is one; the marker begins a talk spurt (RFC 3551 §4.1).
    Packet,
    /// Packets with one timestamp make one; the marker is on its last (RFC 3551 §5 of video).
    Marker,
}

/// The payload of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Format {
    /// Payload type.
    pub(crate) payload_type: u8,
    /// Units of the timestamp a second.
    pub(crate) rate: u32,
    /// How packets make samples.
    pub(crate) framing: Framing,
}

/// Payload type of retransmissions.
pub(crate) const RTX: u8 = 124;
/// Payload type of redundant payloads.
pub(crate) const RED: u8 = 125;
/// Payload type of ULPFEC packets.
pub(crate) const ULPFEC: u8 = 126;
/// Payload type of FlexFEC packets.
pub(crate) const FLEXFEC: u8 = 127;
/// Payload types for flows of other names.
const OTHERS: std::ops::Range<u8> = 99..124;

/// The formats of a channel's flows, in their order: two flows share a payload type only if there are too many.
// [RFC 3551 §6] [Abdullah 2023]
pub(crate) fn formats(flows: &[ChannelFlow]) -> Vec<Format> {
    let mut others = OTHERS.cycle();
    let mut taken: Vec<u8> = Vec::new();
    let mut formats = Vec::with_capacity(flows.len());
    for flow in flows {
        let (payload_type, rate, framing) = match flow.name.as_str() {
            "audio" => (Some(0), 8_000, Framing::Packet),
            "video" => (Some(96), 90_000, Framing::Marker),
            "haptic" => (Some(97), 8_000, Framing::Packet),
            "kinematic" => (Some(98), 8_000, Framing::Packet),
            _ => (None, 90_000, Framing::Marker),
        };
        let free = payload_type.filter(|p| !taken.contains(p));
        let payload_type = free.or_else(|| others.next()).unwrap_or(OTHERS.start);
        taken.push(payload_type);
        formats.push(Format { payload_type, rate, framing });
    }
    formats
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChannelContext, Side};

    // [RFC 3551 §6] [Abdullah 2023]
    #[test]
    fn names_choose_types_and_clocks() {
        let ctx = ChannelContext::of(&[
            (0, Side::A, "audio"),
            (1, Side::A, "video"),
            (2, Side::A, "haptic"),
            (3, Side::B, "kinematic"),
            (4, Side::B, "status"),
            (5, Side::B, "audio"),
        ]);
        let types: Vec<_> = formats(&ctx.flows).iter().map(|f| (f.payload_type, f.rate)).collect();
        let expected = [(0, 8_000), (96, 90_000), (97, 8_000), (98, 8_000), (99, 90_000), (100, 8_000)];
        assert_eq!(types, expected, "PCMU has type 0; a second audio flow gets a type of its own");
    }
}
