//! Reno: one segment more a round trip, half of it after a loss.

use super::Control;
use tcps_core::time::Time;

/// Reno's congestion avoidance; its recovery is the sender's.
// [RFC 5681 §3.1]
#[derive(Debug, Default)]
pub(crate) struct Reno;

impl Control for Reno {
    fn reduced(&mut self, window: u32) -> u32 {
        (window / 2).max(2)
    }

    fn interval(&mut self, _now: Time, window: u32, _acked: u32) -> u32 {
        window
    }
}

#[cfg(test)]
mod tests {
    use super::super::Window;
    use super::*;

    // [RFC 5681 §3.1]
    #[test]
    fn the_window_doubles_a_round_trip_and_grows_by_one_above_the_threshold() {
        let (mut reno, mut window) = (Reno, Window::new());
        assert_eq!(window.slow_start(10), 0);
        assert_eq!(window.segments, 20);
        window.threshold = 22;
        assert_eq!(window.slow_start(5), 3, "up to the threshold only");
        for _ in 0..11 {
            let interval = reno.interval(0, window.segments, 2);
            window.avoid(interval, 2);
        }
        assert_eq!(window.segments, 23, "22 acknowledged segments");
        assert_eq!(reno.reduced(23), 11);
        assert_eq!(reno.reduced(3), 2);
    }
}
