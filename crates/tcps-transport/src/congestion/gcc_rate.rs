//! Google congestion control (draft-ietf-rmcat-gcc-02): a rate by delays, a rate by losses, and the lesser of them.
//!
//! ```text
//! arrivals ─► groups of 5 ms ─► d = dt - dT ─► Kalman: m ─► m n > gamma for 10 ms: over-use ─► 0.85 R
//!                                              gamma follows |m n|      else ─► rate up by 8 %/s, or half a packet
//! losses of 500 ms: < 2 % ─► 1.05 A    > 10 % ─► A (1 - p / 2)                                a response time
//! ```
//! The draft compares the estimate m of one group; at 200 groups a second m stays far below gamma even while a buffer fills
//! in 300 ms. The published code multiplies it by the number of groups, up to 60, and so does this (`deltas`; 1 is the draft).
//! The draft adds at least 1000 bit/s an update near the limit; here that is a second's, since updates come with each group.
//! `target_ns` is not Google's: over-use is also a delay so far above the least of 60 s.

use super::{
    arrival_filter::{Filter, Group},
    windowed::WindowedMin,
};
use tcps_core::{
    rate::Arrival,
    time::{Time, MS, SECOND},
};

const BASE_NS: Time = 60 * SECOND;
/// Over what time the incoming rate and the losses are measured.
const WINDOW_NS: Time = 500 * MS;
const OVERUSE_NS: Time = 10 * MS;
const K_UP: f64 = 0.01;
const K_DOWN: f64 = 0.000_18;
const GAMMA_MS: f64 = 12.5;
const GAMMA_RANGE_MS: std::ops::RangeInclusive<f64> = 6.0..=600.0;
const FREEZE_MS: f64 = 15.0;
/// What a decrease leaves of the incoming rate.
pub(super) const BETA: f64 = 0.85;
const ETA: f64 = 1.08;
/// What a window without any arrival leaves of the rate: 1 - p / 2 with p = 1.
const SILENCE: f64 = 0.5;
const SMOOTHING: f64 = 0.95;
/// Variances of the limit over its mean.
const LEAST_VARIANCE_BPS: f64 = 400.0;
const MOST_VARIANCE_BPS: f64 = 2500.0;

/// What the over-use detector says.
// [draft-ietf-rmcat-gcc-02]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Over,
    Normal,
    Under,
}

/// What the rate by delays does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Increase,
    Hold,
    Decrease,
}

/// Compares the estimate with a threshold that follows it.
// [draft-ietf-rmcat-gcc-02]
#[derive(Debug)]
struct Detector {
    gamma_ms: f64,
    before_ms: f64,
    over_ns: Time,
}

impl Detector {
    /// What an estimate says, made `gone_ns` after the one before.
    fn judge(&mut self, m_ms: f64, gone_ns: Time) -> Signal {
        let falls = m_ms < self.before_ms;
        self.before_ms = m_ms;
        self.over_ns = if m_ms > self.gamma_ms { self.over_ns.saturating_add(gone_ns) } else { 0 };
        let signal = if m_ms > self.gamma_ms && self.over_ns >= OVERUSE_NS && !falls {
            Signal::Over
        } else if m_ms < -self.gamma_ms {
            Signal::Under
        } else {
            Signal::Normal
        };
        self.adapt(m_ms.abs(), gone_ns as f64 / 1e6);
        signal
    }

    fn adapt(&mut self, size_ms: f64, gone_ms: f64) {
        if size_ms - self.gamma_ms > FREEZE_MS {
            return;
        }
        let gain = if size_ms < self.gamma_ms { K_DOWN } else { K_UP };
        let gamma_ms = self.gamma_ms + gone_ms * gain * (size_ms - self.gamma_ms);
        self.gamma_ms = gamma_ms.clamp(*GAMMA_RANGE_MS.start(), *GAMMA_RANGE_MS.end());
    }
}

/// What came and what did not in a window of time.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    began_ns: Time,
    bytes: f64,
    came: f64,
    lost: f64,
}

/// The rate of a sender whose packets are all told of.
// [draft-ietf-rmcat-gcc-02]
#[derive(Debug)]
pub(crate) struct GccRate {
    deltas: f64,
    target_ns: Option<f64>,
    /// What the rate is kept within, in bit/s.
    range_bps: [f64; 2],
    filter: Filter,
    detector: Detector,
    base: WindowedMin,
    state: State,
    window: Window,
    incoming_bps: Option<f64>,
    /// Mean and variance of the incoming rate at decreases.
    limit: Option<(f64, f64)>,
    packet_bytes: f64,
    round_trip_ns: f64,
    changed_ns: Time,
    by_delay_bps: Option<f64>,
    by_loss_bps: Option<f64>,
}

impl GccRate {
    /// The estimate is multiplied by the number of groups, up to `deltas`; `target_ns`: a queue above it is over-use too.
    pub(crate) fn new(deltas: u32, target_ns: Option<Time>) -> Self {
        Self {
            deltas: deltas.into(),
            target_ns: target_ns.map(|t| t as f64),
            range_bps: [0.0; 2],
            filter: Filter::default(),
            detector: Detector { gamma_ms: GAMMA_MS, before_ms: 0.0, over_ns: 0 },
            base: WindowedMin::new(BASE_NS, 0.0, 1.0),
            state: State::Increase,
            window: Window::default(),
            incoming_bps: None,
            limit: None,
            packet_bytes: 0.0,
            round_trip_ns: 0.0,
            changed_ns: 0,
            by_delay_bps: None,
            by_loss_bps: None,
        }
    }

    /// A packet has left; the rate is kept within `range_bps`, and begins with the most.
    pub(crate) fn sent(&mut self, now: Time, wire_bytes: u32, range_bps: [f64; 2]) {
        self.range_bps = range_bps;
        self.packet_bytes = f64::from(wire_bytes);
        if self.by_delay_bps.is_none() {
            (self.by_delay_bps, self.by_loss_bps) = (Some(range_bps[1]), Some(range_bps[1]));
            (self.window.began_ns, self.changed_ns) = (now, now);
        }
    }

    /// The rate that is allowed, in bit/s; `None` before the first packet.
    pub(crate) fn allowed_bps(&self) -> Option<f64> {
        Some(self.by_delay_bps?.min(self.by_loss_bps?))
    }

    /// The receiver has told of a packet, the oldest first.
    pub(crate) fn arrival(&mut self, now: Time, arrival: &Arrival) {
        self.count(now, arrival);
        let Some(arrived_ns) = arrival.arrived_ns else { return };
        self.round_trip_ns = arrival.round_trip_ns as f64;
        let delay_ns = arrived_ns.saturating_sub(arrival.sent_ns) as f64;
        let queue_ns = delay_ns - self.base.add(now, delay_ns);
        let Some(group) = self.filter.add(arrival.sent_ns, arrived_ns) else { return };
        let Group { m_ms, groups, gone_ns } = group;
        let mut signal = self.detector.judge(m_ms * f64::from(groups).min(self.deltas), gone_ns);
        if self.target_ns.is_some_and(|target_ns| queue_ns > target_ns) {
            signal = Signal::Over;
        }
        self.turn(signal);
        self.adjust(now);
    }

    /// Nothing is told of packets that were to be told of: a window in which all were lost.
    // [RFC 8888 §5] [draft-ietf-rmcat-gcc-02]
    pub(crate) fn silent(&mut self) {
        self.by_loss_bps = self.allowed_bps().map(|bps| self.within(bps * SILENCE));
    }

    /// Rates of a window, once it is over.
    // [draft-ietf-rmcat-gcc-02]
    fn count(&mut self, now: Time, arrival: &Arrival) {
        if arrival.arrived_ns.is_some() {
            self.window.bytes += f64::from(arrival.wire_bytes);
            self.window.came += 1.0;
        } else {
            self.window.lost += 1.0;
        }
        let gone_ns = now.saturating_sub(self.window.began_ns);
        if gone_ns < WINDOW_NS {
            return;
        }
        let w = std::mem::replace(&mut self.window, Window { began_ns: now, ..Window::default() });
        self.incoming_bps = Some(w.bytes * 8e9 / gone_ns as f64);
        let share = w.lost / (w.came + w.lost).max(1.0);
        let factor = if share < 0.02 {
            1.05
        } else if share > 0.1 {
            1.0 - 0.5 * share
        } else {
            1.0
        };
        self.by_loss_bps = self.by_loss_bps.map(|bps| self.within(factor * bps));
    }

    // [draft-ietf-rmcat-gcc-02]
    fn turn(&mut self, signal: Signal) {
        self.state = match (signal, self.state) {
            (Signal::Over, _) => State::Decrease,
            (Signal::Under, _) => State::Hold,
            (Signal::Normal, State::Decrease) => State::Hold,
            (Signal::Normal, State::Hold | State::Increase) => State::Increase,
        };
    }

    // [draft-ietf-rmcat-gcc-02]
    fn adjust(&mut self, now: Time) {
        let Some(rate_bps) = self.by_delay_bps else { return };
        let gone_s = (now.saturating_sub(self.changed_ns) as f64 / 1e9).min(1.0);
        self.changed_ns = now;
        let incoming_bps = self.incoming_bps.unwrap_or(rate_bps);
        let next_bps = match self.state {
            State::Hold => rate_bps,
            State::Increase => {
                self.increased(rate_bps, incoming_bps, gone_s).min(1.5 * incoming_bps).max(rate_bps)
            }
            State::Decrease => {
                self.learn(incoming_bps);
                rate_bps.min(BETA * incoming_bps)
            }
        };
        self.by_delay_bps = Some(self.within(next_bps));
    }

    /// By 8 % a second; near the rate at which over-use came, by half a packet a response time.
    fn increased(&mut self, rate_bps: f64, incoming_bps: f64, gone_s: f64) -> f64 {
        let off = |(mean, variance): (f64, f64)| (incoming_bps - mean).abs() / variance.sqrt().max(1.0);
        let near = self.limit.map(off).is_some_and(|off| off <= 3.0);
        if !near {
            if self.limit.is_some_and(|(mean, _)| incoming_bps > mean) {
                self.limit = None;
            }
            return rate_bps * libm::pow(ETA, gone_s);
        }
        let response_s = 0.1 + self.round_trip_ns / 1e9;
        let share = 0.5 * (gone_s / response_s).min(1.0);
        rate_bps + (share * self.packet_bytes * 8.0).max(1000.0 * gone_s)
    }

    /// The incoming rate at a decrease tells where the limit is. The draft leaves its first variance open; as the
    /// published code has it, it stays between 0.4 and 2.5 times the mean, in kbit/s.
    fn learn(&mut self, incoming_bps: f64) {
        let (mean, variance) = self.limit.unwrap_or((incoming_bps, LEAST_VARIANCE_BPS * incoming_bps));
        let off = incoming_bps - mean;
        let mean = SMOOTHING * mean + (1.0 - SMOOTHING) * incoming_bps;
        let variance = SMOOTHING * (variance + (1.0 - SMOOTHING) * off * off);
        self.limit = Some((mean, variance.clamp(LEAST_VARIANCE_BPS * mean, MOST_VARIANCE_BPS * mean)));
    }

    fn within(&self, rate_bps: f64) -> f64 {
        let [least_bps, most_bps] = self.range_bps;
        rate_bps.clamp(least_bps, most_bps.max(least_bps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [draft-ietf-rmcat-gcc-02]
    #[test]
    fn over_use_lasts_10_ms_and_is_not_told_while_the_estimate_falls() {
        let mut d = Detector { gamma_ms: GAMMA_MS, before_ms: 0.0, over_ns: 0 };
        let got = [5.0, 20.0, 21.0, 20.9, 22.0, -20.0].map(|m| d.judge(m, 5 * MS));
        assert_eq!(
            got,
            [Signal::Normal, Signal::Normal, Signal::Over, Signal::Normal, Signal::Over, Signal::Under]
        );
    }

    // [draft-ietf-rmcat-gcc-02]
    #[test]
    fn gamma_rises_fast_falls_slowly_and_stays_where_an_estimate_is_far_off() {
        let mut d = Detector { gamma_ms: GAMMA_MS, before_ms: 0.0, over_ns: 0 };
        d.adapt(22.5, 10.0);
        assert!((d.gamma_ms - (12.5 + 10.0 * 0.01 * 10.0)).abs() < 1e-12);
        let mut d = Detector { gamma_ms: GAMMA_MS, before_ms: 0.0, over_ns: 0 };
        d.adapt(2.5, 10.0);
        assert!((d.gamma_ms - (12.5 - 10.0 * 0.000_18 * 10.0)).abs() < 1e-12);
        d.adapt(40.0, 10.0);
        assert!(d.gamma_ms < 12.5, "frozen");
        (0..10_000).for_each(|_| d.adapt(0.0, 100.0));
        assert_eq!(d.gamma_ms, 6.0);
    }

    /// What the rate of 1 Mbit/s rises by in 100 ms, with a round trip of as long, where so much comes in.
    fn rise_bps(c: &mut GccRate, packet_bytes: f64, incoming_bps: f64) -> f64 {
        (c.packet_bytes, c.round_trip_ns) = (packet_bytes, 1e8);
        (c.increased(1e6, incoming_bps, 0.1) - 1e6).round()
    }

    /// Far from the limit 8 % a second find the rate of a faster path soon; near it, within three deviations, so fast a rise
    /// would be the next over-use.
    // [draft-ietf-rmcat-gcc-02]
    #[test]
    fn the_rate_rises_by_half_a_packet_a_response_time_near_the_limit_and_by_8_percent_a_second_else() {
        let fast_bps = (1e6 * (libm::pow(1.08, 0.1) - 1.0)).round();
        let mut c = GccRate::new(60, None);
        assert_eq!(rise_bps(&mut c, 1000.0, 1e6), fast_bps, "no limit is known");
        c.learn(1e6);
        // The least variance, 400 kbit/s times the mean: a deviation of 20 kbit/s.
        assert_eq!([0.94e6, 1e6, 1.06e6].map(|bps| rise_bps(&mut c, 1000.0, bps)), [2000.0; 3]);
        assert_eq!(rise_bps(&mut c, 10.0, 1e6), 100.0, "1000 bit/s a second at least");
        assert_eq!(c.increased(1e6, 1e6, 1.0) - 1e6, 1000.0, "half a packet at most, and of 80 bits 40");
        assert_eq!(rise_bps(&mut c, 1000.0, 0.9399e6), fast_bps);
        assert_eq!(rise_bps(&mut c, 1000.0, 1e6), 2000.0, "below it the limit is still known");
        assert_eq!(rise_bps(&mut c, 1000.0, 1.0601e6), fast_bps);
        assert_eq!(rise_bps(&mut c, 1000.0, 1e6), fast_bps, "above it there is a new one to be found");
    }

    // [draft-ietf-rmcat-gcc-02]
    #[test]
    fn the_limit_is_a_smoothed_mean_with_its_variance_kept_within_bounds() {
        let mut c = GccRate::new(60, None);
        let learnt = [1e6, 0.8e6, 0.2e6].map(|bps| {
            c.learn(bps);
            c.limit.map(|(mean, variance)| (mean.round(), variance.round()))
        });
        // 0.95 (4e8 + 0.05 (2e5)^2), and of 3.1e10 what 2500 kbit/s times the mean allow.
        assert_eq!(learnt, [(1e6, 4e8), (0.99e6, 2.28e9), (0.9505e6, 2500.0 * 0.9505e6)].map(Some));
    }

    /// Losses of less than 2 % are those of the medium, more than 10 % those of a full queue.
    // [draft-ietf-rmcat-gcc-02]
    #[test]
    fn the_rate_by_losses_follows_the_share_lost_in_half_a_second() {
        let after = |came: u32, lost: u32| {
            let mut c = GccRate::new(60, None);
            c.sent(SECOND, 1000, [1e5, 2e6]);
            c.by_loss_bps = Some(1e6);
            let lost_one = Arrival { sent_ns: 0, wire_bytes: 1000, arrived_ns: None, round_trip_ns: 0 };
            let came_one = Arrival { arrived_ns: Some(SECOND), ..lost_one };
            (0..lost).for_each(|_| c.count(SECOND + 499 * MS, &lost_one));
            (1..came).for_each(|_| c.count(SECOND + 499 * MS, &came_one));
            assert_eq!((c.by_loss_bps, c.incoming_bps), (Some(1e6), None), "the window is not over");
            c.count(SECOND + 500 * MS, &came_one);
            (c.by_loss_bps.unwrap().round(), c.incoming_bps.unwrap())
        };
        // 50 packets of 1000 B in half a second are 800 kbit/s.
        assert_eq!(after(50, 0), (1.05e6, 800e3));
        assert_eq!([after(98, 2).0, after(90, 10).0], [1e6; 2]);
        assert_eq!([after(99, 1).0, after(88, 12).0, after(1, 99).0], [1.05e6, 0.94e6, 505e3]);
    }

    /// A queue that drains is left to drain: neither over-use, whose news may be of packets from before the decrease, nor
    /// under-use lets the rate rise.
    // [draft-ietf-rmcat-gcc-02]
    #[test]
    fn over_use_decreases_once_then_the_rate_holds_before_it_rises_again() {
        let mut c = GccRate::new(60, None);
        c.sent(0, 1000, [1e5, 2e6]);
        (c.by_delay_bps, c.incoming_bps) = (Some(1e6), Some(1e6));
        let signals = [Signal::Over, Signal::Normal, Signal::Normal, Signal::Under, Signal::Normal];
        let mut now = 0;
        let rates = signals.map(|signal| {
            now += 100 * MS;
            c.turn(signal);
            c.adjust(now);
            c.by_delay_bps.unwrap().round()
        });
        // Near the limit: half a packet of 8000 bits in a response time of 100 ms.
        assert_eq!(rates, [850e3, 850e3, 854e3, 854e3, 854e3 + 4e3]);
    }

    /// A sender that makes less than it may learns nothing of more.
    // [draft-ietf-rmcat-gcc-02]
    #[test]
    fn the_rate_rises_to_one_and_a_half_times_what_comes_in_at_most() {
        let rate_bps = |incoming_bps: f64| {
            let mut c = GccRate::new(60, None);
            c.sent(0, 1000, [1e5, 2e6]);
            (c.by_delay_bps, c.incoming_bps) = (Some(1e6), Some(incoming_bps));
            c.adjust(9 * SECOND);
            c.by_delay_bps.unwrap().round()
        };
        assert_eq!([0.5e6, 0.7e6, 1e6].map(rate_bps), [1e6, 1.05e6, 1.08e6], "a second counts at most");
    }
}
