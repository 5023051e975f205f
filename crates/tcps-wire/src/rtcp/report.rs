//! Sender and receiver reports (RFC 3550 §6.4).
//!
//! ```text
//! SR  SSRC │ NTP time (64) │ RTP time │ packets │ bytes │ report blocks
//! RR  SSRC │ report blocks
//! block, 24 bytes:
//! +---------------------------------------------------------------+
//! |                        SSRC of the source                     |
//! +---------------+-----------------------------------------------+
//! | fraction lost |          cumulative number lost               |
//! +---------------+-----------------------------------------------+
//! |             extended highest sequence number                  |
//! |                      interarrival jitter                      |
//! |            last SR (middle 32 bits of its NTP time)           |
//! |        delay since the last SR, in 1/65536 s                  |
//! +---------------------------------------------------------------+
//! ```

use super::{push_u32, Packet};
use crate::{
    bytes::{u32_at, u64_at, u8_at},
    Error,
};

/// Packet type of a sender report.
pub const SR: u8 = 200;
/// Packet type of a receiver report.
pub const RR: u8 = 201;
/// Most blocks in one report.
pub const MAX_BLOCKS: usize = 31;
const BLOCK_BYTES: usize = 24;
const SENDER_BYTES: usize = 20;

/// What a sender tells of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SenderInfo {
    /// NTP time of the report: seconds in the upper, fractions in the lower 32 bits.
    pub ntp: u64,
    /// The same moment in units of the RTP timestamp.
    pub timestamp: u32,
    /// Packets sent.
    pub packets: u32,
    /// Payload bytes sent.
    pub bytes: u32,
}

/// What a receiver tells of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Block {
    /// The source.
    pub ssrc: u32,
    /// Share lost since the last report, in 1/256.
    pub fraction_lost: u8,
    /// Packets lost in all, negative if copies came (24 bits).
    pub lost: i32,
    /// Highest sequence number with its wraps.
    pub highest: u32,
    /// Jitter in units of the RTP timestamp.
    pub jitter: u32,
    /// Middle 32 bits of the NTP time of the last SR; 0 for none.
    pub last_sr: u32,
    /// Time since it came, in 1/65536 s.
    pub delay: u32,
}

/// A sender report, or without its sender a receiver report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Who reports.
    pub ssrc: u32,
    /// What it sent; `None` in a receiver report.
    pub sender: Option<SenderInfo>,
    /// What it received.
    pub blocks: Vec<Block>,
}

impl Report {
    /// The report in a packet of type 200 or 201; bytes behind the blocks are for profiles and are passed over.
    // [RFC 3550 §6.4.1] [RFC 3550 §6.4.2]
    pub fn parse(packet: &Packet<'_>) -> Result<Self, Error> {
        let b = packet.body;
        let at = match packet.kind {
            SR => 4 + SENDER_BYTES,
            RR => 4,
            _ => return Err(Error::Unknown),
        };
        let blocks = b.get(at..).unwrap_or(&[]);
        if b.len() < at || blocks.len() < BLOCK_BYTES * usize::from(packet.count) {
            return Err(Error::Truncated);
        }
        let sender = SenderInfo {
            ntp: u64_at(b, 4),
            timestamp: u32_at(b, 12),
            packets: u32_at(b, 16),
            bytes: u32_at(b, 20),
        };
        Ok(Self {
            ssrc: u32_at(b, 0),
            sender: (packet.kind == SR).then_some(sender),
            blocks: blocks.chunks_exact(BLOCK_BYTES).take(packet.count.into()).map(Block::parse).collect(),
        })
    }

    /// Appends the packet to `out`, with at most 31 blocks.
    // [RFC 3550 §6.4.1] [RFC 3550 §6.4.2]
    pub fn emit(&self, out: &mut Vec<u8>) {
        let blocks = self.blocks.get(..MAX_BLOCKS).unwrap_or(&self.blocks);
        let kind = if self.sender.is_some() { SR } else { RR };
        super::emit(kind, blocks.len() as u8, out, |out| {
            push_u32(out, self.ssrc);
            if let Some(s) = &self.sender {
                out.extend_from_slice(&s.ntp.to_be_bytes());
                [s.timestamp, s.packets, s.bytes].into_iter().for_each(|n| push_u32(out, n));
            }
            blocks.iter().for_each(|b| b.emit(out));
        });
    }
}

impl Block {
    fn parse(b: &[u8]) -> Self {
        let lost = (u32_at(b, 4) << 8) as i32 >> 8;
        Self {
            ssrc: u32_at(b, 0),
            fraction_lost: u8_at(b, 4),
            lost,
            highest: u32_at(b, 8),
            jitter: u32_at(b, 12),
            last_sr: u32_at(b, 16),
            delay: u32_at(b, 20),
        }
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let lost = self.lost.clamp(-0x80_0000, 0x7f_ffff) as u32 & 0xff_ffff;
        push_u32(out, self.ssrc);
        push_u32(out, u32::from(self.fraction_lost) << 24 | lost);
        [self.highest, self.jitter, self.last_sr, self.delay].into_iter().for_each(|n| push_u32(out, n));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::Packets;
    use proptest::prelude::*;

    const GOLDEN: [u8; 52] = [
        0x81, 200, 0x00, 0x0c, // SR, one block, 13 words
        0x00, 0x00, 0x00, 0x2a, // SSRC 42
        0xb4, 0x4d, 0xb7, 0x05, 0x20, 0x00, 0x00, 0x00, // NTP time of the example in RFC 3550 §6.4.1
        0x00, 0x00, 0x1f, 0x40, // RTP time 8000
        0x00, 0x00, 0x00, 0x64, // 100 packets
        0x00, 0x00, 0x3e, 0x80, // 16000 bytes
        0x00, 0x00, 0x00, 0x07, // block about SSRC 7
        0x40, 0xff, 0xff, 0xff, // a quarter lost; -1 in all
        0x00, 0x01, 0x00, 0x02, // one wrap, number 2
        0x00, 0x00, 0x00, 0x10, // jitter 16
        0xb7, 0x05, 0x20, 0x00, // last SR
        0x00, 0x05, 0x40, 0x00, // 5.25 s ago
    ];

    // [RFC 3550 §6.4.1]
    #[test]
    fn the_golden_report_is_read_and_written() {
        let sender = SenderInfo { ntp: 0xb44d_b705_2000_0000, timestamp: 8000, packets: 100, bytes: 16_000 };
        let block = Block {
            ssrc: 7,
            fraction_lost: 64,
            lost: -1,
            highest: 65_538,
            jitter: 16,
            last_sr: 0xb705_2000,
            delay: 0x0005_4000,
        };
        let report = Report { ssrc: 42, sender: Some(sender), blocks: vec![block] };
        let packet = Packets::compound(&GOLDEN).unwrap().next().unwrap();
        assert_eq!(Report::parse(&packet), Ok(report.clone()));
        let mut out = Vec::new();
        report.emit(&mut out);
        assert_eq!(out, GOLDEN);
        let short = Packet { count: 2, ..packet };
        assert_eq!(Report::parse(&short), Err(Error::Truncated));
        assert_eq!(Report::parse(&Packet { kind: 202, ..packet }), Err(Error::Unknown));
    }

    // [RFC 3550 §6.4.2]
    proptest! {
        #[test]
        fn reports_survive_their_bytes(
            ssrc: u32, sender in proptest::option::of(any::<(u64, u32, u32, u32)>()),
            raw in proptest::collection::vec(any::<(u32, u8, u32, u32, u32, u32)>(), 0..31),
            lost in -0x80_0000i32..=0x7f_ffff,
        ) {
            let sender = sender.map(|(ntp, timestamp, packets, bytes)| SenderInfo { ntp, timestamp, packets, bytes });
            let blocks = raw
                .into_iter()
                .map(|(ssrc, fraction_lost, highest, jitter, last_sr, delay)| {
                    Block { ssrc, fraction_lost, lost, highest, jitter, last_sr, delay }
                })
                .collect();
            let report = Report { ssrc, sender, blocks };
            let mut out = Vec::new();
            report.emit(&mut out);
            let packet = Packets::compound(&out).unwrap().next().unwrap();
            prop_assert_eq!(Report::parse(&packet), Ok(report));
        }
    }
}
