//! SCReAM (RFC 8298): a window for bytes in flight that follows the queue, and a rate below it.
//!
//! ```text
//! arrivals ─► queue = delay - base ─► off = (target - queue) / target ─► window += off · acked · MSS / window
//!                                  └► trend ─► rate: up by at most 200 kbit/s a second, slower near the last maximum
//! losses, once a round trip ─► window · 0.8, rate · 0.9
//! window full ─► k = k_max      else ─► k = least with R_k <= rate
//! ```
//! There is no queue of packets at the sender: what the window does not let leave waits in the packet that is being filled,
//! to `k_max`, and then leaves. So the rules for that queue (RTP_QDELAY_TH, TX_QUEUE_SIZE_FACTOR) have nothing to act on. The
//! rate is kept between that of `k_max` and 1.2 times that of no merging, where it begins. The base is the least delay of 60 s.

use super::{
    control::{merging, with, Controller, Hears},
    rates::Rates,
    scream_queue::{QueueDelay, Target},
    windowed::WindowedMin,
};
use crate::params::{Params, Telling, TransportError, PERIOD, SAMPLES};
use tcps_core::{
    param::Entry,
    params,
    rate::{Arrival, Feedback, RateController, Sent},
    time::{Time, MS, SECOND},
};

const BASE_NS: Time = 60 * SECOND;
const MIN_CWND: f64 = 3000.0;
const MSS: f64 = 1000.0;
const HEAD_ROOM: f64 = 1.1;
const BETA_LOSS: f64 = 0.8;
const BETA_R: f64 = 0.9;
const GAIN: f64 = 1.0;
const TREND_TH: f64 = 0.2;
const TREND_LO: f64 = 0.2;
const RESUME_NS: Time = 5 * SECOND;
const RATE_ADJUST_NS: Time = 200 * MS;
const RAMP_UP_BPS: f64 = 200_000.0;
const PRE_CONGESTION_GUARD: f64 = 0.1;
/// Over what time the most bytes in flight are remembered, once or twice.
const FLIGHT_NS: Time = 5 * SECOND;

/// Bytes in flight, and the most of late.
#[derive(Debug, Default)]
struct Flight {
    bytes: f64,
    most: [f64; 2],
    began_ns: Time,
}

impl Flight {
    fn sent(&mut self, now: Time, bytes: f64) {
        self.bytes += bytes;
        if now.saturating_sub(self.began_ns) > FLIGHT_NS {
            (self.most, self.began_ns) = ([self.bytes, self.most[0]], now);
        }
        self.most[0] = self.most[0].max(self.bytes);
    }

    fn most(&self) -> f64 {
        self.most[0].max(self.most[1])
    }
}

/// The media rate.
// [RFC 8298]
#[derive(Debug, Default)]
struct Media {
    target_bps: Option<f64>,
    last_max_bps: f64,
    adjusted_ns: Time,
    sent: f64,
    acked: f64,
}

impl Media {
    /// Sets the rate for the next interval, once one is over.
    fn adjust(&mut self, now: Time, fast: bool, queue: &QueueDelay, rates: &Rates) {
        let Some(target_bps) = self.target_bps else { return };
        let gone_ns = now.saturating_sub(self.adjusted_ns);
        if gone_ns < RATE_ADJUST_NS {
            return;
        }
        let gone_s = gone_ns as f64 / 1e9;
        let current_bps = self.sent.max(self.acked) * 8.0 / gone_s;
        (self.sent, self.acked, self.adjusted_ns) = (0.0, 0.0, now);
        let ramp_bps = RAMP_UP_BPS.min(target_bps / 2.0) * gone_s;
        let off = 4.0 * (target_bps - self.last_max_bps) / self.last_max_bps.max(1.0);
        let scale = (off * off).clamp(0.2, 1.0);
        let step_bps = if fast {
            ramp_bps * scale
        } else {
            (current_bps * (1.0 - PRE_CONGESTION_GUARD * queue.trend()) * scale).min(ramp_bps)
        };
        let limit_bps = current_bps * (2.0 - queue.trend_memory());
        self.target_bps = Some(rates.within((target_bps + step_bps).min(limit_bps), 1.0));
    }

    fn lost(&mut self, now: Time, rates: &Rates) {
        if let Some(target_bps) = self.target_bps {
            self.last_max_bps = target_bps;
            self.target_bps = Some(rates.within(BETA_R * target_bps, 1.0));
            (self.sent, self.acked, self.adjusted_ns) = (0.0, 0.0, now);
        }
    }
}

/// The controller.
#[derive(Debug)]
struct Scream {
    rates: Rates,
    base: WindowedMin,
    queue: QueueDelay,
    target: Target,
    window: f64,
    flight: Flight,
    fast: bool,
    /// Since when the queue has had no trend.
    calm_ns: Time,
    round_trip_ns: f64,
    cut_ns: Option<Time>,
    media: Media,
    packet_bytes: f64,
}

impl Scream {
    fn arrival(&mut self, now: Time, arrival: &Arrival) {
        let acked = f64::from(arrival.wire_bytes);
        self.flight.bytes = (self.flight.bytes - acked).max(0.0);
        let Some(arrived_ns) = arrival.arrived_ns else { return self.loss(now) };
        self.media.acked += acked;
        let took_ns = arrival.round_trip_ns as f64;
        self.round_trip_ns +=
            if self.round_trip_ns == 0.0 { took_ns } else { (took_ns - self.round_trip_ns) / 8.0 };
        let delay_ns = arrived_ns.saturating_sub(arrival.sent_ns) as f64;
        let queue_ns = delay_ns - self.base.add(now, delay_ns);
        self.queue.add(now, queue_ns / self.target.now_ns());
        self.target.follow(now, queue_ns, self.round_trip_ns);
        self.grow(queue_ns, acked);
        self.resume(now);
        self.media.adjust(now, self.fast, &self.queue, &self.rates);
    }

    /// At most once a round trip.
    // [RFC 8298]
    fn loss(&mut self, now: Time) {
        if self.cut_ns.is_some_and(|cut_ns| (now.saturating_sub(cut_ns) as f64) < self.round_trip_ns) {
            return;
        }
        (self.cut_ns, self.calm_ns, self.fast) = (Some(now), now, false);
        self.window = (BETA_LOSS * self.window).max(MIN_CWND);
        self.target.lost();
        self.media.lost(now, &self.rates);
    }

    // [RFC 8298]
    fn grow(&mut self, queue_ns: f64, acked: f64) {
        if self.fast && self.queue.trend() < TREND_TH {
            if 1.5 * self.flight.bytes + acked > self.window {
                self.window += acked;
            }
            return;
        }
        if std::mem::take(&mut self.fast) {
            self.media.last_max_bps = self.media.target_bps.unwrap_or(0.0);
        }
        let off = 1.0 - queue_ns / self.target.now_ns();
        if off < 0.0 || 1.25 * self.flight.bytes + acked > self.window {
            self.window += GAIN * off * acked * MSS / self.window;
        }
        self.window = self.window.min(HEAD_ROOM * self.flight.most()).max(MIN_CWND);
    }

    /// After 5 s without a trend the window grows fast again.
    fn resume(&mut self, now: Time) {
        if self.queue.trend() > TREND_LO {
            self.calm_ns = now;
        }
        self.fast |= now.saturating_sub(self.calm_ns) > RESUME_NS;
    }

    /// Whether the window lets another packet leave: above the target none beyond it, below it one more.
    fn allows(&self) -> bool {
        let room = if self.queue.last() <= 1.0 { self.window + MSS } else { self.window };
        self.flight.bytes + self.packet_bytes <= room
    }
}

impl RateController for Scream {
    fn feedback(&mut self, now: Time, feedback: &Feedback) {
        if let Feedback::Arrival(arrival) = feedback {
            self.arrival(now, arrival);
        }
    }

    fn sent(&mut self, now: Time, packet: &Sent) {
        self.rates.sent(packet);
        self.packet_bytes = f64::from(packet.wire_bytes);
        self.flight.sent(now, self.packet_bytes);
        self.media.sent += self.packet_bytes;
        if self.media.target_bps.is_none() {
            (self.media.target_bps, self.media.adjusted_ns) = (Some(self.rates.most_bps()), now);
        }
    }

    fn fragments(&mut self, _now: Time) -> u8 {
        match self.media.target_bps {
            Some(target_bps) if self.allows() => self.rates.fragments(target_bps),
            Some(_) => self.rates.k_max(),
            None => 1,
        }
    }
}

params! {
    /// Of the rule.
    struct Given {
        k_max: u8 = Count, "4", SAMPLES, "most samples in a packet";
        target_ns: Time = Ns, "100 ms", PERIOD, "target of the queue; its upper limit is four times that";
    }
}

/// `scream`.
fn scream(params: &Params<'_>, period_ns: Time) -> Result<Box<dyn RateController>, TransportError> {
    let Given { k_max, target_ns } = params.read()?;
    Ok(Box::new(Scream {
        rates: Rates::new(period_ns, k_max),
        base: WindowedMin::new(BASE_NS, 0.0, 1.0),
        queue: QueueDelay::default(),
        target: Target::new(target_ns as f64),
        window: MIN_CWND,
        flight: Flight::default(),
        fast: true,
        calm_ns: 0,
        round_trip_ns: 0.0,
        cut_ns: None,
        media: Media::default(),
        packet_bytes: 0.0,
    }))
}

/// `scream` in a scenario.
pub(crate) const ENTRY: Entry<Controller> = merging(
    35,
    "scream",
    "keeps the rate of SCReAM by merging (RFC 8298)",
    with!(Given, Telling),
    Hears::Arrivals,
    scream,
);

#[cfg(test)]
mod tests {
    use super::{super::fluid::Fluid, *};
    use serde_json::json;

    fn fluid(params: serde_json::Value) -> Fluid {
        Fluid::new(scream(&Params::new("scream", &params), MS).unwrap())
    }

    // [RFC 8298]
    #[test]
    fn the_published_target_lets_the_buffer_fill_and_10_ms_do_not() {
        let mut published = fluid(json!({}));
        published.run(3000, 400.0);
        published.run(8000, 800.0);
        let mut short = fluid(json!({"target_ns": 10 * MS}));
        short.run(3000, 400.0);
        short.run(8000, 800.0);
        assert!(published.queue_ns > 60e6, "{}", published.queue_ns);
        assert!(short.queue_ns < 40e6 && short.lost == 0, "{}: at most four times 10 ms", short.queue_ns);
    }

    // [RFC 8298]
    #[test]
    fn without_congestion_the_window_opens_and_nothing_is_merged() {
        let mut f = fluid(json!({"target_ns": 10 * MS}));
        let ks = f.run(3000, 100.0);
        assert!(ks[..200].contains(&4), "the least window is too small for 1 Mbit/s");
        assert!(ks[1000..].iter().all(|k| *k == 1));
        f.run(4000, 800.0);
        let ks = f.run(12_000, 100.0);
        assert!(ks[8000..].iter().all(|k| *k == 1), "it comes back");
    }

    /// In the middle of a run, with a round trip of 30 ms.
    fn with_window(window: f64) -> Scream {
        Scream {
            rates: Rates::new(MS, 4),
            base: WindowedMin::new(BASE_NS, 0.0, 1.0),
            queue: QueueDelay::default(),
            target: Target::new(1e8),
            window,
            flight: Flight::default(),
            fast: true,
            calm_ns: 0,
            round_trip_ns: 30e6,
            cut_ns: None,
            media: Media::default(),
            packet_bytes: 0.0,
        }
    }

    // [RFC 8298]
    #[test]
    fn the_window_grows_only_while_it_is_nearly_full() {
        let grown = |fast: bool, flight: f64, queue_ns: f64| {
            let mut c = with_window(10_000.0);
            c.fast = fast;
            c.flight.sent(0, 20_000.0);
            c.flight.bytes = flight;
            c.grow(queue_ns, 100.0);
            c.window - 10_000.0
        };
        // Fast: by what was acknowledged, where 1.5 times the bytes in flight and those exceed it.
        assert_eq!([6500.0, 6600.0, 6700.0].map(|flight| grown(true, flight, 0.0)), [0.0, 0.0, 100.0]);
        // Then by GAIN · off · acked · MSS / window, where 1.25 times those do, and it shrinks in any case.
        let half = grown(false, 8000.0, 5e7);
        assert!((half - 5.0).abs() < 1e-9, "{half}");
        assert_eq!([7800.0, 7920.0].map(|flight| grown(false, flight, 5e7)), [0.0, 0.0]);
        let shrunk = grown(false, 100.0, 2e8);
        assert!((shrunk + 10.0).abs() < 1e-9, "{shrunk}");
    }

    // [RFC 8298]
    #[test]
    fn a_loss_takes_a_fifth_of_the_window_and_a_tenth_of_the_rate_once_a_round_trip() {
        let mut c = with_window(10_000.0);
        c.sent(0, &Sent { generated_ns: 0, fragments: 1, payload_bytes: 70, wire_bytes: 137 });
        let lost = Arrival { sent_ns: 0, wire_bytes: 137, arrived_ns: None, round_trip_ns: 0 };
        let windows = [50, 60, 70, 81].map(|ms| {
            c.arrival(ms * MS, &lost);
            c.window
        });
        assert_eq!(windows, [8000.0, 8000.0, 8000.0, 6400.0]);
        assert!((c.media.target_bps.unwrap() - 0.81 * 1.2 * 1.096e6).abs() < 1.0);
        assert!(!c.fast);
    }

    /// An encoder that makes less than it may must not come back with a burst.
    // [RFC 8298]
    #[test]
    fn the_rate_stays_below_twice_what_left_or_was_acknowledged_whichever_is_more() {
        let kbps = |left: u32, acked: u32| {
            let mut c = with_window(10_000.0);
            let packet = Sent { generated_ns: 0, fragments: 1, payload_bytes: 70, wire_bytes: 137 };
            (0..left).for_each(|_| c.sent(0, &packet));
            let (arrived_ns, round_trip_ns) = (Some(15 * MS), 30 * MS);
            let came = Arrival { sent_ns: 0, wire_bytes: 137, arrived_ns, round_trip_ns };
            (1..acked).for_each(|_| c.arrival(100 * MS, &came));
            c.arrival(200 * MS, &came);
            (c.media.target_bps.unwrap() / 100.0).round() / 10.0
        };
        // 80 packets of 137 B in 200 ms are 438.4 kbit/s; four fragments a packet need 694.
        assert_eq!([kbps(80, 1), kbps(1, 80), kbps(1, 1)], [876.8, 876.8, 694.0]);
    }

    // [RFC 8298]
    #[test]
    fn an_eighth_of_a_change_enters_the_round_trip() {
        let mut c = with_window(10_000.0);
        c.round_trip_ns = 0.0;
        let smoothed_ms = [30, 38, 23].map(|ms| {
            let (arrived_ns, round_trip_ns) = (Some(15 * MS), ms * MS);
            c.arrival(SECOND, &Arrival { sent_ns: 0, wire_bytes: 137, arrived_ns, round_trip_ns });
            c.round_trip_ns / 1e6
        });
        assert_eq!(smoothed_ms, [30.0, 31.0, 30.0]);
    }

    // [RFC 8298]
    #[test]
    fn the_window_grows_fast_again_after_5_s_without_a_trend() {
        let mut c = with_window(10_000.0);
        c.fast = false;
        let fast = (0..400).map(|i| i * 50 * MS).find(|now| {
            // The queue grows for 10 s; its trend is forgotten within another one.
            c.queue.add(*now, if *now < 10 * SECOND { *now as f64 / 1e10 } else { 0.0 });
            c.resume(*now);
            c.fast
        });
        assert!(fast.is_some_and(|t| (15 * SECOND..16 * SECOND).contains(&t)), "{fast:?}");
    }
}
