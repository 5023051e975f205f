//! Merging by the queue that each packet met: our own rule, `dpm-q`.
//!
//! ```text
//! q = d - (k - 1) T - 8 bytes / rate - base         base: least such value of 60 s, let rise by 60 ppm
//! J = largest rise of q from one notice to the next, last 2 s
//! q > q0 + J                                         ─► k = k_max
//! mean of q over W after the last change <= s0 + J/4 ─► k - 1, unless that has just failed
//! ```
//! Every notice is matched with its packet, so what merging itself adds is taken out of each delay by its own k: nothing
//! has to settle, no average lags, and a clock's offset is in the base. `J` is what one packet of others does to the
//! queue: a queue is congestion when it is more than that.

use crate::params::{Params, TransportError};
use std::collections::VecDeque;
use tcps_core::{
    rate::{DelayNotice, Feedback, RateController, Sent},
    time::{Time, MS, SECOND},
};
use tcps_wire::telehaptic::MOST_FRAGMENTS;

const BASE_NS: Time = 60 * SECOND;
const JUMPS_NS: Time = 10 * SECOND;
/// An alarm so long after the last one may be that of a lone packet.
const ALONE_NS: Time = 900 * MS;
/// The drift that a base follows upwards; downwards it follows any.
const DRIFT: f64 = 60e-6;
/// Most that a jump counts for.
const MOST_JUMP_NS: f64 = 8e6;

/// The least (with a sign, the largest) value of a span of time, on a slope.
#[derive(Debug)]
struct Extreme {
    span_ns: Time,
    slope: f64,
    sign: f64,
    rising: VecDeque<(Time, f64)>,
}

impl Extreme {
    fn new(span_ns: Time, slope: f64, sign: f64) -> Self {
        Self { span_ns, slope, sign, rising: VecDeque::new() }
    }

    fn add(&mut self, now: Time, value: f64) -> f64 {
        let tilted = self.sign * value - self.slope * now as f64;
        while self.rising.back().is_some_and(|(_, v)| *v >= tilted) {
            self.rising.pop_back();
        }
        self.rising.push_back((now, tilted));
        while self.rising.front().is_some_and(|(t, _)| *t < now.saturating_sub(self.span_ns)) {
            self.rising.pop_front();
        }
        let least = self.rising.front().map_or(tilted, |(_, v)| *v);
        self.sign * (least + self.slope * now as f64)
    }
}

/// What does not change while it runs.
#[derive(Debug)]
struct Rule {
    k_max: u8,
    k_drain: u8,
    period_ns: Time,
    byte_ns: f64,
    alarm_ns: f64,
    alarm_jumps: [f64; 2],
    steady_ns: f64,
    steady_jumps: f64,
    watch_ns: f64,
    watch_jumps: f64,
    retry_ns: Time,
}

/// Queues that packets met which were made after the last change of k.
#[derive(Debug, Clone, Copy, Default)]
struct Watch {
    first_ns: Time,
    first_queue_ns: f64,
    packets: u32,
    sum_ns: f64,
}

impl Watch {
    fn mean_ns(&self) -> f64 {
        self.sum_ns / f64::from(self.packets.max(1))
    }
}

/// The controller.
#[derive(Debug)]
struct Queue {
    rule: Rule,
    k: u8,
    changed_ns: Time,
    base: Extreme,
    jumps: Extreme,
    last: Option<(Time, f64)>,
    watch: Watch,
    /// Mean queue of the watch before, since the last change.
    before_ns: Option<f64>,
    /// k that was left for congestion, and until when it is not tried again.
    failed: (u8, Time),
    /// When congestion came last, and whether that was long after the time before.
    alarmed: (Time, bool),
    /// Payload bytes of a fragment, and bytes of headers of a packet.
    fragment_bytes: f64,
    overhead_bytes: f64,
}

impl Queue {
    fn notice(&mut self, now: Time, notice: &DelayNotice) {
        if !notice.fresh || !notice.certain {
            return;
        }
        let merging_ns = (i64::from(notice.fragments) - 1) * self.rule.period_ns;
        let own_ns = merging_ns as f64 + f64::from(notice.wire_bytes) * self.rule.byte_ns;
        let bare_ns = notice.delay_ns as f64 - own_ns;
        let queue_ns = bare_ns - self.base.add(now, bare_ns);
        let jump_ns = self.jump(now, notice, queue_ns);
        if self.k < self.rule.k_max
            && queue_ns > self.rule.alarm_ns + self.rule.alarm_jumps[usize::from(self.k > 1)] * jump_ns
        {
            self.failed = (self.k, now + self.rule.retry_ns);
            self.alarmed = (now, now - self.alarmed.0 > ALONE_NS);
            self.set(now, self.rule.k_max);
            (self.watch.first_ns, self.watch.first_queue_ns) = (now, queue_ns);
        } else if self.k > 1 && notice.generated_ns > self.changed_ns {
            self.watch(now, notice.generated_ns, queue_ns, jump_ns);
        }
    }

    /// The largest rise of late, with this one. A rise between packets that are further apart may be that of two.
    fn jump(&mut self, now: Time, notice: &DelayNotice, queue_ns: f64) -> f64 {
        let rise = match self.last.replace((notice.generated_ns, queue_ns)) {
            Some((before, q)) if notice.generated_ns - before < 2 * self.rule.period_ns => queue_ns - q,
            Some((before, q)) if notice.generated_ns - before < 10 * self.rule.period_ns => {
                (queue_ns - q) / 2.0
            }
            _ => 0.0,
        };
        self.jumps.add(now, rise.clamp(0.0, MOST_JUMP_NS))
    }

    fn watch(&mut self, now: Time, generated_ns: Time, queue_ns: f64, jump_ns: f64) {
        if self.watch.first_ns == 0 {
            (self.watch.first_ns, self.watch.first_queue_ns) = (generated_ns, queue_ns);
        }
        self.watch.packets += 1;
        self.watch.sum_ns += queue_ns;
        let span_ns = (generated_ns - self.watch.first_ns) as f64;
        if let Some(k) = self.drained(span_ns, queue_ns, jump_ns) {
            return self.set(now, k);
        }
        if span_ns < self.rule.watch_ns + self.rule.watch_jumps * jump_ns {
            return;
        }
        let mean_ns = std::mem::take(&mut self.watch).mean_ns();
        let before_ns = self.before_ns.replace(mean_ns);
        if mean_ns <= self.rule.steady_ns + self.rule.steady_jumps * jump_ns {
            let (failed, until_ns) = self.failed;
            if self.k > self.rule.k_max || self.k - 1 > failed || now >= until_ns {
                self.set(now, self.k - 1);
            }
        } else if self.k >= self.rule.k_max
            && self.k < self.rule.k_drain
            && mean_ns > self.rule.alarm_ns + self.rule.alarm_jumps[0] * jump_ns
            && before_ns.is_some_and(|before_ns| mean_ns > before_ns - 0.02 * span_ns)
        {
            self.set(now, self.k + 1);
        }
    }

    /// How far k may fall at once after a queue has drained: its slope tells what others send.
    fn drained(&self, span_ns: f64, queue_ns: f64, jump_ns: f64) -> Option<u8> {
        let fallen_ns = self.watch.first_queue_ns - queue_ns;
        let enough = fallen_ns > (0.5 * jump_ns).max(1e6) && span_ns > 8e6;
        if !enough || !self.alarmed.1 || self.before_ns.is_some() || queue_ns > 2.0 * self.rule.steady_ns {
            return None;
        }
        let load = |k: u8| {
            let bytes = self.fragment_bytes + self.overhead_bytes / f64::from(k);
            bytes * self.rule.byte_ns / self.rule.period_ns as f64
        };
        let others = 1.0 - fallen_ns / span_ns - load(self.k);
        (1..self.k).find(|k| load(*k) + others <= 1.01)
    }

    fn set(&mut self, now: Time, k: u8) {
        (self.k, self.changed_ns, self.watch, self.before_ns) = (k, now, Watch::default(), None);
    }
}

impl RateController for Queue {
    fn feedback(&mut self, now: Time, feedback: &Feedback) {
        if let Feedback::Delay(notice) = feedback {
            self.notice(now, notice);
        }
    }

    fn sent(&mut self, _now: Time, packet: &Sent) {
        self.fragment_bytes = f64::from(packet.payload_bytes) / f64::from(packet.fragments.max(1));
        self.overhead_bytes = f64::from(packet.wire_bytes) - f64::from(packet.payload_bytes);
    }

    fn fragments(&mut self, _now: Time) -> u8 {
        self.k
    }
}

/// `dpm-q`.
pub(super) fn by_queue(
    params: &Params<'_>,
    period_ns: Time,
) -> Result<Box<dyn RateController>, TransportError> {
    let number = |key, default| params.number(key, 0.0..=60e9).map(|n| n.unwrap_or(default));
    let rate_bps = params.number("bottleneck_bps", 1.0..=1e12)?.unwrap_or(1.5e6);
    let hops = params.integer("hops", 0..=100)?.unwrap_or(1);
    let rule = Rule {
        k_max: params.integer("k_max", 1..=u32::from(MOST_FRAGMENTS))?.unwrap_or(4) as u8,
        period_ns,
        byte_ns: f64::from(hops) * 8e9 / rate_bps,
        k_drain: params.integer("k_drain", 1..=u32::from(MOST_FRAGMENTS))?.unwrap_or(5) as u8,
        alarm_ns: number("alarm_ns", 1.2e6)?,
        alarm_jumps: [number("alarm_jumps", 0.85)?, number("alarm_jumps_merged", 1.0)?],
        steady_ns: number("steady_ns", 0.5e6)?,
        steady_jumps: number("steady_jumps", 0.5)?,
        watch_ns: number("watch_ns", 40e6)?,
        watch_jumps: number("watch_jumps", 8.0)?,
        retry_ns: number("retry_ns", 250e6)? as Time,
    };
    Ok(Box::new(Queue {
        rule,
        k: 1,
        changed_ns: 0,
        base: Extreme::new(BASE_NS, DRIFT, 1.0),
        jumps: Extreme::new(JUMPS_NS, 0.0, -1.0),
        last: None,
        watch: Watch::default(),
        before_ns: None,
        failed: (0, 0),
        alarmed: (-ALONE_NS, false),
        fragment_bytes: 0.0,
        overhead_bytes: 0.0,
    }))
}
