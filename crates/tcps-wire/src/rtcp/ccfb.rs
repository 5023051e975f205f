//! Feedback for congestion control (RFC 8888): when each packet arrived, and with which mark.
//!
//! ```text
//! SSRC of the sender
//! for each source: SSRC │ begin (16) │ reports (16) │ reports, 16 bits each, padded to a whole word
//! report timestamp (32, middle of NTP)
//! report: +-+---+-------------+
//!         |R|ECN|     ATO     |   received, mark, time from arrival to the report in 1/1024 s
//!         +-+---+-------------+
//! ```

use super::{feedback::TRANSPORT, push_u32, Packet};
use crate::{
    bytes::{u16_at, u32_at},
    Error,
};

/// Format among transport feedback.
pub const FORMAT: u8 = 11;
/// Arrival so long ago that 13 bits cannot tell.
pub const OVER_RANGE: u16 = 0x1ffe;
/// Arrival after the report's timestamp, or not known.
pub const UNAVAILABLE: u16 = 0x1fff;
/// Most reports about one source.
pub const MAX_REPORTS: usize = 16_384;

/// The arrival of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Explicit congestion notification bits.
    pub ecn: u8,
    /// From arrival to the report's timestamp, in 1/1024 s.
    pub offset: u16,
}

/// What is said of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// The source.
    pub ssrc: u32,
    /// Sequence number of the first report.
    pub begin: u16,
    /// Of each packet from there on; `None` if it has not arrived.
    pub arrivals: Vec<Option<Arrival>>,
}

/// A feedback packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ccfb {
    /// Who sends it.
    pub sender: u32,
    /// The sources.
    pub streams: Vec<Stream>,
    /// Middle 32 bits of the NTP time at which it was made.
    pub timestamp: u32,
}

impl Ccfb {
    /// The content of a packet of type 205, format 11.
    // [RFC 8888 §3.1]
    pub fn parse(packet: &Packet<'_>) -> Result<Self, Error> {
        if (packet.kind, packet.count) != (TRANSPORT, FORMAT) {
            return Err(Error::Unknown);
        }
        let b = packet.body;
        let end = b.len().checked_sub(4).filter(|&end| end >= 4).ok_or(Error::Truncated)?;
        let (mut streams, mut at) = (Vec::new(), 4);
        while at < end {
            let count = usize::from(u16_at(b, at + 6));
            let stop = at + 8 + (2 * count).next_multiple_of(4);
            if count > MAX_REPORTS {
                return Err(Error::TooLong);
            }
            if stop > end {
                return Err(Error::Truncated);
            }
            let arrivals = (0..count).map(|i| arrival(u16_at(b, at + 8 + 2 * i))).collect();
            streams.push(Stream { ssrc: u32_at(b, at), begin: u16_at(b, at + 4), arrivals });
            at = stop;
        }
        Ok(Self { sender: u32_at(b, 0), streams, timestamp: u32_at(b, end) })
    }

    /// Appends the packet to `out`.
    // [RFC 8888 §3.1]
    pub fn emit(&self, out: &mut Vec<u8>) {
        super::emit(TRANSPORT, FORMAT, out, |out| {
            push_u32(out, self.sender);
            for s in &self.streams {
                let arrivals = s.arrivals.get(..MAX_REPORTS).unwrap_or(&s.arrivals);
                push_u32(out, s.ssrc);
                out.extend_from_slice(&s.begin.to_be_bytes());
                out.extend_from_slice(&(arrivals.len() as u16).to_be_bytes());
                arrivals.iter().for_each(|a| out.extend_from_slice(&word(a).to_be_bytes()));
                if arrivals.len() % 2 == 1 {
                    out.extend_from_slice(&[0, 0]);
                }
            }
            push_u32(out, self.timestamp);
        });
    }
}

fn arrival(word: u16) -> Option<Arrival> {
    (word >> 15 == 1).then_some(Arrival { ecn: (word >> 13) as u8 & 3, offset: word & 0x1fff })
}

fn word(arrival: &Option<Arrival>) -> u16 {
    arrival.map_or(0, |a| 1 << 15 | u16::from(a.ecn & 3) << 13 | a.offset & 0x1fff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::Packets;
    use proptest::prelude::*;

    // [RFC 8888 §3.1] [RFC 8888]
    #[test]
    fn the_golden_feedback_is_read_and_written() {
        let golden = [
            0x8b, 205, 0, 6, 0, 0, 0, 9, // format 11, 7 words, from SSRC 9
            0, 0, 0, 7, 0xff, 0xff, 0x00, 0x03, // source 7, from 65535 on, 3 reports
            0x84, 0x00, 0x00, 0x00, 0xff, 0xfe, 0x00,
            0x00, // 1 s ago; lost; marked, over range; padding
            0x00, 0x01, 0x80, 0x00, // made at 1.5 s
        ];
        let arrivals =
            vec![Some(Arrival { ecn: 0, offset: 1024 }), None, Some(Arrival { ecn: 3, offset: OVER_RANGE })];
        let streams = vec![Stream { ssrc: 7, begin: 65_535, arrivals }];
        let ccfb = Ccfb { sender: 9, streams, timestamp: 0x18000 };
        let packet = Packets::reduced(&golden).unwrap().next().unwrap();
        assert_eq!(Ccfb::parse(&packet), Ok(ccfb.clone()));
        let mut out = Vec::new();
        ccfb.emit(&mut out);
        assert_eq!(out, golden);
        assert_eq!(Ccfb::parse(&Packet { count: 1, ..packet }), Err(Error::Unknown));
        assert_eq!(Ccfb::parse(&Packet { body: &golden[4..20], ..packet }), Err(Error::Truncated));
        assert_eq!(Ccfb::parse(&Packet { body: &[0; 4], ..packet }), Err(Error::Truncated));
    }

    proptest! {
        #[test]
        fn feedback_survives_its_bytes(
            sender: u32, timestamp: u32,
            raw in proptest::collection::vec(
                (any::<u32>(), any::<u16>(), proptest::collection::vec(proptest::option::of((0u8..4, 0u16..0x2000)), 0..9)),
                0..4),
        ) {
            let streams = raw
                .into_iter()
                .map(|(ssrc, begin, a)| {
                    let arrivals = a.into_iter().map(|a| a.map(|(ecn, offset)| Arrival { ecn, offset })).collect();
                    Stream { ssrc, begin, arrivals }
                })
                .collect();
            let ccfb = Ccfb { sender, streams, timestamp };
            let mut out = Vec::new();
            ccfb.emit(&mut out);
            let packet = Packets::reduced(&out).unwrap().next().unwrap();
            prop_assert_eq!(Ccfb::parse(&packet), Ok(ccfb));
        }

        #[test]
        fn no_bytes_make_it_panic(body in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Ccfb::parse(&Packet { kind: TRANSPORT, count: FORMAT, body: &body });
        }
    }
}
