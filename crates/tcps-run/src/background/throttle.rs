//! Keeps a link at a wanted utilisation by how fast users think.
//!
//! ```text
//! speed = exp(x),  dx/dt = GAIN (wanted - busy share) / wanted
//! ```
//! An integral controller: while the speed is within its bounds, the mean share of time in which the line is busy comes
//! to the wanted one, whoever else uses the link. A clock that runs at this speed times all reading.

use super::user::{span_ns, LONGEST_S};
use tcps_core::{
    ids::LinkId,
    time::{Time, MS, SECOND},
};
use tcps_plan::net::DriveSpec;

/// Polling interval of the link.
const LOOK_NS: Time = 100 * MS;
/// Speed-up per second at an idle link, in e-folds.
const GAIN: f64 = 0.5;
/// Bounds of the logarithm of the speed: a factor of 10,000 either way.
const BOUND: f64 = 9.21;

/// A clock that users' thoughts run by, and what regulates it.
#[derive(Debug)]
pub(super) struct Throttle {
    drive: Option<DriveSpec>,
    log_speed: f64,
    /// What the clock showed (s) at a moment.
    shown_s: f64,
    at: Time,
    look_at: Time,
    busy_ns: Time,
}

impl Throttle {
    /// A clock that starts at `start_ns` with a given speed; it stays there without a link to drive.
    pub(super) fn new(drive: Option<DriveSpec>, speed: f64, start_ns: Time) -> Self {
        let log_speed = libm::log(speed.max(1e-9)).clamp(-BOUND, BOUND);
        Self { drive, log_speed, shown_s: 0.0, at: start_ns, look_at: start_ns, busy_ns: 0 }
    }

    /// The link that is to be driven.
    pub(super) fn link(&self) -> Option<LinkId> {
        self.drive.map(|d| d.link)
    }

    /// When to look at the link.
    pub(super) fn wake_ns(&self) -> Option<Time> {
        self.drive.map(|_| self.look_at)
    }

    /// What the clock shows, in seconds.
    pub(super) fn shown_s(&self, now: Time) -> f64 {
        self.shown_s + (now - self.at) as f64 / SECOND as f64 * libm::exp(self.log_speed)
    }

    /// When the clock shows `s`, if its speed stays.
    pub(super) fn when(&self, s: f64) -> Time {
        let span_s = (s - self.shown_s) / libm::exp(self.log_speed);
        self.at.saturating_add(span_ns(span_s.min(LONGEST_S)))
    }

    /// Looks at how long the line has been busy in all, and sets the speed.
    pub(super) fn look(&mut self, now: Time, busy_ns: Time) {
        let Some(drive) = self.drive.filter(|_| now >= self.look_at) else { return };
        let past_ns = now - self.at.max(self.look_at - LOOK_NS);
        let share = (busy_ns - self.busy_ns) as f64 / past_ns.max(1) as f64;
        self.shown_s = self.shown_s(now);
        self.at = now;
        if self.busy_ns > 0 {
            let lack = (drive.utilisation - share) / drive.utilisation;
            let step = GAIN * lack * LOOK_NS as f64 / SECOND as f64;
            self.log_speed = (self.log_speed + step).clamp(-BOUND, BOUND);
        }
        self.busy_ns = busy_ns;
        self.look_at = now.saturating_add(LOOK_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link that answers the speed at once: busy `0.1 * speed` of the time, at most all of it.
    #[test]
    fn the_mean_utilisation_comes_to_the_wanted_one_from_either_side() {
        for (speed, utilisation) in [(0.01, 0.9), (500.0, 0.9), (1.0, 0.3)] {
            let mut throttle = Throttle::new(Some(DriveSpec { link: LinkId(0), utilisation }), speed, 0);
            let mut busy_ns = 1;
            let mut late_busy = 0;
            for tick in 1..3000 {
                let now = tick * LOOK_NS;
                let share = (0.1 * (throttle.shown_s(now) - throttle.shown_s(now - LOOK_NS)) * 10.0).min(1.0);
                busy_ns += (share * LOOK_NS as f64) as Time;
                late_busy += if tick >= 1000 { (share * LOOK_NS as f64) as Time } else { 0 };
                throttle.look(now, busy_ns);
            }
            let mean = late_busy as f64 / (2000 * LOOK_NS) as f64;
            assert!((mean - utilisation).abs() < 0.01, "{speed} {utilisation}: {mean}");
        }
    }

    #[test]
    fn without_a_link_the_clock_keeps_its_speed() {
        let throttle = Throttle::new(None, 2.0, SECOND);
        assert!((throttle.shown_s(3 * SECOND) - 4.0).abs() < 1e-9);
        assert!((throttle.when(4.0) - 3 * SECOND).abs() <= 1);
        assert_eq!(throttle.wake_ns(), None);
    }
}
