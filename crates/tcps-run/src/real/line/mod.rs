//! Serial lines to boards, in the loop of their session.
//!
//! ```text
//! node ──► dialogue ──► pace ──► port ──► firmware: a process, QEMU, a board
//!      ◄── pace ◄── dialogue ◄── port ◄──                  moments of the board, in run time
//! ```
//! Pseudo-terminals and sockets take bytes as fast as they come: the pace of the line is made here, both ways.

mod board_clock;
mod dialogue;
mod firmware;
mod greeting;
mod pace;
mod port;

use crate::os::clock::monotonic_ns;
pub use dialogue::{Dialogue, LineEvent};
use firmware::Firmware;
use pace::Pace;
use port::Port;
use std::{io, os::fd::RawFd};
use tcps_core::{
    ids::ComponentId,
    report::{BoardLine, Damage, DamageThere, Gone},
    time::{Time, NEVER},
};
use tcps_node::{
    host::{BoardEvent, BoardRequest},
    BoardAt, Timetable, MOST_RIDING,
};
use tcps_plan::RunError;
use tcps_wire::board::Counts;

/// Bytes that a line may be behind before it is taken for dead.
const MOST_BEHIND: usize = 1 << 16;
/// What a board may have said that is not through yet, beside answers: it cannot say more than its line carries.
const MOST_UNSAID: usize = 4 * MOST_RIDING;
/// Reads from a port before the others have their turn.
const READS: usize = 16;

/// A frame on its way to the port: its bytes, and the number of the sample in it.
type Frame = (Vec<u8>, u16);

/// The lines of a loop, by number of the board; boards that are modelled have none.
#[derive(Default)]
pub struct Lines {
    lines: Vec<Option<SerialLine>>,
}

/// A line with what is at its far end.
struct SerialLine {
    port: Port,
    firmware: Option<Firmware>,
    dialogue: Dialogue,
    /// What it and its board can do; samples that would not be back in time are not sent.
    table: Timetable,
    down: Pace<Frame>,
    up: Pace<LineEvent>,
    told: Vec<(usize, LineEvent)>,
    /// What the board had counted before the run.
    before: Counts,
    /// When the run began on CLOCK_MONOTONIC.
    start: Time,
    gone: Option<Gone>,
    /// It is gone because its far end has hung up.
    hung_up: bool,
}

impl Lines {
    /// Opens the lines of boards, and waits until each has answered.
    pub fn open(boards: &[BoardAt], names: impl Fn(ComponentId) -> String) -> Result<Self, RunError> {
        let mut lines = Vec::new();
        for board in boards {
            let line = board.plan.attached.as_ref().map(|_| SerialLine::open(board)).transpose();
            let name = names(board.component);
            lines.push(line.map_err(|e| e.within(format!("components.{name}.board")))?);
        }
        Ok(Self { lines })
    }

    /// What becomes readable when a board, or the program that is one, has said something, in the order of `readable`.
    pub fn fds(&self) -> impl Iterator<Item = RawFd> + '_ {
        let ports = self.lines.iter().flatten().map(|l| l.port.fd());
        ports.chain(self.lines.iter().flatten().filter_map(SerialLine::says))
    }

    /// Run time counts from here on.
    pub fn begin(&mut self, start: Time) {
        self.lines.iter_mut().flatten().for_each(|l| l.start = start);
    }

    /// Sends a sample; `None` if the board has no line.
    pub fn send(&mut self, now: Time, board: usize, ride: &BoardRequest<'_>) -> Option<bool> {
        let line = self.lines.get_mut(board)?.as_mut()?;
        Some(line.send(now, ride))
    }

    /// When one of them has something to do, in run time.
    pub fn due(&self) -> Time {
        self.lines.iter().flatten().map(SerialLine::due).min().unwrap_or(NEVER)
    }

    /// Reads what the line with this place in `fds` has; false if it is closed from now on.
    pub fn readable(&mut self, now: Time, place: usize) -> bool {
        let ports = self.lines.iter().flatten().count();
        if place < ports {
            return self.lines.iter_mut().flatten().nth(place).is_none_or(|l| l.read(now));
        }
        let mut programs = self.lines.iter_mut().flatten().filter_map(|l| l.firmware.as_mut());
        programs.nth(place - ports).is_some_and(Firmware::listen)
    }

    /// Does what is due, and puts the events of boards into `events`, with their numbers.
    pub fn work(&mut self, now: Time, events: &mut Vec<(usize, BoardEvent)>) {
        for (number, line) in self.lines.iter_mut().enumerate() {
            if let Some(line) = line {
                line.work(now, |event| events.push((number, event)));
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

impl SerialLine {
    fn open(board: &BoardAt) -> Result<Self, RunError> {
        let plan = &board.plan;
        let attached = plan.attached.as_ref().ok_or_else(|| RunError::bug("nothing is attached"))?;
        let (port, own_pace, firmware) = firmware::attach(attached, plan.rate_bps)?;
        let table = Timetable::new(plan.rate_bps, plan.work_us);
        let byte_ns = if own_pace { 0.0 } else { table.byte_ns() };
        let (down, up) = (Pace::new(byte_ns), Pace::new(byte_ns));
        let (dialogue, told) = (Dialogue::default(), Vec::new());
        let mut line = Self {
            port,
            firmware,
            dialogue,
            table,
            down,
            up,
            told,
            before: Counts::default(),
            start: 0,
            gone: None,
            hung_up: false,
        };
        line.greet(board)?;
        line.before = line.count()?.unwrap_or_default();
        line.port.handed_over();
        Ok(line)
    }

    /// What the program at its far end writes to its standard error.
    fn says(&self) -> Option<RawFd> {
        self.firmware.as_ref().map(Firmware::fd)
    }

    /// Sends a sample; false if the board is gone, or too many are in flight, or it would not be back in time.
    fn send(&mut self, now: Time, ride: &BoardRequest<'_>) -> bool {
        let under_way = self.dialogue.riding() + self.up.len();
        if self.gone.is_some() || under_way >= MOST_RIDING || self.table.take(now, ride.bytes.len()).is_none()
        {
            return false;
        }
        let mut frame = Vec::new();
        let sequence = self.dialogue.ride(now + self.start, ride, &mut frame);
        self.down.put(now, frame.len(), (frame, sequence));
        self.write(now);
        true
    }

    fn due(&self) -> Time {
        let lost = self.dialogue.due().map(|t| t - self.start);
        [self.down.due(), self.up.due(), lost].into_iter().flatten().min().unwrap_or(NEVER)
    }

    /// Writes the frames whose last byte is through.
    fn write(&mut self, now: Time) {
        if self.port.backlog() > 0 {
            if let Err(e) = self.port.write(&[]) {
                return self.hang_up(now, &e);
            }
        }
        while let Some((frame, sequence)) = self.down.take(now) {
            if let Err(e) = self.port.write(&frame) {
                return self.hang_up(now, &e);
            }
            if self.port.backlog() > MOST_BEHIND {
                return self.lose(now, "it accepts no more bytes");
            }
            self.dialogue.written(sequence, monotonic_ns());
        }
    }

    /// Reads what is there; false if the line is closed from now on.
    fn read(&mut self, now: Time) -> bool {
        let mut bytes = [0; 512];
        for _ in 0..READS {
            match self.port.read(&mut bytes) {
                Ok(0) => break,
                Ok(n) => {
                    self.dialogue.receive(monotonic_ns(), &bytes[..n], &mut self.told);
                    self.told.drain(..).for_each(|(bytes, told)| self.up.put(now, bytes, told));
                }
                Err(e) => {
                    self.hang_up(now, &e);
                    return false;
                }
            }
        }
        if self.up.len() > MOST_UNSAID {
            self.lose(now, "it sends more than the line carries");
        }
        self.gone.is_none()
    }

    fn work(&mut self, now: Time, mut tell: impl FnMut(BoardEvent)) {
        self.write(now);
        self.dialogue.give_up(Some(now + self.start), &mut self.told);
        self.told.drain(..).for_each(|(bytes, told)| self.up.put(now, bytes, told));
        while let Some(told) = self.up.take(now) {
            match told {
                LineEvent::BoardEvent(event) => tell(self.in_run_time(event)),
                LineEvent::Counts(_) | LineEvent::Ready => {}
            }
        }
    }

    fn in_run_time(&self, event: BoardEvent) -> BoardEvent {
        match event {
            BoardEvent::Answered { job, entry_ns, exit_ns, bytes } => {
                let (entry_ns, exit_ns) = (entry_ns - self.start, exit_ns - self.start);
                BoardEvent::Answered { job, entry_ns, exit_ns, bytes }
            }
            other => other,
        }
    }

    /// Its far end has hung up.
    fn hang_up(&mut self, now: Time, e: &io::Error) {
        self.hung_up |= self.gone.is_none();
        self.lose(now, &e.to_string());
    }

    /// The board is gone: what rides to it is lost, and what it has sent still arrives.
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

    /// How the firmware ended that hung up: when it did it was hardly over, and had not said its last words.
    fn tell_end(&mut self) {
        let firmware = self.firmware.as_mut().filter(|_| self.hung_up);
        if let (Some(gone), Some(ended)) = (&mut self.gone, firmware.and_then(Firmware::ends)) {
            gone.why = format!("its firmware: {ended}");
        }
    }

    /// The counts of both ends; the firmware ends.
    fn end(mut self, told: BoardLine) -> BoardLine {
        self.tell_end();
        // A board that says nothing more, or has gone, has no counts to tell.
        let counts = if self.gone.is_none() { self.count().ok().flatten() } else { None };
        let before = self.before;
        let there = |c: Counts| DamageThere {
            frames: Damage {
                no_crc: c.no_crc.wrapping_sub(before.no_crc),
                no_cobs: c.no_cobs.wrapping_sub(before.no_cobs),
                too_long: c.too_long.wrapping_sub(before.too_long),
                unknown: c.unknown.wrapping_sub(before.unknown),
                missing: c.missing.wrapping_sub(before.missing),
            },
            overflown: c.overflown.wrapping_sub(before.overflown),
        };
        BoardLine {
            late: Some(self.dialogue.late()),
            damaged: Some(self.dialogue.damage()),
            damaged_there: counts.map(there),
            refused_values: counts.map(|c| c.refused.wrapping_sub(before.refused)),
            clock_bound_ns: self.dialogue.clock_bound_ns(),
            gone: self.gone,
            ..told
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::net::UnixStream, process::Command, thread, time::Duration};
    use tcps_core::time::{MS, SECOND};
    use tcps_wire::board::Repr;

    /// A line at whose far end nobody answers, and that end.
    fn line(rate_bps: f64) -> (SerialLine, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        let table = Timetable::new(rate_bps, 0);
        let (down, up) = (Pace::new(table.byte_ns()), Pace::new(table.byte_ns()));
        let line = SerialLine {
            port: Port::socket(near).unwrap(),
            firmware: None,
            dialogue: Dialogue::default(),
            table,
            down,
            up,
            told: Vec::new(),
            before: Counts::default(),
            start: 0,
            gone: None,
            hung_up: false,
        };
        (line, far)
    }

    fn send(line: &mut SerialLine, now: Time, job: u32) -> bool {
        line.send(now, &BoardRequest { job, channel: 0, bytes: &[0; 24] })
    }

    fn told(line: &mut SerialLine, now: Time) -> Vec<BoardEvent> {
        let mut events = Vec::new();
        line.work(now, |event| events.push(event));
        events
    }

    #[test]
    fn a_line_that_is_full_takes_no_more_and_gives_up_in_time() {
        let (mut line, _far) = line(1e6);
        let taken = (0..100).filter(|&job| send(&mut line, 0, job)).count();
        assert_eq!(taken, MOST_RIDING);
        assert_eq!(told(&mut line, 499 * MS), []);
        assert_eq!(line.due(), 500 * MS);
        assert_eq!(told(&mut line, 500 * MS).len(), MOST_RIDING);
        assert!(send(&mut line, 500 * MS, 100), "there is room again");
    }

    #[test]
    fn a_line_that_is_too_slow_takes_only_what_would_be_back_in_time() {
        let (mut line, _far) = line(9_600.0);
        let taken = (0..100).filter(|&job| send(&mut line, 0, job)).count();
        // 32 B of the first sample, and answers of 42 B: 33 ms and 44 ms each, until the line is 0.25 s behind.
        assert_eq!(taken, 5);
        told(&mut line, SECOND);
        assert_eq!(line.down.len(), 0, "nothing is left over");
    }

    #[test]
    fn a_board_that_says_more_than_its_line_carries_is_given_up() {
        use std::io::Write;
        let (mut line, mut far) = line(9_600.0);
        assert!(send(&mut line, 0, 1));
        let (mut body, mut frames) = (Vec::new(), Vec::new());
        for sequence in 0..=MOST_UNSAID as u16 {
            Repr::Safe { channel: 0, at_us: 0, values: &[] }.emit(sequence, &mut body);
            tcps_wire::board::write(&body, &mut frames);
        }
        far.write_all(&frames).unwrap();
        assert!(!line.read(MS), "closed");
        assert!(line.gone.as_ref().is_some_and(|g| g.why.contains("more than the line carries")));
        assert!(!send(&mut line, MS, 2));
        let lost =
            told(&mut line, NEVER - 1).into_iter().filter(|n| matches!(n, BoardEvent::Lost { job: 1 }));
        assert_eq!(lost.count(), 1);
    }

    #[test]
    fn the_last_words_of_a_firmware_are_told_though_it_hangs_up_before_them() {
        let (mut line, far) = line(1e6);
        let flag = std::env::temp_dir().join(format!("tcpsbed-hangs-up-{}", std::process::id()));
        fs::write(&flag, "").unwrap();
        let script = "while [ -e \"$0\" ]; do sleep 0.01; done; echo no such register >&2; exit 3";
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).arg(&flag);
        line.firmware = Some(Firmware::start(&mut command, "sh", "").unwrap());
        drop(far);
        assert!(!line.read(7 * SECOND), "closed");
        assert!(line.gone.as_ref().is_some_and(|g| g.why.contains("its line is closed")), "it runs still");
        fs::remove_file(&flag).unwrap();
        let limit = monotonic_ns() + 60 * SECOND;
        while line.firmware.as_mut().unwrap().ended().is_none() {
            assert!(monotonic_ns() < limit);
            thread::sleep(Duration::from_millis(1));
        }
        let gone = line.end(BoardLine::default()).gone.unwrap();
        assert_eq!(gone.at_s, 7.0);
        assert_eq!(gone.why, "its firmware: it ended (exit status: 3): no such register");
    }
}
