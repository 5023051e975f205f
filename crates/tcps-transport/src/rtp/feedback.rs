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

/// Arrivals of a source that are remembered until the next feedback.
const MOST_ARRIVALS: usize = 4096;
/// Sources that are remembered.
const MOST_SOURCES: usize = 32;
/// A run ends at a gap that is longer.
const LONGEST_GAP: i32 = 256;
/// Bytes of a feedback packet beside its blocks: header, sender, timestamp.
const FRAME_BYTES: usize = 12;
/// Bytes of a block beside its reports.
const BLOCK_BYTES: usize = 8;

/// Arrivals since the last feedback, and when the next is due.
#[derive(Debug)]
pub(crate) struct ArrivalFeedback {
    period_ns: Time,
    next_ns: Option<Time>,
    mtu_bytes: usize,
    sources: BTreeMap<u32, Heard>,
}

/// Arrivals of a source: what the last feedback told, and what has come since.
#[derive(Debug, Default)]
struct Heard {
    arrivals: VecDeque<(u16, Time)>,
    told: usize,
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
    // [RFC 8888 §3.1] [PROTOCOLS 12.3]
    pub(crate) fn due(&mut self, now: Time, sender: u32) -> Vec<Ccfb> {
        let Some(next_ns) = self.next_ns.filter(|t| *t <= now) else { return Vec::new() };
        self.next_ns = Some(next_ns + self.period_ns * ((now - next_ns) / self.period_ns + 1));
        let most = ((self.mtu_bytes - FRAME_BYTES - BLOCK_BYTES) / 4 * 2).min(ccfb::MAX_REPORTS);
        let blocks: Vec<Stream> = self
            .sources
            .iter_mut()
            .flat_map(|(ssrc, heard)| blocks(*ssrc, heard.tell(), now, most))
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
            self.arrivals.pop_front();
            self.told = self.told.saturating_sub(1);
        }
    }

    /// What the next feedback tells: nothing if nothing has come since the last one, else that again as well, so that ranges
    /// meet and a feedback may be lost. A packet from before them is left out: to tell of it, those between would be called
    /// lost.
    // [RFC 8888 §3.1]
    fn tell(&mut self) -> Vec<(u16, Time)> {
        let told = self.arrivals.range(..self.told).map(|(number, _)| *number);
        let begin = told.reduce(|a, b| if (b.wrapping_sub(a) as i16) < 0 { b } else { a });
        let before = self.arrivals.len();
        if let Some(begin) = begin {
            self.arrivals.retain(|(number, _)| number.wrapping_sub(begin) as i16 >= 0);
        }
        if self.arrivals.len() == self.told {
            if before > self.told {
                *self = Self::default(); // all that came is from before: the source has begun anew
            }
            return Vec::new();
        }
        let all = self.arrivals.iter().copied().collect();
        self.arrivals.drain(..self.told);
        self.told = self.arrivals.len();
        all
    }
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
        assert_eq!(told(&[14, 9, 11], 400 * MS), [(13, came(2))], "9 would call what lies between lost");
        assert_eq!(told(&[15], 500 * MS), [(14, came(2))]);
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
