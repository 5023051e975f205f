//! A source that is received: which of its packets are valid, how many were lost, how they jitter
//! (RFC 3550 A.1, A.3, A.8).

use super::clock;
use tcps_core::time::{Time, SECOND};
use tcps_wire::rtcp::{
    report::Block,
    xr::{Span, Spread, Summary},
};

/// Packets in sequence that make an unknown source valid.
const MIN_SEQUENTIAL: u32 = 2;
const SEQ_MOD: u32 = 1 << 16;

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It counts; its sequence number with wraps.
    Valid(u32),
    /// The source is not known well enough yet.
    Probation,
    /// Its number is too far from the others.
    Bad,
}

/// A source.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) ssrc: u32,
    rate: u32,
    max_dropout: u16,
    max_misorder: u16,
    max_seq: u16,
    cycles: u32,
    base_seq: u32,
    bad_seq: u32,
    probation: u32,
    received: u32,
    expected_prior: u32,
    received_prior: u32,
    transit: Option<u32>,
    /// Jitter, in 1/16 of a tick.
    jitter: u32,
    jitters: Jitters,
    last_sr: Option<(u32, Time)>,
    mapping: Option<(Time, u32)>,
    pub(crate) heard_ns: Time,
    pub(crate) left: bool,
    repeats: u32,
    prior: (u32, u32, u32),
}

/// Jitter between two extended reports.
#[derive(Debug, Clone, Copy, Default)]
struct Jitters {
    min: u32,
    max: u32,
    sum: f64,
    squares: f64,
    n: u32,
}

impl Source {
    /// A source whose first packet has the number `seq`; one that is known from elsewhere needs no probation.
    pub(crate) fn new(ssrc: u32, rate: u32, period_ns: Time, seq: u16, known: bool) -> Self {
        let packets = |span: Time, low: Time, high: Time| (span / period_ns.max(1)).clamp(low, high) as u16;
        let mut source = Self {
            ssrc,
            rate,
            max_dropout: packets(60 * SECOND, 3_000, 32_000),
            max_misorder: packets(2 * SECOND, 100, 16_000),
            max_seq: seq.wrapping_sub(1),
            cycles: 0,
            base_seq: 0,
            bad_seq: 0,
            probation: if known { 0 } else { MIN_SEQUENTIAL },
            received: 0,
            expected_prior: 0,
            received_prior: 0,
            transit: None,
            jitter: 0,
            jitters: Jitters::default(),
            last_sr: None,
            mapping: None,
            heard_ns: 0,
            left: false,
            repeats: 0,
            prior: (0, 0, 0),
        };
        source.init(seq);
        source.max_seq = if known { seq } else { seq.wrapping_sub(1) };
        source
    }

    // [RFC 3550 §A.1]
    fn init(&mut self, seq: u16) {
        self.base_seq = u32::from(seq);
        self.max_seq = seq;
        self.bad_seq = SEQ_MOD + 1;
        (self.cycles, self.received, self.received_prior, self.expected_prior) = (0, 0, 0, 0);
        self.prior = (u32::from(seq), 0, 0);
        self.transit = None;
    }

    /// Whether its packets count.
    pub(crate) fn is_valid(&self) -> bool {
        self.probation == 0
    }

    /// It is known from elsewhere, for example by its canonical name.
    // [RFC 3550 §6.2.1]
    pub(crate) fn believe(&mut self) {
        self.probation = 0;
    }

    /// A packet with the number `seq` came.
    // [RFC 3550 §A.1]
    pub(crate) fn update(&mut self, seq: u16) -> Verdict {
        let delta = seq.wrapping_sub(self.max_seq);
        if self.probation > 0 {
            if seq == self.max_seq.wrapping_add(1) {
                self.probation -= 1;
                self.max_seq = seq;
                if self.probation == 0 {
                    self.init(seq);
                    return self.count(seq);
                }
            } else {
                self.probation = MIN_SEQUENTIAL - 1;
                self.max_seq = seq;
            }
            return Verdict::Probation;
        }
        if delta < self.max_dropout {
            if seq < self.max_seq {
                self.cycles = self.cycles.wrapping_add(SEQ_MOD);
            }
            self.max_seq = seq;
        } else if delta <= 0u16.wrapping_sub(self.max_misorder) {
            if u32::from(seq) != self.bad_seq {
                self.bad_seq = u32::from(seq.wrapping_add(1));
                return Verdict::Bad;
            }
            self.init(seq);
        }
        self.count(seq)
    }

    fn count(&mut self, seq: u16) -> Verdict {
        self.received = self.received.wrapping_add(1);
        let wraps = if seq > self.max_seq { self.cycles.wrapping_sub(SEQ_MOD) } else { self.cycles };
        Verdict::Valid(wraps.wrapping_add(u32::from(seq)))
    }

    /// A packet with `timestamp` was received at `at`.
    // [RFC 3550 §A.8] [RFC 3550]
    pub(crate) fn arrived(&mut self, at: Time, timestamp: u32) {
        self.heard_ns = at;
        self.left = false;
        let transit = clock::ticks(at, self.rate).wrapping_sub(timestamp);
        if let Some(before) = self.transit.replace(transit) {
            let d = (transit.wrapping_sub(before) as i32).unsigned_abs();
            let smaller = self.jitter - (self.jitter.saturating_add(8) >> 4).min(self.jitter);
            self.jitter = smaller.saturating_add(d);
            self.jitters.add(d);
        }
    }

    /// Jitter in ticks.
    pub(crate) fn jitter(&self) -> u32 {
        self.jitter >> 4
    }

    /// Jitter as a span.
    pub(crate) fn jitter_ns(&self) -> Time {
        clock::span(self.jitter.min(i32::MAX as u32) as i32, self.rate) / 16
    }

    /// A packet repeated another.
    pub(crate) fn repeated(&mut self) {
        self.repeats += 1;
    }

    /// A sender report came: `ntp` and `timestamp` are the same moment.
    // [RFC 3550 §6.4.1]
    pub(crate) fn reported(&mut self, at: Time, ntp: u64, timestamp: u32) {
        self.heard_ns = self.heard_ns.max(at);
        self.last_sr = Some((clock::middle(ntp), at));
        self.mapping = Some((clock::from_ntp(ntp), timestamp));
    }

    /// When the moment of an RTP timestamp was, on the sender's clock; before its first report that of the first
    /// packet is taken for its arrival.
    pub(crate) fn moment(&mut self, at: Time, timestamp: u32) -> Time {
        let (base_ns, base) = *self.mapping.get_or_insert((at, timestamp));
        base_ns + clock::span(timestamp.wrapping_sub(base) as i32, self.rate)
    }

    /// The number with wraps that `seq` has if it is near the highest one.
    pub(crate) fn near(&self, seq: u16) -> u32 {
        let ahead = seq.wrapping_sub(self.max_seq) as i16;
        self.highest().wrapping_add_signed(ahead.into())
    }

    fn highest(&self) -> u32 {
        self.cycles.wrapping_add(u32::from(self.max_seq))
    }

    fn expected(&self) -> u32 {
        self.highest().wrapping_sub(self.base_seq).wrapping_add(1)
    }

    /// Packets lost in all, negative if more came than were sent.
    // [RFC 3550 §A.3]
    pub(crate) fn lost(&self) -> i32 {
        self.expected().wrapping_sub(self.received) as i32
    }

    /// The report block about it; the next one begins a new interval.
    // [RFC 3550 §A.3] [RFC 3550 §6.4.1] [RFC 3550]
    pub(crate) fn report(&mut self, now: Time) -> Block {
        let expected = self.expected().wrapping_sub(self.expected_prior);
        let received = self.received.wrapping_sub(self.received_prior);
        (self.expected_prior, self.received_prior) = (self.expected(), self.received);
        let lost = i64::from(expected) - i64::from(received);
        let fraction = if expected == 0 || lost <= 0 { 0 } else { (lost << 8) / i64::from(expected) };
        let (last_sr, delay) = self.last_sr.map_or((0, 0), |(ntp, at)| (ntp, clock::short(now - at)));
        Block {
            ssrc: self.ssrc,
            fraction_lost: fraction.min(255) as u8,
            lost: self.lost().clamp(-0x80_0000, 0x7f_ffff),
            highest: self.highest(),
            jitter: self.jitter(),
            last_sr,
            delay,
        }
    }

    /// The statistics summary since the last one; TTL is not looked at.
    // [RFC 3611 §4.6]
    pub(crate) fn summary(&mut self) -> Summary {
        let (begin, received, repeats) = self.prior;
        let end = self.highest().wrapping_add(1);
        let came = self.received.wrapping_sub(received);
        let copies = self.repeats - repeats;
        let lost = end.wrapping_sub(begin).wrapping_sub(came.wrapping_sub(copies)) as i32;
        self.prior = (end, self.received, self.repeats);
        let jitter = std::mem::take(&mut self.jitters).spread();
        let span = Span { ssrc: self.ssrc, begin: begin as u16, end: end as u16 };
        let (lost, duplicates) = (Some(lost.max(0) as u32), Some(copies));
        Summary { span, lost, duplicates, jitter: Some(jitter), ..Summary::default() }
    }
}

impl Jitters {
    fn add(&mut self, d: u32) {
        self.min = if self.n == 0 { d } else { self.min.min(d) };
        self.max = self.max.max(d);
        self.sum += f64::from(d);
        self.squares += f64::from(d) * f64::from(d);
        self.n += 1;
    }

    fn spread(&self) -> Spread {
        let n = f64::from(self.n.max(1));
        let mean = self.sum / n;
        let sd = (self.squares / n - mean * mean).max(0.0).sqrt();
        Spread { min: self.min, max: self.max, mean: mean as u32, sd: sd as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::MS;

    fn source(seq: u16, known: bool) -> Source {
        Source::new(7, 8000, MS, seq, known)
    }

    // [RFC 3611 §4.6]
    #[test]
    fn a_summary_has_the_range_mean_and_standard_deviation_of_jitter() {
        let mut jitters = Jitters::default();
        [20, 10, 60].into_iter().for_each(|d| jitters.add(d));
        let Spread { min, max, mean, sd } = jitters.spread();
        assert_eq!((min, max, mean, sd), (10, 60, 30, 21));
    }

    // [RFC 3550 §A.1]
    #[test]
    fn two_in_sequence_make_a_source_valid() {
        let mut s = source(100, false);
        assert_eq!(s.update(100), Verdict::Probation);
        assert_eq!(s.update(105), Verdict::Probation, "not in sequence: it begins again");
        assert_eq!(s.update(106), Verdict::Valid(106));
        assert!(s.is_valid());
        let mut known = source(9, true);
        assert_eq!(known.update(9), Verdict::Valid(9));
    }

    // [RFC 3550 §A.1]
    #[test]
    fn numbers_wrap_jump_and_restart() {
        let mut s = source(65_534, true);
        let numbers = [65_534u16, 65_535, 1, 0, 2];
        let seen: Vec<_> = numbers.iter().map(|n| s.update(*n)).collect();
        let valid = [65_534, 65_535, 65_537, 65_536, 65_538].map(Verdict::Valid);
        assert_eq!(seen, valid);
        assert_eq!(s.update(40_000), Verdict::Bad, "too far");
        assert_eq!(s.update(40_001), Verdict::Valid(40_001), "twice in sequence: the sender restarted");
        assert_eq!(s.lost(), 0);
    }

    // [RFC 3550 §A.3] [RFC 3550 §6.4.1] [RFC 3550]
    #[test]
    fn a_report_tells_the_share_of_its_interval() {
        let mut s = source(0, true);
        for n in (0..100u16).filter(|n| n % 4 != 1) {
            s.update(n);
        }
        s.reported(1_000 * MS, clock::ntp(990 * MS), 0);
        let block = s.report(1_500 * MS);
        assert_eq!((block.fraction_lost, block.lost, block.highest), (64, 25, 99));
        assert_eq!((block.last_sr, block.delay), (clock::middle(clock::ntp(990 * MS)), 0x8000));
        for n in 100..200u16 {
            s.update(n);
        }
        let block = s.report(2_000 * MS);
        assert_eq!((block.fraction_lost, block.lost), (0, 25), "none in the second interval");
        for n in 150..200u16 {
            s.update(n);
        }
        assert_eq!((s.report(3_000 * MS).fraction_lost, s.lost()), (0, -25), "copies make up for losses");
    }

    #[test]
    fn wild_timestamps_leave_the_jitter_at_its_top() {
        let mut s = source(0, true);
        for n in 0..2_000u32 {
            s.arrived(0, if n % 2 == 0 { 0 } else { 1 << 31 });
        }
        assert!(s.jitter() > 1 << 26);
    }

    // [RFC 3550 §A.8] [RFC 3550]
    #[test]
    fn jitter_is_the_smoothed_difference_of_transit_times() {
        let mut s = source(0, true);
        let mut j = 0.0;
        for n in 0..400i64 {
            let late = if n % 2 == 0 { 0 } else { 2 * MS };
            s.arrived(n * MS + late, 8 * n as u32);
            if n > 0 {
                j += (16.0 - j) / 16.0;
            }
        }
        assert!((f64::from(s.jitter()) - j).abs() <= 1.0, "{} {j}", s.jitter());
        assert!((s.jitter_ns() - 2 * MS).abs() < MS / 4);
    }

    // [RFC 3611 §4.6]
    #[test]
    fn a_summary_counts_since_the_last_one() {
        let mut s = source(10, true);
        (10..20u16).filter(|n| *n != 13).for_each(|n| _ = s.update(n));
        s.update(19);
        s.repeated();
        let first = s.summary();
        assert_eq!(
            (first.span, first.lost, first.duplicates),
            (Span { ssrc: 7, begin: 10, end: 20 }, Some(1), Some(1))
        );
        (20..25u16).for_each(|n| _ = s.update(n));
        let second = s.summary();
        assert_eq!((second.span.begin, second.span.end, second.lost), (20, 25, Some(0)));
    }

    // [RFC 3550 §A.1]
    #[test]
    fn a_number_near_the_highest_has_its_wraps() {
        let mut s = source(65_534, true);
        (65_534..65_539u32).for_each(|n| _ = s.update(n as u16));
        assert_eq!([65_530, 65_535, 0, 2, 9].map(|n| s.near(n)), [65_530, 65_535, 65_536, 65_538, 65_545]);
    }

    #[test]
    fn a_timestamp_is_a_moment_of_the_senders_clock() {
        let mut s = source(0, true);
        assert_eq!(s.moment(50 * MS, 4000), 50 * MS, "before a report: the arrival of the first");
        assert_eq!(s.moment(99 * MS, 4008), 51 * MS);
        s.reported(100 * MS, clock::ntp(10 * MS), 4000);
        assert!((s.moment(0, 3992) - 9 * MS).abs() <= 1);
    }
}
