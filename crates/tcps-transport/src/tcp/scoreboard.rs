//! What has been sent and is not acknowledged: one entry a segment, and how many of them are in which state.
//!
//! ```text
//!            SACK                      in flight = all - sacked - lost + repeated
//! sent ────► sacked
//!   │ RACK, time-out
//!   └─────► lost ──► repeated (in flight again)
//! ```

use std::collections::VecDeque;
use tcps_core::time::Time;

/// A segment that is not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    /// Its first position, and that behind it.
    pub(super) start: u64,
    pub(super) end: u64,
    /// When it was sent last, and as the how many-th of all.
    pub(super) sent_ns: Time,
    pub(super) order: u64,
    /// The receiver has it, though not what is before it.
    pub(super) sacked: bool,
    /// It is thought lost.
    pub(super) lost: bool,
    /// It has been sent again since it was thought lost.
    pub(super) repeated: bool,
    /// It has been sent more than once.
    pub(super) ever_repeated: bool,
    /// Segments that had been delivered when it was sent.
    pub(super) delivered: u64,
}

/// Segments in the order of their positions.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    all: VecDeque<Sent>,
    sacked: u32,
    lost: u32,
    repeated: u32,
    /// Behind the last segment that was selectively acknowledged.
    highest: u64,
    /// Segments that were sent, repeats too.
    sendings: u64,
    /// Nothing before this position is to be sent again.
    lost_from: u64,
}

/// What an acknowledgement has brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AckSummary {
    /// Segments that are known to have arrived now and were not before.
    pub(super) delivered: u32,
    /// Whether some of them were selectively acknowledged.
    pub(super) sacked: bool,
    /// Whether the oldest segments were acknowledged.
    pub(super) acked: bool,
    /// When the first and the last of the acknowledged were sent that were sent once only.
    pub(super) acked_sent_ns: Option<(Time, Time)>,
    /// The same of those selectively acknowledged.
    pub(super) sacked_sent_ns: Option<(Time, Time)>,
    /// Whether something sent once only has arrived that was sent before a time-out.
    pub(super) original: bool,
    /// Whether something sent more than once is acknowledged.
    pub(super) repeated: bool,
    /// Least position that arrived later than something sent behind it, without having been sent again.
    pub(super) reordered: Option<u64>,
}

/// A segment that has arrived, for RACK.
pub(super) type Arrived<'a> = &'a mut dyn FnMut(&Sent);

fn span(found: &mut Option<(Time, Time)>, sent_ns: Time) {
    *found = Some((found.map_or(sent_ns, |f| f.0), sent_ns));
}

impl Scoreboard {
    /// Notes a new segment.
    pub(super) fn push(&mut self, start: u64, end: u64, sent_ns: Time, delivered: u64) {
        let (sacked, lost, repeated, ever_repeated) = (false, false, false, false);
        self.sendings += 1;
        let order = self.sendings;
        self.all.push_back(Sent {
            start,
            end,
            sent_ns,
            order,
            sacked,
            lost,
            repeated,
            ever_repeated,
            delivered,
        });
    }

    /// Everything before `position` has arrived.
    pub(super) fn acknowledge(
        &mut self,
        position: u64,
        before_timeout: u64,
        summary: &mut AckSummary,
        arrived: Arrived<'_>,
    ) {
        while let Some(first) = self.all.front().copied().filter(|s| s.end <= position) {
            self.all.pop_front();
            self.count(&first, -1);
            summary.acked = true;
            summary.repeated |= first.ever_repeated;
            if !first.sacked {
                summary.delivered += 1;
                arrived(&first);
                if !first.ever_repeated {
                    span(&mut summary.acked_sent_ns, first.sent_ns);
                    summary.original |= first.end <= before_timeout;
                    self.note_order(&first, summary);
                }
            }
        }
        // A part of a segment: what is left of it counts as a segment.
        if let Some(first) = self.all.front_mut().filter(|s| s.start < position) {
            first.start = position;
        }
    }

    /// The receiver has what is between two positions. Only whole segments count.
    pub(super) fn sack(
        &mut self,
        range: (u64, u64),
        before_timeout: u64,
        summary: &mut AckSummary,
        arrived: Arrived<'_>,
    ) {
        let mut at = self.all.partition_point(|s| s.start < range.0);
        while let Some(segment) = self.all.get(at).copied().filter(|s| s.end <= range.1) {
            at += 1;
            if segment.sacked {
                continue;
            }
            self.count(&segment, -1);
            // A repeat of what was not thought lost is still in flight, but that no longer matters.
            let known = Sent { sacked: true, lost: false, repeated: false, ..segment };
            self.all[at - 1] = known;
            self.count(&known, 1);
            summary.delivered += 1;
            summary.sacked = true;
            arrived(&segment);
            if !segment.ever_repeated {
                span(&mut summary.sacked_sent_ns, segment.sent_ns);
                summary.original |= segment.end <= before_timeout;
                self.note_order(&segment, summary);
            }
            self.highest = self.highest.max(segment.end);
        }
    }

    fn note_order(&self, segment: &Sent, summary: &mut AckSummary) {
        if segment.start < self.highest {
            summary.reordered = Some(summary.reordered.map_or(segment.start, |r| r.min(segment.start)));
        }
    }

    /// Takes a segment's state into the counts, or out of them.
    fn count(&mut self, segment: &Sent, by: i32) {
        let add = |counter: &mut u32, is: bool| *counter = counter.wrapping_add_signed(by * i32::from(is));
        add(&mut self.sacked, segment.sacked);
        add(&mut self.lost, segment.lost);
        add(&mut self.repeated, segment.repeated);
    }

    /// Thinks those segments lost that `is_lost` says, among those in flight that were sent first before the `before`-th of
    /// all; how many.
    pub(super) fn mark_lost(&mut self, before: u64, mut is_lost: impl FnMut(usize, &Sent) -> bool) -> u32 {
        let mut marked = 0;
        for at in 0..self.all.len() {
            let segment = self.all[at];
            // All behind it were sent later.
            if segment.order >= before && !segment.ever_repeated {
                break;
            }
            if !segment.sacked && (!segment.lost || segment.repeated) && is_lost(at, &segment) {
                self.count(&segment, -1);
                let known = Sent { lost: true, repeated: false, ..segment };
                self.all[at] = known;
                self.count(&known, 1);
                self.lost_from = self.lost_from.min(segment.start);
                marked += 1;
            }
        }
        marked
    }

    /// Thinks no segment lost any more: none was.
    pub(super) fn forget_losses(&mut self) {
        self.lost = 0;
        self.all.iter_mut().for_each(|s| s.lost = false);
    }

    /// The receiver no longer has what it has told of.
    // RFC 2018 §8
    pub(super) fn forget_sacks(&mut self) {
        (self.sacked, self.highest) = (0, 0);
        self.all.iter_mut().for_each(|s| s.sacked = false);
    }

    /// The first segment thought lost that has not been sent again.
    pub(super) fn next_lost(&mut self) -> Option<usize> {
        if self.lost == 0 {
            return None;
        }
        let from = self.all.partition_point(|s| s.end <= self.lost_from);
        let at = self.all.range(from..).position(|s| s.lost && !s.repeated).map(|n| from + n);
        self.lost_from = at.map_or(u64::MAX, |at| self.all[at].start);
        at
    }

    /// Cuts a segment in two, the second of which begins at `behind`.
    pub(super) fn cut(&mut self, at: usize, behind: u64) {
        let rest = Sent { start: behind, ..self.all[at] };
        self.all[at].end = behind;
        self.all.insert(at + 1, rest);
        self.count(&rest, 1);
    }

    /// A segment is sent again.
    pub(super) fn repeat(&mut self, at: usize, now: Time, delivered: u64) -> Option<Sent> {
        let segment = *self.all.get(at)?;
        self.count(&segment, -1);
        self.sendings += 1;
        let again = Sent {
            repeated: true,
            ever_repeated: true,
            sent_ns: now,
            order: self.sendings,
            delivered,
            ..segment
        };
        self.all[at] = again;
        self.count(&again, 1);
        Some(again)
    }

    /// The oldest segment.
    pub(super) fn first(&self) -> Option<&Sent> {
        self.all.front()
    }

    /// First position of a segment, and that behind it.
    pub(super) fn range(&self, at: usize) -> Option<(u64, u64)> {
        self.all.get(at).map(|s| (s.start, s.end))
    }

    /// Segments that are not acknowledged.
    pub(super) fn len(&self) -> u32 {
        self.all.len() as u32
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Segments in the network, as far as is known.
    // [RFC 6675 §4]
    pub(super) fn in_flight(&self) -> u32 {
        (self.len() + self.repeated).saturating_sub(self.sacked + self.lost)
    }

    /// Segments selectively acknowledged.
    pub(super) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Segments thought lost, whether sent again or not.
    pub(super) fn lost(&self) -> u32 {
        self.lost
    }

    /// Segments sent again that are in flight.
    pub(super) fn repeated(&self) -> u32 {
        self.repeated
    }

    /// The ranges of those.
    pub(super) fn repeats(&self) -> Vec<(u64, u64)> {
        self.all.iter().filter(|s| s.repeated).map(|s| (s.start, s.end)).collect()
    }

    /// Behind the last segment selectively acknowledged.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ten segments of ten bytes from position 1 on, 1 ns apart.
    fn ten() -> Scoreboard {
        let mut board = Scoreboard::default();
        (0..10).for_each(|i| board.push(1 + 10 * i, 11 + 10 * i, i as Time, 0));
        board
    }

    // [RFC 6675 §4]
    #[test]
    fn what_is_sacked_or_lost_is_not_in_flight_and_what_is_repeated_is() {
        let mut board = ten();
        let mut summary = AckSummary::default();
        board.sack((31, 61), 0, &mut summary, &mut |_| {});
        assert_eq!((summary.delivered, board.in_flight(), board.highest()), (3, 7, 61));
        assert_eq!(board.mark_lost(u64::MAX, |_, s| s.end <= 21), 2);
        assert_eq!((board.in_flight(), board.next_lost()), (5, Some(0)));
        board.repeat(0, 100, 0);
        assert_eq!((board.in_flight(), board.next_lost()), (6, Some(1)));
        let mut summary = AckSummary::default();
        board.acknowledge(21, 0, &mut summary, &mut |_| {});
        assert_eq!((summary.delivered, summary.repeated, summary.reordered), (2, true, Some(11)));
        assert_eq!((board.in_flight(), board.lost(), board.sacked(), board.len()), (5, 0, 3, 8));
    }

    #[test]
    fn only_whole_segments_are_sacked_and_a_part_that_is_acknowledged_goes() {
        let mut board = ten();
        let mut summary = AckSummary::default();
        board.sack((12, 39), 0, &mut summary, &mut |_| {});
        assert_eq!(summary.delivered, 1, "21 to 31");
        board.acknowledge(16, 0, &mut summary, &mut |_| {});
        assert_eq!(board.first().unwrap().start, 16);
    }

    /// RACK measures a round trip from the last sending, and sees by what had been delivered then whether its window was widened in
    /// the same one.
    // [RFC 8985 §6.2, step 4]
    #[test]
    fn a_repeat_that_arrives_tells_of_its_own_sending() {
        let mut board = Scoreboard::default();
        board.push(1, 11, 0, 3);
        board.push(11, 21, 1, 3);
        board.repeat(0, 50, 7);
        let mut arrived = Vec::new();
        board.acknowledge(21, 0, &mut AckSummary::default(), &mut |s| {
            arrived.push((s.sent_ns, s.order, s.delivered));
        });
        assert_eq!(arrived, [(50, 3, 7), (1, 2, 3)]);
    }

    proptest! {
        #[test]
        fn counts_are_those_of_the_entries(acts in proptest::collection::vec((0u8..7, 0u64..120, 0u64..60), 1..80)) {
            let mut board = ten();
            let mut end = 101;
            for (act, a, b) in acts {
                match act {
                    0 => board.sack((a, a + b), 0, &mut AckSummary::default(), &mut |_| {}),
                    1 => board.acknowledge(a.min(end), 0, &mut AckSummary::default(), &mut |_| {}),
                    2 => drop(board.mark_lost(b, |_, s| s.end <= a)),
                    3 => drop(board.next_lost().and_then(|at| board.repeat(at, 9, 0))),
                    4 => board.forget_losses(),
                    5 => {
                        let inside = board.all.iter().position(|s| s.start < a && a < s.end);
                        inside.into_iter().for_each(|at| board.cut(at, a));
                    }
                    _ => {
                        board.push(end, end + 10, 9, 0);
                        end += 10;
                    }
                }
                let next = board.all.iter().position(|s| s.lost && !s.repeated);
                prop_assert_eq!(board.next_lost(), next);
                let count = |is: fn(&Sent) -> bool| board.all.iter().filter(|s| is(s)).count() as u32;
                prop_assert_eq!(board.sacked, count(|s| s.sacked));
                prop_assert_eq!(board.lost, count(|s| s.lost));
                prop_assert_eq!(board.repeated, count(|s| s.repeated));
                prop_assert!(board.all.iter().all(|s| !(s.sacked && (s.lost || s.repeated))));
            }
        }
    }
}
