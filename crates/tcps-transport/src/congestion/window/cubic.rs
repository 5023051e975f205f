//! CUBIC: the window is a cubic function of the time since the last loss.
//!
//! ```text
//! W(t) = 0.4 (t - K)^3 + Wmax      K = cbrt((Wmax - cwnd) / 0.4)      after a loss: cwnd = 0.7 cwnd
//! ```
//! It is no slower than Reno would be with the same mean (RFC 9438 §4.3). Slow start ends by HyStart.

use super::{hystart::HyStart, Ack, Control, Window};
use tcps_core::time::{Time, MS, SECOND};

/// Segments per cubic second.
// [RFC 9438 §5]
const C: f64 = 0.4;
/// Share of the window that is left after a loss, in 1/1024 as Linux has it: 0.7.
// [RFC 9438 §4.6]
const BETA: u64 = 717;
const BETA_SCALE: u64 = 1024;
/// Segments acknowledged by which Reno's window would grow by one, as a share of the window in eighths: (1 + beta) / 3 /
/// (1 - beta), in whole eighths as in Linux.
// [RFC 9438 §4.3]
const RENO_EIGHTHS: u64 = 8 * (BETA_SCALE + BETA) / 3 / (BETA_SCALE - BETA);
/// The target is computed at most once in this time, unless the window has changed.
const STEP_NS: Time = SECOND / 32;
/// With an unchanged epoch, the cubic is evaluated at most once in this time: a tick of Linux at 250 Hz.
const TICK_NS: Time = 4 * MS;
/// Round trips just after a loss say nothing of the path.
const SETTLING_NS: Time = SECOND;

/// CUBIC's congestion avoidance.
#[derive(Debug, Default)]
pub(crate) struct Cubic {
    /// Window before the last reduction.
    last_max: u32,
    epoch: Option<Epoch>,
    interval: u32,
    /// Window and time of the last computation.
    last: (u32, Time),
    hystart: HyStart,
}

/// The time since a reduction.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    start_ns: Time,
    /// Window around which the cubic is flat, and when it is there.
    origin: u32,
    k_s: f64,
    /// What Reno's window would be, and what has been acknowledged towards its next segment.
    reno: u32,
    reno_credit: u64,
}

impl Epoch {
    // [RFC 9438 §4.2]
    fn new(now: Time, window: u32, last_max: u32) -> Self {
        let (origin, k_s) = match last_max.checked_sub(window) {
            Some(lack) if lack > 0 => (last_max, libm::cbrt(f64::from(lack) / C)),
            _ => (window, 0.0),
        };
        Self { start_ns: now, origin, k_s, reno: window, reno_credit: 0 }
    }

    /// The window after `t_s`.
    // [RFC 9438 §4.2]
    fn target(&self, t_s: f64) -> f64 {
        let beyond_s = t_s - self.k_s;
        f64::from(self.origin) + C * beyond_s * beyond_s * beyond_s
    }

    /// Reno's window after so many more acknowledged segments.
    // [RFC 9438 §4.3]
    fn reno(&mut self, window: u32) -> u32 {
        let each = (u64::from(window) * RENO_EIGHTHS / 8).max(1);
        self.reno = self.reno.saturating_add((self.reno_credit.saturating_sub(1) / each) as u32);
        self.reno_credit -= self.reno_credit.saturating_sub(1) / each * each;
        self.reno
    }
}

impl Cubic {
    fn cubic_interval(&mut self, now: Time, window: u32, epoch: &Epoch) -> u32 {
        let least_ns = self.hystart.least_ns().unwrap_or(0);
        let t_s = now.saturating_sub(epoch.start_ns).saturating_add(least_ns) as f64 / SECOND as f64;
        let target = epoch.target(t_s).clamp(0.0, f64::from(u32::MAX)) as u32;
        let interval = match target.checked_sub(window) {
            Some(more) if more > 0 => window / more,
            _ => window.saturating_mul(100),
        };
        // The bandwidth is not known: growth of 5 % a round trip at least.
        if self.last_max == 0 {
            interval.min(20)
        } else {
            interval
        }
    }
}

impl Control for Cubic {
    fn reduced(&mut self, window: u32) -> u32 {
        self.epoch = None;
        // Fast convergence: a flow whose window has become smaller makes room. [RFC 9438 §4.7]
        self.last_max = if window < self.last_max {
            (u64::from(window) * (BETA_SCALE + BETA) / (2 * BETA_SCALE)) as u32
        } else {
            window
        };
        ((u64::from(window) * BETA / BETA_SCALE) as u32).max(2)
    }

    fn interval(&mut self, now: Time, window: u32, acked: u32) -> u32 {
        if let Some(epoch) = &mut self.epoch {
            epoch.reno_credit += u64::from(acked);
        }
        let past_ns = now.saturating_sub(self.last.1);
        if self.last.0 == window && past_ns <= STEP_NS && self.epoch.is_some() {
            return self.interval;
        }
        let is_new = self.epoch.is_none();
        let mut epoch = self.epoch.unwrap_or_else(|| Epoch::new(now, window, self.last_max));
        if is_new {
            epoch.reno_credit = u64::from(acked);
        }
        if is_new || past_ns >= TICK_NS {
            self.last = (window, now);
            self.interval = self.cubic_interval(now, window, &epoch);
        }
        let reno = epoch.reno(window);
        if reno > window {
            self.interval = self.interval.min(window / (reno - window));
        }
        self.epoch = Some(epoch);
        self.interval = self.interval.max(2);
        self.interval
    }

    fn acknowledged(&mut self, ack: &Ack, window: &Window) -> bool {
        let settling = |e: &Epoch| ack.now.saturating_sub(e.start_ns) < SETTLING_NS;
        let Some(rtt_ns) = ack.rtt_ns.filter(|_| !self.epoch.as_ref().is_some_and(settling)) else {
            return false;
        };
        self.hystart.measured(ack, rtt_ns, window)
    }

    fn timed_out(&mut self) {
        *self = Self::default();
    }

    // [RFC 9438 §4.2]
    fn idled(&mut self, now: Time, span_ns: Time) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start_ns = epoch.start_ns.saturating_add(span_ns).min(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The window over time after a loss at 100 segments: RFC 9438's equations.
    // [RFC 9438 §4.2] [RFC 9438 §5]
    #[test]
    fn the_window_follows_the_cubic_of_the_rfc() {
        let (mut cubic, mut window) = (Cubic::default(), Window::new());
        window.set(100);
        window.threshold = cubic.reduced(100);
        window.set(70);
        assert_eq!(window.threshold, 70);
        // A round trip of 400 ms, where Reno's region (RFC 9438 §4.3) does not matter.
        let (k_s, mut now, round_ns) = (libm::cbrt(30.0 / 0.4), 0, 400 * MS);
        cubic.acknowledged(&Ack { now, rtt_ns: Some(round_ns), acked: 1, sent_to: 2 }, &window);
        for _ in 0..25 {
            for part in 0..i64::from(window.segments) {
                let at = now + round_ns * part / i64::from(window.segments.max(1));
                let interval = cubic.interval(at, window.segments, 1);
                window.avoid(interval, 1);
            }
            now += round_ns;
            let t_s = now as f64 / 1e9;
            let law = 0.4 * libm::pow(t_s - k_s, 3.0) + 100.0;
            let found = f64::from(window.segments);
            assert!((found - law).abs() < 0.05 * law + 2.0, "{t_s}: {found} for {law}");
        }
        assert!(window.segments > 130, "it explores beyond the old window: {}", window.segments);
    }

    // [RFC 9438 §4.3]
    #[test]
    fn with_short_round_trips_it_grows_as_reno_with_the_same_mean() {
        let (mut cubic, mut window) = (Cubic::default(), Window::new());
        window.set(20);
        window.threshold = cubic.reduced(20);
        window.set(14);
        for round in 0..30 {
            for _ in 0..window.segments {
                let interval = cubic.interval(round * 10 * MS, window.segments, 1);
                window.avoid(interval, 1);
            }
        }
        // alpha = 3 (1 - 0.7) / (1 + 0.7) = 0.53 segments a round trip.
        assert!((27..=32).contains(&window.segments), "{}", window.segments);
    }

    // [RFC 9438 §4.6] [RFC 9438 §4.7]
    #[test]
    fn a_second_loss_at_a_smaller_window_releases_bandwidth() {
        let mut cubic = Cubic::default();
        assert_eq!(cubic.reduced(1000), 700);
        assert_eq!(cubic.last_max, 1000);
        assert_eq!(cubic.reduced(800), 560);
        assert_eq!(cubic.last_max, 680, "800 * (1 + 0.7) / 2");
        cubic.timed_out();
        assert_eq!(cubic.last_max, 0);
    }
}
