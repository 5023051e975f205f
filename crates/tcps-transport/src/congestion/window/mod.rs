//! Congestion control of TCP: how many segments may be in flight.
//!
//! ```text
//! Window   the congestion window and the threshold between slow start and avoidance
//!   ▲ grows as its Control says: Reno, Cubic
//!   ▼ is reduced by loss recovery (`tcp/recovery.rs`), to what its Control says
//! ```
//! The window counts segments, as Linux does.

mod cubic;
mod hystart;
mod reno;

pub(crate) use cubic::Cubic;
pub(crate) use reno::Reno;

use tcps_core::time::Time;

/// Segments that may be in flight at first.
// [RFC 6928 §2]
pub(crate) const INITIAL: u32 = 10;
/// Segments that may be in flight when nothing limits.
const MOST: u32 = 1 << 30;

/// What a congestion control is told of an acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ack {
    /// When it came.
    pub(crate) now: Time,
    /// Round trip of the newest segment that it acknowledges, if it was sent once only.
    pub(crate) rtt_ns: Option<Time>,
    /// Everything before this is acknowledged.
    pub(crate) acked: u64,
    /// The next position to be sent.
    pub(crate) sent_to: u64,
}

/// A congestion control.
pub(crate) trait Control: std::fmt::Debug + Send {
    /// The threshold after a loss or a mark, when `window` segments were allowed.
    fn reduced(&mut self, window: u32) -> u32;
    /// Acknowledged segments for which the window grows by one in congestion avoidance; `acked` more are acknowledged now.
    fn interval(&mut self, now: Time, window: u32, acked: u32) -> u32;
    /// An acknowledgement has come. True if slow start is to end here.
    fn acknowledged(&mut self, _ack: &Ack, _window: &Window) -> bool {
        false
    }
    /// A time-out has shown that what was known of the path is no longer true.
    fn timed_out(&mut self) {}
    /// Nothing was sent for so long.
    fn idled(&mut self, _now: Time, _span_ns: Time) {}
}

/// The congestion window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// Segments that may be in flight.
    pub(crate) segments: u32,
    /// From so many segments on growth is careful.
    pub(crate) threshold: u32,
    credit: u32,
}

impl Window {
    /// That of a new connection.
    pub(crate) fn new() -> Self {
        Self { segments: INITIAL, threshold: MOST, credit: 0 }
    }

    /// Whether it grows by what is acknowledged.
    pub(crate) fn in_slow_start(&self) -> bool {
        self.segments < self.threshold
    }

    /// Whether no loss has set a threshold yet.
    pub(crate) fn is_unbounded(&self) -> bool {
        self.threshold >= MOST
    }

    /// Grows by `acked` segments, up to the threshold; the segments left over.
    // [RFC 5681 §3.1]
    pub(crate) fn slow_start(&mut self, acked: u32) -> u32 {
        let grown = self.segments.saturating_add(acked).min(self.threshold);
        let left = acked - (grown - self.segments);
        self.segments = grown;
        left
    }

    /// Grows by one for every `interval` acknowledged segments.
    pub(crate) fn avoid(&mut self, interval: u32, acked: u32) {
        let interval = interval.max(1);
        // What was earned at a longer interval counts once.
        if self.credit >= interval {
            self.credit = 0;
            self.segments += 1;
        }
        self.credit = self.credit.saturating_add(acked);
        self.segments = (self.segments + self.credit / interval).min(MOST);
        self.credit %= interval;
    }

    /// Sets the window; growth begins anew.
    pub(crate) fn set(&mut self, segments: u32) {
        self.segments = segments.clamp(1, MOST);
        self.credit = 0;
    }

    /// The threshold if the window were left now: no less than three quarters of what it is.
    pub(crate) fn kept_threshold(&self) -> u32 {
        self.threshold.max(self.segments / 2 + self.segments / 4)
    }
}
