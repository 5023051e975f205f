//! Shares of the bandwidth that follow the network and haptic events (after the abstract of Eid et al. 2011, AdMux).
//!
//! ```text
//! 500 ms ─► queue above 5 ms ─► half as many bytes of media a fragment      else ─► 2 B more
//! sample ─► differs from the one before by half of it ─► 100 ms without media
//! ```
//! Force always has what it needs; sound goes before the picture in what is left, so it is the picture that gives way. The
//! queue is the mean delay of 500 ms above the least of 60 s. Nothing is merged.

use super::{
    contact::Contact,
    control::{merging, with, Controller, Hears},
    tally::Tally,
};
use crate::params::{Media, Params, TransportError, MINUTE};
use tcps_core::{
    param::Entry,
    params,
    rate::{Feedback, RateController},
    time::Time,
};

/// The controller.
#[derive(Debug)]
struct Shares {
    most_bytes: f64,
    step_bytes: f64,
    congested_ns: f64,
    event_ns: Time,
    tally: Tally,
    contact: Contact,
    /// Bytes of media a fragment, and what is left of them from fragments before.
    share_bytes: f64,
    owed_bytes: f64,
    quiet_until_ns: Time,
}

impl Shares {
    // [model: approximations]
    fn adapt(&mut self, queue_ns: f64) {
        self.share_bytes = if queue_ns > self.congested_ns {
            self.share_bytes / 2.0
        } else {
            (self.share_bytes + self.step_bytes).min(self.most_bytes)
        };
    }
}

impl RateController for Shares {
    fn feedback(&mut self, now: Time, feedback: &Feedback) {
        let Feedback::Delay(notice) = feedback else { return };
        if let Some(queue_ns) = self.tally.add(now, notice) {
            self.adapt(queue_ns);
        }
    }

    fn fragments(&mut self, _now: Time) -> u8 {
        1
    }

    fn admits(&mut self, now: Time, sample: &[u8], _must: bool) -> bool {
        if self.contact.is_event(sample) {
            self.quiet_until_ns = now.saturating_add(self.event_ns);
        }
        true
    }

    // [model: approximations] bandwidth shares and priority by need, event and network state
    fn media_bytes(&mut self, now: Time) -> Option<usize> {
        if now < self.quiet_until_ns {
            return Some(0);
        }
        self.owed_bytes += self.share_bytes;
        let whole = self.owed_bytes.floor();
        self.owed_bytes -= whole;
        Some(whole as usize)
    }
}

params! {
    /// Of the rule.
    struct Given {
        step_bytes: f64 = Number, "2", 0.0..=1000.0, "growth of sound and picture bytes in a fragment";
        congested_above_ns: Time = Ns, "5 ms", MINUTE, "queue above which the path is congested";
        event: f64 = Number, "0.5", 0.0..=1e6, "difference from the previous sample that is an event, as a multiple of that sample";
        event_span_ns: Time = Ns, "100 ms", MINUTE, "pause of sound and picture after an event";
    }
}

/// `admux`.
fn admux(params: &Params<'_>, _: Time) -> Result<Box<dyn RateController>, TransportError> {
    Ok(Box::new(shares(params)?))
}

fn shares(params: &Params<'_>) -> Result<Shares, TransportError> {
    let Given { step_bytes, congested_above_ns, event, event_span_ns } = params.read()?;
    let most_bytes = params.read::<Media>()?.media_bytes as f64;
    Ok(Shares {
        most_bytes,
        step_bytes,
        congested_ns: congested_above_ns as f64,
        event_ns: event_span_ns,
        tally: Tally::new(),
        contact: Contact::new(event),
        share_bytes: most_bytes,
        owed_bytes: 0.0,
        quiet_until_ns: 0,
    })
}

/// `admux` in a scenario.
pub(crate) const ENTRY: Entry<Controller> = merging(
    30,
    "admux",
    "a queue halves the bytes of sound and picture in a fragment (after Eid 2011)",
    with!(Given),
    Hears::Delays,
    admux,
);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tcps_core::{rate::DelayNotice, time::MS};

    // [model: approximations]
    #[test]
    fn the_share_of_media_halves_with_a_queue_and_grows_by_2_bytes() {
        let mut c = shares(&Params::new("admux", &json!({}))).unwrap();
        let bytes = [0.0, 6e6, 6e6, 30e6, 4e6].map(|queue_ns| {
            c.adapt(queue_ns);
            (0..100).filter_map(|_| c.media_bytes(0)).sum::<usize>()
        });
        assert_eq!(bytes, [5800, 2900, 1450, 725, 925], "of a hundred fragments");
    }

    // [model: approximations]
    #[test]
    fn an_event_silences_media_for_100_ms() {
        let mut c = shares(&Params::new("admux", &json!({}))).unwrap();
        let force = |n: f32| n.to_be_bytes();
        assert!(c.admits(0, &force(1.0), false) && c.admits(MS, &force(2.0), false));
        assert_eq!([2, 100, 101].map(|ms| c.media_bytes(ms * MS)), [Some(0), Some(0), Some(58)]);
    }

    /// The mean of half a second, told at its end: 20 ms above the first one.
    // [model: approximations]
    #[test]
    fn delays_told_in_headers_change_the_share() {
        let mut c = shares(&Params::new("admux", &json!({}))).unwrap();
        let mut bytes = |from_ms: Time, delay_ms: Time| {
            for ms in (from_ms..from_ms + 500).step_by(10) {
                let notice = DelayNotice {
                    delay_ns: delay_ms * MS,
                    fresh: true,
                    generated_ns: ms * MS,
                    fragments: 1,
                    wire_bytes: 137,
                    certain: true,
                    reverse_ns: 0,
                    left_ns: 0,
                };
                c.feedback(ms * MS, &Feedback::Delay(notice));
            }
            c.media_bytes(0)
        };
        assert_eq!([bytes(0, 15), bytes(500, 35)], [Some(58); 2], "nothing but the base is known");
        assert_eq!([bytes(1000, 15), bytes(1500, 15)], [Some(29), Some(31)]);
    }
}
