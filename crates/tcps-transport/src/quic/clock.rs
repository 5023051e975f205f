//! Our time as the `Instant` that quinn-proto wants: a base that is taken once, plus the span since the first call.

use std::time::{Duration, Instant};
use tcps_core::time::Time;

/// Time that only goes forward.
#[derive(Debug)]
pub(super) struct QuicClock {
    base: Instant,
    first_ns: Option<Time>,
    latest_ns: Time,
}

impl QuicClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "an Instant can be had in no other way; only differences count"
    )]
    pub(super) fn new() -> Self {
        Self { base: Instant::now(), first_ns: None, latest_ns: Time::MIN }
    }

    /// The moment `now`, or the latest that was asked for if that is later.
    pub(super) fn instant(&mut self, now: Time) -> Instant {
        self.latest_ns = self.latest_ns.max(now);
        let first_ns = *self.first_ns.get_or_insert(now);
        let span_ns = self.latest_ns.saturating_sub(first_ns);
        // Nobody runs for centuries; a span that does not fit stays as it is.
        self.base.checked_add(Duration::from_nanos(span_ns.max(0) as u64)).unwrap_or(self.base)
    }

    /// The time of an instant.
    pub(super) fn time_ns(&self, instant: Instant) -> Time {
        let span_ns = instant.saturating_duration_since(self.base).as_nanos();
        let span_ns = Time::try_from(span_ns).unwrap_or(Time::MAX);
        self.first_ns.unwrap_or(0).saturating_add(span_ns)
    }
}
