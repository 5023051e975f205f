//! Serial lines to boards, in the loop of their session.
//!
//! ```text
//! node ──► dialogue ──► pace ──► port ──► firmware: a process, QEMU, a board
//!      ◄── pace ◄── dialogue ◄── port ◄──                  moments of the board, in run time
//! ```
//! Pseudo-terminals and sockets take bytes as fast as they come: the pace of the line is made here, both ways.

mod dialogue;
mod firmware;
mod pace;
mod port;

use super::clock::monotonic_ns;
use crate::{
    error::RunError,
    node::{BoardAt, BITS_A_BYTE},
    outside::{News, Ride},
    plan::{BoardPlan, SafeOutput},
    report::{BoardLine, Damage, Gone},
};
use dialogue::{Dialogue, Told};
use firmware::Firmware;
use pace::Pace;
use port::Port;
use std::{os::fd::RawFd, path::Path, thread, time::Duration};
use tcps_core::time::{Time, MS, NEVER, SECOND};
use tcps_wire::board::{Counts, Repr};

pub use dialogue::Dialogue as LineDialogue;

/// How long a board may take to answer the first time.
const READY_NS: Time = 10 * SECOND;
/// Time between two HELLO that are not answered.
const AGAIN_NS: Time = 100 * MS;
/// Exchanges before the start by which the clock of a board is known.
const GREETINGS: usize = 16;
/// How long a board may take to tell its counts at the end.
const COUNTS_NS: Time = 300 * MS;
/// Bytes that a line may be behind before it is taken for dead.
const MOST_BEHIND: usize = 1 << 16;
const LOOK: Duration = Duration::from_micros(200);

/// A frame on its way to the port: its bytes, and the number of the sample in it.
type Frame = (Vec<u8>, Option<u16>);

/// The lines of a loop, by number of the board; boards that are modelled have none.
#[derive(Default)]
pub struct Lines {
    lines: Vec<Option<Line>>,
}

/// A line with what is at its far end.
struct Line {
    port: Port,
    firmware: Option<Firmware>,
    dialogue: Dialogue,
    down: Pace<Frame>,
    up: Pace<Told>,
    told: Vec<(usize, Told)>,
    /// What the board had counted before the run.
    before: Counts,
    /// When the run began on CLOCK_MONOTONIC.
    start: Time,
    gone: Option<Gone>,
}

impl Lines {
    /// Opens the lines of boards, and waits until each has answered. Sockets are made beside `place`.
    pub fn open(boards: &[BoardAt], names: impl Fn(u16) -> String, place: &Path) -> Result<Self, RunError> {
        let mut lines = Vec::new();
        for (number, board) in boards.iter().enumerate() {
            let socket = place.with_extension(format!("line{number}"));
            let line = board.plan.attached.as_ref().map(|_| Line::open(board, &socket)).transpose();
            let name = names(board.component);
            lines.push(line.map_err(|e| RunError::new(format!("components.{name}.board: {e}")))?);
        }
        Ok(Self { lines })
    }

    /// What becomes readable when a board has said something, in the order of `readable`.
    pub fn fds(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.lines.iter().flatten().map(|l| l.port.fd())
    }

    /// Run time counts from here on.
    pub fn begin(&mut self, start: Time) {
        self.lines.iter_mut().flatten().for_each(|l| l.start = start);
    }

    /// Sends a sample; `None` if the board has no line.
    pub fn send(&mut self, now: Time, board: usize, ride: &Ride<'_>) -> Option<bool> {
        let line = self.lines.get_mut(board)?.as_mut()?;
        Some(line.send(now, ride))
    }

    /// When one of them has something to do, in run time.
    pub fn due(&self) -> Time {
        self.lines.iter().flatten().map(Line::due).min().unwrap_or(NEVER)
    }

    /// Reads what the line with this place in `fds` has; false if it is closed from now on.
    pub fn readable(&mut self, now: Time, place: usize) -> bool {
        self.lines.iter_mut().flatten().nth(place).is_none_or(|l| l.read(now))
    }

    /// Does what is due, and puts what boards have told into `news`, with their numbers.
    pub fn work(&mut self, now: Time, news: &mut Vec<(usize, News)>) {
        for (number, line) in self.lines.iter_mut().enumerate() {
            if let Some(line) = line {
                line.work(now, |n| news.push((number, n)));
            }
        }
    }

    /// What was counted on the line of a board, whose firmware ends with this.
    pub fn end(&mut self, board: usize, told: BoardLine) -> BoardLine {
        match self.lines.get_mut(board).and_then(Option::take) {
            Some(line) => line.end(told),
            None => told,
        }
    }
}

impl Line {
    fn open(board: &BoardAt, socket: &Path) -> Result<Self, RunError> {
        let plan = &board.plan;
        let attached = plan.attached.as_ref().ok_or_else(|| RunError::new("nothing is attached"))?;
        let (port, own_pace, firmware) = firmware::attach(attached, plan.rate_bps, socket)?;
        let byte_ns = if own_pace { 0.0 } else { BITS_A_BYTE * SECOND as f64 / plan.rate_bps };
        let (down, up) = (Pace::new(byte_ns), Pace::new(byte_ns));
        let (dialogue, told) = (Dialogue::default(), Vec::new());
        let mut line = Self {
            port,
            firmware,
            dialogue,
            down,
            up,
            told,
            before: Counts::default(),
            start: 0,
            gone: None,
        };
        line.greet(board)?;
        line.before = line.count()?.unwrap_or_default();
        line.port.handed_over();
        Ok(line)
    }

    /// Says HELLO until the board answers, and then some times more, by which its clock is known.
    fn greet(&mut self, board: &BoardAt) -> Result<(), RunError> {
        let BoardPlan { watchdog_ms, work_us, ref safe, .. } = board.plan;
        let roles: Vec<u8> = board.channels.iter().map(|c| c.1 as u8).collect();
        let safe_values: Vec<u8> = match safe {
            SafeOutput::Hold => Vec::new(),
            SafeOutput::Values(values) => values.iter().flat_map(|v| v.to_be_bytes()).collect(),
        };
        let to_values = matches!(safe, SafeOutput::Values(_));
        let (roles, safe_values) = (&roles[..], &safe_values[..]);
        let hello = Repr::Hello { to_values, watchdog_ms, work_us, roles, safe_values };
        let limit = monotonic_ns() + READY_NS;
        let mut answered = 0;
        while answered < GREETINGS {
            let ready = self.ask(&hello, AGAIN_NS, |told| matches!(told, Told::Ready))?;
            answered += usize::from(ready);
            if !ready && monotonic_ns() > limit {
                return Err(RunError::new(format!("it has not answered for {} s", READY_NS / SECOND)));
            }
        }
        Ok(())
    }

    /// Writes a frame and waits for an answer of a kind, outside of a run. False if it does not come.
    fn ask(
        &mut self,
        repr: &Repr<'_>,
        limit_ns: Time,
        mut is_it: impl FnMut(&Told) -> bool,
    ) -> Result<bool, RunError> {
        let mut frame = Vec::new();
        let begun = monotonic_ns();
        self.dialogue.say(begun, repr, &mut frame);
        let closed = |e: std::io::Error, firmware: &mut Option<Firmware>| {
            let ended = firmware.as_mut().and_then(Firmware::ended);
            RunError::new(ended.unwrap_or_else(|| format!("its line is closed: {e}")))
        };
        self.port.write(&frame).map_err(|e| closed(e, &mut self.firmware))?;
        let mut bytes = [0; 512];
        while monotonic_ns() - begun < limit_ns {
            let n = self.port.read(&mut bytes).map_err(|e| closed(e, &mut self.firmware))?;
            self.dialogue.hear(monotonic_ns(), &bytes[..n], &mut self.told);
            if self.told.drain(..).any(|t| is_it(&t.1)) {
                return Ok(true);
            }
            if let Some(ended) = self.firmware.as_mut().and_then(Firmware::ended) {
                return Err(RunError::new(ended));
            }
            if n == 0 {
                thread::sleep(LOOK);
            }
        }
        Ok(false)
    }

    /// What the board has counted since power-on; `None` if it does not tell.
    fn count(&mut self) -> Result<Option<Counts>, RunError> {
        let mut counts = None;
        self.ask(&Repr::Query, COUNTS_NS, |told| match told {
            Told::Counts(c) => counts.replace(*c).is_none(),
            _ => false,
        })?;
        Ok(counts)
    }

    fn send(&mut self, now: Time, ride: &Ride<'_>) -> bool {
        if self.gone.is_some() {
            return false;
        }
        let mut frame = Vec::new();
        let Some(sequence) = self.dialogue.ride(now + self.start, ride, &mut frame) else { return false };
        self.down.put(now, frame.len(), (frame, Some(sequence)));
        self.write(now);
        true
    }

    fn due(&self) -> Time {
        let lost = self.dialogue.due().map(|t| t - self.start);
        [self.down.due(), self.up.due(), lost].into_iter().flatten().min().unwrap_or(NEVER)
    }

    /// Writes the frames whose last byte is through.
    fn write(&mut self, now: Time) {
        while let Some((frame, sequence)) = self.down.take(now) {
            if let Err(e) = self.port.write(&frame) {
                return self.lose(now, &e.to_string());
            }
            if self.port.backlog() > MOST_BEHIND {
                return self.lose(now, "it takes no bytes any more");
            }
            sequence.into_iter().for_each(|s| self.dialogue.written(s, monotonic_ns()));
        }
    }

    /// Reads what is there; false if the line is closed from now on.
    fn read(&mut self, now: Time) -> bool {
        let mut bytes = [0; 512];
        loop {
            match self.port.read(&mut bytes) {
                Ok(0) => return self.gone.is_none(),
                Ok(n) => {
                    self.dialogue.hear(monotonic_ns(), &bytes[..n], &mut self.told);
                    self.told.drain(..).for_each(|(bytes, told)| self.up.put(now, bytes, told));
                }
                Err(e) => {
                    self.lose(now, &e.to_string());
                    return false;
                }
            }
        }
    }

    fn work(&mut self, now: Time, mut tell: impl FnMut(News)) {
        self.write(now);
        self.dialogue.give_up(Some(now + self.start), &mut self.told);
        self.told.drain(..).for_each(|(bytes, told)| self.up.put(now, bytes, told));
        while let Some(told) = self.up.take(now) {
            match told {
                Told::News(news) => tell(self.in_run_time(news)),
                Told::Counts(_) | Told::Ready => {}
            }
        }
    }

    fn in_run_time(&self, news: News) -> News {
        match news {
            News::Answered { job, entry_ns, exit_ns, bytes } => {
                let (entry_ns, exit_ns) = (entry_ns - self.start, exit_ns - self.start);
                News::Answered { job, entry_ns, exit_ns, bytes }
            }
            other => other,
        }
    }

    /// The board is gone: what rides to it is lost, and what has come of it still arrives.
    fn lose(&mut self, now: Time, why: &str) {
        if self.gone.is_some() {
            return;
        }
        let ended = self.firmware.as_mut().and_then(Firmware::ended);
        let why =
            ended.map_or_else(|| format!("its line is closed: {why}"), |e| format!("its firmware: {e}"));
        self.gone = Some(Gone { at_s: now as f64 / 1e9, why });
        self.down.clear();
        self.dialogue.give_up(None, &mut self.told);
        self.told.drain(..).for_each(|(bytes, told)| self.up.put(now, bytes, told));
    }

    /// The counts of both ends; the firmware ends.
    fn end(mut self, told: BoardLine) -> BoardLine {
        // A board that says nothing more, or has gone, has no counts to tell.
        let counts = if self.gone.is_none() { self.count().ok().flatten() } else { None };
        let before = self.before;
        let there = |c: Counts| Damage {
            no_crc: c.no_crc.wrapping_sub(before.no_crc),
            no_cobs: c.no_cobs.wrapping_sub(before.no_cobs),
            too_long: c.too_long.wrapping_sub(before.too_long),
            unknown: c.unknown.wrapping_sub(before.unknown),
            missing: c.missing.wrapping_sub(before.missing),
            overflown: c.overflown.wrapping_sub(before.overflown),
        };
        BoardLine {
            damaged: self.dialogue.damage(),
            damaged_there: counts.map(there),
            refused_values: counts.map(|c| c.refused.wrapping_sub(before.refused)),
            clock_bound_ns: self.dialogue.clock_bound_ns(),
            gone: self.gone,
            ..told
        }
    }
}
