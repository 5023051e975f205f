//! Dynamic packetization: merge as much as allowed at once when delays rise, relax step by step when they are steady.
//!
//! ```text
//! notice ─► EWMA d_avg ─► 8 rises in a row: congested ─► k = k_max
//!                     └─► 8 values within 10 %, no trend: steady ─► k - 1
//! ```
//! A change of k changes the delay by itself. So after each, notices that speak of older packets are passed over and
//! the filter starts anew; without this rule the queue ratchets up to a full buffer.

use super::{
    control::{merging, with, Controller, Hears},
    guard::Guard,
    trend::Trend,
};
use crate::params::{Params, TransportError, MINUTE, SAMPLES};
use tcps_core::{
    param::Entry,
    params,
    rate::{DelayNotice, Feedback, RateController},
    time::Time,
};

/// How long notices are passed over after a change of k.
// [Gokhale 2017: triggers]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settle {
    /// Until one speaks of a packet whose samples were made after the change.
    Generation,
    /// For a round trip and k periods, both known on the wire.
    RoundTrip,
    /// Not at all.
    Never,
}

/// What does not change while it runs.
#[derive(Debug)]
struct Rule {
    k_max: u8,
    /// Rises in a row that mean congestion, and values that steadiness is judged by.
    differences: usize,
    alpha: f64,
    tolerance: f64,
    settle: Settle,
    trend: Trend,
    /// Whether repeated notices count like new ones.
    repeats: bool,
    /// To k_max at once, or by one.
    by_one: bool,
    hold_ns: Option<Time>,
    period_ns: Time,
}

/// The controller.
#[derive(Debug)]
struct Dpm {
    rule: Rule,
    guard: Option<Guard>,
    k: u8,
    average_ns: Option<f64>,
    rises: usize,
    values: Vec<f64>,
    /// When k changed, while notices are passed over.
    changed_ns: Option<Time>,
    /// k before the last congestion that changed it.
    before: u8,
    /// Since when a steady state one above `before` is held.
    held_ns: Option<Time>,
}

impl Dpm {
    fn new(rule: Rule, guard: Option<Guard>) -> Self {
        let (k, average_ns, rises, values) = (1, None, 0, Vec::with_capacity(rule.differences + 1));
        Self { rule, guard, k, average_ns, rises, values, changed_ns: None, before: 0, held_ns: None }
    }

    /// Whether this notice still speaks of packets from before the last change of k.
    // [Gokhale 2017: triggers]
    fn is_old(&self, now: Time, notice: &DelayNotice) -> bool {
        let Some(changed_ns) = self.changed_ns else { return false };
        match self.rule.settle {
            Settle::Generation => notice.generated_ns <= changed_ns,
            Settle::RoundTrip => {
                let round_trip_ns = notice.delay_ns.saturating_add(notice.reverse_ns);
                let wait_ns = round_trip_ns.saturating_add(Time::from(self.k) * self.rule.period_ns);
                now < changed_ns.saturating_add(wait_ns)
            }
            Settle::Never => false,
        }
    }

    // [Gokhale 2017: triggers]
    fn notice(&mut self, now: Time, notice: &DelayNotice) {
        if !(notice.fresh || self.rule.repeats) || self.is_old(now, notice) {
            return;
        }
        let average_ns = self.filter(notice.delay_ns as f64);
        let queue_ns = self.guard.as_mut().and_then(|g| g.queue_ns(now, notice, average_ns));
        let guarded =
            |judge: fn(&Guard, f64) -> bool| self.guard.as_ref().zip(queue_ns).map(|(g, q)| judge(g, q));
        if self.rises >= self.rule.differences || guarded(Guard::congested) == Some(true) {
            self.congested(now);
        } else if self.is_steady() && guarded(Guard::steady) != Some(false) {
            self.values.clear();
            self.steady(now);
        }
    }

    fn filter(&mut self, delay_ns: f64) -> f64 {
        let restart = self.changed_ns.take().is_some() && self.rule.settle != Settle::Never;
        let average_ns = match self.average_ns.filter(|_| !restart) {
            None => {
                self.rises = 0;
                self.values.clear();
                delay_ns
            }
            Some(before) => {
                let average_ns = self.rule.alpha * delay_ns + (1.0 - self.rule.alpha) * before;
                self.rises = if average_ns > before { self.rises + 1 } else { 0 };
                average_ns
            }
        };
        self.average_ns = Some(average_ns);
        if self.values.len() == self.rule.differences {
            self.values.remove(0);
        }
        self.values.push(average_ns);
        average_ns
    }

    fn is_steady(&self) -> bool {
        let Some(first) = self.values.first() else { return false };
        let near = |v: &f64| (v - first).abs() <= self.rule.tolerance * first.abs();
        self.values.len() == self.rule.differences
            && self.values.iter().all(near)
            && !self.rule.trend.is_in(&self.values)
    }

    // [Gokhale 2017: adaptation]
    fn congested(&mut self, now: Time) {
        let k = if self.rule.by_one { (self.k + 1).min(self.rule.k_max) } else { self.rule.k_max };
        if k != self.k {
            self.before = self.k;
        }
        self.set(now, k);
    }

    // [Gokhale 2017: adaptation]
    fn steady(&mut self, now: Time) {
        if let Some(hold_ns) = self.rule.hold_ns {
            if self.k == self.before + 1 && now - *self.held_ns.get_or_insert(now) < hold_ns {
                return;
            }
        }
        self.set(now, (self.k - 1).max(1));
    }

    fn set(&mut self, now: Time, k: u8) {
        if k != self.k {
            (self.k, self.changed_ns, self.held_ns) = (k, Some(now), None);
        }
    }
}

impl RateController for Dpm {
    fn feedback(&mut self, now: Time, feedback: &Feedback) {
        if let Feedback::Delay(notice) = feedback {
            self.notice(now, notice);
        }
    }

    fn fragments(&mut self, _now: Time) -> u8 {
        self.k
    }
}

/// The reading of the published rule: the one of the four with which it stays near 30 ms and loses nothing beside the published
/// background, 400 kbit/s that are constant and 320 to 480 kbit/s that vary (Gokhale 2017, table I: 29.738 ms).
// [Gokhale 2017: triggers]
const PUBLISHED: Trend = Trend::Ends;

params! {
    /// Of the published rule.
    pub(super) struct Published {
        k_max: u8 = Count, "4", SAMPLES, "most samples in a packet";
        differences: usize = Count, "8", 2.0..=super::trend::MOST_VALUES as f64, "number of averaged delays in a trend";
        alpha: f64 = Number, "0.2", 0.001..=1.0, "weight of the newest delay";
        tolerance: f64 = Share, "10 %", 0.0..=1.0, "largest difference between steady values";
        settle: String = Choice(&["generation", "round-trip", "never"]), "generation", ANY, "what is ignored after a change of k";
        trend: Option<String> = Choice(&Trend::NAMES), ABSENT, ANY, "definition of a trend; default `\"ends\"`, for `dpm-g` `\"strict\"`";
    }
}

params! {
    /// Of the delays that it hears.
    pub(super) struct Repeats {
        repeats: bool = Flag, "false", ANY, "whether a repeated report of a delay counts again";
    }
}
params! {
    /// Of holding up.
    pub(super) struct Holdup {
        hold_ns: Time = Ns, "500 ms", MINUTE, "how long k stays one above the value that was congested";
    }
}
params! {
    /// Of the guard.
    pub(super) struct Guarded {
        steady_below_ns: Time = Ns, "1 ms", MINUTE, "queue below which delays count as steady";
        congested_above_ns: Time = Ns, "3 ms", MINUTE, "queue above which the path is congested";
        bottleneck_bps: f64 = Bps, "1.5 Mbit/s", 1.0..=1e12, "rate of the narrowest link";
        hops: u32 = Count, "1", 0.0..=100.0, "store-and-forward links in a row";
        increase: String = Choice(&["to-most", "by-one"]), "to-most", ANY, "how k rises";
        hold_ns: Option<Time> = Ns, ABSENT, MINUTE, "how long k stays one above the value that was congested";
    }
}

fn rule(params: &Params<'_>, period_ns: Time, trend: Trend) -> Result<Rule, TransportError> {
    let given: Published = params.read()?;
    Ok(Rule {
        k_max: given.k_max,
        differences: given.differences,
        alpha: given.alpha,
        tolerance: given.tolerance,
        settle: match given.settle.as_str() {
            "round-trip" => Settle::RoundTrip,
            "never" => Settle::Never,
            _ => Settle::Generation,
        },
        trend: given.trend.as_deref().map_or(trend, Trend::named),
        repeats: params.read::<Repeats>()?.repeats,
        by_one: false,
        hold_ns: None,
        period_ns,
    })
}

/// `dpm`, the published rule.
pub(super) fn step(params: &Params<'_>, period_ns: Time) -> Result<Box<dyn RateController>, TransportError> {
    Ok(Box::new(Dpm::new(rule(params, period_ns, PUBLISHED)?, None)))
}

/// `dpm-multistep`: one fragment more at each congestion.
pub(super) fn multistep(
    params: &Params<'_>,
    period_ns: Time,
) -> Result<Box<dyn RateController>, TransportError> {
    let rule = Rule { by_one: true, ..rule(params, period_ns, PUBLISHED)? };
    Ok(Box::new(Dpm::new(rule, None)))
}

/// `dpm-holdup`: a steady state just above the k that was congested is held for a while.
fn holdup(params: &Params<'_>, period_ns: Time) -> Result<Box<dyn RateController>, TransportError> {
    let Holdup { hold_ns } = params.read()?;
    let rule = Rule { hold_ns: Some(hold_ns), ..rule(params, period_ns, PUBLISHED)? };
    Ok(Box::new(Dpm::new(rule, None)))
}

/// `dpm-g`: steady and congested are also judged by the queue that delays imply.
// [model: DPM-G]
fn guarded(params: &Params<'_>, period_ns: Time) -> Result<Box<dyn RateController>, TransportError> {
    let Guarded { steady_below_ns, congested_above_ns, bottleneck_bps, hops, increase, hold_ns } =
        params.read()?;
    let rule = Rule { by_one: increase == "by-one", hold_ns, ..rule(params, period_ns, Trend::Strict)? };
    let byte_ns = f64::from(hops) * 8e9 / bottleneck_bps;
    let guard = Guard::new(steady_below_ns as f64, congested_above_ns as f64, period_ns, byte_ns);
    Ok(Box::new(Dpm::new(rule, Some(guard))))
}

/// `dpm` in a scenario.
pub(crate) const STEP: Entry<Controller> = merging(
    25,
    "dpm",
    "the published rule: after 8 rises of the averaged delay k becomes k_max; while delay is steady k falls by one",
    with!(Published, Repeats),
    Hears::Delays,
    step,
);
/// `dpm-multistep` in a scenario.
pub(crate) const MULTISTEP: Entry<Controller> = merging(
    26,
    "dpm-multistep",
    "as dpm, but k also rises by one at a time",
    with!(Published, Repeats),
    Hears::Delays,
    multistep,
);
/// `dpm-holdup` in a scenario.
pub(crate) const HOLDUP: Entry<Controller> = merging(
    27,
    "dpm-holdup",
    "as dpm, but k stays one above the congested value for hold before it falls back to it",
    with!(Published, Repeats, Holdup),
    Hears::Delays,
    holdup,
);
/// `dpm-g` in a scenario.
pub(crate) const GUARDED: Entry<Controller> = merging(
    28,
    "dpm-g",
    "as dpm, with a guard: k falls only while the queue computed from delays is nearly empty, and a long queue raises k",
    with!(Published, Repeats, Guarded),
    Hears::Delays,
    guarded,
);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tcps_core::time::MS;

    /// A controller and the time, a notice every 10 ms about a packet 5 ms old.
    struct Bench(Box<dyn RateController>, Time);

    impl Bench {
        fn new(make: super::super::control::Make, params: serde_json::Value) -> Self {
            Self(make(&Params::new("test", &params), MS).unwrap(), 0)
        }

        /// k after each notice.
        fn hears(&mut self, delays_ms: impl IntoIterator<Item = f64>) -> Vec<u8> {
            let mut ks = Vec::new();
            for delay_ms in delays_ms {
                self.1 += 10 * MS;
                let delay_ns = (delay_ms * MS as f64) as Time;
                let (generated_ns, fresh) = (self.1 - 5 * MS, true);
                let (fragments, wire_bytes, certain, reverse_ns) = (1, 137, true, 15 * MS);
                let notice = DelayNotice {
                    delay_ns,
                    fresh,
                    generated_ns,
                    fragments,
                    wire_bytes,
                    certain,
                    reverse_ns,
                    left_ns: 0,
                };
                self.0.feedback(self.1, &Feedback::Delay(notice));
                ks.push(self.0.fragments(self.1));
            }
            ks
        }

        fn rising(&mut self) -> Vec<u8> {
            self.hears((0..9).map(|i| 20.0 + f64::from(i)))
        }

        fn steady(&mut self, notices: usize) -> Vec<u8> {
            self.hears(std::iter::repeat_n(20.0, notices))
        }
    }

    // [Gokhale 2017: triggers]
    #[test]
    fn eight_rises_are_congestion_and_seven_are_not() {
        let mut b = Bench::new(step, json!({}));
        assert_eq!(b.rising(), [1, 1, 1, 1, 1, 1, 1, 1, 4], "nine values have eight differences");
        let mut b = Bench::new(step, json!({"differences": 7}));
        assert_eq!(b.rising()[..8], [1, 1, 1, 1, 1, 1, 1, 4]);
    }

    // [Gokhale 2017: adaptation]
    #[test]
    fn congestion_goes_to_the_top_at_once_or_by_one_and_steadiness_down_by_one() {
        let mut b = Bench::new(step, json!({}));
        b.rising();
        assert_eq!(b.steady(24), [[4; 7].as_slice(), &[3; 8], &[2; 8], &[1; 1]].concat());
        let mut b = Bench::new(multistep, json!({}));
        assert_eq!(*b.rising().last().unwrap(), 2);
        assert_eq!(*b.rising().last().unwrap(), 3);
    }

    // [Gokhale 2017: adaptation]
    #[test]
    fn hold_up_keeps_the_k_above_the_congested_one_for_half_a_second() {
        let mut b = Bench::new(holdup, json!({}));
        b.rising();
        let ks = b.steady(140);
        let span = |k: u8| ks.iter().filter(|x| **x == k).count();
        assert_eq!((span(4), span(3)), (7, 8), "k was 1 when congestion came: nothing held above 2");
        assert!((55..70).contains(&span(2)), "{}: 500 ms from the first steady state", span(2));
        b.rising();
        b.steady(22);
        b.rising();
        let ks = b.steady(80);
        assert!(ks.iter().filter(|k| **k == 3).count() > 50, "k was 2 when congestion came: {ks:?}");
    }

    // [Gokhale 2017: triggers]
    #[test]
    fn notices_about_packets_from_before_a_change_are_passed_over() {
        for (settle, fours) in [("generation", 7), ("round-trip", 10)] {
            let mut b = Bench::new(step, json!({"settle": settle}));
            b.rising();
            let ks = b.steady(30);
            assert_eq!(ks.iter().filter(|k| **k == 4).count(), fours, "{settle}: {ks:?}");
        }
        let mut b = Bench::new(step, json!({"settle": "never", "trend": "ignored"}));
        b.rising();
        let fours = b.hears([24.0; 20]).iter().filter(|k| **k == 4).count();
        assert!(fours < 7, "{fours}: values from before the change count");
    }

    // [model: DPM-G]
    #[test]
    fn the_guard_keeps_k_while_a_queue_stands_and_raises_it_without_a_trend() {
        let mut b = Bench::new(guarded, json!({}));
        b.hears([15.0; 20]);
        assert_eq!(b.hears([15.0, 25.0, 15.0, 25.0, 25.0, 25.0]).last(), Some(&4), "more than 3 ms");
        let full = b.hears((0..60).map(|i| 98.0 + f64::from(i % 2)));
        assert!(full.iter().all(|k| *k == 4), "a full buffer is not steady");
        let mut b = Bench::new(step, json!({}));
        b.rising();
        assert_eq!(
            b.hears((0..60).map(|i| 98.0 + f64::from(i % 2))).last(),
            Some(&1),
            "the published rule is fooled"
        );
    }
}
