//! What the peer has told of each packet that left (RFC 8888): when it came, or that it did not.
//!
//! ```text
//! packet leaves ─► entry ─┐
//! feedback ───► arrivals ─┴─► feedback of each packet once, the oldest first
//! ```
//! A packet that two feedbacks of different times pass over is lost: the first may be older than its arrival. One that came
//! late is told of again: what a later feedback says counts. Arrivals are on the receiver's clock from the first feedback on,
//! in 1/1024 s. Feedback must be in step with that clock: a timestamp that is older than one had, or so far ahead that the
//! time since cannot have brought it there, is refused. When nothing has been in step for a second, the clock begins anew.

use super::clock;
use std::collections::VecDeque;
use tcps_core::{
    ids::FlowId,
    rate,
    time::{Time, SECOND},
};
use tcps_wire::rtcp::ccfb::{self, Ccfb};

/// Packets of a source that are remembered: as many as a block may tell of.
const REMEMBERED: usize = ccfb::MAX_REPORTS;
/// Blocks of a datagram that are read.
const MOST_BLOCKS: usize = 64;
/// How far a timestamp may run ahead of the time since the one before, and how long none may be in step.
const MARGIN_NS: Time = SECOND;
/// How long a packet that was told of as lost may still be told of as come: more than an arrival may be ago in feedback.
const CORRECTED_NS: Time = 10 * SECOND;

/// A packet as it left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) flow: FlowId,
    pub(crate) index: u32,
    pub(crate) wire_bytes: u32,
    pub(crate) sent_ns: Time,
}

/// A packet that is remembered.
#[derive(Debug)]
struct Entry {
    sequence: u16,
    left: Left,
    /// Timestamp of the feedback that passed over it.
    missed: Option<u32>,
    /// Whether it came, once that is told.
    came: Option<bool>,
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacketFeedback {
    pub(crate) left: Left,
    /// Whether it came; when that was may still not be known.
    pub(crate) came: bool,
    /// Whether it was told of as lost before.
    pub(crate) corrects: bool,
    pub(crate) arrival: rate::Arrival,
}

/// The packets of each source.
#[derive(Debug)]
pub(crate) struct Ledger {
    sources: Vec<(u32, VecDeque<Entry>)>,
    clock: Option<Clock>,
}

/// The receiver's clock, as feedback shows it.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// Timestamp of the newest feedback, the time that it stands for, from the first feedback on, and when it came.
    timestamp: u32,
    made_ns: Time,
    heard_ns: Time,
    /// When the first came that was not in step, since one was.
    astray_ns: Option<Time>,
}

/// A feedback: when it came, when it was made, and its timestamp.
#[derive(Debug, Clone, Copy)]
struct Made {
    heard_ns: Time,
    made_ns: Time,
    timestamp: u32,
}

impl Ledger {
    /// For packets of these sources.
    pub(crate) fn new(ssrcs: impl IntoIterator<Item = u32>) -> Self {
        Self { sources: ssrcs.into_iter().map(|ssrc| (ssrc, VecDeque::new())).collect(), clock: None }
    }

    /// A packet leaves. False: it is of another source, and not the ledger's.
    pub(crate) fn add(&mut self, ssrc: u32, sequence: u16, left: Left) -> bool {
        let Some((_, sent)) = self.sources.iter_mut().find(|(own, _)| *own == ssrc) else { return false };
        if sent.len() == REMEMBERED {
            sent.pop_front();
        }
        sent.push_back(Entry { sequence, left, missed: None, came: None });
        true
    }

    /// Feedback came: what is new in it; none if it is refused, as its timestamp is not in step.
    // [RFC 8888 §3.1]
    pub(crate) fn told(&mut self, now: Time, ccfb: &Ccfb) -> Option<Vec<PacketFeedback>> {
        let made_ns = self.made_ns(now, ccfb.timestamp)?;
        let made = Made { heard_ns: now, made_ns, timestamp: ccfb.timestamp };
        let blocks = || ccfb.streams.iter().take(MOST_BLOCKS);
        let mut feedback = Vec::new();
        for (ssrc, sent) in &mut self.sources {
            let mut end = 0;
            for block in blocks().filter(|b| b.ssrc == *ssrc) {
                end = end.max(heard(sent, block.begin, &block.arrivals, made, &mut feedback));
            }
            let passed = sent.range_mut(..end).filter(|e| e.came.is_none());
            feedback.extend(passed.filter_map(|e| e.missed(made.timestamp)));
            while sent.front().is_some_and(|e| e.is_done(now)) {
                sent.pop_front();
            }
        }
        feedback.sort_by_key(|n| (n.left.sent_ns, n.left.flow, n.left.index));
        Some(feedback)
    }

    /// The receiver's time at which feedback was made; none if its timestamp is not in step.
    fn made_ns(&mut self, now: Time, timestamp: u32) -> Option<Time> {
        let fresh = Clock { timestamp, made_ns: 0, heard_ns: now, astray_ns: None };
        let clock = self.clock.get_or_insert(fresh);
        let since_ns = now.saturating_sub(clock.heard_ns).max(0);
        let ahead = timestamp.wrapping_sub(clock.timestamp);
        let in_step = ahead as i32 >= 0 && clock::from_short(ahead) <= since_ns.saturating_add(MARGIN_NS);
        let gone_ns = if in_step { clock::from_short(ahead) } else { since_ns };
        if !in_step && now.saturating_sub(*clock.astray_ns.get_or_insert(now)) < MARGIN_NS {
            return None;
        }
        clock.astray_ns = None;
        if ahead > 0 {
            *clock = Clock { made_ns: clock.made_ns.saturating_add(gone_ns), ..fresh };
        }
        Some(clock.made_ns)
    }
}

/// A block of feedback tells of what was sent: feedback of each packet that it says has come. The place behind the last packet
/// that it covers. Numbers rise in the order of sending.
fn heard(
    sent: &mut VecDeque<Entry>,
    begin: u16,
    arrivals: &[Option<ccfb::Arrival>],
    made: Made,
    feedback: &mut Vec<PacketFeedback>,
) -> usize {
    let Some(front) = sent.front().map(|e| e.sequence) else { return 0 };
    let ahead = |number: u16| i32::from(number.wrapping_sub(front) as i16);
    let place = |sent: &VecDeque<Entry>, to: i32| sent.partition_point(|e| ahead(e.sequence) < to);
    let first = ahead(begin);
    let end = place(sent, first + arrivals.len() as i32);
    let start = place(sent, first);
    for entry in sent.range_mut(start..end).filter(|e| e.came != Some(true)) {
        let arrival = arrivals.get(usize::from(entry.sequence.wrapping_sub(begin)));
        feedback.extend(arrival.copied().flatten().map(|arrival| entry.arrived(arrival, made)));
    }
    end
}

impl Entry {
    /// Whether nothing more can be told of it.
    fn is_done(&self, now: Time) -> bool {
        self.came.is_some_and(|came| came || now.saturating_sub(self.left.sent_ns) > CORRECTED_NS)
    }

    fn arrived(&mut self, arrival: ccfb::Arrival, made: Made) -> PacketFeedback {
        let sent_ns = self.left.sent_ns;
        let since_ns = made.heard_ns.saturating_sub(sent_ns);
        let known = (arrival.offset < ccfb::OVER_RANGE).then(|| Time::from(arrival.offset) * SECOND / 1024);
        let arrived_ns = known.map(|ago_ns| made.made_ns.saturating_sub(ago_ns));
        let round_trip_ns = known.map_or(0, |ago_ns| since_ns.saturating_sub(ago_ns).max(0));
        self.feedback(true, arrived_ns, round_trip_ns)
    }

    fn missed(&mut self, timestamp: u32) -> Option<PacketFeedback> {
        let before = *self.missed.get_or_insert(timestamp);
        (before != timestamp).then(|| self.feedback(false, None, 0))
    }

    fn feedback(&mut self, came: bool, arrived_ns: Option<Time>, round_trip_ns: Time) -> PacketFeedback {
        let corrects = self.came.replace(came).is_some();
        let Left { sent_ns, wire_bytes, .. } = self.left;
        let arrival = rate::Arrival { sent_ns, wire_bytes, arrived_ns, round_trip_ns };
        PacketFeedback { left: self.left, came, corrects, arrival }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::MS;
    use tcps_wire::rtcp::ccfb::Stream;

    const SECOND_UNITS: u32 = 65_536;

    fn ledger(sequences: impl IntoIterator<Item = u16>) -> Ledger {
        let mut ledger = Ledger::new([7]);
        for (index, sequence) in (0..).zip(sequences) {
            let sent_ns = Time::from(index) * MS;
            ledger.add(7, sequence, Left { flow: FlowId(1), index, wire_bytes: 100, sent_ns });
            ledger.add(8, sequence, Left { flow: FlowId(2), index, wire_bytes: 100, sent_ns });
        }
        ledger
    }

    /// Feedback at `timestamp` on packets from `begin` on; of each how many 1024ths of a second ago it came.
    fn ccfb(timestamp: u32, ssrc: u32, begin: u16, offsets: &[Option<u16>]) -> Ccfb {
        let arrivals = offsets.iter().map(|o| o.map(|offset| ccfb::Arrival { ecn: 0, offset })).collect();
        Ccfb { sender: 9, streams: vec![Stream { ssrc, begin, arrivals }], timestamp }
    }

    fn indices(feedback: &[PacketFeedback]) -> Vec<(u32, bool)> {
        feedback.iter().map(|n| (n.left.index, n.came)).collect()
    }

    // [RFC 8888 §3.1] [RFC 8888]
    #[test]
    fn each_packet_is_told_of_once_with_times_of_the_receiver() {
        let mut l = ledger([65_534, 65_535, 0, 1]);
        let all = [Some(512), Some(256), Some(0)];
        let feedback = l.told(600 * MS, &ccfb(5 * SECOND_UNITS, 7, 65_534, &all)).unwrap();
        assert_eq!(indices(&feedback), [(0, true), (1, true), (2, true)]);
        let arrived: Vec<_> = feedback.iter().map(|n| n.arrival.arrived_ns.unwrap()).collect();
        assert_eq!(arrived, [-500 * MS, -250 * MS, 0], "from the first feedback on");
        assert_eq!(feedback[0].arrival.round_trip_ns, 100 * MS, "without what it waited there");
        assert_eq!(l.told(600 * MS, &ccfb(5 * SECOND_UNITS, 7, 65_534, &all)), Some(vec![]));
        let feedback = l.told(900 * MS, &ccfb(6 * SECOND_UNITS, 7, 1, &[Some(0)])).unwrap();
        assert_eq!((indices(&feedback), feedback[0].arrival.arrived_ns), (vec![(3, true)], Some(SECOND)));
    }

    // [RFC 8888 §3.1]
    #[test]
    fn what_two_feedbacks_of_different_times_pass_over_is_lost() {
        let mut l = ledger(0..6);
        let first = ccfb(10, 7, 1, &[Some(0), None, Some(0)]);
        assert_eq!(indices(&l.told(0, &first).unwrap()), [(1, true), (3, true)]);
        assert_eq!(l.told(0, &first), Some(vec![]), "the same time says nothing new");
        let second = l.told(0, &ccfb(11, 7, 2, &[Some(0)])).unwrap();
        assert_eq!(indices(&second), [(0, false), (2, true)], "it came late");
        assert_eq!(l.told(0, &ccfb(9, 7, 4, &[Some(0)])), None, "older than the newest");
    }

    // [RFC 8888 §3.1]
    #[test]
    fn a_later_feedback_corrects_what_an_earlier_one_called_lost() {
        let mut l = ledger(0..4);
        let mut told = |timestamp, begin, offsets: &[Option<u16>]| {
            let feedback = l.told(0, &ccfb(timestamp, 7, begin, offsets)).unwrap();
            feedback.iter().map(|n| (n.left.index, n.came, n.corrects)).collect::<Vec<_>>()
        };
        assert_eq!(told(10, 0, &[None, Some(0)]), [(1, true, false)]);
        assert_eq!(told(11, 0, &[None, Some(0), Some(0)]), [(0, false, false), (2, true, false)]);
        assert_eq!(told(12, 0, &[Some(0), None]), [(0, true, true)], "and what came stays come");
        assert_eq!(told(13, 3, &[Some(0)]), [(3, true, false)]);
        assert!(l.sources[0].1.is_empty(), "all came");
    }

    #[test]
    fn what_was_lost_for_long_is_forgotten() {
        let mut l = ledger(0..2);
        for (timestamp, now) in [(10, 0), (11, CORRECTED_NS), (12, CORRECTED_NS + MS)] {
            l.told(now, &ccfb(timestamp, 7, 1, &[None]));
        }
        assert_eq!(l.sources[0].1.len(), 1, "the first of them left a millisecond before the second");
    }

    // [RFC 8888 §3.1]
    #[test]
    fn a_timestamp_far_ahead_is_refused_and_silences_nobody() {
        let mut l = ledger(0..4);
        let mut came =
            |now, timestamp, begin| Some(l.told(now, &ccfb(timestamp, 7, begin, &[Some(0)]))?.len());
        assert_eq!(came(0, 0, 0), Some(1));
        assert_eq!(came(MS, 7200 * SECOND_UNITS, 1), None, "2 h ahead after 1 ms");
        assert_eq!(came(100 * MS, SECOND_UNITS / 10, 1), Some(1));
        assert_eq!(came(SECOND, 21 * SECOND_UNITS / 10, 2), None, "1.1 s ahead");
        assert_eq!(came(SECOND, 18 * SECOND_UNITS / 10, 2), Some(1), "0.8 s ahead");
    }

    // [RFC 8888 §3.1]
    #[test]
    fn the_clock_begins_anew_when_nothing_is_in_step_for_a_second() {
        let mut l = ledger(0..3);
        let mut arrived = |now, timestamp, begin| {
            let feedback = l.told(now, &ccfb(timestamp, 7, begin, &[Some(0)]))?;
            feedback[0].arrival.arrived_ns
        };
        assert_eq!(arrived(0, 7200 * SECOND_UNITS, 0), Some(0), "a forged one is the first");
        let told = [100, 600, 1099].map(|ms| arrived(ms * MS, ms as u32 * SECOND_UNITS / 1000, 1));
        assert_eq!(told, [None; 3]);
        assert_eq!(arrived(1100 * MS, 1100 * SECOND_UNITS / 1000, 1), Some(1100 * MS), "by the time since");
        assert_eq!(arrived(1600 * MS, 1600 * SECOND_UNITS / 1000, 2), Some(1600 * MS));
    }

    #[test]
    fn blocks_of_one_source_say_together_what_they_pass_over() {
        let mut l = ledger(0..600);
        let two = |timestamp| {
            let mut ccfb = ccfb(timestamp, 7, 0, &[Some(0), None]);
            ccfb.streams.push(Stream {
                ssrc: 7,
                begin: 500,
                arrivals: vec![Some(ccfb::Arrival { ecn: 0, offset: 0 })],
            });
            ccfb.streams.reverse();
            ccfb
        };
        assert_eq!(indices(&l.told(0, &two(10)).unwrap()), [(0, true), (500, true)]);
        let lost: Vec<_> = (1..500).map(|i| (i, false)).collect();
        assert_eq!(indices(&l.told(0, &two(11)).unwrap()), lost);
    }

    // [RFC 8888 §3.1]
    #[test]
    fn a_packet_may_have_come_at_a_time_that_nobody_knows() {
        let mut l = ledger(0..2);
        let feedback =
            l.told(0, &ccfb(10, 7, 0, &[Some(ccfb::OVER_RANGE), Some(ccfb::UNAVAILABLE)])).unwrap();
        assert!(feedback.iter().all(|n| n.came && n.arrival.arrived_ns.is_none()));
        assert_eq!(feedback.len(), 2);
    }

    #[test]
    fn sources_of_others_say_nothing_and_what_is_never_told_of_is_forgotten() {
        let mut l = ledger((0..40_000u32).map(|i| i as u16));
        assert_eq!(l.told(0, &ccfb(10, 6, 0, &[Some(0)])), Some(vec![]));
        assert_eq!(l.sources[0].1.len(), REMEMBERED);
    }
}
