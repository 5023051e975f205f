//! Extended reports (RFC 3611).
//!
//! ```text
//! SSRC │ blocks: type (8) │ type specific (8) │ words minus 1 (16) │ body
//! 1 loss, 2 duplicate run lengths   SSRC │ begin, end (16 each) │ chunks, 16 bits each
//! 3 receipt times                   SSRC │ begin, end           │ RTP times, 32 bits each
//! 4 receiver reference time         NTP time (64)
//! 5 DLRR                            for each receiver: SSRC │ last RR time │ delay since, 1/65536 s
//! 6 statistics summary              SSRC │ begin, end │ lost, copies │ jitter │ TTL
//! 7 VoIP metrics                    SSRC │ rates, bursts and gaps, delays, levels, quality, buffer
//! ```

use super::{push_u32, Packet};
use crate::{
    bytes::{u16_at, u32_at, u64_at, u8_at},
    Error,
};

/// Packet type.
pub const XR: u8 = 207;

/// A span of sequence numbers of a source: `begin` and those up to before `end`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// The source.
    pub ssrc: u32,
    /// First sequence number.
    pub begin: u16,
    /// The one behind the last.
    pub end: u16,
}

/// A line of a DLRR block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dlrr {
    /// The receiver that gave its reference time.
    pub ssrc: u32,
    /// Middle 32 bits of that time; 0 for none.
    pub last_rr: u32,
    /// Time since it came, in 1/65536 s.
    pub delay: u32,
}

/// Least, most, mean and deviation of something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spread {
    /// Least.
    pub min: u32,
    /// Most.
    pub max: u32,
    /// Mean.
    pub mean: u32,
    /// Standard deviation.
    pub sd: u32,
}

/// A statistics summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// What it is about.
    pub span: Span,
    /// Lost packets, if counted.
    pub lost: Option<u32>,
    /// Copies, if counted.
    pub duplicates: Option<u32>,
    /// Jitter in RTP time, if measured.
    pub jitter: Option<Spread>,
    /// 1 for the TTL of IPv4, 2 for the hop limit of IPv6, 0 if unknown.
    pub ttl_kind: u8,
    /// TTL or hop limit, 0 to 255 each.
    pub ttl: Spread,
}

/// VoIP metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Voip {
    /// The source.
    pub ssrc: u32,
    /// Shares of packets lost, discarded as late or early, and of both in bursts and in gaps, in 1/256.
    pub rates: [u8; 4],
    /// Mean lengths of bursts and of gaps, in ms.
    pub lengths_ms: [u16; 2],
    /// Round trip and delay of the end systems, in ms.
    pub delays_ms: [u16; 2],
    /// Signal level, noise level (dBm), residual echo return loss (dB), Gmin.
    pub levels: [u8; 4],
    /// R factor, external R factor, MOS-LQ, MOS-CQ; 127 where not known.
    pub quality: [u8; 4],
    /// Receiver configuration.
    pub configuration: u8,
    /// Nominal, maximum and absolute maximum delay of the jitter buffer, in ms.
    pub buffer_ms: [u16; 3],
}

/// A block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// Runs of lost or received (type 1) or duplicate (type 2) packets of a thinned span.
    Runs {
        /// True for type 2.
        duplicates: bool,
        /// Every 2^T-th packet is told of.
        thinning: u8,
        /// What it is about.
        span: Span,
        /// Chunks; see [`runs`].
        chunks: Vec<u16>,
    },
    /// Arrivals in RTP time.
    Receipts {
        /// Every 2^T-th packet is told of.
        thinning: u8,
        /// What it is about.
        span: Span,
        /// One time a packet.
        times: Vec<u32>,
    },
    /// A receiver's NTP time.
    Reference(u64),
    /// Answers to it.
    Dlrr(Vec<Dlrr>),
    /// A statistics summary.
    Summary(Summary),
    /// VoIP metrics.
    Voip(Voip),
}

/// The blocks of a packet of type 207; those of unknown types are passed over.
// [RFC 3611 §2] [RFC 3611 §3]
pub fn parse(packet: &Packet<'_>) -> Result<(u32, Vec<Block>), Error> {
    if packet.kind != XR {
        return Err(Error::Unknown);
    }
    let mut rest = packet.body.get(4..).ok_or(Error::Truncated)?;
    let mut blocks = Vec::new();
    while !rest.is_empty() {
        let length = 4 + 4 * usize::from(u16_at(rest, 2));
        let (block, after) = rest.split_at_checked(length).ok_or(Error::Truncated)?;
        blocks.extend(Block::parse(u8_at(block, 0), u8_at(block, 1), block.get(4..).unwrap_or(&[]))?);
        rest = after;
    }
    Ok((u32_at(packet.body, 0), blocks))
}

/// Appends a packet from `ssrc` with `blocks` to `out`.
// [RFC 3611 §2] [RFC 3611 §3]
pub fn emit(ssrc: u32, blocks: &[Block], out: &mut Vec<u8>) {
    super::emit(XR, 0, out, |out| {
        push_u32(out, ssrc);
        for block in blocks {
            let at = out.len();
            out.extend_from_slice(&[0, 0, 0, 0]);
            let (kind, specific) = block.emit(out);
            out.resize(at + (out.len() - at).next_multiple_of(4), 0);
            let words = ((out.len() - at) / 4 - 1) as u16;
            out[at..at + 2].copy_from_slice(&[kind, specific]);
            out[at + 2..at + 4].copy_from_slice(&words.to_be_bytes());
        }
    });
}

impl Block {
    /// The block of a type; `None` if the type is not known, an error if the length is wrong for it.
    // [RFC 3611 §4.1] [RFC 3611 §4.2] [RFC 3611 §4.3] [RFC 3611 §4.4] [RFC 3611 §4.5] [RFC 3611 §4.6] [RFC 3611 §4.7]
    fn parse(kind: u8, specific: u8, b: &[u8]) -> Result<Option<Self>, Error> {
        let least = match kind {
            1..=4 => 8,
            5 => 0,
            6 => 36,
            7 => 32,
            _ => return Ok(None),
        };
        if b.len() < least || (kind == 5 && !b.len().is_multiple_of(12)) {
            return Err(Error::Truncated);
        }
        let (thinning, span) = (specific & 0x0f, Span::parse(b));
        let rest = b.get(8..).unwrap_or(&[]);
        Ok(Some(match kind {
            1 | 2 => {
                let chunks = rest.chunks_exact(2).map(|c| u16_at(c, 0)).collect();
                Block::Runs { duplicates: kind == 2, thinning, span, chunks }
            }
            3 => {
                let times = rest.chunks_exact(4).map(|c| u32_at(c, 0)).collect();
                Block::Receipts { thinning, span, times }
            }
            4 => Block::Reference(u64_at(b, 0)),
            5 => Block::Dlrr(b.chunks_exact(12).map(Dlrr::parse).collect()),
            6 => Block::Summary(Summary::parse(specific, span, rest)),
            _ => Block::Voip(Voip::parse(b)),
        }))
    }

    /// Appends the body to `out`; type and type-specific byte.
    fn emit(&self, out: &mut Vec<u8>) -> (u8, u8) {
        match self {
            Block::Runs { duplicates, thinning, span, chunks } => {
                span.emit(out);
                chunks.iter().for_each(|c| out.extend_from_slice(&c.to_be_bytes()));
                (1 + u8::from(*duplicates), thinning & 0x0f)
            }
            Block::Receipts { thinning, span, times } => {
                span.emit(out);
                times.iter().for_each(|t| push_u32(out, *t));
                (3, thinning & 0x0f)
            }
            Block::Reference(ntp) => {
                out.extend_from_slice(&ntp.to_be_bytes());
                (4, 0)
            }
            Block::Dlrr(lines) => {
                lines
                    .iter()
                    .for_each(|l| [l.ssrc, l.last_rr, l.delay].into_iter().for_each(|n| push_u32(out, n)));
                (5, 0)
            }
            Block::Summary(s) => (6, s.emit(out)),
            Block::Voip(v) => {
                v.emit(out);
                (7, 0)
            }
        }
    }
}

impl Span {
    fn parse(b: &[u8]) -> Self {
        Self { ssrc: u32_at(b, 0), begin: u16_at(b, 4), end: u16_at(b, 6) }
    }

    fn emit(&self, out: &mut Vec<u8>) {
        push_u32(out, self.ssrc);
        out.extend_from_slice(&self.begin.to_be_bytes());
        out.extend_from_slice(&self.end.to_be_bytes());
    }
}

impl Dlrr {
    fn parse(b: &[u8]) -> Self {
        Self { ssrc: u32_at(b, 0), last_rr: u32_at(b, 4), delay: u32_at(b, 8) }
    }
}

impl Summary {
    fn parse(flags: u8, span: Span, b: &[u8]) -> Self {
        let jitter = Spread { min: u32_at(b, 8), max: u32_at(b, 12), mean: u32_at(b, 16), sd: u32_at(b, 20) };
        let byte = |i: usize| u32::from(u8_at(b, 24 + i));
        Self {
            span,
            lost: (flags & 0x80 != 0).then(|| u32_at(b, 0)),
            duplicates: (flags & 0x40 != 0).then(|| u32_at(b, 4)),
            jitter: (flags & 0x20 != 0).then_some(jitter),
            ttl_kind: flags >> 3 & 3,
            ttl: Spread { min: byte(0), max: byte(1), mean: byte(2), sd: byte(3) },
        }
    }

    fn emit(&self, out: &mut Vec<u8>) -> u8 {
        let jitter = self.jitter.unwrap_or_default();
        self.span.emit(out);
        let (lost, duplicates) = (self.lost.unwrap_or(0), self.duplicates.unwrap_or(0));
        [lost, duplicates, jitter.min, jitter.max, jitter.mean, jitter.sd]
            .into_iter()
            .for_each(|n| push_u32(out, n));
        let t = &self.ttl;
        out.extend([t.min, t.max, t.mean, t.sd].map(|n| n.min(255) as u8));
        let flag = |set: bool, bit: u8| u8::from(set) << bit;
        flag(self.lost.is_some(), 7)
            | flag(self.duplicates.is_some(), 6)
            | flag(self.jitter.is_some(), 5)
            | (self.ttl_kind & 3) << 3
    }
}

impl Voip {
    fn parse(b: &[u8]) -> Self {
        let four = |at| u32_at(b, at).to_be_bytes();
        Self {
            ssrc: u32_at(b, 0),
            rates: four(4),
            lengths_ms: [u16_at(b, 8), u16_at(b, 10)],
            delays_ms: [u16_at(b, 12), u16_at(b, 14)],
            levels: four(16),
            quality: four(20),
            configuration: u8_at(b, 24),
            buffer_ms: [u16_at(b, 26), u16_at(b, 28), u16_at(b, 30)],
        }
    }

    fn emit(&self, out: &mut Vec<u8>) {
        push_u32(out, self.ssrc);
        out.extend_from_slice(&self.rates);
        let pairs = self.lengths_ms.into_iter().chain(self.delays_ms);
        pairs.for_each(|n| out.extend_from_slice(&n.to_be_bytes()));
        out.extend_from_slice(&self.levels);
        out.extend_from_slice(&self.quality);
        out.extend_from_slice(&[self.configuration, 0]);
        self.buffer_ms.into_iter().for_each(|n| out.extend_from_slice(&n.to_be_bytes()));
    }
}

/// Chunks of a run-length block that tell `bits`, one a packet: runs of 15 or more equal bits as runs, others 15
/// bits a chunk; a null chunk makes whole words.
// [RFC 3611 §4.1]
pub fn chunks_of(bits: &[bool]) -> Vec<u16> {
    let (mut chunks, mut rest) = (Vec::new(), bits);
    while let Some(&first) = rest.first() {
        let run = rest.iter().take_while(|b| **b == first).count().min(0x3fff);
        if run >= 15 || run == rest.len() {
            chunks.push(u16::from(first) << 14 | run as u16);
            rest = &rest[run..];
        } else {
            let taken = rest.len().min(15);
            let vector = rest[..taken].iter().enumerate().filter(|(_, b)| **b);
            chunks.push(vector.fold(1 << 15, |v, (i, _)| v | 1 << (14 - i)));
            rest = &rest[taken..];
        }
    }
    if chunks.len() % 2 == 1 {
        chunks.push(0);
    }
    chunks
}

/// The bits that chunks tell, cut to the first `count`.
// [RFC 3611 §4.1]
pub fn runs(chunks: &[u16], count: usize) -> Vec<bool> {
    let mut bits = Vec::new();
    for &c in chunks {
        if c == 0 || bits.len() >= count {
            break;
        }
        match c >> 15 {
            1 => bits.extend((0..15).map(|i| c >> (14 - i) & 1 == 1)),
            _ => bits.resize(bits.len() + usize::from(c & 0x3fff).min(count), c >> 14 & 1 == 1),
        }
    }
    bits.truncate(count);
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::Packets;
    use proptest::prelude::*;

    type Read = Result<(u32, Vec<Block>), Error>;

    fn back(ssrc: u32, blocks: &[Block]) -> (Vec<u8>, Read) {
        let mut out = Vec::new();
        emit(ssrc, blocks, &mut out);
        let read = parse(&Packets::reduced(&out).unwrap().next().unwrap());
        (out, read)
    }

    // [RFC 3611 §2] [RFC 3611 §3] [RFC 3611 §4.4] [RFC 3611 §4.5] [RFC 3611]
    #[test]
    fn reference_time_and_its_answer_are_read_and_written() {
        let golden = [
            0x80, 207, 0, 8, 0, 0, 0, 1, // XR from SSRC 1, 9 words
            4, 0, 0, 2, 0, 0, 0, 5, 0x80, 0, 0, 0, // at 5.5 s
            5, 0, 0, 3, 0, 0, 0, 2, 0, 4, 0x80, 0, 0, 0, 0x40, 0, // SSRC 2 at 4.5 s, 0.25 s ago
        ];
        let line = Dlrr { ssrc: 2, last_rr: 0x4_8000, delay: 0x4000 };
        let blocks = vec![Block::Reference(0x5_8000_0000), Block::Dlrr(vec![line])];
        let (out, read) = back(1, &blocks);
        assert_eq!(out, golden);
        assert_eq!(read, Ok((1, blocks)));
    }

    // [RFC 3611 §4.6]
    #[test]
    fn a_summary_is_read_and_written() {
        let span = Span { ssrc: 7, begin: 1, end: 101 };
        let jitter = Spread { min: 1, max: 9, mean: 4, sd: 2 };
        let ttl = Spread { min: 62, max: 64, mean: 63, sd: 1 };
        let summary =
            Summary { span, lost: Some(3), duplicates: None, jitter: Some(jitter), ttl_kind: 1, ttl };
        let (out, read) = back(1, &[Block::Summary(summary)]);
        let head = [6, 0xa8, 0, 9, 0, 0, 0, 7, 0, 1, 0, 101, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(out[8..32], head);
        assert_eq!(out[44..48], [62, 64, 63, 1]);
        assert_eq!(read, Ok((1, vec![Block::Summary(summary)])));
    }

    // [RFC 3611 §4.7]
    #[test]
    fn voip_metrics_are_read_and_written() {
        let voip = Voip {
            ssrc: 3,
            rates: [1, 2, 3, 4],
            lengths_ms: [500, 6000],
            delays_ms: [70, 80],
            levels: [9, 10, 11, 16],
            quality: [127, 127, 40, 41],
            configuration: 0xb0,
            buffer_ms: [30, 60, 90],
        };
        let (out, read) = back(1, &[Block::Voip(voip)]);
        assert_eq!(out[8..12], [7, 0, 0, 8]);
        assert_eq!(out[16..24], [1, 2, 3, 4, 0x01, 0xf4, 0x17, 0x70]);
        assert_eq!(read, Ok((1, vec![Block::Voip(voip)])));
    }

    // [RFC 3611 §4.1] [RFC 3611 §4.2] [RFC 3611 §4.3]
    #[test]
    fn runs_and_receipts_are_read_and_written() {
        let span = Span { ssrc: 7, begin: 10, end: 50 };
        let bits: Vec<bool> = (0..40).map(|i| i < 20 || i % 3 == 0).collect();
        let chunks = chunks_of(&bits);
        assert_eq!(chunks[0], 0x4000 | 20, "20 received");
        assert_eq!(runs(&chunks, 40), bits);
        let times = vec![8, 16, 32];
        for duplicates in [false, true] {
            let blocks = vec![
                Block::Runs { duplicates, thinning: 0, span, chunks: chunks.clone() },
                Block::Receipts { thinning: 2, span, times: times.clone() },
            ];
            assert_eq!(back(1, &blocks).1, Ok((1, blocks)));
        }
    }

    #[test]
    fn unknown_blocks_are_passed_over_and_short_ones_refused() {
        let body = [0, 0, 0, 1, 99, 0, 0, 1, 1, 2, 3, 4, 4, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 9];
        let packet = Packet { kind: XR, count: 0, body: &body };
        assert_eq!(parse(&packet), Ok((1, vec![Block::Reference(9)])));
        for short in [&[0, 0, 0, 1, 4, 0, 0, 1, 0, 0, 0, 0][..], &body[..10], &[0, 0]] {
            assert_eq!(parse(&Packet { body: short, ..packet }), Err(Error::Truncated));
        }
        assert_eq!(parse(&Packet { kind: 200, ..packet }), Err(Error::Unknown));
    }

    proptest! {
        #[test]
        fn runs_survive_their_chunks(bits in proptest::collection::vec(any::<bool>(), 0..200), same in 0usize..60) {
            let bits: Vec<bool> = bits.into_iter().chain(std::iter::repeat_n(true, same)).collect();
            prop_assert_eq!(runs(&chunks_of(&bits), bits.len()), bits);
        }

        #[test]
        fn no_bytes_make_it_panic(
            body in proptest::collection::vec(any::<u8>(), 0..80), chunks: Vec<u16>, count in 0usize..5000,
        ) {
            let _ = parse(&Packet { kind: XR, count: 0, body: &body });
            prop_assert!(runs(&chunks, count).len() <= count);
        }
    }
}
