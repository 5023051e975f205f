//! Feedback about arrivals (RFC 8888): when each valid packet since the last one came.
//!
//! ```text
//! arrivals of a source ──► runs of numbers, none over a gap of 256 ──► blocks that fit into a datagram ──► datagrams
//! ```
//! Only packets of sources that are known count. A number that is far ahead of the others, which a valid source may have
//! after a pause and a forged packet always, begins a run of its own: what lies between is not told packet by packet.

use super::clock;
use std::collections::{BTreeMap, VecDeque};
use tcps_core::time::Time;
use tcps_wire::rtcp::ccfb::{self, Arrival, Ccfb, Stream};

/// Arrivals of a source that are remembered.
const MOST_ARRIVALS: usize = 4096;
/// Feedbacks on a source whose arrivals are remembered, so that what lies behind a late packet is told of with it.
const REMEMBERED: usize = 5;
/// Sources that are remembered.
const MOST_SOURCES: usize = 32;
/// A run ends at a gap that is longer.
const LONGEST_GAP: i32 = 256;
/// Bytes of a feedback packet beside its blocks: header, sender, timestamp.
const FRAME_BYTES: usize = 12;
/// Bytes of a block beside its reports.
const BLOCK_BYTES: usize = 8;

/// Arrivals of each source, and when the next feedback is due.
#[derive(Debug)]
pub(crate) struct ArrivalFeedback {
    period_ns: Time,
    next_ns: Option<Time>,
    mtu_bytes: usize,
    sources: BTreeMap<u32, Heard>,
}

/// Arrivals of a source: those in the last feedbacks, and those since.
#[derive(Debug, Default)]
struct Heard {
    arrivals: VecDeque<(u16, Time)>,
    /// How many of them were new in each of the last feedbacks, the oldest first.
    told: VecDeque<usize>,
    /// The highest number that is remembered no more.
    forgotten: Option<u16>,
}

impl ArrivalFeedback {
    /// Feedback every `period_ns`, in datagrams of at most `mtu_bytes`.
    pub(crate) fn new(period_ns: Time, mtu_bytes: usize) -> Self {
        Self { period_ns, next_ns: None, mtu_bytes, sources: BTreeMap::new() }
    }

    /// Begins.
    pub(crate) fn start(&mut self, now: Time) {
        self.next_ns = Some(now + self.period_ns);
    }

    /// When it is due.
    pub(crate) fn next(&self) -> Option<Time> {
        self.next_ns
    }

    /// A packet of a known source has come.
    pub(crate) fn arrived(&mut self, at: Time, ssrc: u32, sequence: u16) {
        if self.sources.len() < MOST_SOURCES || self.sources.contains_key(&ssrc) {
            self.sources.entry(ssrc).or_default().add(sequence, at);
        }
    }

    /// What is to be sent now, a packet a datagram.
    // [RFC 8888 §3.1] [RFC 8888]
    pub(crate) fn due(&mut self, now: Time, sender: u32) -> Vec<Ccfb> {
        let Some(next_ns) = self.next_ns.filter(|t| *t <= now) else { return Vec::new() };
        self.next_ns = Some(next_ns + self.period_ns * ((now - next_ns) / self.period_ns + 1));
        let most = ((self.mtu_bytes - FRAME_BYTES - BLOCK_BYTES) / 4 * 2).min(ccfb::MAX_REPORTS);
        let blocks: Vec<Stream> = self
            .sources
            .iter_mut()
            .flat_map(|(ssrc, heard)| blocks(*ssrc, heard.next(), now, most))
            .collect();
        let timestamp = clock::middle(clock::ntp(now));
        let packets = packed(blocks, self.mtu_bytes - FRAME_BYTES);
        packets.into_iter().map(|streams| Ccfb { sender, streams, timestamp }).collect()
    }
}

impl Heard {
    fn add(&mut self, sequence: u16, at: Time) {
        self.arrivals.push_back((sequence, at));
        if self.arrivals.len() > MOST_ARRIVALS {
            self.forget(1);
        }
    }

    /// What the next feedback tells: nothing if nothing has come since the last one, else what that told first as well, so
    /// that ranges meet and a feedback may be lost. A late packet takes the range back, and all that came behind it is told
    /// again; it is left out if that is not remembered.
    // [RFC 8888 §3.1]
    fn next(&mut self) -> Vec<(u16, Time)> {
        self.leave_out();
        let old: usize = self.told.iter().sum();
        let new = self.arrivals.len() - old;
        if new == 0 {
            return Vec::new();
        }
        let again = old - self.told.back().copied().unwrap_or(0);
        let numbers = self.arrivals.range(again..).map(|(number, _)| *number);
        let begin = numbers.reduce(|a, b| if is_before(b, a) { b } else { a }).unwrap_or(0);
        let told = self.arrivals.range(..old).filter(|(number, _)| !is_before(*number, begin));
        let all = told.chain(self.arrivals.range(old..)).copied().collect();
        self.told.push_back(new);
        if self.told.len() > REMEMBERED {
            self.forget(self.told[0]);
        }
        all
    }

    /// Leaves out what is new and comes too late, unless that is all and two of it are in sequence: then the source has
    /// begun anew.
    // [RFC 3550 §A.1]
    fn leave_out(&mut self) {
        let Some(forgotten) = self.forgotten else { return };
        let is_late = |number: u16| !is_before(forgotten, number);
        let old: usize = self.told.iter().sum();
        let new = self.arrivals.split_off(old);
        let in_sequence = new.iter().zip(new.iter().skip(1)).any(|(a, b)| b.0 == a.0.wrapping_add(1));
        if in_sequence && new.iter().all(|(number, _)| is_late(*number)) {
            *self = Self { arrivals: new, ..Self::default() };
        } else {
            self.arrivals.extend(new.into_iter().filter(|(number, _)| !is_late(*number)));
        }
    }

    /// Forgets the oldest arrivals.
    fn forget(&mut self, mut count: usize) {
        for (number, _) in self.arrivals.drain(..count) {
            self.forgotten = self.forgotten.filter(|f| !is_before(*f, number)).or(Some(number));
        }
        while let Some(oldest) = self.told.front_mut().filter(|_| count > 0) {
            let gone = count.min(*oldest);
            (*oldest, count) = (*oldest - gone, count - gone);
            if *oldest == 0 {
                self.told.pop_front();
            }
        }
    }
}

/// Whether a number comes before another one.
fn is_before(number: u16, other: u16) -> bool {
    (number.wrapping_sub(other) as i16) < 0
}

/// The blocks that tell of a source, each of at most `most` reports. Of a number that came twice the first counts.
// [RFC 8888 §3.1]
fn blocks(ssrc: u32, arrivals: Vec<(u16, Time)>, now: Time, most: usize) -> Vec<Stream> {
    let Some(&(first, _)) = arrivals.first() else { return Vec::new() };
    let ahead = |seq: u16| i32::from(seq.wrapping_sub(first) as i16);
    let mut sorted: Vec<(i32, Time)> = arrivals.iter().map(|(seq, at)| (ahead(*seq), *at)).collect();
    sorted.sort_by_key(|(n, _)| *n);
    let mut blocks: Vec<Stream> = Vec::new();
    let mut end = i32::MIN / 2;
    for (number, at) in sorted {
        let offset = (clock::short(now - at) >> 6).min(ccfb::OVER_RANGE.into()) as u16;
        let arrival = Some(Arrival { ecn: 0, offset });
        let missing = (number - end).clamp(-1, LONGEST_GAP + 1);
        match blocks.last_mut().filter(|b| {
            missing <= LONGEST_GAP && b.arrivals.len() as i64 + i64::from(missing.max(0)) < most as i64
        }) {
            Some(_) if missing < 0 => continue,
            Some(block) => {
                block.arrivals.extend((0..missing).map(|_| None));
                block.arrivals.push(arrival);
            }
            None if missing < 0 => continue,
            None => {
                let begin = first.wrapping_add_signed(number as i16);
                blocks.push(Stream { ssrc, begin, arrivals: vec![arrival] });
            }
        }
        end = number + 1;
    }
    blocks
}

/// Blocks in groups of at most `room` bytes.
fn packed(blocks: Vec<Stream>, room: usize) -> Vec<Vec<Stream>> {
    let mut packets: Vec<Vec<Stream>> = Vec::new();
    let mut left = 0;
    for block in blocks {
        let size = BLOCK_BYTES + (2 * block.arrivals.len()).next_multiple_of(4);
        match packets.last_mut().filter(|_| size <= left) {
            Some(packet) => packet.push(block),
            None => {
                packets.push(vec![block]);
                left = room;
            }
        }
        left -= size.min(left);
    }
    packets
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tcps_core::time::{MS, SECOND};

    fn fed(arrivals: impl IntoIterator<Item = (u16, Time)>, mtu_bytes: usize) -> Vec<Ccfb> {
        let mut feedback = ArrivalFeedback::new(100 * MS, mtu_bytes);
        feedback.start(0);
        arrivals.into_iter().for_each(|(seq, at)| feedback.arrived(at, 7, seq));
        feedback.due(100 * MS, 1)
    }

    // [RFC 8888 §3.1]
    #[test]
    fn losses_stand_between_arrivals_and_numbers_wrap() {
        let packets = fed([(65_535, 0), (1, 50 * MS), (0, 60 * MS), (3, 90 * MS), (3, 95 * MS)], 1200);
        let [Ccfb { sender: 1, streams, .. }] = &packets[..] else { panic!("{packets:?}") };
        let [Stream { ssrc: 7, begin: 65_535, arrivals }] = &streams[..] else { panic!("{streams:?}") };
        let offsets: Vec<_> = arrivals.iter().map(|a| a.map(|a| a.offset)).collect();
        assert_eq!(offsets, [Some(102), Some(40), Some(51), None, Some(10)]);
    }

    // [RFC 8888 §3.1]
    #[test]
    fn one_number_far_ahead_does_not_make_a_long_report() {
        let packets =
            fed((0..50).map(|i| (i, 0)).chain([(20_000, 0)]).chain((50..100).map(|i| (i, 0))), 1200);
        assert_eq!(packets.len(), 1);
        let lengths: Vec<_> = packets[0].streams.iter().map(|s| (s.begin, s.arrivals.len())).collect();
        assert_eq!(lengths, [(0, 100), (20_000, 1)]);
    }

    #[test]
    fn it_is_due_once_a_period() {
        let mut feedback = ArrivalFeedback::new(100 * MS, 1200);
        feedback.start(0);
        feedback.arrived(0, 7, 1);
        assert_eq!((feedback.due(99 * MS, 1).len(), feedback.due(SECOND, 1).len()), (0, 1));
        assert_eq!((feedback.next(), feedback.due(SECOND, 1).len()), (Some(1100 * MS), 0));
    }

    // [RFC 8888 §3.1]
    #[test]
    fn consecutive_feedbacks_overlap_so_that_one_may_be_lost_and_contradict_nothing() {
        let mut feedback = ArrivalFeedback::new(100 * MS, 1200);
        feedback.start(0);
        let mut told = |numbers: &[u16], now: Time| {
            numbers.iter().for_each(|n| feedback.arrived(now, 7, *n));
            let streams = feedback.due(now, 1).into_iter().flat_map(|p| p.streams);
            streams.map(|s| (s.begin, s.arrivals.iter().map(Option::is_some).collect())).collect::<Vec<_>>()
        };
        let came = |n: usize| vec![true; n];
        assert_eq!(told(&[10, 11], 100 * MS), [(10, came(2))]);
        assert_eq!(told(&[13], 200 * MS), [(10, vec![true, true, false, true])]);
        assert_eq!(told(&[], 300 * MS), [], "nothing new");
        let late = [true, true, true, false, true, true];
        assert_eq!(told(&[14, 9, 11], 400 * MS), [(9, late.to_vec())], "with what lies behind 9");
        assert_eq!(told(&[15], 500 * MS), [(9, [&late[..], &[true]].concat())]);
        assert_eq!(told(&[17], 600 * MS), [(15, vec![true, false, true])]);
        (18..21).for_each(|n| drop(told(&[n], Time::from(n - 11) * 100 * MS)));
        assert_eq!(told(&[8, 21], SECOND), [(20, came(2))], "8 would call lost what is not remembered");
    }

    // [RFC 3550 §A.1]
    #[test]
    fn one_packet_that_comes_too_late_changes_nothing_and_two_in_sequence_begin_anew() {
        let mut heard = Heard::default();
        let mut told = |numbers: &[u16]| {
            numbers.iter().for_each(|n| heard.add(*n, 0));
            heard.next().iter().map(|(number, _)| *number).collect::<Vec<_>>()
        };
        (1000..1010).for_each(|n| drop(told(&[n])));
        assert!(told(&[900]).is_empty());
        assert_eq!(told(&[1010]), [1009, 1010]);
        assert_eq!(told(&[30, 31]), [30, 31]);
        assert_eq!(told(&[32]), [30, 31, 32]);
    }

    #[test]
    fn no_more_arrivals_are_remembered_than_there_is_room_for() {
        let mut heard = Heard::default();
        for first in [0, 3000, 6000u16] {
            (first..first + 3000).for_each(|n| heard.add(n, 0));
            let all = heard.next();
            assert!(all.len() <= MOST_ARRIVALS && all.last() == Some(&(first + 2999, 0)));
        }
        assert_eq!(heard.forgotten, Some(8999 - MOST_ARRIVALS as u16));
        assert_eq!(heard.told, [1096, 3000]);
    }

    proptest! {
        // [RFC 8888 §3.1]
        #[test]
        fn every_arrival_is_told_once_and_every_datagram_fits(
            numbers in proptest::collection::vec(any::<u16>(), 1..300),
            steps in proptest::collection::vec(0u16..600, 0..600),
            mtu in 300usize..1500,
        ) {
            let mut at = numbers[0];
            let walk = steps.into_iter().map(|s| { at = at.wrapping_add(s % 7 * u16::from(s % 50 == 0) + s % 3); at });
            let all: Vec<u16> = numbers.iter().copied().take(3).chain(walk).collect();
            let packets = fed(all.iter().map(|n| (*n, 0)), mtu);
            let mut told = Vec::new();
            for packet in &packets {
                let mut bytes = Vec::new();
                packet.emit(&mut bytes);
                prop_assert!(bytes.len() <= mtu, "{} of {}", bytes.len(), mtu);
                for s in &packet.streams {
                    let had = (0u16..).zip(&s.arrivals).filter(|(_, a)| a.is_some());
                    told.extend(had.map(|(i, _)| s.begin.wrapping_add(i)));
                }
            }
            told.sort_unstable();
            let mut once = all;
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(told, once);
        }
    }
}
