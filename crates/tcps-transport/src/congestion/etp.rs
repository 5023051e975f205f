//! Gaps between packets that follow the round trip (after Wirz et al. 2008, ETP): samples are left out, none is merged.
//!
//! ```text
//! optimal ──  round trip > 1.25 base, twice in a row ─► congested: gap doubles, to 16 ms
//!    ▲                                                     │ round trip < 1.1 base, 8 times in a row
//!    └──────────────── gap = 1 ms ◄── recover: gap - 1 ms ◄┘
//! ```
//! The round trip is the delay that a header tells plus that of the packet which told it, smoothed by 1/8; its base is the
//! least of 10 s. Headers that tell of packets from before the last change of the gap are passed over.

use super::{
    control::{merging, with, Controller, Hears},
    windowed::WindowedMin,
};
use crate::params::{Params, TransportError, PERIOD};
use tcps_core::{
    param::Entry,
    params,
    rate::{DelayNotice, Feedback, RateController, Sent},
    time::{Time, MS, SECOND},
};

const BASE_NS: Time = 10 * SECOND;
const GAIN: f64 = 1.0 / 8.0;

/// What does not change while it runs.
#[derive(Debug)]
struct Rule {
    period_ns: Time,
    least_ns: Time,
    most_ns: Time,
    congested: f64,
    clear: f64,
}

/// The controller.
#[derive(Debug)]
struct Etp {
    rule: Rule,
    gap_ns: Time,
    base: WindowedMin,
    round_trip_ns: Option<f64>,
    long: u32,
    short: u32,
    changed_ns: Time,
    sent_ns: Option<Time>,
}

impl Etp {
    // [Wirz 2008]
    fn notice(&mut self, now: Time, notice: &DelayNotice) {
        if !notice.fresh {
            return;
        }
        let taken_ns = notice.delay_ns.saturating_add(notice.reverse_ns) as f64;
        let smooth_ns = self.round_trip_ns.map_or(taken_ns, |old| old + GAIN * (taken_ns - old));
        self.round_trip_ns = Some(smooth_ns);
        let base_ns = self.base.add(now, taken_ns);
        if notice.generated_ns <= self.changed_ns {
            return;
        }
        self.long = if smooth_ns > self.rule.congested * base_ns { self.long + 1 } else { 0 };
        self.short = if smooth_ns < self.rule.clear * base_ns { self.short + 1 } else { 0 };
        if self.long >= 2 {
            self.set(now, (2 * self.gap_ns).min(self.rule.most_ns));
        } else if self.short >= 8 {
            self.set(now, (self.gap_ns - MS).max(self.rule.least_ns));
        }
    }

    fn set(&mut self, now: Time, gap_ns: Time) {
        (self.long, self.short) = (0, 0);
        if gap_ns != self.gap_ns {
            (self.gap_ns, self.changed_ns) = (gap_ns, now);
        }
    }
}

impl RateController for Etp {
    fn feedback(&mut self, now: Time, feedback: &Feedback) {
        if let Feedback::Delay(notice) = feedback {
            self.notice(now, notice);
        }
    }

    fn sent(&mut self, now: Time, _packet: &Sent) {
        self.sent_ns = Some(now);
    }

    fn fragments(&mut self, _now: Time) -> u8 {
        1
    }

    /// Only the newest sample goes, once the gap is over (to half a period); at the least gap every sample goes.
    // [Wirz 2008]
    fn admits(&mut self, now: Time, _sample: &[u8], _must: bool) -> bool {
        let early_ns = self.rule.period_ns / 2;
        let over = |sent_ns: Time| now.saturating_sub(sent_ns) >= self.gap_ns - early_ns;
        self.gap_ns == self.rule.least_ns || self.sent_ns.is_none_or(over)
    }
}

params! {
    /// Of the rule.
    struct Given {
        gap_ns: Time = Ns, "16 ms", PERIOD, "longest gap between packets";
        congested: f64 = Number, "1.25", 1.0..=100.0, "multiple of the smallest round trip above which the gap doubles";
        clear: f64 = Number, "1.1", 1.0..=100.0, "multiple of the smallest round trip below which the gap shrinks";
    }
}

/// `etp`.
fn etp(params: &Params<'_>, period_ns: Time) -> Result<Box<dyn RateController>, TransportError> {
    let Given { gap_ns, congested, clear } = params.read()?;
    let rule = Rule { period_ns, least_ns: MS, most_ns: gap_ns, congested, clear };
    Ok(Box::new(Etp {
        gap_ns: rule.least_ns,
        rule,
        base: WindowedMin::new(BASE_NS, 0.0, 1.0),
        round_trip_ns: None,
        long: 0,
        short: 0,
        changed_ns: Time::MIN,
        sent_ns: None,
    }))
}

/// `etp` in a scenario.
pub(crate) const ENTRY: Entry<Controller> = merging(
    33,
    "etp",
    "leaves a gap between packets, which doubles when the round trip rises; skips samples within it (after Wirz 2008)",
    with!(Given),
    Hears::Delays,
    etp,
);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Samples that pass in each of `count` ms while each packet's header comes back after `round_trip_ms`.
    fn passed(c: &mut dyn RateController, now: &mut Time, count: u32, round_trip_ms: Time) -> Vec<bool> {
        let notice = |now: Time| DelayNotice {
            delay_ns: (round_trip_ms - 15) * MS,
            fresh: true,
            generated_ns: now - round_trip_ms * MS,
            fragments: 1,
            wire_bytes: 137,
            certain: true,
            reverse_ns: 15 * MS,
            left_ns: 0,
        };
        let mut all = Vec::new();
        for _ in 0..count {
            *now += MS;
            c.feedback(*now, &Feedback::Delay(notice(*now)));
            let passes = c.admits(*now, &[], false);
            if passes {
                c.sent(*now, &Sent { generated_ns: *now, fragments: 1, payload_bytes: 70, wire_bytes: 137 });
            }
            all.push(passes);
        }
        all
    }

    // [Wirz 2008]
    #[test]
    fn the_gap_doubles_to_16_ms_and_shrinks_by_1_ms() {
        let mut c = etp(&Params::new("etp", &json!({})), MS).unwrap();
        let mut now = 0;
        assert!(
            passed(c.as_mut(), &mut now, 200, 30).iter().all(|p| *p),
            "nothing is left out without congestion"
        );
        let congested = passed(c.as_mut(), &mut now, 600, 60);
        let share = congested[400..].iter().filter(|p| **p).count();
        assert!((12..=13).contains(&share), "{share}: one sample in 16 ms");
        let first = congested.iter().position(|p| !p).unwrap();
        assert!(
            (2..10).contains(&first),
            "{first}: the smoothed round trip has to pass 1.25 of its base, twice"
        );
        let after = passed(c.as_mut(), &mut now, 1200, 30);
        assert!(after[1000..].iter().all(|p| *p), "15 steps of 8 headers and a round trip each");
        assert!(after[..300].iter().filter(|p| **p).count() < 100);
    }

    // [Wirz 2008]
    #[test]
    fn headers_of_packets_from_before_a_change_widen_nothing() {
        let mut c = etp(&Params::new("etp", &json!({"congested": 1.1, "clear": 1.01})), MS).unwrap();
        let mut now = 0;
        passed(c.as_mut(), &mut now, 100, 30);
        let congested = passed(c.as_mut(), &mut now, 60, 60);
        let kept = congested.iter().filter(|p| **p).count();
        assert!(kept > 20, "{kept}: one doubling in a round trip of 60 ms");
    }
}
