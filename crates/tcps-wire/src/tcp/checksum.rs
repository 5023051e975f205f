//! The Internet checksum.

/// A sum of 16-bit words in ones' complement. Every part but the last has an even length.
// [RFC 1071 §1]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum(u64);

impl Sum {
    /// With these bytes too.
    pub(super) fn add(self, bytes: &[u8]) -> Self {
        let words = bytes.chunks_exact(4);
        let rest = words.remainder();
        let mut sum = self.0;
        for word in words {
            sum += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
        }
        for pair in rest.chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
        }
        Self(sum)
    }

    /// The checksum: 0 over bytes that hold a good one.
    pub(super) fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [RFC 1071 §3]
    #[test]
    fn the_sum_of_the_example_is_ddf2() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::default().add(&bytes).finish(), !0xddf2);
        assert_eq!(Sum::default().add(&bytes[..2]).add(&bytes[2..]).finish(), !0xddf2);
        assert_eq!(Sum::default().add(&[1]).finish(), !0x0100, "an odd byte is the upper half of a word");
    }
}
