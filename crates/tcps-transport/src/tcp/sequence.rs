//! Sequence numbers without their wrap: positions in a stream count from 0, which is SYN, and never wrap.

/// Maps positions to the 32-bit numbers of the wire and back.
// [RFC 9293 §3.4]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Numbers {
    first: u32,
}

impl Numbers {
    /// Numbers whose SYN has the number `first`.
    pub(super) fn new(first: u32) -> Self {
        Self { first }
    }

    /// The number of a position.
    pub(super) fn wire(self, position: u64) -> u32 {
        self.first.wrapping_add(position as u32)
    }

    /// The position nearest to `near` that has this number; none if that is before SYN.
    pub(super) fn position(self, number: u32, near: u64) -> Option<u64> {
        let ahead = number.wrapping_sub(self.wire(near)) as i32;
        near.checked_add_signed(i64::from(ahead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_go_on_where_numbers_wrap() {
        let numbers = Numbers::new(u32::MAX - 1);
        assert_eq!([0, 1, 2, 3].map(|p| numbers.wire(p)), [u32::MAX - 1, u32::MAX, 0, 1]);
        for position in [0, 5, 1 << 31, (1 << 32) + 7, 9 << 32] {
            let number = numbers.wire(position);
            for near in [position, position + 1000, position.saturating_sub(1000)] {
                assert_eq!(numbers.position(number, near), Some(position));
            }
        }
        assert_eq!(numbers.position(u32::MAX - 2, 0), None, "nothing is before SYN");
    }
}
