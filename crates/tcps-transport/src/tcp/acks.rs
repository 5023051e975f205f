//! When the receiver acknowledges: at once, with the second segment, or after 40 ms, as Linux does.
//!
//! ```text
//! at once      the first 16 segments, after a pause, after a duplicate; a gap, or one that closes; a mark of congestion
//! compressed   behind a gap, after three at once: within 1 ms, or a twentieth of a round trip
//! read         small segments, which end what somebody wrote, when they are read
//! delayed      otherwise; answers carry it
//! ```

use tcps_core::time::{Time, MS};

/// Acknowledgements sent at once at first (TCP_MAX_QUICKACKS).
const QUICK: u32 = 16;
/// Least delay (TCP_ATO_MIN, TCP_DELACK_MIN), the most without, and with, an exchange of questions and answers.
const LEAST_NS: Time = 40 * MS;
const MOST_NS: Time = 500 * MS;
const MOST_ANSWER_NS: Time = 200 * MS;
/// Acknowledgements behind a gap that are sent at once, and how long others wait (tcp_comp_sack_delay_ns).
const GAP_QUICK: u32 = 3;
const COMPRESSED_NS: Time = MS;
const MOST_COMPRESSED: u32 = 44;

/// When to acknowledge.
#[derive(Debug, Default)]
pub(super) struct Acks {
    quick: u32,
    delay_ns: Time,
    received_ns: Time,
    /// Data goes out as soon as data comes in: acknowledgements ride on it.
    is_exchange: bool,
    /// Small segments since the last acknowledgement, at most 2.
    pushed: u8,
    is_scheduled: bool,
    is_due: bool,
    due_ns: Option<Time>,
    compressed: u32,
    compressed_ns: Option<Time>,
    gap: (u64, u32),
    /// Size of a full segment, as seen.
    segment_bytes: u64,
}

/// A segment with content, as far as its acknowledgement depends on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    pub(super) bytes: u64,
    /// It closed the last gap; there are gaps; it was of no use.
    pub(super) closes_gaps: bool,
    pub(super) has_gaps: bool,
    pub(super) is_useless: bool,
    /// It is the end of what was written, or of the stream.
    pub(super) is_pushed: bool,
    pub(super) is_last: bool,
    /// What is expected next, and what of it was acknowledged.
    pub(super) expected: u64,
    pub(super) told: u64,
    /// Smoothed round trip, and time-out.
    pub(super) rtt_ns: Option<Time>,
    pub(super) timeout_ns: Time,
}

impl Acks {
    /// A segment has come.
    pub(super) fn received(&mut self, now: Time, segment: &Taken) {
        self.is_scheduled = true;
        if segment.is_useless {
            self.quicken();
            self.is_due = true;
            return;
        }
        self.measure(segment);
        self.pace(now, segment.timeout_ns);
        self.is_due |= segment.closes_gaps || segment.is_last;
        let two_segments = segment.expected.saturating_sub(segment.told) > self.segment_bytes;
        if two_segments || self.is_quick() {
            self.is_due = true;
        } else if segment.has_gaps {
            self.compress(now, segment);
        } else if !self.is_due {
            self.delay(now, segment.rtt_ns);
        }
    }

    /// Sees how large segments are, and if one is the end of what was written.
    fn measure(&mut self, segment: &Taken) {
        if segment.bytes < self.segment_bytes {
            self.pushed = (self.pushed + 1).min(2);
            return;
        }
        self.segment_bytes = segment.bytes;
        if segment.is_pushed {
            self.pushed = self.pushed.max(1);
        }
    }

    /// How long an acknowledgement may wait: as long as segments are apart.
    fn pace(&mut self, now: Time, timeout_ns: Time) {
        let apart_ns = now - self.received_ns;
        if self.delay_ns == 0 {
            self.quick = self.quick.max(QUICK);
            self.delay_ns = LEAST_NS;
        } else if apart_ns <= LEAST_NS / 2 {
            self.delay_ns = self.delay_ns / 2 + LEAST_NS / 2;
        } else if apart_ns < self.delay_ns {
            self.delay_ns = (self.delay_ns / 2 + apart_ns).min(timeout_ns);
        } else if apart_ns > timeout_ns {
            self.quick = self.quick.max(QUICK);
        }
        self.received_ns = now;
    }

    fn is_quick(&self) -> bool {
        self.quick > 0 && !self.is_exchange
    }

    /// The peer needs answers: duplicates, marks of congestion.
    pub(super) fn quicken(&mut self) {
        self.quick = self.quick.max(QUICK);
        self.is_exchange = false;
        self.delay_ns = LEAST_NS;
    }

    /// Something is to be answered at once.
    pub(super) fn demand(&mut self) {
        (self.is_scheduled, self.is_due) = (true, true);
    }

    fn compress(&mut self, now: Time, segment: &Taken) {
        if self.gap.0 != segment.expected {
            self.gap = (segment.expected, 0);
        }
        if self.gap.1 < GAP_QUICK || self.compressed >= MOST_COMPRESSED {
            self.gap.1 += 1;
            self.is_due = true;
            return;
        }
        self.compressed += 1;
        let wait_ns = segment.rtt_ns.map_or(COMPRESSED_NS, |rtt| (rtt / 20).min(COMPRESSED_NS));
        self.compressed_ns.get_or_insert(now.saturating_add(wait_ns));
    }

    // [RFC 9293 §3.8.6.3]
    fn delay(&mut self, now: Time, rtt_ns: Option<Time>) {
        let answers = self.is_exchange || self.pushed > 0;
        let mut most_ns = if answers { MOST_ANSWER_NS } else { MOST_NS };
        if let Some(rtt_ns) = rtt_ns {
            most_ns = most_ns.min(rtt_ns.max(LEAST_NS));
        }
        let wait_ns = self.delay_ns.min(most_ns).min(MOST_ANSWER_NS);
        let due_ns = now.saturating_add(wait_ns);
        match self.due_ns {
            Some(old) if old <= now.saturating_add(wait_ns / 4) => self.is_due = true,
            Some(old) => self.due_ns = Some(old.min(due_ns)),
            None => self.due_ns = Some(due_ns),
        }
    }

    /// Bytes have been read while `unacknowledged` were not acknowledged; `has_opened`: there is much more room now.
    pub(super) fn read(&mut self, unacknowledged: u64, has_opened: bool) {
        let is_end = self.pushed > 1 || self.pushed > 0 && !self.is_exchange;
        if self.is_scheduled && (unacknowledged > self.segment_bytes || is_end) || has_opened {
            self.demand();
        }
    }

    /// A segment goes out, which acknowledges everything. `has_content`: it would have gone out anyway.
    pub(super) fn sent(&mut self, now: Time, has_content: bool) {
        if self.is_scheduled {
            self.quick = self.quick.saturating_sub(1);
        }
        if has_content && self.delay_ns > 0 && now - self.received_ns < self.delay_ns {
            self.is_exchange = true;
        }
        (self.is_scheduled, self.is_due, self.pushed) = (false, false, 0);
        (self.due_ns, self.compressed_ns, self.compressed) = (None, None, 0);
    }

    /// Whether an acknowledgement is to go out now.
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Does what is due at `now`.
    pub(super) fn expire(&mut self, now: Time, timeout_ns: Time) {
        if self.compressed_ns.is_some_and(|t| t <= now) {
            self.is_due = true;
        }
        if self.due_ns.is_some_and(|t| t <= now) {
            self.is_due = true;
            // Nothing took it along: the exchange is over, or segments are further apart than was thought.
            if self.is_exchange {
                (self.is_exchange, self.delay_ns) = (false, LEAST_NS);
            } else {
                self.delay_ns = (2 * self.delay_ns).min(timeout_ns);
            }
        }
    }

    /// When `expire` is wanted.
    pub(super) fn wake_ns(&self) -> Option<Time> {
        [self.due_ns, self.compressed_ns].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Taken = Taken {
        bytes: 1000,
        closes_gaps: false,
        has_gaps: false,
        is_useless: false,
        is_pushed: false,
        is_last: false,
        expected: 0,
        told: 0,
        rtt_ns: Some(30 * MS),
        timeout_ns: 230 * MS,
    };

    /// Full segments, so far apart. Which of them are acknowledged at once.
    fn stream(acks: &mut Acks, begin: Time, apart_ns: Time, count: u64) -> Vec<u64> {
        let (mut told, mut answered) = (0, Vec::new());
        for i in 1..=count {
            let now = begin + i as Time * apart_ns;
            acks.received(now, &Taken { expected: i * 1000, told, ..PLAIN });
            acks.read(0, false);
            if acks.is_due() {
                acks.sent(now, false);
                told = i * 1000;
                answered.push(i);
            }
        }
        answered
    }

    #[test]
    fn the_first_sixteen_are_acknowledged_at_once_and_then_every_second() {
        let mut acks = Acks::default();
        let answered = stream(&mut acks, 0, MS, 24);
        assert_eq!(answered, (1..=16).chain([18, 20, 22, 24]).collect::<Vec<_>>());
    }

    // [RFC 9293 §3.8.6.3]
    #[test]
    fn one_segment_alone_is_acknowledged_after_40_ms() {
        let mut acks = Acks::default();
        stream(&mut acks, 0, MS, 18);
        acks.received(30 * MS, &Taken { expected: 19_000, told: 18_000, ..PLAIN });
        assert_eq!((acks.is_due(), acks.wake_ns()), (false, Some(70 * MS)));
        acks.expire(70 * MS, 230 * MS);
        assert!(acks.is_due());
    }

    #[test]
    fn small_segments_are_acknowledged_when_they_are_read_unless_answers_take_it_along() {
        let mut acks = Acks::default();
        stream(&mut acks, 0, MS, 18);
        let small = Taken { bytes: 100, expected: 18_100, told: 18_000, ..PLAIN };
        acks.received(20 * MS, &small);
        assert!(!acks.is_due());
        acks.read(100, false);
        assert!(acks.is_due());
        acks.sent(21 * MS, true);
        acks.received(22 * MS, &Taken { expected: 18_200, told: 18_100, ..small });
        acks.read(100, false);
        assert!(!acks.is_due() && acks.wake_ns().is_some(), "an answer is awaited");
    }

    #[test]
    fn behind_a_gap_three_are_acknowledged_at_once_and_the_others_within_a_millisecond() {
        let mut acks = Acks::default();
        stream(&mut acks, 0, MS, 18);
        let mut due = Vec::new();
        for i in 0..5 {
            let now = 20 * MS + i * MS / 10;
            acks.received(now, &Taken { expected: 18_000, told: 18_000, has_gaps: true, ..PLAIN });
            due.push(acks.is_due());
            if acks.is_due() {
                acks.sent(now, false);
            }
        }
        assert_eq!(due, [true, true, true, false, false]);
        assert_eq!(acks.wake_ns(), Some(20 * MS + 3 * MS / 10 + MS));
    }

    /// Linux goes half way to twice the time between segments.
    // [RFC 9293 §3.8.6.3]
    #[test]
    fn an_acknowledgement_may_wait_for_longer_where_segments_are_further_apart() {
        let mut acks = Acks::default();
        stream(&mut acks, 0, MS, 18);
        let alone = Taken { expected: 19_000, told: 18_000, rtt_ns: Some(300 * MS), ..PLAIN };
        acks.received(48 * MS, &alone);
        assert_eq!((acks.is_due(), acks.wake_ns()), (false, Some(98 * MS)), "half of 40 ms, and 30 ms");
    }
}
