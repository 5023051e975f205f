//! What is said on a serial line: which answer belongs to which sample, when the board had it, and what is damaged.
//!
//! ```text
//! sample ──► number, frame ──► line ──► board ──► line ──► frame, number ──► sample, entry, exit
//! ```
//! No I/O and no clock. A line keeps the order: an answer tells that samples before it, which have none, are lost.

use super::board_clock::BoardClock;
use std::collections::VecDeque;
use tcps_core::{report::Damage, time::Time};
use tcps_node::{
    host::{BoardEvent, BoardRequest},
    LOST_NS,
};
use tcps_wire::board::{self, Counts, Read, Reader, Repr};

/// A sample whose answer is waited for.
#[derive(Debug)]
struct Riding {
    sequence: u16,
    job: u32,
    taken_ns: Time,
    /// When its frame had been written.
    written_ns: Time,
}

/// What a board tells.
#[derive(Debug, PartialEq)]
pub enum LineEvent {
    /// Events for the node.
    BoardEvent(BoardEvent),
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
    late: u64,
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

    /// Appends the frame of a sample to `line`; its number.
    pub fn ride(&mut self, now: Time, ride: &BoardRequest<'_>, line: &mut Vec<u8>) -> u16 {
        let repr = Repr::Sample { channel: ride.channel, payload: ride.bytes };
        let sequence = self.emit(&repr, line);
        self.riding.push_back(Riding { sequence, job: ride.job, taken_ns: now, written_ns: now });
        sequence
    }

    /// Samples whose answers are waited for.
    pub fn riding(&self) -> usize {
        self.riding.len()
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
    pub fn receive(&mut self, now: Time, bytes: &[u8], told: &mut Vec<(usize, LineEvent)>) {
        for &byte in bytes {
            let body = match self.reader.take(byte) {
                None => continue,
                Some(Read::Body(body)) => body.to_vec(),
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
            self.understand(now, &body, told);
        }
    }

    fn understand(&mut self, now: Time, body: &[u8], told: &mut Vec<(usize, LineEvent)>) {
        let Ok((sequence, repr)) = Repr::parse(body) else {
            self.damage.unknown += 1;
            return;
        };
        self.number(sequence);
        let length = body.len() + board::OVERHEAD;
        match repr {
            Repr::Answer { of, entry_us, work_ns, payload, .. } => {
                let stamps = (entry_us, Time::from(work_ns));
                self.answer(now, of, stamps, payload, |event| {
                    told.push((length, LineEvent::BoardEvent(event)))
                });
            }
            Repr::Safe { values, .. } => {
                told.push((length, LineEvent::BoardEvent(BoardEvent::Safe(values.to_vec()))))
            }
            Repr::Counts(counts) => told.push((length, LineEvent::Counts(counts))),
            Repr::Ready { of, at_us } => match self.hello {
                Some((sequence, written)) if sequence == of => {
                    self.clock.exchange(written, at_us, 0, now);
                    told.push((length, LineEvent::Ready));
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
            self.damage.missing = self.damage.missing.saturating_add(u32::from(ahead));
        }
        self.expected = Some(sequence.wrapping_add(1));
    }

    /// Samples before the one that is answered are lost; for one that is given up it is too late.
    fn answer(
        &mut self,
        now: Time,
        of: u16,
        (entry_us, work_ns): (u32, Time),
        payload: &[u8],
        mut tell: impl FnMut(BoardEvent),
    ) {
        let Some(at) = self.riding.iter().position(|r| r.sequence == of) else {
            self.late += 1;
            return;
        };
        for lost in self.riding.drain(..at) {
            tell(BoardEvent::Lost { job: lost.job });
        }
        let Some(Riding { job, written_ns, .. }) = self.riding.pop_front() else { return };
        self.clock.exchange(written_ns, entry_us, work_ns, now);
        // On one machine cause and effect bound what the board's clock may say.
        let entry_ns = self.clock.of_board(entry_us).clamp(written_ns, now.max(written_ns));
        let exit_ns = (entry_ns + work_ns).min(now).max(entry_ns);
        tell(BoardEvent::Answered { job, entry_ns, exit_ns, bytes: payload.to_vec() });
    }

    /// When the oldest sample is given up.
    pub fn due(&self) -> Option<Time> {
        self.riding.front().map(|r| r.taken_ns + LOST_NS)
    }

    /// Gives up the samples that have waited for too long by `now`, or all of them.
    pub fn give_up(&mut self, now: Option<Time>, told: &mut Vec<(usize, LineEvent)>) {
        while self.riding.front().is_some_and(|r| now.is_none_or(|n| r.taken_ns + LOST_NS <= n)) {
            if let Some(r) = self.riding.pop_front() {
                told.push((0, LineEvent::BoardEvent(BoardEvent::Lost { job: r.job })));
            }
        }
    }

    /// What came and was no frame, or not one for us.
    pub fn damage(&self) -> Damage {
        self.damage
    }

    /// Answers to no sample that is waited for.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// How wrong the moments of the board can be.
    pub fn clock_bound_ns(&self) -> Option<Time> {
        self.clock.bound_ns()
    }
}

#[cfg(test)]
mod tests;
