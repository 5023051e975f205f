//! What the peer has told of each packet that left (RFC 8888): when it came, or that it did not.
//!
//! ```text
//! packet leaves ─► entry ─┐
//! feedback ───► arrivals ─┴─► news of each packet once, the oldest first
//! ```
//! A packet that two feedbacks of different times pass over is lost: the first may be older than its arrival. Arrivals are on
//! the receiver's clock from the first feedback on, in 1/1024 s.

use super::clock;
use std::collections::VecDeque;
use tcps_core::{
    rate,
    time::{Time, SECOND},
};
use tcps_wire::rtcp::ccfb::{self, Ccfb, Stream};

/// Packets of a source that are remembered: as many as a block may tell of.
const REMEMBERED: usize = ccfb::MAX_REPORTS;
/// Blocks of a datagram that are read.
const MOST_BLOCKS: usize = 64;

/// A packet as it left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) flow: u16,
    pub(crate) index: u32,
    pub(crate) wire_bytes: u32,
    pub(crate) sent_ns: Time,
}

/// A packet of which nothing has been told, or too little.
#[derive(Debug)]
struct Entry {
    sequence: u16,
    left: Left,
    /// Timestamp of the feedback that passed over it.
    missed: Option<u32>,
    told: bool,
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) left: Left,
    /// Whether it came; when that was may still not be known.
    pub(crate) came: bool,
    pub(crate) arrival: rate::Arrival,
}

/// The packets of each source.
#[derive(Debug)]
pub(crate) struct Ledger {
    sources: Vec<(u32, VecDeque<Entry>)>,
    /// Timestamp of the newest feedback, and the time that it stands for: the receiver's, from the first feedback on.
    clock: Option<(u32, Time)>,
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

    /// A packet leaves; those of other sources are not the ledger's.
    pub(crate) fn add(&mut self, ssrc: u32, sequence: u16, left: Left) {
        let Some((_, sent)) = self.sources.iter_mut().find(|(own, _)| *own == ssrc) else { return };
        if sent.len() == REMEMBERED {
            sent.pop_front();
        }
        sent.push_back(Entry { sequence, left, missed: None, told: false });
    }

    /// Feedback came: what is new in it.
    // [RFC 8888 §3.1]
    pub(crate) fn told(&mut self, now: Time, ccfb: &Ccfb) -> Vec<News> {
        let Some(made_ns) = self.made_ns(ccfb.timestamp) else { return Vec::new() };
        let made = Made { heard_ns: now, made_ns, timestamp: ccfb.timestamp };
        let mut news = Vec::new();
        for stream in ccfb.streams.iter().take(MOST_BLOCKS) {
            let Some((_, sent)) = self.sources.iter_mut().find(|(ssrc, _)| *ssrc == stream.ssrc) else {
                continue;
            };
            news.extend(sent.iter_mut().filter(|e| !e.told).filter_map(|e| e.heard(stream, made)));
            while sent.front().is_some_and(|e| e.told) {
                sent.pop_front();
            }
        }
        news.sort_by_key(|n| n.left.sent_ns);
        news
    }

    /// The receiver's time at which feedback was made; none if a newer one has come.
    fn made_ns(&mut self, timestamp: u32) -> Option<Time> {
        let (newest, at_ns) = *self.clock.get_or_insert((timestamp, 0));
        let ahead = timestamp.wrapping_sub(newest);
        if (ahead as i32) < 0 {
            return None;
        }
        let made_ns = at_ns.saturating_add(clock::from_short(ahead));
        self.clock = Some((timestamp, made_ns));
        Some(made_ns)
    }
}

impl Entry {
    /// What a block says of it; none if it leaves that open.
    fn heard(&mut self, stream: &Stream, made: Made) -> Option<News> {
        let place = self.sequence.wrapping_sub(stream.begin);
        match stream.arrivals.get(usize::from(place)) {
            Some(Some(arrival)) => Some(self.came(*arrival, made)),
            Some(None) => self.missed(made.timestamp),
            None if (place as i16) < 0 => self.missed(made.timestamp),
            None => None,
        }
    }

    fn came(&mut self, arrival: ccfb::Arrival, made: Made) -> News {
        let sent_ns = self.left.sent_ns;
        let since_ns = made.heard_ns.saturating_sub(sent_ns);
        let known = (arrival.offset < ccfb::OVER_RANGE).then(|| Time::from(arrival.offset) * SECOND / 1024);
        let arrived_ns = known.map(|ago_ns| made.made_ns.saturating_sub(ago_ns));
        let round_trip_ns = known.map_or(0, |ago_ns| since_ns.saturating_sub(ago_ns).max(0));
        self.news(true, arrived_ns, round_trip_ns)
    }

    fn missed(&mut self, timestamp: u32) -> Option<News> {
        let before = *self.missed.get_or_insert(timestamp);
        (before != timestamp).then(|| self.news(false, None, 0))
    }

    fn news(&mut self, came: bool, arrived_ns: Option<Time>, round_trip_ns: Time) -> News {
        self.told = true;
        let Left { sent_ns, wire_bytes, .. } = self.left;
        let arrival = rate::Arrival { sent_ns, wire_bytes, arrived_ns, round_trip_ns };
        News { left: self.left, came, arrival }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::MS;

    const SECOND_UNITS: u32 = 65_536;

    fn ledger(sequences: impl IntoIterator<Item = u16>) -> Ledger {
        let mut ledger = Ledger::new([7]);
        for (index, sequence) in (0..).zip(sequences) {
            let sent_ns = Time::from(index) * MS;
            ledger.add(7, sequence, Left { flow: 1, index, wire_bytes: 100, sent_ns });
            ledger.add(8, sequence, Left { flow: 2, index, wire_bytes: 100, sent_ns });
        }
        ledger
    }

    /// Feedback at `timestamp` on packets from `begin` on; of each how many 1024ths of a second ago it came.
    fn ccfb(timestamp: u32, ssrc: u32, begin: u16, offsets: &[Option<u16>]) -> Ccfb {
        let arrivals = offsets.iter().map(|o| o.map(|offset| ccfb::Arrival { ecn: 0, offset })).collect();
        Ccfb { sender: 9, streams: vec![Stream { ssrc, begin, arrivals }], timestamp }
    }

    fn indices(news: &[News]) -> Vec<(u32, bool)> {
        news.iter().map(|n| (n.left.index, n.came)).collect()
    }

    // [RFC 8888 §3.1] [PROTOCOLS 12.3]
    #[test]
    fn each_packet_is_told_of_once_with_times_of_the_receiver() {
        let mut l = ledger([65_534, 65_535, 0, 1]);
        let all = [Some(512), Some(256), Some(0)];
        let news = l.told(600 * MS, &ccfb(5 * SECOND_UNITS, 7, 65_534, &all));
        assert_eq!(indices(&news), [(0, true), (1, true), (2, true)]);
        let arrived: Vec<_> = news.iter().map(|n| n.arrival.arrived_ns.unwrap()).collect();
        assert_eq!(arrived, [-500 * MS, -250 * MS, 0], "from the first feedback on");
        assert_eq!(news[0].arrival.round_trip_ns, 100 * MS, "without what it waited there");
        assert_eq!(l.told(600 * MS, &ccfb(5 * SECOND_UNITS, 7, 65_534, &all)), []);
        let news = l.told(900 * MS, &ccfb(6 * SECOND_UNITS, 7, 1, &[Some(0)]));
        assert_eq!((indices(&news), news[0].arrival.arrived_ns), (vec![(3, true)], Some(SECOND)));
    }

    // [RFC 8888 §3.1]
    #[test]
    fn what_two_feedbacks_of_different_times_pass_over_is_lost() {
        let mut l = ledger(0..6);
        let first = ccfb(10, 7, 1, &[Some(0), None, Some(0)]);
        assert_eq!(indices(&l.told(0, &first)), [(1, true), (3, true)]);
        assert_eq!(l.told(0, &first), [], "the same time says nothing new");
        assert_eq!(indices(&l.told(0, &ccfb(11, 7, 2, &[Some(0)]))), [(0, false), (2, true)], "it came late");
        assert_eq!(l.told(0, &ccfb(9, 7, 4, &[Some(0)])), [], "older than the newest");
    }

    // [RFC 8888 §3.1]
    #[test]
    fn a_packet_may_have_come_at_a_time_that_nobody_knows() {
        let mut l = ledger(0..2);
        let news = l.told(0, &ccfb(10, 7, 0, &[Some(ccfb::OVER_RANGE), Some(ccfb::UNAVAILABLE)]));
        assert!(news.iter().all(|n| n.came && n.arrival.arrived_ns.is_none()));
        assert_eq!(news.len(), 2);
    }

    #[test]
    fn sources_of_others_say_nothing_and_what_is_never_told_of_is_forgotten() {
        let mut l = ledger((0..40_000u32).map(|i| i as u16));
        assert_eq!(l.told(0, &ccfb(10, 6, 0, &[Some(0)])), []);
        assert_eq!(l.sources[0].1.len(), REMEMBERED);
    }
}
