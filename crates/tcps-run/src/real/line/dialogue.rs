//! What is said on a serial line: which answer belongs to which sample, when the board had it, and what is damaged.
//!
//! ```text
//! sample ──► number, frame ──► line ──► board ──► line ──► frame, number ──► sample, entry, exit
//! ```
//! No I/O and no clock. A line keeps the order: an answer tells that samples before it, which have none, are lost.

use crate::{
    outside::{News, Ride},
    report::Damage,
};
use std::collections::VecDeque;
use tcps_core::time::{Time, MS, SECOND};
use tcps_transport::clockfit::{ClockFit, Exchange};
use tcps_wire::board::{self, Counts, Read, Reader, Repr};

/// Samples that may be on a line and in its board at once; more are refused.
const MOST_RIDING: usize = 64;
/// Time after which an answer is not waited for any more.
const LOST_NS: Time = 500 * MS;
/// Of the exchanges in this time the fastest one is used for the clock.
const LOOK_NS: Time = SECOND / 8;

/// A sample whose answer is waited for.
#[derive(Debug)]
struct Riding {
    sequence: u16,
    job: u32,
    /// When its frame had been written.
    written_ns: Time,
}

/// What a board tells.
#[derive(Debug, PartialEq)]
pub enum Told {
    /// News for the node.
    News(News),
    /// It is there.
    Ready,
    /// Its counts.
    Counts(Counts),
}

/// This side of a line.
#[derive(Debug, Default)]
pub struct Dialogue {
    reader: Reader,
    body: Vec<u8>,
    sequence: u16,
    expected: Option<u16>,
    riding: VecDeque<Riding>,
    /// HELLO that was written last: number and moment.
    hello: Option<(u16, Time)>,
    clock: BoardClock,
    damage: Damage,
}

impl Dialogue {
    /// Appends the frame of a body without a sample to `line`.
    pub fn say(&mut self, now: Time, repr: &Repr<'_>, line: &mut Vec<u8>) {
        if matches!(repr, Repr::Hello { .. }) {
            // Whatever stood on the line before ends here; a port that has just begun may swallow a byte.
            line.extend_from_slice(&[0, 0]);
            self.hello = Some((self.sequence, now));
        }
        self.emit(repr, line);
    }

    /// Appends the frame of a sample to `line`; its number, or `None` if too many are under way.
    pub fn ride(&mut self, now: Time, ride: &Ride<'_>, line: &mut Vec<u8>) -> Option<u16> {
        if self.riding.len() >= MOST_RIDING {
            return None;
        }
        let repr = Repr::Sample { channel: ride.channel, payload: ride.bytes };
        let sequence = self.emit(&repr, line);
        self.riding.push_back(Riding { sequence, job: ride.job, written_ns: now });
        Some(sequence)
    }

    /// The frame of a sample has been written.
    pub fn written(&mut self, sequence: u16, now: Time) {
        if let Some(r) = self.riding.iter_mut().rev().find(|r| r.sequence == sequence) {
            r.written_ns = now;
        }
    }

    fn emit(&mut self, repr: &Repr<'_>, line: &mut Vec<u8>) -> u16 {
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        repr.emit(sequence, &mut self.body);
        board::write(&self.body, line);
        sequence
    }

    /// Bytes that came at `now`. What they tell goes to `told`, each with the bytes that it took on the line.
    pub fn hear(&mut self, now: Time, bytes: &[u8], told: &mut Vec<(usize, Told)>) {
        for &byte in bytes {
            let body = match self.reader.take(byte) {
                None => continue,
                Some(Read::Body(body)) => body,
                Some(Read::NoCrc) => {
                    self.damage.no_crc += 1;
                    continue;
                }
                Some(Read::NoCobs) => {
                    self.damage.no_cobs += 1;
                    continue;
                }
                Some(Read::TooLong) => {
                    self.damage.too_long += 1;
                    continue;
                }
            };
            let body = body.to_vec();
            self.understand(now, &body, told);
        }
    }

    fn understand(&mut self, now: Time, body: &[u8], told: &mut Vec<(usize, Told)>) {
        let Ok((sequence, repr)) = Repr::parse(body) else {
            self.damage.unknown += 1;
            return;
        };
        self.number(sequence);
        let length = body.len() + board::OVERHEAD;
        match repr {
            Repr::Answer { of, entry_us, work_ns, payload, .. } => {
                let stamps = (entry_us, Time::from(work_ns));
                self.answer(now, of, stamps, payload, |news| told.push((length, Told::News(news))));
            }
            Repr::Safe { values, .. } => told.push((length, Told::News(News::Safe(values.to_vec())))),
            Repr::Counts(counts) => told.push((length, Told::Counts(counts))),
            Repr::Ready { of, at_us } => match self.hello {
                Some((sequence, written)) if sequence == of => {
                    self.clock.exchange(written, at_us, 0, now);
                    told.push((length, Told::Ready));
                }
                _ => self.damage.unknown += 1,
            },
            Repr::Hello { .. } | Repr::Sample { .. } | Repr::Query => self.damage.unknown += 1,
        }
    }

    /// A number that is ahead tells how many frames never came; any other begins anew.
    fn number(&mut self, sequence: u16) {
        let ahead = self.expected.map_or(0, |e| sequence.wrapping_sub(e));
        if ahead < 0x8000 {
            self.damage.missing += u32::from(ahead);
        }
        self.expected = Some(sequence.wrapping_add(1));
    }

    /// Samples before the one that is answered are lost; one that is not waited for any more is told as unknown.
    fn answer(
        &mut self,
        now: Time,
        of: u16,
        (entry_us, work_ns): (u32, Time),
        payload: &[u8],
        mut tell: impl FnMut(News),
    ) {
        let Some(at) = self.riding.iter().position(|r| r.sequence == of) else {
            self.damage.unknown += 1;
            return;
        };
        for lost in self.riding.drain(..at) {
            tell(News::Lost { job: lost.job });
        }
        let Some(Riding { job, written_ns, .. }) = self.riding.pop_front() else { return };
        self.clock.exchange(written_ns, entry_us, work_ns, now);
        // On one machine cause and effect bound what the board's clock may say.
        let entry_ns = self.clock.of_board(entry_us).clamp(written_ns, now);
        let exit_ns = (entry_ns + work_ns).clamp(entry_ns, now);
        tell(News::Answered { job, entry_ns, exit_ns, bytes: payload.to_vec() });
    }

    /// When the oldest sample is given up.
    pub fn due(&self) -> Option<Time> {
        self.riding.front().map(|r| r.written_ns + LOST_NS)
    }

    /// Gives up the samples that have waited for too long by `now`, or all of them.
    pub fn give_up(&mut self, now: Option<Time>, told: &mut Vec<(usize, Told)>) {
        while self.riding.front().is_some_and(|r| now.is_none_or(|n| r.written_ns + LOST_NS <= n)) {
            if let Some(r) = self.riding.pop_front() {
                told.push((0, Told::News(News::Lost { job: r.job })));
            }
        }
    }

    /// What came and was no frame, or not one for us.
    pub fn damage(&self) -> Damage {
        self.damage
    }

    /// How wrong the moments of the board can be.
    pub fn clock_bound_ns(&self) -> Option<Time> {
        self.clock.fit.estimate().map(|e| e.bound_ns)
    }
}

/// The clock of a board, which shows microseconds in 32 bits.
#[derive(Debug, Default)]
struct BoardClock {
    fit: ClockFit,
    /// The newest moment, unfolded.
    newest_us: Option<i64>,
    /// The fastest exchange of late, and when the look at it began.
    fastest: Option<Exchange>,
    since: Time,
}

impl BoardClock {
    /// A moment of the board, which is less than half an hour from the newest one.
    fn unfold(&self, us: u32) -> i64 {
        self.newest_us
            .map_or(i64::from(us), |newest| newest + i64::from(us.wrapping_sub(newest as u32) as i32))
    }

    /// A frame was written, the board had it from a moment on for so long, and its answer came.
    fn exchange(&mut self, written: Time, entry_us: u32, work_ns: Time, now: Time) {
        let entry_us = self.unfold(entry_us);
        self.newest_us = Some(entry_us);
        let entry_ns = entry_us * 1_000;
        let Some(exchange) = Exchange::new(written, entry_ns, entry_ns + work_ns, now) else { return };
        if self.fastest.is_none_or(|f| exchange.round_trip_ns() < f.round_trip_ns()) {
            self.fastest = Some(exchange);
        }
        if self.fit.estimate().is_none() || now - self.since >= LOOK_NS {
            self.fastest.take().into_iter().for_each(|e| self.fit.add(e));
            self.since = now;
        }
    }

    /// Our moment of one of the board's.
    fn of_board(&self, us: u32) -> Time {
        let board_ns = self.unfold(us) * 1_000;
        let Some(e) = self.fit.estimate() else { return board_ns };
        let about = board_ns - e.offset_ns;
        about - (e.drift_ppb * 1e-9 * (about - e.at_ns) as f64).round() as Time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DELAY_NS: Time = 400_000;

    /// A board whose clock is ahead by this many microseconds.
    const AHEAD_US: i64 = 7_000_000;

    fn ride(dialogue: &mut Dialogue, now: Time, job: u32) -> u16 {
        dialogue.ride(now, &Ride { job, channel: 0, bytes: &[1, 2, 3, 4] }, &mut Vec::new()).unwrap()
    }

    /// The frame with which the board answers.
    fn answer(number: u16, of: u16, entry_ns: Time, work_ns: u32) -> Vec<u8> {
        let entry_us = (entry_ns / 1_000 + AHEAD_US) as u32;
        let (mut body, mut line) = (Vec::new(), Vec::new());
        Repr::Answer { channel: 0, of, entry_us, work_ns, payload: &[9] }.emit(number, &mut body);
        board::write(&body, &mut line);
        line
    }

    fn heard(dialogue: &mut Dialogue, now: Time, line: &[u8]) -> Vec<News> {
        let mut told = Vec::new();
        dialogue.hear(now, line, &mut told);
        let news = told.into_iter().filter_map(|t| match t.1 {
            Told::News(news) => Some(news),
            _ => None,
        });
        news.collect()
    }

    #[test]
    fn moments_of_the_board_are_told_in_our_time() {
        let mut dialogue = Dialogue::default();
        for i in 0..1_000 {
            let sent = i * MS;
            let of = ride(&mut dialogue, sent, i as u32);
            let (entry, work) = (sent + DELAY_NS, 50_000);
            let back = entry + Time::from(work) + DELAY_NS;
            let news = heard(&mut dialogue, back, &answer(i as u16, of, entry, work));
            let [News::Answered { job, entry_ns, exit_ns, bytes }] = &news[..] else { panic!("{news:?}") };
            assert_eq!((*job, &bytes[..]), (i as u32, &[9][..]));
            assert!(
                (entry_ns - entry).abs() <= 2_000 && exit_ns - entry_ns == 50_000,
                "{i}: {entry_ns} {entry}"
            );
        }
        let bound = dialogue.clock_bound_ns().unwrap();
        assert!((DELAY_NS - 10_000..DELAY_NS + 10_000).contains(&bound), "{bound}");
        assert_eq!(dialogue.damage(), Damage::default());
    }

    #[test]
    fn an_answer_tells_that_earlier_samples_are_lost() {
        let mut dialogue = Dialogue::default();
        let numbers: Vec<u16> = (0..3).map(|job| ride(&mut dialogue, 0, job)).collect();
        let news = heard(&mut dialogue, MS, &answer(5, numbers[2], MS / 2, 0));
        assert_eq!(news[..2], [News::Lost { job: 0 }, News::Lost { job: 1 }]);
        assert!(matches!(news[2], News::Answered { job: 2, .. }));
        assert_eq!(
            heard(&mut dialogue, MS, &answer(6, numbers[0], MS / 2, 0)),
            [],
            "it is too late for that"
        );
        assert_eq!(heard(&mut dialogue, MS, &answer(9, numbers[0], MS / 2, 0)), []);
        assert_eq!((dialogue.damage().unknown, dialogue.damage().missing), (2, 2));
    }

    #[test]
    fn what_no_answer_comes_for_is_given_up_in_time() {
        let mut dialogue = Dialogue::default();
        let number = ride(&mut dialogue, 0, 7);
        dialogue.written(number, MS);
        let mut told = Vec::new();
        assert_eq!(dialogue.due(), Some(MS + LOST_NS));
        dialogue.give_up(Some(MS + LOST_NS - 1), &mut told);
        assert_eq!(told, []);
        dialogue.give_up(Some(MS + LOST_NS), &mut told);
        assert_eq!(told, [(0, Told::News(News::Lost { job: 7 }))]);
        assert_eq!(dialogue.due(), None);
    }

    #[test]
    fn a_line_that_is_full_takes_no_more() {
        let mut dialogue = Dialogue::default();
        (0..MOST_RIDING as u32).for_each(|job| {
            ride(&mut dialogue, 0, job);
        });
        let ride = Ride { job: 99, channel: 0, bytes: &[] };
        assert_eq!(dialogue.ride(0, &ride, &mut Vec::new()), None);
        let mut told = Vec::new();
        dialogue.give_up(None, &mut told);
        assert_eq!(told.len(), MOST_RIDING, "each has an end");
    }

    #[test]
    fn a_clock_of_32_bits_goes_on_when_it_begins_anew() {
        let mut clock = BoardClock::default();
        for i in 0..100 {
            let us = (u32::MAX - 50_000).wrapping_add(1_000 * i as u32);
            let sent = i * MS;
            clock.exchange(sent, us, 0, sent + 2_000);
            assert!((clock.of_board(us) - sent - 1_000).abs() < 3_000, "{i}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_and_no_sample_is_told_twice(
            line in proptest::collection::vec(any::<u8>(), 0..300), rides in 0u32..20,
        ) {
            let mut dialogue = Dialogue::default();
            (0..rides).for_each(|job| {
                ride(&mut dialogue, 0, job);
            });
            let mut told = Vec::new();
            dialogue.hear(MS, &line, &mut told);
            dialogue.give_up(None, &mut told);
            let jobs = told.iter().filter(|t| matches!(t.1, Told::News(News::Lost { .. } | News::Answered { .. })));
            prop_assert_eq!(jobs.count(), rides as usize);
        }
    }
}
