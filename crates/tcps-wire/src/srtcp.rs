//! What SRTCP adds to an RTCP packet in the clear: a word with the number of the packet (RFC 3711).
//!
//! ```text
//! | V P RC | PT | length | SSRC | encrypted ...  | tag (AES-GCM) | E | index (31) | tag (HMAC) |
//! +----------------------------+                                 +----------------+
//!   8 bytes, always in the clear                                  E: it is encrypted
//! ```

use crate::{bytes::u32_at, Error};

/// Length of the part of an RTCP packet that is never encrypted.
pub const HEADER_BYTES: usize = 8;
/// Length of the word.
pub const WORD_BYTES: usize = 4;
/// Packets of a source under one key.
pub const MOST_PACKETS: u32 = 1 << 31;
const ENCRYPTED: u32 = 1 << 31;

/// The source that an RTCP packet, sealed or not, says it is from.
pub fn ssrc(packet: &[u8]) -> Result<u32, Error> {
    match packet.len() < HEADER_BYTES {
        true => Err(Error::Truncated),
        false => Ok(u32_at(packet, 4)),
    }
}

/// The word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// Whether the packet is encrypted.
    pub encrypted: bool,
    /// Its number, below `MOST_PACKETS`.
    pub index: u32,
}

impl Word {
    /// The word that stands so many bytes before the end of a packet.
    // [RFC 3711 §3.4]
    pub fn parse(packet: &[u8], behind: usize) -> Result<Self, Error> {
        let at = packet.len().checked_sub(behind + WORD_BYTES).filter(|at| *at >= HEADER_BYTES);
        let word = u32_at(packet, at.ok_or(Error::Truncated)?);
        Ok(Self { encrypted: word & ENCRYPTED != 0, index: word & !ENCRYPTED })
    }

    /// Its bytes.
    pub fn to_bytes(self) -> [u8; WORD_BYTES] {
        (if self.encrypted { ENCRYPTED } else { 0 } | self.index & !ENCRYPTED).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [RFC 3711 §3.4]
    #[test]
    fn the_word_is_found_before_a_tag_and_at_the_end() {
        let word = Word { encrypted: true, index: 0x5d4 };
        assert_eq!(word.to_bytes(), [0x80, 0, 5, 0xd4]);
        assert_eq!(Word { encrypted: false, index: u32::MAX }.to_bytes(), [0x7f, 255, 255, 255]);
        for behind in [0, 10] {
            let mut packet = vec![7; HEADER_BYTES];
            packet.extend(word.to_bytes());
            packet.extend(vec![9; behind]);
            assert_eq!(Word::parse(&packet, behind), Ok(word));
            assert_eq!(Word::parse(&packet[..packet.len() - 1], behind), Err(Error::Truncated));
        }
        assert_eq!(Word::parse(&[], usize::MAX - WORD_BYTES), Err(Error::Truncated));
        assert_eq!((ssrc(&[1, 2, 3, 4, 0, 0, 1, 0]), ssrc(&[0; 7])), (Ok(256), Err(Error::Truncated)));
    }
}
