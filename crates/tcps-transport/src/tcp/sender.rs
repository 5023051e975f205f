//! The sending half of a connection: what may be sent now, from what was written, lost and acknowledged.
//!
//! ```text
//! write ──► Buffer ──► next: lost first, then new ──► segments
//!                        ▲ congestion window (`congestion::window`), the peer's window
//! acknowledgement ──► Scoreboard, Rack, Recovery, RoundTrips (acknowledged.rs)
//! timer: time-out, probe of the tail, reordering, closed window (timer.rs, expiry.rs)
//! ```

use super::{
    buffer::Buffer,
    rack::{Path, Rack},
    recovery::{Phase, Recovery, Reduction},
    rto::RoundTrips,
    scoreboard::Scoreboard,
    timer::Timer,
};
use crate::congestion::window::{Control, Window, INITIAL};
use tcps_core::time::Time;

/// A window of no more bytes is filled by one segment (TCP_MSS_DEFAULT).
const SMALL_WINDOW: u64 = 536;

/// What a sender keeps to.
#[derive(Debug)]
pub(super) struct Limits {
    /// Bytes of a segment.
    pub(super) segment_bytes: u64,
    /// Whether small segments go out at once.
    pub(super) no_delay: bool,
    /// Bytes that are kept until acknowledged.
    pub(super) buffer_bytes: usize,
}

/// The sending half of a connection.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) limits: Limits,
    /// Bytes of a segment beside the options that it has now.
    pub(super) segment_bytes: u64,
    pub(super) buffer: Buffer,
    pub(super) board: Scoreboard,
    pub(super) rack: Rack,
    pub(super) trips: RoundTrips,
    pub(super) recovery: Recovery,
    pub(super) window: Window,
    /// None: the peer's window alone limits.
    pub(super) control: Option<Box<dyn Control>>,
    /// Everything before this is acknowledged; the next position to be sent.
    pub(super) acked: u64,
    pub(super) sent_to: u64,
    /// Behind what the peer takes, and the sequence number of the segment that said so.
    pub(super) allowed_to: u64,
    pub(super) allowed_by: u64,
    /// The most bytes that the peer has ever taken at once.
    pub(super) largest_window: u64,
    /// Segments that have arrived.
    pub(super) delivered: u64,
    pub(super) timer: Option<Timer>,
    /// The position behind the probe of the tail that is in flight, and whether it was a repeat.
    pub(super) probe: Option<(u64, bool)>,
    /// Whether new data goes before what is lost, once.
    pub(super) new_first: bool,
    is_closing: bool,
    limited: Limited,
    last_sent_ns: Time,
    /// Behind the last segment that was not full.
    small_end: u64,
    /// Marks of congestion: whether they are understood, and whether the peer is to be told of the reduction.
    pub(super) ecn: bool,
    pub(super) tells_reduced: bool,
    repeats: u64,
    /// Times that data waited for the peer's window.
    pub(super) window_waits: u64,
}

/// Whether the congestion window is what limits: if not, it does not grow.
// RFC 7661 §4.2
#[derive(Debug, Default)]
struct Limited {
    /// Whether something was held back by the window since the last look.
    held_back: bool,
    /// Whether the window was full, and the most in flight, up to a position.
    full: bool,
    most: u32,
    until: u64,
    /// When the window was last in use, and the most in flight since.
    used_ns: Time,
    used: u32,
}

/// A segment that is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Whether it ends the stream.
    pub(super) is_last: bool,
    /// Whether it is the end of what there is.
    pub(super) is_whole: bool,
    pub(super) is_repeat: bool,
}

impl Sender {
    pub(super) fn new(limits: Limits, control: Option<Box<dyn Control>>) -> Self {
        Self {
            buffer: Buffer::new(limits.buffer_bytes),
            segment_bytes: limits.segment_bytes,
            limits,
            board: Scoreboard::default(),
            rack: Rack::default(),
            trips: RoundTrips::default(),
            recovery: Recovery::default(),
            window: Window::new(),
            control,
            acked: 1,
            sent_to: 1,
            allowed_to: 1,
            allowed_by: 0,
            largest_window: 0,
            delivered: 0,
            timer: None,
            probe: None,
            new_first: false,
            is_closing: false,
            limited: Limited::default(),
            last_sent_ns: 0,
            small_end: 0,
            ecn: false,
            tells_reduced: false,
            repeats: 0,
            window_waits: 0,
        }
    }

    /// The connection stands, after so many repeats of SYN. Linux forgives one.
    // RFC 5681 §3.1
    pub(super) fn begin(&mut self, now: Time, repeats: u32) {
        self.last_sent_ns = now;
        self.limited.used_ns = now;
        if repeats > 1 {
            self.window.set(1);
        }
    }

    /// The stream ends behind what has been written.
    pub(super) fn close(&mut self) {
        self.is_closing = true;
    }

    /// Whether nothing more can be written.
    pub(super) fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// Whether the peer has everything, and that it was all.
    pub(super) fn is_done(&self) -> bool {
        self.is_closing && self.acked > self.buffer.end()
    }

    /// Segments that were sent again.
    pub(super) fn repeats(&self) -> u64 {
        self.repeats
    }

    /// Behind everything that is to be sent.
    fn end(&self) -> u64 {
        self.buffer.end() + u64::from(self.is_closing)
    }

    /// Whether something waits that was never sent.
    pub(super) fn has_new(&self) -> bool {
        self.sent_to < self.end()
    }

    fn has_room(&self) -> bool {
        self.control.is_none() || self.board.in_flight() < self.window.segments
    }

    /// The next segment that may be sent now; it counts as sent.
    pub(super) fn next(&mut self, now: Time) -> Option<Segment> {
        if self.new_first {
            if let Some(segment) = self.next_new(now, false) {
                return Some(segment);
            }
            self.new_first = false;
            // Nothing new could be sent: what is lost is sent again. [RFC 5682 §3.1]
            self.recovery.is_testing &= self.sent_to > self.recovery.high;
            if self.recovery.is_testing {
                return None;
            }
        }
        self.next_lost(now).or_else(|| self.next_new(now, false))
    }

    fn next_lost(&mut self, now: Time) -> Option<Segment> {
        // New data is on its way that shows if the time-out was false. [RFC 5682 §3.1]
        let is_awaited = self.recovery.is_testing && self.sent_to > self.recovery.high;
        if is_awaited || !self.has_room() {
            return None;
        }
        let at = self.board.next_lost()?;
        Some(self.repeat(at, now))
    }

    /// Segments are so long that they fit the path with their options, and that two of them fit the largest window, unless
    /// that is small itself, as in Linux.
    // [RFC 9293 §3.7.1] [RFC 9293 §3.8.6.2.1]
    pub(super) fn fit(&mut self, option_bytes: u64) {
        let window = self.largest_window;
        let most = if window > SMALL_WINDOW { window / 2 } else { window.max(1) };
        self.segment_bytes = (self.limits.segment_bytes - option_bytes).min(most);
    }

    /// Cuts a segment in two that has become too long; whether it had.
    fn cut(&mut self, at: usize) -> bool {
        let Some((start, end)) = self.board.range(at) else { return false };
        let behind = start + self.segment_bytes;
        let is_long = behind < end.min(self.buffer.end());
        if is_long {
            self.board.cut(at, behind);
        }
        is_long
    }

    /// Sends the last segment again.
    pub(super) fn repeat_last(&mut self, now: Time) -> Option<Segment> {
        let last = (self.board.len() as usize).checked_sub(1)?;
        let at = last + usize::from(self.cut(last));
        Some(self.repeat(at, now))
    }

    /// Sends a segment again.
    pub(super) fn repeat(&mut self, at: usize, now: Time) -> Segment {
        self.cut(at);
        let sent = self.board.repeat(at, now, self.delivered);
        let (start, end) = sent.map_or((self.acked, self.acked), |s| (s.start, s.end));
        self.recovery.repeated(now, (start, end));
        self.repeats += 1;
        if self.recovery.is_reducing() {
            self.recovery.sent += 1;
        }
        if at == 0 {
            self.rearm(now);
        }
        self.segment(start, end, true)
    }

    /// The next segment of what was never sent. `is_probe`: whatever the congestion window says.
    pub(super) fn next_new(&mut self, now: Time, is_probe: bool) -> Option<Segment> {
        if !self.has_new() {
            return None;
        }
        if self.board.is_empty() {
            self.resume(now);
        }
        if !is_probe && !self.has_room() {
            self.limited.held_back = true;
            return None;
        }
        let behind = self.buffer.end().min(self.sent_to + self.segment_bytes);
        let end = if behind == self.buffer.end() { self.end() } else { behind };
        if behind > self.allowed_to || self.is_held_back(end) {
            return None;
        }
        Some(self.send(now, end))
    }

    /// Sends what is new up to `end`.
    pub(super) fn send(&mut self, now: Time, end: u64) -> Segment {
        let start = self.sent_to;
        if self.board.in_flight() == 0 {
            self.note_pause(now);
        }
        self.board.push(start, end, now, self.delivered);
        (self.sent_to, self.last_sent_ns) = (end, now);
        if end - start < self.segment_bytes {
            self.small_end = end;
        }
        if self.recovery.is_reducing() {
            self.recovery.sent += 1;
        }
        self.segment(start, end, false)
    }

    fn segment(&self, start: u64, end: u64, is_repeat: bool) -> Segment {
        let is_last = end > self.buffer.end();
        Segment { start, end, is_last, is_whole: end >= self.buffer.end(), is_repeat }
    }

    /// Whether a small segment waits for another small one to be acknowledged.
    // RFC 9293 §3.7.4 with Minshall's change, as in Linux
    fn is_held_back(&self, end: u64) -> bool {
        let is_small = end - self.sent_to < self.segment_bytes;
        is_small && !self.limits.no_delay && !self.is_closing && self.small_end > self.acked
    }

    /// Congestion control does not count the time in which nothing was sent.
    fn note_pause(&mut self, now: Time) {
        if let Some(control) = &mut self.control {
            control.idled(now, now - self.last_sent_ns);
        }
        self.last_sent_ns = now;
    }

    /// After a pause as long as a time-out the window is what is safe to begin with.
    // RFC 5681 §4.1
    fn resume(&mut self, now: Time) {
        let rto_ns = self.trips.timeout_ns();
        let mut idle_ns = now - self.last_sent_ns;
        if self.control.is_none() || idle_ns <= rto_ns {
            return;
        }
        self.window.threshold = self.window.kept_threshold();
        let least = INITIAL.min(self.window.segments);
        let mut segments = self.window.segments;
        while idle_ns > rto_ns && segments > least {
            segments /= 2;
            idle_ns -= rto_ns;
        }
        self.window.set(segments.max(least));
        self.note_pause(now);
        (self.limited.used_ns, self.limited.used) = (now, 0);
    }

    /// Everything that may be sent has been: sees what limits, and sets the timer. `has_sent`: whether something new was.
    pub(super) fn settle(&mut self, now: Time, has_sent: bool) {
        let in_flight = self.board.len();
        let is_full = std::mem::take(&mut self.limited.held_back) || !self.has_room();
        if has_sent || is_full {
            self.note_limit(now, is_full, in_flight);
        }
        if has_sent {
            self.schedule(now);
        }
        self.watch_window(now);
    }

    fn note_limit(&mut self, now: Time, is_full: bool, in_flight: u32) {
        let limited = &mut self.limited;
        let is_stronger = is_full || !limited.full && in_flight > limited.most;
        if self.acked >= limited.until || is_stronger {
            (limited.full, limited.most, limited.until) = (is_full, in_flight, self.sent_to);
        }
        if self.is_limited() {
            (self.limited.used, self.limited.used_ns) = (0, now);
            return;
        }
        self.limited.used = self.limited.used.max(in_flight);
        if now - self.limited.used_ns >= self.trips.timeout_ns() {
            self.shrink(now);
        }
    }

    /// Whether the window limits what is in flight, so that it may grow.
    pub(super) fn is_limited(&self) -> bool {
        self.limited.full || self.window.in_slow_start() && self.window.segments < 2 * self.limited.most
    }

    /// A window that was not used for a while comes closer to what was.
    // RFC 7661 §4.4
    fn shrink(&mut self, now: Time) {
        let used = self.limited.used.max(INITIAL);
        if self.recovery.phase() == Phase::Open && used < self.window.segments {
            self.window.threshold = self.window.kept_threshold();
            self.window.segments = (self.window.segments + used) / 2;
        }
        (self.limited.used, self.limited.used_ns) = (0, now);
    }

    /// What RACK needs to know.
    pub(super) fn path(&self) -> Path {
        let smoothed_ns = self.trips.smoothed_ns().unwrap_or(0);
        let is_recovering = self.recovery.phase() >= Phase::Recovery;
        Path { least_ns: self.trips.least_ns().unwrap_or(smoothed_ns), smoothed_ns, is_recovering }
    }

    /// Recovery with what it acts upon.
    pub(super) fn recover(&mut self, act: impl FnOnce(&mut Recovery, &mut Reduction<'_>)) {
        let control = self.control.as_deref_mut();
        let (acked, sent_to, repeated) = (self.acked, self.sent_to, self.board.repeats());
        act(
            &mut self.recovery,
            &mut Reduction { window: &mut self.window, control, acked, sent_to, repeated },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ack, burst, in_flight};
    use super::*;
    use tcps_core::time::MS;

    /// A window that nothing has filled says nothing of what the path bears.
    // RFC 7661 §4.2
    #[test]
    fn the_window_grows_in_slow_start_if_more_than_half_of_it_was_used_and_above_if_all_was() {
        let grown = |bursts: [usize; 2], threshold| {
            let mut sender = in_flight(0);
            sender.window.threshold = threshold;
            (0..).zip(bursts).for_each(|(i, segments)| burst(&mut sender, i * MS, segments));
            sender.acknowledge(41 * MS, &ack(sender.sent_to));
            sender.window.segments
        };
        assert_eq!([[1, 4], [1, 5], [1, 20], [6, 0]].map(|bursts| grown(bursts, 1 << 30)), [10, 16, 20, 16]);
        assert_eq!([[1, 8], [1, 9], [1, 20]].map(|bursts| grown(bursts, 10)), [10, 11, 11]);
    }

    /// Use in one round trip does not count in the next one.
    // RFC 7661 §4.2
    #[test]
    fn a_window_that_was_full_once_does_not_grow_while_little_is_sent() {
        let mut sender = in_flight(10);
        sender.acknowledge(50 * MS, &ack(101));
        assert_eq!(sender.window.segments, 20);
        for round in 1..5 {
            burst(&mut sender, (50 * round + 1) * MS, 1);
            sender.acknowledge((50 * round + 42) * MS, &ack(sender.sent_to));
            assert_eq!(sender.window.segments, 20, "{round}");
        }
    }

    // RFC 7661 §4.4
    #[test]
    fn a_window_that_is_not_used_comes_half_way_to_what_is_each_time_out() {
        let mut sender = in_flight(0);
        sender.window.set(40);
        sender.window.threshold = 20;
        let mut windows = Vec::new();
        for round in 0..12 {
            burst(&mut sender, 60 * round * MS, 5);
            sender.acknowledge((60 * round + 40) * MS, &ack(sender.sent_to));
            windows.push(sender.window.segments);
        }
        assert_eq!(windows, [40, 40, 40, 40, 25, 25, 25, 25, 17, 17, 17, 17]);
        assert_eq!(sender.window.threshold, 30, "three quarters of what it was");
    }

    /// What is known of the path ages with each round trip in which nothing is sent.
    // RFC 5681 §4.1
    #[test]
    fn a_pause_halves_the_window_for_each_time_out_down_to_the_first_window() {
        let resumed = |window, half_timeouts: Time| {
            let mut sender = in_flight(1);
            sender.acknowledge(40 * MS, &ack(11));
            sender.window.set(window);
            sender.window.threshold = 50;
            let pause_ns = half_timeouts * sender.trips.timeout_ns() / 2;
            sender.buffer.write(&[0; 10]);
            assert!(sender.next(pause_ns).is_some());
            (sender.window.segments, sender.window.threshold)
        };
        assert_eq!(resumed(80, 2), (80, 50), "no longer than a time-out");
        assert_eq!(
            [3, 4, 5, 7, 19].map(|pause| resumed(80, pause)),
            [(40, 60), (40, 60), (20, 60), (10, 60), (10, 60)]
        );
        assert_eq!(resumed(4, 19), (4, 50), "a smaller window stays");
    }
}
