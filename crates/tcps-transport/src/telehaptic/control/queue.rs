//! Merging by the queue that each packet met: our own rule, `dpm-q`.
//!
//! ```text
//! q = d - (k - 1) T - 8 bytes / rate - base         base: least such value of 60 s, let rise by 60 ppm
//! J = largest rise of q from one notice to the next, last 2 s
//! q > q0 + 0.85 J                                    ─► k = k_max
//! mean of q over W after the last change <= s0 + J/2 ─► k - 1, unless that has just failed
//! ```
//! Every notice is matched with its packet, so what merging itself adds is taken out of each delay by its own k: nothing
//! has to settle, no average lags, and a clock's offset is in the base. `J` is what one packet of others does to the
//! queue: a queue is congestion when it is more than that.

use super::extreme::Extreme;
use crate::params::{Params, TransportError};
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

/// What does not change while it runs.
#[derive(Debug)]
struct Rule {
    k_max: u8,
    k_drain: u8,
    period_ns: Time,
    byte_ns: f64,
    alarm_ns: f64,
    alarm_jumps: f64,
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
        if self.k < self.rule.k_max && queue_ns > self.rule.alarm_ns + self.rule.alarm_jumps * jump_ns {
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
            && mean_ns > self.rule.alarm_ns + self.rule.alarm_jumps * jump_ns
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
        alarm_jumps: number("alarm_jumps", 0.85)?,
        steady_ns: number("steady_ns", 0.5e6)?,
        steady_jumps: number("steady_jumps", 0.5)?,
        watch_ns: number("watch_ns", 37e6)?,
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::VecDeque;

    /// A bottleneck of 1.5 Mbit/s as a fluid: a packet every `k` ms meets the queue, its notice comes 32 ms later.
    struct Path {
        c: Box<dyn RateController>,
        offset_ns: Time,
        queue_ns: f64,
        now_ms: Time,
        k: u8,
        told: VecDeque<(Time, DelayNotice)>,
    }

    impl Path {
        fn new(offset_ns: Time) -> Self {
            let c = by_queue(&Params::new("dpm-q", &json!({})), MS).unwrap();
            Self { c, offset_ns, queue_ns: 0.0, now_ms: 0, k: 1, told: VecDeque::new() }
        }

        /// k at every ms while others send `others_kbps`, in packets of `bytes`.
        fn run(&mut self, ms: Time, others_kbps: f64, bytes: f64) -> Vec<u8> {
            let (mut credit, mut ks) = (0.0, Vec::new());
            for _ in 0..ms {
                self.now_ms += 1;
                let now = self.now_ms * MS;
                while self.told.front().is_some_and(|(at, _)| *at <= now) {
                    let Some((_, notice)) = self.told.pop_front() else { break };
                    self.c.feedback(now, &Feedback::Delay(notice));
                }
                credit += others_kbps / 8.0;
                while credit >= bytes {
                    (credit, self.queue_ns) = (credit - bytes, self.queue_ns + bytes * 8e9 / 1.5e6);
                }
                self.k = self.c.fragments(now);
                if self.now_ms % Time::from(self.k) == 0 {
                    self.packet(now);
                }
                self.queue_ns = (self.queue_ns - 1e6).max(0.0);
                ks.push(self.k);
            }
            ks
        }

        fn packet(&mut self, now: Time) {
            let (k, wire_bytes) = (self.k, 67 + 70 * u32::from(self.k));
            let own_ns = f64::from(wire_bytes) * 8e9 / 1.5e6;
            let wait_ns = (self.queue_ns + own_ns) as Time;
            let merging_ns = (Time::from(k) - 1) * MS;
            let drift_ns = now / 20_000;
            let delay_ns = 15 * MS + wait_ns + merging_ns + self.offset_ns + drift_ns;
            let generated_ns = now - merging_ns;
            let (fresh, certain, fragments) = (true, true, k);
            let notice = DelayNotice {
                delay_ns,
                fresh,
                generated_ns,
                fragments,
                wire_bytes,
                certain,
                reverse_ns: 15 * MS,
            };
            self.told.push_back((now + 32 * MS + wait_ns, notice));
            let payload_bytes = wire_bytes - 67;
            self.c.sent(now, &Sent { generated_ns, fragments, payload_bytes, wire_bytes });
            self.queue_ns += own_ns;
        }
    }

    #[test]
    fn a_step_is_answered_soon_after_a_feedback_delay_and_its_end_within_half_a_second() {
        for offset_ns in [0, 3 * SECOND, -20 * MS] {
            for bytes in [50.0, 137.0, 540.0] {
                let mut p = Path::new(offset_ns);
                assert!(
                    p.run(3000, 400.0, bytes).iter().all(|k| *k == 1),
                    "{bytes}: no alarm before the step"
                );
                let ks = p.run(4000, 800.0, bytes);
                let reaction = ks.iter().position(|k| *k > 1).unwrap();
                assert!((30..32 + 18).contains(&reaction), "{offset_ns} {bytes}: {reaction}");
                assert!(
                    ks[1000..].iter().all(|k| *k >= 3),
                    "{offset_ns} {bytes}: k = 2 does not carry the load"
                );
                assert!(p.queue_ns < 12e6, "{offset_ns} {bytes}: {}", p.queue_ns);
                let ks = p.run(1000, 400.0, bytes);
                assert!(ks[500..].iter().all(|k| *k == 1), "{offset_ns} {bytes}: {ks:?}");
            }
        }
    }

    #[test]
    fn a_load_that_four_fragments_cannot_drain_is_drained_by_five() {
        let mut p = Path::new(0);
        p.run(1000, 400.0, 50.0);
        let ks = p.run(3000, 806.0, 50.0);
        assert!(ks.contains(&5));
        assert!(p.queue_ns < 4e6, "{}", p.queue_ns);
    }

    #[test]
    fn a_packet_that_may_be_another_spoils_nothing() {
        let mut p = Path::new(0);
        p.run(1000, 400.0, 50.0);
        let notice = DelayNotice {
            delay_ns: 15 * MS,
            fresh: true,
            generated_ns: p.now_ms * MS,
            fragments: 4,
            wire_bytes: 347,
            certain: false,
            reverse_ns: 15 * MS,
        };
        p.c.feedback(p.now_ms * MS, &Feedback::Delay(notice));
        assert!(p.run(1000, 400.0, 50.0).iter().all(|k| *k == 1), "a base 4 ms too low would be an alarm");
    }
}
