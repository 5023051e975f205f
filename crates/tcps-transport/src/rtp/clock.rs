//! Times of RTP: NTP stamps of a node's clock, and timestamps in units of a payload's clock.
//!
//! NTP time counts 2^-32 s from the run's start, which stands for the first of January 1970.

use tcps_core::time::{Time, SECOND};

/// Seconds of NTP time at which a node's clock shows 0.
const EPOCH_S: i128 = 2_208_988_800;

/// NTP time: seconds in the upper 32 bits.
// [RFC 3550 §4]
pub(crate) fn ntp(now: Time) -> u64 {
    let fine = (i128::from(now) << 32) + i128::from(SECOND) / 2;
    (fine.div_euclid(i128::from(SECOND)) + (EPOCH_S << 32)) as u64
}

/// The node's time of an NTP stamp.
pub(crate) fn from_ntp(ntp: u64) -> Time {
    let fine = (i128::from(ntp) - (EPOCH_S << 32)) * i128::from(SECOND);
    ((fine + (1 << 31)) >> 32) as Time
}

/// The middle 32 bits of an NTP stamp: units of 1/65536 s.
pub(crate) fn middle(ntp: u64) -> u32 {
    (ntp >> 16) as u32
}

/// A span in units of 1/65536 s.
pub(crate) fn short(span: Time) -> u32 {
    (i128::from(span.max(0)) * 65_536 / i128::from(SECOND)).min(u32::MAX.into()) as u32
}

/// A span of 1/65536 s units in nanoseconds.
pub(crate) fn from_short(units: u32) -> Time {
    (i64::from(units) * SECOND) >> 16
}

/// Ticks of a clock of `rate` Hz that have passed at `at`.
pub(crate) fn ticks(at: Time, rate: u32) -> u32 {
    (i128::from(at) * i128::from(rate)).div_euclid(i128::from(SECOND)) as u32
}

/// Length of signed `ticks`, in nanoseconds.
pub(crate) fn span(ticks: i32, rate: u32) -> Time {
    let n = i64::from(ticks) * SECOND;
    (n + i64::from(rate) / 2).div_euclid(i64::from(rate.max(1)))
}

/// The last moment up to `now` at which a tick of a clock of `rate` Hz begins.
pub(crate) fn tick_start(now: Time, rate: u32) -> Time {
    let ticks = (i128::from(now) * i128::from(rate)).div_euclid(i128::from(SECOND));
    let start = -((-ticks * i128::from(SECOND)).div_euclid(i128::from(rate.max(1))));
    start as Time
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tcps_core::time::MS;

    // [RFC 3550 §4]
    #[test]
    fn ntp_counts_seconds_and_their_fractions() {
        assert_eq!(ntp(0), 2_208_988_800 << 32);
        assert_eq!(ntp(SECOND + SECOND / 2) - ntp(0), 3 << 31);
        assert_eq!(middle(ntp(SECOND / 4)) & 0xffff, 0x4000);
        assert_eq!((short(SECOND / 2), from_short(0x8000)), (0x8000, SECOND / 2));
        assert_eq!((short(-1), short(i64::MAX)), (0, u32::MAX));
        assert_eq!(ntp(-MS) >> 32, 2_208_988_799, "a clock that starts behind");
    }

    #[test]
    fn ticks_and_spans_belong_together() {
        assert_eq!((ticks(SECOND, 8000), ticks(-1, 8000)), (8000, u32::MAX));
        assert_eq!(span(8, 8000), MS);
        assert_eq!(span(-3600, 90_000), -40 * MS);
        assert_eq!(tick_start(130_000, 8000), 125_000);
        assert_eq!(tick_start(125_000, 8000), 125_000);
    }

    proptest! {
        #[test]
        fn ntp_keeps_nanoseconds(now in -SECOND..1_000_000 * SECOND) {
            prop_assert!((from_ntp(ntp(now)) - now).abs() <= 1);
        }

        #[test]
        fn a_tick_starts_at_most_one_tick_ago(now in -SECOND..1000 * SECOND, rate in 1000u32..200_000) {
            let start = tick_start(now, rate);
            prop_assert!(start <= now && now - start <= SECOND / i64::from(rate) + 1);
            prop_assert_eq!(ticks(start, rate), ticks(now, rate));
        }
    }
}
