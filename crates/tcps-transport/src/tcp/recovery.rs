//! Loss recovery: by how much the window is reduced, when a reduction ends, and when it is taken back.
//!
//! ```text
//! Open ─► Disorder ─► Recovery ─► Open        Disorder: holes that may be reordering
//!   │ mark, probe ─► Reduced ─────►│          Reduced:  by a mark (ECN), or a loss that a probe repaired
//!   └──── time-out ─► Loss ───────►┘          Loss:     all is sent again, unless the time-out was false (F-RTO)
//! ```
//! In Recovery and Reduced the window falls in proportion to what arrives (RFC 6937). A reduction is taken back when
//! nothing was lost after all: each repeat arrived twice, or an acknowledgement answers a first copy (RFC 3522).

use crate::congestion::window::{Control, Window};
use tcps_core::time::{Time, MS};

/// What is done about losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Phase {
    /// Nothing: none is known.
    #[default]
    Open,
    /// There are holes.
    Disorder,
    /// The window is being reduced; nothing is lost.
    Reduced,
    /// Losses are repaired.
    Recovery,
    /// After a time-out.
    Loss,
}

/// Loss recovery of a connection.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    phase: Phase,
    /// Recovery is over when everything before this is acknowledged.
    pub(super) high: u64,
    /// Window before the reduction; segments that have arrived and that were sent since it began.
    prior_window: u32,
    arrived: u32,
    pub(super) sent: u32,
    /// Whether a reduction stands that could be taken back; to what threshold, if it can.
    can_undo: bool,
    prior_threshold: Option<u32>,
    /// Repeats, as ranges, of which no duplicate was told; none before the first repeat.
    repeats: Option<Vec<(u64, u64)>>,
    /// When the first repeat was sent.
    first_repeat_ns: Option<Time>,
    /// Whether it is being found out if a time-out was false.
    pub(super) is_testing: bool,
    /// Time-outs since something was acknowledged.
    timeouts: u32,
}

/// What recovery acts upon.
pub(super) struct Reduction<'a> {
    pub(super) window: &'a mut Window,
    /// None: the window never changes.
    pub(super) control: Option<&'a mut (dyn Control + 'static)>,
    /// Everything before this is acknowledged.
    pub(super) acked: u64,
    /// The next position to be sent.
    pub(super) sent_to: u64,
    /// Segments sent again that are in flight, as ranges.
    pub(super) repeated: Vec<(u64, u64)>,
}

impl Reduction<'_> {
    fn lower_threshold(&mut self) {
        let segments = self.window.segments;
        self.window.threshold = self.control.as_mut().map_or(segments, |c| c.reduced(segments));
    }
}

impl Recovery {
    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Without losses to repair: whether there are holes.
    pub(super) fn settle(&mut self, has_holes: bool) {
        if self.phase != Phase::Reduced {
            self.phase = if has_holes { Phase::Disorder } else { Phase::Open };
        }
    }

    /// Whether the window is set by what arrives.
    pub(super) fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Reduced | Phase::Recovery)
    }

    /// Losses are repaired from now on. `by_mark`: they were told by a mark of congestion too.
    // [RFC 8985 §6]
    pub(super) fn enter(&mut self, on: &mut Reduction<'_>, by_mark: bool) {
        self.prior_threshold = None;
        self.allow_undo(on);
        if !self.is_reducing() {
            self.prior_threshold = (!by_mark).then(|| on.window.kept_threshold());
            self.reduce(on);
        }
        self.phase = Phase::Recovery;
    }

    /// The window is reduced though nothing is to be repaired.
    // [RFC 3168 §6.1.2]
    pub(super) fn enter_reduced(&mut self, on: &mut Reduction<'_>) {
        self.prior_threshold = None;
        if self.phase < Phase::Reduced {
            (self.can_undo, self.repeats) = (false, None);
            self.reduce(on);
            self.phase = Phase::Reduced;
        }
    }

    // [RFC 6937 §3]
    fn reduce(&mut self, on: &mut Reduction<'_>) {
        self.high = on.sent_to;
        self.prior_window = on.window.segments;
        (self.arrived, self.sent) = (0, 0);
        on.lower_threshold();
        on.window.set(on.window.segments);
    }

    fn allow_undo(&mut self, on: &mut Reduction<'_>) {
        self.can_undo = true;
        self.repeats = Some(std::mem::take(&mut on.repeated)).filter(|r| !r.is_empty());
    }

    /// Segments have arrived while the window is reduced: it falls in proportion, or keeps what is in flight.
    // [RFC 6937 §3]
    pub(super) fn proceed(&mut self, window: &mut Window, in_flight: u32, delivered: u32, is_good: bool) {
        if delivered == 0 || self.prior_window == 0 {
            return;
        }
        self.arrived = self.arrived.saturating_add(delivered);
        let room = i64::from(window.threshold) - i64::from(in_flight);
        let (arrived, sent) = (i64::from(self.arrived), i64::from(self.sent));
        let may_send = if room < 0 {
            let prior = i64::from(self.prior_window);
            (i64::from(window.threshold) * arrived + prior - 1) / prior - sent
        } else {
            // Slow start up to the threshold while repairs get through: the safe bound of RFC 6937.
            ((arrived - sent).max(i64::from(delivered)) + i64::from(is_good)).min(room)
        };
        // The first repeat goes out at once.
        let may_send = may_send.max(i64::from(self.sent == 0));
        window.segments = (i64::from(in_flight) + may_send).clamp(1, 1 << 30) as u32;
    }

    /// The reduction is over.
    pub(super) fn finish_reduction(&mut self, window: &mut Window) {
        if !window.is_unbounded() && (self.phase == Phase::Reduced || self.can_undo) {
            window.segments = window.threshold.max(1);
        }
    }

    /// Nothing was acknowledged for too long.
    // [RFC 5681 §3.1] [RFC 5682 §2.1]
    pub(super) fn time_out(&mut self, on: &mut Reduction<'_>, in_flight: u32) {
        let is_new = self.phase < Phase::Recovery;
        if self.phase <= Phase::Disorder
            || self.high <= on.acked
            || (self.phase == Phase::Loss && self.timeouts == 0)
        {
            self.prior_threshold = Some(on.window.kept_threshold());
            self.prior_window = on.window.segments;
            on.lower_threshold();
            self.allow_undo(on);
        }
        if let Some(control) = &mut on.control {
            control.timed_out();
        }
        on.window.set(in_flight + 1);
        (self.phase, self.high) = (Phase::Loss, on.sent_to);
        self.is_testing = is_new || self.timeouts > 0;
        self.timeouts += 1;
    }

    /// A segment was sent again.
    pub(super) fn repeated(&mut self, now: Time, range: (u64, u64)) {
        self.first_repeat_ns.get_or_insert(now);
        self.repeats.get_or_insert_default().push(range);
    }

    /// The peer has told of a duplicate. Whether it is of a repeat, which was not needed then: the network makes copies too.
    // [RFC 3708 §3]
    pub(super) fn duplicated(&mut self, (start, end): (u64, u64)) -> bool {
        let Some(repeats) = &mut self.repeats else { return false };
        let told = repeats.iter().position(|r| start <= r.0 && r.1 <= end);
        told.map(|at| repeats.swap_remove(at)).is_some()
    }

    /// Something new was acknowledged.
    pub(super) fn advanced(&mut self) {
        self.timeouts = 0;
    }

    /// Nothing is in flight that was sent again.
    pub(super) fn forget_repeats(&mut self) {
        self.first_repeat_ns = None;
    }

    /// Whether the acknowledgement, which answers a segment of `echo_ns`, answers one sent before any was sent again.
    // [RFC 3522 §3.2]
    pub(super) fn answers_original(&self, echo_ns: Option<Time>) -> bool {
        let before = |(echo, first): (Time, Time)| echo.saturating_add(MS) <= first;
        echo_ns.zip(self.first_repeat_ns).is_some_and(before)
    }

    /// Whether a reduction stands that could be taken back.
    pub(super) fn can_undo(&self) -> bool {
        self.can_undo
    }

    /// Whether every repeat arrived twice.
    pub(super) fn all_duplicated(&self) -> bool {
        self.can_undo && self.repeats.as_ref().is_some_and(Vec::is_empty)
    }

    /// Nothing was lost: the window is what it was.
    pub(super) fn undo(&mut self, window: &mut Window) {
        if let Some(threshold) = self.prior_threshold {
            window.segments = window.segments.max(self.prior_window);
            window.threshold = window.threshold.max(threshold);
        }
        self.can_undo = false;
        self.timeouts = 0;
    }

    /// Recovery or the time after a time-out is over.
    pub(super) fn end(&mut self) {
        self.phase = Phase::Open;
        self.is_testing = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::window::Reno;

    // [RFC 6937 §3]
    #[test]
    fn the_window_falls_in_proportion_to_what_arrives() {
        let (mut window, mut control, mut recovery) = (Window::new(), Reno, Recovery::default());
        window.set(20);
        let (acked, sent_to, repeated) = (1, 20_001, vec![]);
        let mut on = Reduction { window: &mut window, control: Some(&mut control), acked, sent_to, repeated };
        recovery.enter(&mut on, false);
        assert_eq!((window.threshold, recovery.phase(), recovery.high), (10, Phase::Recovery, 20_001));
        // One of 20 lost, three selectively acknowledged; from then on each that arrives lets half a segment go.
        let (mut in_flight, mut sent) = (16, 0);
        for arrived in [3, 1, 1, 1, 1, 1, 1] {
            recovery.proceed(&mut window, in_flight, arrived, false);
            let now = window.segments - in_flight;
            recovery.sent += now;
            sent += now;
            in_flight = in_flight + now - 1;
        }
        assert_eq!(sent, 5, "half of nine, rounded up");
    }

    // [RFC 6937 §3]
    #[test]
    fn with_as_much_in_flight_as_the_threshold_allows_nothing_goes_out() {
        let (mut window, mut control, mut recovery) = (Window::new(), Reno, Recovery::default());
        window.set(20);
        let (acked, sent_to, repeated) = (1, 20_001, vec![]);
        let mut on = Reduction { window: &mut window, control: Some(&mut control), acked, sent_to, repeated };
        recovery.enter(&mut on, false);
        recovery.sent = 2;
        // Half of the eight that have arrived are two more than were sent: above the threshold of ten those may go.
        recovery.proceed(&mut window, 11, 8, false);
        assert_eq!(window.segments, 11 + 2);
        recovery.proceed(&mut window, 10, 1, false);
        assert_eq!(window.segments, 10);
    }

    // [RFC 3522 §3.2]
    #[test]
    fn a_reduction_is_taken_back_when_a_first_copy_is_answered() {
        let (mut window, mut control, mut recovery) = (Window::new(), Reno, Recovery::default());
        window.set(20);
        let (acked, sent_to, repeated) = (1, 9, vec![]);
        let mut on = Reduction { window: &mut window, control: Some(&mut control), acked, sent_to, repeated };
        recovery.enter(&mut on, false);
        recovery.repeated(10 * MS, (1, 5));
        assert!(!recovery.answers_original(Some(10 * MS)) && recovery.answers_original(Some(9 * MS)));
        window.set(10);
        recovery.undo(&mut window);
        assert_eq!((window.segments, window.threshold), (20, 1 << 30));
        assert!(!recovery.can_undo());
    }
    // [RFC 3708 §3]
    #[test]
    fn a_reduction_is_taken_back_when_each_repeat_arrived_twice_and_not_for_copies_of_others() {
        let (mut window, mut control, mut recovery) = (Window::new(), Reno, Recovery::default());
        let (acked, sent_to, repeated) = (1, 90, vec![(21, 31)]);
        let mut on = Reduction { window: &mut window, control: Some(&mut control), acked, sent_to, repeated };
        recovery.enter(&mut on, false);
        recovery.repeated(10 * MS, (1, 11));
        assert!(!recovery.duplicated((11, 21)) && !recovery.duplicated((71, 81)));
        assert!(recovery.duplicated((21, 31)) && !recovery.all_duplicated());
        assert!(!recovery.duplicated((21, 31)), "it was sent again once");
        assert!(recovery.duplicated((1, 11)) && recovery.all_duplicated());
    }
}
