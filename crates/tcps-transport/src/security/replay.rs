//! Which records of a key have been received: a window that slides with the greatest number.
// [RFC 6479 §2]

const BLOCKS: usize = 32;
/// Numbers behind the greatest one of which it is still known whether they were received: all but one block.
pub(super) const WINDOW: u64 = (BLOCKS as u64 - 1) * BITS;
const BITS: u64 = u64::BITS as u64;

/// The window of a key, or of a source under a key.
#[derive(Debug, Clone)]
pub(super) struct Replay {
    greatest: u64,
    had: [u64; BLOCKS],
}

impl Replay {
    pub(super) fn new() -> Self {
        Self { greatest: 0, had: [0; BLOCKS] }
    }

    /// The greatest number that was received; 0 if none was.
    pub(super) fn greatest(&self) -> u64 {
        self.greatest
    }

    /// Whether a number was not received, as far as that is known.
    pub(super) fn is_new(&self, number: u64) -> bool {
        match number > self.greatest {
            true => true,
            false => self.greatest - number < WINDOW && self.had[slot(number)] & bit(number) == 0,
        }
    }

    /// Marks a new number whose record has verified.
    pub(super) fn mark(&mut self, number: u64) {
        if number > self.greatest {
            let (old, new) = (self.greatest / BITS, number / BITS);
            for block in 1..=(new - old).min(BLOCKS as u64) {
                self.had[(old + block) as usize % BLOCKS] = 0;
            }
            self.greatest = number;
        }
        self.had[slot(number)] |= bit(number);
    }
}

fn slot(number: u64) -> usize {
    (number / BITS) as usize % BLOCKS
}

fn bit(number: u64) -> u64 {
    1 << (number % BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    // [RFC 6479 §2]
    #[test]
    fn late_is_new_once_and_what_is_behind_the_window_never() {
        let mut window = Replay::new();
        assert!(window.is_new(0));
        window.mark(10_000);
        assert!(!window.is_new(10_000));
        assert!(window.is_new(10_001 - WINDOW) && !window.is_new(10_000 - WINDOW));
        window.mark(10_001 - WINDOW);
        assert!(!window.is_new(10_001 - WINDOW));
        window.mark(u64::MAX);
        assert!(!window.is_new(10_001) && !window.is_new(u64::MAX) && window.is_new(u64::MAX - 1));
    }

    proptest! {
        #[test]
        fn agrees_with_a_set(steps in proptest::collection::vec(-2500i64..2500, 1..600)) {
            let (mut window, mut set) = (Replay::new(), BTreeSet::new());
            let (mut at, mut greatest) = (5_000i64, 0i64);
            for step in steps {
                at = (at + step).max(0);
                let number = at as u64;
                let new = window.is_new(number);
                prop_assert!(!(new && set.contains(&at)), "{} twice", at);
                prop_assert_eq!(new, !set.contains(&at) && (at > greatest || greatest - at < WINDOW as i64));
                if new {
                    window.mark(number);
                    set.insert(at);
                    greatest = greatest.max(at);
                }
            }
        }
    }
}
