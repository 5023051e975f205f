//! Merging by the residual queueing delay of each packet, and by the cross traffic seen: our own rule, `dpm-q`.
//!
//! ```text
//! q, P            residual queueing delay of a packet; work of one packet of cross traffic (`others`)
//! q > 0.8 ms + P                                                      ─► k = k_max
//! q < 0.5 ms, and others at most room(k') in the last 30 ms + 25 P    ─► k', the least of them
//! q < 0.5 ms, and others perhaps no more than room(k - 1)             ─► k - 1 for 15 ms + 5 P, then k; k - 1 if that was calm
//! 0.5 ms < q < 0.8 ms + P for a window, and others as before           ─► the same trial
//! never q < 0.8 ms at k_max or above, and others fill room(k)         ─► k + 1, up to k_drain
//! ```
//! `room(k)` is the share of the line that own packets of k fragments leave. A trial costs at most its length times the
//! overload, however long news of it takes.

use super::{
    control::{merging, with, Controller, Hears},
    others::{Others, Seen},
};
use crate::params::{Params, TransportError, MINUTE, SAMPLES};
use tcps_core::{
    param::Entry,
    params,
    rate::{DelayNotice, Feedback, RateController, Sent},
    time::{Time, MS},
};

/// An alarm so long after the last one may be that of a lone packet.
const ALONE_NS: Time = 900 * MS;
/// Share of the window that must have been seen; after an alarm that may be that of a lone packet, from the alarm on.
const SEEN: f64 = 0.8;
const SEEN_ALONE: f64 = 0.4;
/// What others must send less than the room of a k that failed, to have changed.
const CHANGED: f64 = 0.1;
/// A queue that drains by less is not draining.
const DRAINS: f64 = 0.02;

/// So many nanoseconds, and so many times the work of a packet of cross traffic.
#[derive(Debug, Clone, Copy)]
struct DelayTrend {
    base_ns: f64,
    packets: f64,
}

impl DelayTrend {
    fn at(self, packet_ns: f64) -> f64 {
        self.base_ns + self.packets * packet_ns
    }
}

/// What does not change while it runs.
#[derive(Debug)]
struct Rule {
    k_max: u8,
    k_drain: u8,
    alarm: DelayTrend,
    empty_ns: f64,
    window: DelayTrend,
    spare: DelayTrend,
    stay: DelayTrend,
    trial: DelayTrend,
    calm: DelayTrend,
    retry_ns: Time,
}

/// One fragment less for a while, and what its packets met.
#[derive(Debug, Clone, Copy)]
struct Trial {
    k: u8,
    begin_ns: Time,
    end_ns: Time,
    packets: u32,
    sum_ns: f64,
}

impl Trial {
    fn add(&mut self, queue_ns: f64) {
        self.packets += 1;
        self.sum_ns += queue_ns;
    }

    /// Mean queue; above every bound if nothing was told of.
    fn mean_ns(&self) -> f64 {
        if self.packets == 0 {
            return f64::INFINITY;
        }
        self.sum_ns / f64::from(self.packets)
    }
}

/// The least and the greatest queue that packets met since a moment.
#[derive(Debug, Clone, Copy)]
struct Watch {
    begin_ns: Time,
    least_ns: f64,
    greatest_ns: f64,
}

/// The controller.
#[derive(Debug)]
struct Queue {
    rule: Rule,
    others: Others,
    k: u8,
    /// The k before.
    before: u8,
    changed_ns: Time,
    trial: Option<Trial>,
    /// First packet with this k that was told of.
    since: Option<Time>,
    /// Queues of a window; then a new one begins.
    watch: Option<Watch>,
    /// k that was left for congestion, and until when it is not tried again.
    failed: (u8, Time),
    alarmed_ns: Time,
    /// Whether the last alarm came long after the one before, and no trial has failed since.
    alone: bool,
}

impl Queue {
    fn notice(&mut self, now: Time, notice: &DelayNotice) {
        let Some(seen) = self.others.notice(now, notice) else { return };
        let window_ns = self.rule.window.at(self.others.packet_ns());
        let late = Late::of(&mut self.others, window_ns);
        let is_own = notice.generated_ns > self.changed_ns;
        if let Some(trial) = &mut self.trial {
            if notice.fragments == trial.k && notice.generated_ns > trial.begin_ns {
                trial.add(seen.queue_ns);
            }
        }
        if self.is_alarm(seen, is_own) {
            self.alarm(now);
        } else if let Some(trial) = self.trial {
            self.judge(now, notice, &trial);
        } else if is_own && self.k > 1 {
            self.relax(now, seen, &late);
        }
    }

    /// Whether a queue is more than a packet of cross traffic makes. One that was there when k rose is no news.
    fn is_alarm(&self, seen: Seen, is_own: bool) -> bool {
        let is_news = self.k == 1 || self.before > self.k || is_own;
        self.k < self.rule.k_max && is_news && seen.queue_ns > self.rule.alarm.at(self.others.packet_ns())
    }

    fn alarm(&mut self, now: Time) {
        let k = self.trial.take().map_or(self.k, |trial| trial.k);
        self.failed = (k, now + self.rule.retry_ns);
        self.alone = k == 1 && now - self.alarmed_ns > ALONE_NS;
        if self.alone {
            self.others.forget();
        }
        self.alarmed_ns = now;
        self.set(now, self.rule.k_max);
    }

    /// When a packet from after a trial is told of, so are all of it: its k is kept if they met no queue.
    fn judge(&mut self, now: Time, notice: &DelayNotice, trial: &Trial) {
        if notice.generated_ns <= trial.end_ns {
            return;
        }
        self.trial = None;
        if trial.mean_ns() > self.rule.calm.at(self.others.packet_ns()) {
            self.failed = (trial.k, now + self.rule.retry_ns);
            self.alone = false;
            self.set(now, trial.k + 1);
        } else {
            self.set(now, trial.k);
        }
    }

    /// Fewer fragments, if that is known to do or worth a trial; more, if these do not drain the queue.
    fn relax(&mut self, now: Time, seen: Seen, late: &Late) {
        let packet_ns = self.others.packet_ns();
        let since_ns = *self.since.get_or_insert(seen.sent_ns);
        let watch = self.watch(seen);
        let here_ns = (seen.sent_ns - since_ns) as f64;
        if late.span_ns < late.window_ns * if self.alone { SEEN_ALONE } else { SEEN } {
            return;
        }
        let is_gone = seen.queue_ns <= self.rule.empty_ns;
        let has_stayed = here_ns >= self.rule.stay.at(packet_ns);
        let known = (1..self.k).find(|k| is_gone && self.is_enough(now, *k, late));
        if let Some(k) = known {
            self.set(now, k);
        } else if is_gone && has_stayed && self.is_worth_it(now, late) {
            self.try_one_less(now);
        } else if (seen.sent_ns - watch.begin_ns) as f64 > late.window_ns {
            self.watch = None;
            if self.fills(&watch, late) {
                self.set(now, self.k + 1);
            } else if self.is_locked(&watch) && has_stayed && self.is_worth_it(now, late) {
                self.try_one_less(now);
            }
        }
    }

    /// What packets of this k met in the window that has begun.
    fn watch(&mut self, seen: Seen) -> Watch {
        let (begin_ns, queue_ns) = (seen.sent_ns, seen.queue_ns);
        let new = Watch { begin_ns, least_ns: queue_ns, greatest_ns: queue_ns };
        let watch = self.watch.get_or_insert(new);
        watch.least_ns = watch.least_ns.min(queue_ns);
        watch.greatest_ns = watch.greatest_ns.max(queue_ns);
        *watch
    }

    /// Whether the most fragments do not drain the queue, and more may be taken.
    fn fills(&self, watch: &Watch, late: &Late) -> bool {
        (self.rule.k_max..self.rule.k_drain).contains(&self.k)
            && watch.least_ns > self.rule.alarm.base_ns
            && late.most_ns > (self.others.room(self.k) - DRAINS) * late.span_ns
    }

    /// Whether every packet has met a packet of cross traffic, whose time between two is then that of our own, and no queue behind it.
    fn is_locked(&self, watch: &Watch) -> bool {
        watch.least_ns > self.rule.empty_ns
            && watch.greatest_ns <= self.rule.alarm.at(self.others.packet_ns())
    }

    /// Whether k fragments leave room for all that others can have sent of late.
    fn is_enough(&self, now: Time, k: u8, late: &Late) -> bool {
        !self.is_blocked(now, k, late) && late.most_ns - self.others.room(k) * late.span_ns <= self.spare_ns()
    }

    /// Whether one fragment less leaves room for what others have surely sent.
    fn is_worth_it(&self, now: Time, late: &Late) -> bool {
        let k = self.k - 1;
        !self.is_blocked(now, k, late)
            && late.least_ns - self.others.room(k) * late.span_ns <= self.spare_ns()
    }

    fn spare_ns(&self) -> f64 {
        self.rule.spare.at(self.others.packet_ns())
    }

    /// Whether k has just failed, and others do not send much less since.
    fn is_blocked(&self, now: Time, k: u8, late: &Late) -> bool {
        let (failed, until_ns) = self.failed;
        let changed = late.most_ns <= (self.others.room(failed) - CHANGED) * late.span_ns;
        !self.alone && k <= failed && now < until_ns && !changed
    }

    fn try_one_less(&mut self, now: Time) {
        let k = self.k - 1;
        if k < self.rule.k_max {
            let end_ns = now + self.rule.trial.at(self.others.packet_ns()) as Time;
            self.trial = Some(Trial { k, begin_ns: now, end_ns, packets: 0, sum_ns: 0.0 });
        }
        self.set(now, k);
    }

    fn set(&mut self, now: Time, k: u8) {
        if k != self.k {
            (self.before, self.k, self.changed_ns) = (self.k, k, now);
            (self.since, self.watch) = (None, None);
        }
    }
}

/// What others sent of late.
#[derive(Debug)]
struct Late {
    window_ns: f64,
    span_ns: f64,
    least_ns: f64,
    most_ns: f64,
}

impl Late {
    fn of(others: &mut Others, window_ns: f64) -> Self {
        let (span_ns, least_ns, most_ns) = others.of_late(window_ns);
        Self { window_ns, span_ns, least_ns, most_ns }
    }
}

impl RateController for Queue {
    fn feedback(&mut self, now: Time, feedback: &Feedback) {
        if let Feedback::Delay(notice) = feedback {
            self.notice(now, notice);
        }
    }

    fn sent(&mut self, _now: Time, packet: &Sent) {
        self.others.sent(packet);
    }

    fn fragments(&mut self, now: Time) -> u8 {
        if let Some(trial) = self.trial.filter(|trial| now >= trial.end_ns && self.k == trial.k) {
            self.set(now, trial.k + 1);
        }
        self.k
    }
}

params! {
    /// Of the rule.
    struct Given {
        k_max: u8 = Count, "4", SAMPLES, "most samples in a packet";
        k_drain: u8 = Count, "6", SAMPLES, "largest k while a queue drains";
        bottleneck_bps: f64 = Bps, "1.5 Mbit/s", 1.0..=1e12, "rate of the narrowest link";
        hops: u32 = Count, "1", 0.0..=100.0, "store-and-forward links in a row";
        alarm_ns: Time = Ns, "0.8 ms", MINUTE, "queue that raises an alarm; `alarm_packets` adds to it";
        alarm_packets: f64 = Number, "1", 0.0..=60e9, "added to `alarm`: this many times P, the time of a packet of cross traffic at the bottleneck";
        empty_ns: Time = Ns, "0.5 ms", MINUTE, "queue that counts as empty";
        window_ns: Time = Ns, "30 ms", MINUTE, "time over which cross traffic is measured; `window_packets` adds to it";
        window_packets: f64 = Number, "25", 0.0..=60e9, "added to `window`: this many times P, the time of a packet of cross traffic at the bottleneck";
        spare_ns: Time = Ns, "0.5 ms", MINUTE, "excess of cross traffic in this window that is tolerated; `spare_packets` adds to it";
        spare_packets: f64 = Number, "0.7", 0.0..=60e9, "added to `spare`: this many times P, the time of a packet of cross traffic at the bottleneck";
        stay_ns: Time = Ns, "30 ms", MINUTE, "shortest time at one k before a smaller one is tried; `stay_packets` adds to it";
        stay_packets: f64 = Number, "15", 0.0..=60e9, "added to `stay`: this many times P, the time of a packet of cross traffic at the bottleneck";
        trial_ns: Time = Ns, "15 ms", MINUTE, "how long a smaller k is tried; `trial_packets` adds to it";
        trial_packets: f64 = Number, "5", 0.0..=60e9, "added to `trial`: this many times P, the time of a packet of cross traffic at the bottleneck";
        calm_ns: Time = Ns, "0.9 ms", MINUTE, "largest mean queue with which such a trial succeeds; `calm_packets` adds to it";
        calm_packets: f64 = Number, "0.25", 0.0..=60e9, "added to `calm`: this many times P, the time of a packet of cross traffic at the bottleneck";
        retry_ns: Time = Ns, "150 ms", MINUTE, "time before a failed k is tried again";
    }
}

/// `dpm-q`.
fn by_queue(params: &Params<'_>, period_ns: Time) -> Result<Box<dyn RateController>, TransportError> {
    let given: Given = params.read()?;
    let line = |base_ns: Time, packets| DelayTrend { base_ns: base_ns as f64, packets };
    let rule = Rule {
        k_max: given.k_max,
        k_drain: given.k_drain,
        alarm: line(given.alarm_ns, given.alarm_packets),
        empty_ns: given.empty_ns as f64,
        window: line(given.window_ns, given.window_packets),
        spare: line(given.spare_ns, given.spare_packets),
        stay: line(given.stay_ns, given.stay_packets),
        trial: line(given.trial_ns, given.trial_packets),
        calm: line(given.calm_ns, given.calm_packets),
        retry_ns: given.retry_ns,
    };
    Ok(Box::new(Queue {
        rule,
        others: Others::new(period_ns, f64::from(given.hops) * 8e9 / given.bottleneck_bps),
        k: 1,
        before: 0,
        changed_ns: 0,
        trial: None,
        since: None,
        watch: None,
        failed: (0, 0),
        alarmed_ns: -ALONE_NS - 1,
        alone: false,
    }))
}

/// `dpm-q` in a scenario.
pub(crate) const ENTRY: Entry<Controller> = merging(
    29,
    "dpm-q",
    "sets k by the residual queueing delay of each packet",
    with!(Given),
    Hears::Delays,
    by_queue,
);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::VecDeque;
    use tcps_core::time::SECOND;

    /// A bottleneck of 1.5 Mbit/s as a fluid: a packet every `k` ms meets the queue, its notice comes 32 ms later.
    struct Path {
        c: Box<dyn RateController>,
        offset_ns: Time,
        queue_ns: f64,
        now_ms: Time,
        k: u8,
        /// Rest of a packet of cross traffic that every merged packet meets.
        met_ns: f64,
        told: VecDeque<(Time, DelayNotice)>,
    }

    impl Path {
        fn new(offset_ns: Time) -> Self {
            let c = by_queue(&Params::new("dpm-q", &json!({})), MS).unwrap();
            Self { c, offset_ns, queue_ns: 0.0, now_ms: 0, k: 1, met_ns: 0.0, told: VecDeque::new() }
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
            let met_ns = if k > 1 { self.met_ns } else { 0.0 };
            let wait_ns = (self.queue_ns + met_ns + own_ns) as Time;
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
                left_ns: now + 17 * MS + wait_ns,
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
    fn a_load_that_four_fragments_cannot_drain_is_drained_by_more() {
        let mut p = Path::new(0);
        p.run(1000, 400.0, 50.0);
        let (mut ks, mut queues) = (Vec::new(), Vec::new());
        for _ in 0..300 {
            ks.extend(p.run(10, 806.0, 50.0));
            queues.push(p.queue_ns);
        }
        assert!(ks.contains(&5));
        assert!(queues[100..].iter().any(|queue_ns| *queue_ns < 1e6), "{queues:?}");
        assert!(queues[100..].iter().all(|queue_ns| *queue_ns < 9e6), "a trial adds little: {queues:?}");
    }

    #[test]
    fn a_load_that_rises_again_at_the_most_fragments_is_drained_too() {
        for (bytes, others_kbps) in [(50.0, 820.0), (50.0, 840.0), (137.0, 840.0), (540.0, 830.0)] {
            let mut p = Path::new(0);
            p.run(1000, 400.0, bytes);
            p.run(4000, 790.0, bytes);
            p.run(3000, others_kbps, bytes);
            let most_ns = (0..3000).map(|_| (p.run(1, others_kbps, bytes), p.queue_ns).1).fold(0.0, f64::max);
            assert!(most_ns < 20e6, "{bytes} {others_kbps}: {most_ns}");
        }
    }

    #[test]
    fn a_lone_packet_costs_a_moment_of_merging() {
        let mut p = Path::new(0);
        p.run(3000, 390.0, 540.0);
        p.queue_ns += 5.8e6;
        let ks = p.run(1000, 390.0, 540.0);
        assert!(ks.contains(&4), "nobody can know yet that it is a lone one");
        assert!(ks[150..].iter().all(|k| *k == 1), "{ks:?}");
    }

    #[test]
    fn what_failed_a_trial_is_not_tried_again_at_once() {
        let mut p = Path::new(0);
        p.run(3000, 380.0, 300.0);
        // The first alarm may be that of a lone packet; k = 3 has room for 761 kbit/s, k = 2 for 672.
        let ks = p.run(4000, 720.0, 300.0);
        let begins: Vec<usize> = (1..ks.len()).filter(|i| (ks[i - 1], ks[*i]) == (3, 2)).collect();
        assert!(begins.len() > 3, "{begins:?}");
        assert!(begins.windows(2).all(|pair| pair[1] - pair[0] >= 150), "{begins:?}");
    }

    #[test]
    fn a_trial_of_which_nothing_is_told_ends() {
        let mut p = Path::new(0);
        p.run(1000, 400.0, 50.0);
        while !p.run(1, 800.0, 50.0).contains(&3) {}
        p.told.clear();
        let ks = p.run(3000, 400.0, 50.0);
        assert!(ks[2000..].iter().all(|k| *k == 1), "{ks:?}");
    }

    #[test]
    fn a_second_step_is_answered_as_the_first_was() {
        for bytes in [50.0, 137.0, 540.0] {
            let mut p = Path::new(0);
            p.run(1000, 400.0, bytes);
            let reactions = [0, 1].map(|_| {
                let ks = p.run(4000, 800.0, bytes);
                p.run(1000, 400.0, bytes);
                ks.iter().position(|k| *k > 1).unwrap()
            });
            assert!(reactions[1] <= reactions[0] + 2, "{bytes}: {reactions:?}");
        }
    }

    #[test]
    fn the_same_packet_of_others_before_every_own_one_is_no_queue() {
        let mut p = Path::new(0);
        p.run(1000, 400.0, 50.0);
        while !p.run(1, 800.0, 50.0).contains(&4) {}
        p.met_ns = 0.7e6;
        let ks = p.run(2000, 50.0, 50.0);
        assert!(ks[1000..].iter().all(|k| *k == 1), "{ks:?}");
    }

    #[test]
    fn a_packet_that_may_be_another_spoils_nothing() {
        let mut p = Path::new(0);
        p.run(1000, 400.0, 50.0);
        // A notice of a packet with k = 1, taken for one with k = 4: its queue seems 4.1 ms below none.
        let notice = DelayNotice {
            delay_ns: 16 * MS,
            fresh: true,
            generated_ns: p.now_ms * MS,
            fragments: 4,
            wire_bytes: 347,
            certain: false,
            reverse_ns: 15 * MS,
            left_ns: (p.now_ms - 15) * MS,
        };
        p.c.feedback(p.now_ms * MS, &Feedback::Delay(notice));
        assert!(p.run(1000, 400.0, 50.0).iter().all(|k| *k == 1), "a base 4 ms too low would be an alarm");
    }

    /// Fragments beyond the most are for draining only: when they have drained, the most are kept, and not left again at the
    /// end of a trial.
    #[test]
    fn the_step_back_from_draining_is_no_trial() {
        for others_kbps in [800.0, 806.0] {
            let mut p = Path::new(0);
            p.run(1000, 400.0, 50.0);
            let mut ks = p.run(1500, others_kbps + 20.0, 50.0);
            ks.extend(p.run(2500, others_kbps, 50.0));
            let stays: Vec<&[u8]> = ks.chunk_by(|a, b| a == b).collect();
            let back = stays.windows(3).filter(|three| [three[0][0], three[1][0], three[2][0]] == [5, 4, 5]);
            let back: Vec<usize> = back.map(|three| three[1].len()).collect();
            assert!(
                !back.is_empty() && back.iter().all(|ms| *ms > 30),
                "{back:?}: a window of 30 ms at least"
            );
        }
    }

    #[test]
    fn no_smaller_k_is_tried_while_the_queue_is_above_the_alarm() {
        let mut p = Path::new(0);
        p.run(1000, 400.0, 50.0);
        while !p.run(1, 800.0, 50.0).contains(&4) {}
        // k = 3 has room for 761 kbit/s: it would drain the queue, but later.
        p.queue_ns = 12e6;
        let mut ks = Vec::new();
        while p.queue_ns > 2e6 {
            ks.extend(p.run(10, 720.0, 50.0));
        }
        assert!(ks.len() > 150 && ks.iter().all(|k| *k >= 4), "{ks:?}");
        assert!(p.run(1000, 720.0, 50.0).contains(&3), "then it is");
    }
}
