//! Which samples of a flow have been had: one bit each for the newest 8192 and everything that may still be
//! late.

use tcps_core::time::Time;

const WINDOW: u32 = 8192;
const WORDS: usize = WINDOW as usize / 64;

/// A window that slides over the sample numbers of a flow, which may wrap around.
#[derive(Debug)]
pub(crate) struct Had {
    had: [u64; WORDS],
    newest: Option<(u32, Time)>,
}

impl Had {
    pub(crate) fn new() -> Self {
        Self { had: [0; WORDS], newest: None }
    }

    /// Whether this sample may be delivered: not had before and not older than the window.
    ///
    /// A repeat has the origin time of the original. So a number that seems had, on a sample that was made
    /// after the newest one, means that its source counts anew: the window starts again.
    #[inline]
    pub(crate) fn is_new(&mut self, index: u32, origin_ns: Time) -> bool {
        let Some((newest, newest_origin_ns)) = self.newest else { return true };
        // [RFC 1982 §3.2]
        let ahead = index.wrapping_sub(newest) as i32;
        if ahead > 0 || (ahead > -(WINDOW as i32) && !self.has(index)) {
            return true;
        }
        if origin_ns > newest_origin_ns {
            *self = Self::new();
            return true;
        }
        false
    }

    /// Notes that this sample has been had.
    #[inline]
    pub(crate) fn mark(&mut self, index: u32, origin_ns: Time) {
        match self.newest {
            None => self.newest = Some((index, origin_ns)),
            Some((newest, _)) if (index.wrapping_sub(newest) as i32) > 0 => {
                self.forget(newest.wrapping_add(1), index.wrapping_sub(newest));
                self.newest = Some((index, origin_ns));
            }
            Some((newest, _)) if newest.wrapping_sub(index) >= WINDOW => return,
            Some(_) => {}
        }
        self.had[word(index)] |= bit(index);
    }

    #[inline]
    fn has(&self, index: u32) -> bool {
        self.had[word(index)] & bit(index) != 0
    }

    /// Clears the bits of `count` numbers from `first` on: they belonged to numbers that leave the window.
    #[inline]
    fn forget(&mut self, first: u32, count: u32) {
        if count >= WINDOW {
            self.had.fill(0);
            return;
        }
        let (mut at, mut left) = (first, count);
        while left > 0 {
            if at % 64 == 0 && left >= 64 {
                self.had[word(at)] = 0;
                (at, left) = (at.wrapping_add(64), left - 64);
            } else {
                self.had[word(at)] &= !bit(at);
                (at, left) = (at.wrapping_add(1), left - 1);
            }
        }
    }
}

#[inline]
fn word(index: u32) -> usize {
    (index % WINDOW) as usize / 64
}

#[inline]
fn bit(index: u32) -> u64 {
    1 << (index % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn admit(window: &mut Had, index: u32) -> bool {
        let new = window.is_new(index, 0);
        if new {
            window.mark(index, 0);
        }
        new
    }

    #[test]
    fn late_is_new_once_and_older_than_the_window_is_not() {
        let mut window = Had::new();
        assert!(admit(&mut window, 10_000));
        assert!(admit(&mut window, 10_000 - WINDOW + 1), "the oldest in the window");
        assert!(!admit(&mut window, 10_000 - WINDOW + 1), "again");
        assert!(!admit(&mut window, 10_000 - WINDOW), "behind the window");
        assert!(admit(&mut window, 30_000), "a jump over more than the window");
        assert!(admit(&mut window, 29_999));
    }

    // [RFC 1982 §3.2]
    #[test]
    fn numbers_wrap_around() {
        let mut window = Had::new();
        for index in [u32::MAX - 1, u32::MAX, 1, 0] {
            assert!(admit(&mut window, index), "{index}");
        }
        for index in [u32::MAX - 1, u32::MAX, 1, 0] {
            assert!(!admit(&mut window, index), "{index}");
        }
    }

    #[test]
    fn a_source_that_counts_anew_is_believed_by_its_newer_origin_time() {
        let mut window = Had::new();
        for index in 0..100 {
            window.mark(index, 1_000 + index as Time);
        }
        assert!(!window.is_new(0, 1_000), "the old sample 0");
        assert!(window.is_new(0, 2_000), "a sample 0 that was made later than number 99");
        window.mark(0, 2_000);
        assert!(window.is_new(1, 2_001));
    }

    #[test]
    fn one_number_from_the_far_future_does_not_silence_a_flow() {
        let mut window = Had::new();
        window.mark(5, 5);
        window.mark(5 + (1 << 30), 6);
        assert!(window.is_new(6, 7));
    }

    proptest! {
        #[test]
        fn numbers_that_are_jumped_over_are_new_whoever_had_their_place(
            jumps in proptest::collection::vec(1u32..300, 1..50),
        ) {
            let mut window = Had::new();
            (0..WINDOW).for_each(|index| window.mark(index, 0));
            prop_assert!((0..WINDOW).all(|index| !window.is_new(index, 0)));
            let mut newest = WINDOW - 1;
            for jump in jumps {
                window.mark(newest + jump, 0);
                for index in newest + 1..newest + jump {
                    prop_assert!(window.is_new(index, 0), "{}", index);
                }
                newest += jump;
            }
        }

        #[test]
        fn agrees_with_a_set(first: u32, steps in proptest::collection::vec(-3000i32..3000, 1..400)) {
            let (mut window, mut set) = (Had::new(), BTreeSet::new());
            let (mut at, mut newest) = (0i64, i64::MIN);
            for step in steps {
                at += step as i64;
                let fresh = set.insert(at) && (newest == i64::MIN || at > newest - WINDOW as i64);
                newest = newest.max(at);
                prop_assert_eq!(admit(&mut window, first.wrapping_add(at as u32)), fresh);
            }
        }
    }
}
