//! One packet of RTCP.

use crate::{
    bytes::{u16_at, u8_at},
    rtp::VERSION,
    Error,
};

/// Length of the header of a packet, in bytes.
pub const HEADER_BYTES: usize = 4;
pub(super) const PADDING: u8 = 0x20;

/// A packet of a compound datagram: its header and what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Packet type.
    pub kind: u8,
    /// The five bits behind the version: a count, a format or a subtype.
    pub count: u8,
    /// The bytes behind the header, without padding.
    pub body: &'a [u8],
}

/// The first packet, whether it is padded, and what follows it.
pub(super) fn take(bytes: &[u8]) -> Result<(Packet<'_>, bool, &[u8]), Error> {
    if bytes.len() < HEADER_BYTES {
        return Err(Error::Truncated);
    }
    let first = u8_at(bytes, 0);
    if first >> 6 != VERSION {
        return Err(Error::Unknown);
    }
    let length = HEADER_BYTES + 4 * usize::from(u16_at(bytes, 2));
    let (packet, after) = bytes.split_at_checked(length).ok_or(Error::Truncated)?;
    let body = packet.get(HEADER_BYTES..).unwrap_or(&[]);
    let padded = first & PADDING != 0;
    let body = match padded {
        false => body,
        true => unpadded(body)?,
    };
    Ok((Packet { kind: u8_at(bytes, 1), count: first & 0x1f, body }, padded, after))
}

fn unpadded(body: &[u8]) -> Result<&[u8], Error> {
    let padding = usize::from(body.last().copied().unwrap_or(0));
    match padding {
        0 => Err(Error::Contradiction),
        n if n % 4 != 0 => Err(Error::Contradiction),
        n => body.get(..body.len().wrapping_sub(n)).ok_or(Error::Contradiction),
    }
}

/// Appends a packet to `out`: its body is what `write` appends, filled up to whole words with zeros.
pub fn emit(kind: u8, count: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[VERSION << 6 | count & 0x1f, kind, 0, 0]);
    write(out);
    out.resize(at + (out.len() - at).next_multiple_of(4), 0);
    let words = ((out.len() - at) / 4 - 1) as u16;
    out[at + 2..at + 4].copy_from_slice(&words.to_be_bytes());
}

/// Appends a 32-bit number in network order.
pub(super) fn push_u32(out: &mut Vec<u8>, n: u32) {
    out.extend_from_slice(&n.to_be_bytes());
}
