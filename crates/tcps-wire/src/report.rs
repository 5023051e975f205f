//! Report of a telehaptic receiver: an RTCP receiver report and an application part, 52 bytes in all.
//!
//! ```text
//!  0               4               8                               16
//! +---------------+---------------+---------------+-------+-------+
//! | 0x81 201  7   |  sender SSRC  |  source SSRC  | frac. | lost  |
//! +---------------+---------------+---------------+-------+-------+
//! | highest seq.  |  jitter, us   |      LSR      |     DLSR      |
//! +---------------+---------------+---------------+---------------+ 32
//! | 0x80 204  4   |     SSRC      |    "TCPS"     | mean delay, us (64)
//! +---------------+---------------+---------------+---------------+ 52
//! ```
//! The receiver report is that of RFC 3550 with jitter in microseconds; fields that nothing is known of are 0.
//! The application part (RFC 3550 §6.7) adds the mean one-way delay, which receiver reports lack.

use crate::{
    bytes::{i64_at, u32_at, u8_at},
    Error,
};
use tcps_core::{
    rate::Report,
    time::{Time, US},
};

/// Length of the report in bytes.
pub const REPORT_BYTES: usize = 52;
/// First byte of the report: version 2, one block.
pub const FIRST_BYTE: u8 = 0x81;
const MAGIC: [(usize, u32); 3] = [(0, 0x81c9_0007), (32, 0x80cc_0004), (40, 0x5443_5053)];

/// A view of a datagram that has the length and the marks of a report.
#[derive(Debug, Clone, Copy)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// The view, if length and marks are right.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        match buffer.as_ref().len() {
            n if n < REPORT_BYTES => Err(Error::Truncated),
            n if n > REPORT_BYTES => Err(Error::TooLong),
            _ if MAGIC.iter().any(|(at, mark)| u32_at(buffer.as_ref(), *at) != *mark) => Err(Error::Unknown),
            _ => Ok(Self { buffer }),
        }
    }

    /// Share of packets lost since the last report, in 256ths.
    pub fn fraction_lost(&self) -> u8 {
        u8_at(self.buffer.as_ref(), 12)
    }

    /// Smoothed interarrival jitter in microseconds.
    pub fn jitter_us(&self) -> u32 {
        u32_at(self.buffer.as_ref(), 20)
    }

    /// Mean one-way delay in microseconds.
    pub fn mean_delay_us(&self) -> i64 {
        i64_at(self.buffer.as_ref(), 44)
    }
}

/// The content of a report.
// [Gokhale 2017: reports]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repr(pub Report);

impl Repr {
    /// The content, if its mean delay is one.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Result<Self, Error> {
        Ok(Self(Report {
            mean_delay_ns: packet.mean_delay_us().checked_mul(US).ok_or(Error::Contradiction)?,
            loss: f64::from(packet.fraction_lost()) / 256.0,
            jitter_ns: Time::from(packet.jitter_us()) * US,
        }))
    }

    /// Appends the report to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut b = [0u8; REPORT_BYTES];
        for (at, mark) in MAGIC {
            b[at..at + 4].copy_from_slice(&mark.to_be_bytes());
        }
        b[12] = (self.0.loss * 256.0).clamp(0.0, 255.0) as u8;
        let jitter_us = (self.0.jitter_ns / US).clamp(0, Time::from(u32::MAX)) as u32;
        b[20..24].copy_from_slice(&jitter_us.to_be_bytes());
        b[44..52].copy_from_slice(&(self.0.mean_delay_ns / US).to_be_bytes());
        out.extend_from_slice(&b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [Gokhale 2017: reports]
    #[test]
    fn a_report_of_52_bytes_is_106_on_the_wire_and_read_back() {
        let report = Repr(Report { mean_delay_ns: 29_541 * US, loss: 0.25, jitter_ns: 12 * US });
        let mut out = Vec::new();
        report.emit(&mut out);
        assert_eq!(out.len() + 8 + 20 + 26, 106);
        assert_eq!(out[..16], [0x81, 201, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0]);
        assert_eq!(out[32..44], [0x80, 204, 0, 4, 0, 0, 0, 0, b'T', b'C', b'P', b'S']);
        assert_eq!(Packet::new_checked(&out).and_then(|p| Repr::parse(&p)), Ok(report));
        assert_eq!(Packet::new_checked(&out[..51]).err(), Some(Error::Truncated));
        out[1] = 200;
        assert_eq!(Packet::new_checked(&out).err(), Some(Error::Unknown));
        out[1] = 201;
        out[44] = 0x7f;
        assert_eq!(Packet::new_checked(&out).and_then(|p| Repr::parse(&p)).err(), Some(Error::Contradiction));
    }
}
