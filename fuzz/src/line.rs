//! A conversation with the firmware over a line that a script makes: without damage the modelled board says the same as the
//! firmware, moment for moment and byte for byte; with damage every sample still has one end.
//!
//! ```text
//! script ─┬─► Dialogue ──► frames ──► firmware (C) ──► frames ──► Dialogue ──► BoardEvent ─┐
//!         └─► Model of line and board ─────────────────────────────────────► BoardEvent ─┴─ equal
//! ```

#![expect(unsafe_code, reason = "calls firmware in C")]

use std::{collections::VecDeque, ffi::c_void};
use tcps_core::time::{Time, MS, NEVER};
use tcps_node::{
    host::{BoardEvent, BoardRequest},
    BoardModel, Timetable,
};
use tcps_plan::{BoardPlan, SafeOutput};
use tcps_run::real::line::{Dialogue, LineEvent};
use tcps_wire::board::{Repr, Role};

const ROLES: [Role; 4] = [Role::Relay, Role::Capture, Role::Drive, Role::Sense];
const RATE_BPS: f64 = 1e6;
/// What a board writes at once at most: an answer, and what tells of the safe output.
const ROOM: usize = 1024;

extern "C" {
    fn firmware_begin() -> *mut c_void;
    fn firmware_end(firmware: *mut c_void);
    fn firmware_due_ns(firmware: *const c_void) -> u64;
    fn firmware_is_busy(firmware: *const c_void) -> bool;
    fn firmware_acts(
        firmware: *mut c_void,
        now_ns: u64,
        line: *const u8,
        length: usize,
        bytes: *mut u8,
        room: usize,
    ) -> usize;
}

/// A board of the firmware, whose clock the caller sets.
struct Firmware(*mut c_void);

impl Firmware {
    fn new() -> Self {
        // SAFETY: it takes nothing, and what it gives is ours until `firmware_end`.
        let firmware = unsafe { firmware_begin() };
        assert!(!firmware.is_null());
        Self(firmware)
    }

    fn due(&self) -> Time {
        // SAFETY: the pointer is that of `firmware_begin`.
        Time::try_from(unsafe { firmware_due_ns(self.0) }).unwrap_or(NEVER)
    }

    fn is_busy(&self) -> bool {
        // SAFETY: as above.
        unsafe { firmware_is_busy(self.0) }
    }

    /// Gives it bytes, or lets it do what is due if there are none; what it writes.
    fn acts(&mut self, now: Time, line: &[u8]) -> Vec<u8> {
        let mut out = vec![0; ROOM * (line.len() + 1)];
        // SAFETY: both lengths are those of the slices, and neither is kept.
        let n = unsafe {
            firmware_acts(self.0, now as u64, line.as_ptr(), line.len(), out.as_mut_ptr(), out.len())
        };
        out.truncate(n);
        out
    }
}

impl Drop for Firmware {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        unsafe { firmware_end(self.0) }
    }
}

/// Both ends of a line, the model of it, and what both have told.
struct Conversation {
    now: Time,
    firmware: Firmware,
    dialogue: Dialogue,
    model: BoardModel,
    /// When samples reach the board, as the model has it.
    table: Timetable,
    /// Frames on their way to the board, each with when it is there and its number.
    down: VecDeque<(Time, u16, Vec<u8>)>,
    /// What the line does to the next frame to the board, and from it: changes a byte, by 0 the frame is gone.
    harm: [Option<(u8, u8)>; 2],
    harmed: bool,
    jobs: u32,
    told: Vec<BoardEvent>,
    modelled: Vec<BoardEvent>,
}

impl Conversation {
    /// A board that has understood its HELLO.
    fn new(plan: &BoardPlan) -> Self {
        let mut c = Self {
            now: 0,
            firmware: Firmware::new(),
            dialogue: Dialogue::default(),
            model: BoardModel::new(plan),
            table: Timetable::new(plan.rate_bps, plan.work_us),
            down: VecDeque::new(),
            harm: [None; 2],
            harmed: false,
            jobs: 0,
            told: Vec::new(),
            modelled: Vec::new(),
        };
        let safe_values: Vec<u8> = match &plan.safe {
            SafeOutput::Hold => Vec::new(),
            SafeOutput::Values(values) => values.iter().flat_map(|v| v.to_be_bytes()).collect(),
        };
        let hello = Repr::Hello {
            to_values: plan.safe != SafeOutput::Hold,
            watchdog_ms: plan.watchdog_ms,
            work_us: plan.work_us,
            roles: &ROLES.map(|r| r as u8),
            safe_values: &safe_values,
        };
        let (mut line, mut told) = (Vec::new(), Vec::new());
        c.dialogue.say(0, &hello, &mut line);
        let answer = c.firmware.acts(0, &line);
        c.dialogue.receive(0, &answer, &mut told);
        assert!(matches!(told[..], [(_, LineEvent::Ready)]));
        c
    }

    /// A sample, if the line takes it.
    fn ride(&mut self, channel: u8, bytes: &[u8]) {
        let ride = BoardRequest { job: self.jobs, channel, bytes };
        if !self.model.ride(self.now, &ride, ROLES[usize::from(channel)]) {
            return;
        }
        let Some(trip) = self.table.take(self.now, bytes.len()) else { panic!("the model has taken it") };
        let mut frame = Vec::new();
        let sequence = self.dialogue.ride(self.now, &ride, &mut frame);
        self.jobs += 1;
        if let Some(frame) = self.pass(0, frame) {
            self.down.push_back((trip.entry_ns, sequence, frame));
        }
    }

    /// What the line makes of a frame.
    fn pass(&mut self, way: usize, mut frame: Vec<u8>) -> Option<Vec<u8>> {
        if frame.is_empty() {
            return None;
        }
        let Some((at, by)) = self.harm[way].take() else { return Some(frame) };
        let i = usize::from(at) % frame.len();
        frame[i] ^= by;
        (by != 0).then_some(frame)
    }

    /// Lets everything happen that is due by `until`.
    fn go(&mut self, until: Time) {
        loop {
            let arrives = self.down.front().map_or(NEVER, |d| d.0);
            let due = self.firmware.due();
            let polls = self.firmware.is_busy() || due < arrives;
            let at = if polls { due } else { arrives };
            if at > until {
                break;
            }
            self.now = self.now.max(at);
            let arrived = if polls { None } else { self.down.pop_front() };
            let frame = arrived.map_or(Vec::new(), |(_, sequence, frame)| {
                self.dialogue.written(sequence, self.now);
                frame
            });
            let said = self.firmware.acts(self.now, &frame);
            if let Some(said) = self.pass(1, said) {
                self.hear(&said);
            }
        }
        while let Some(news) = self.model.work(until) {
            self.modelled.push(news);
        }
        self.now = until;
        let mut told = Vec::new();
        self.dialogue.give_up(Some(until), &mut told);
        self.take(told);
    }

    fn hear(&mut self, line: &[u8]) {
        let mut told = Vec::new();
        self.dialogue.receive(self.now, line, &mut told);
        self.take(told);
    }

    fn take(&mut self, told: Vec<(usize, LineEvent)>) {
        for (_, told) in told {
            if let LineEvent::BoardEvent(news) = told {
                if let BoardEvent::Answered { entry_ns, exit_ns, .. } = &news {
                    assert!(0 <= *entry_ns && entry_ns <= exit_ns && *exit_ns <= self.now);
                }
                self.told.push(news);
            }
        }
    }
}

/// A conversation over a line.
pub fn line(data: &[u8]) {
    let mut script = data.iter().copied();
    let mut next = || script.next();
    let (Some(watchdog), Some(work), Some(safe)) = (next(), next(), next()) else { return };
    let safe = match safe % 4 {
        0 => SafeOutput::Hold,
        n => SafeOutput::Values(vec![f32::from(safe); usize::from(n)]),
    };
    let (watchdog_ms, work_us) = (u16::from(watchdog), u32::from(work) * 8);
    let plan = BoardPlan { rate_bps: RATE_BPS, watchdog_ms, safe, work_us, attached: None };
    let mut c = Conversation::new(&plan);
    while let Some(act) = next() {
        match act {
            0..=127 => {
                let count = 4 * usize::from(act >> 2 & 7);
                let bytes: Vec<u8> = (0..count).map(|_| next().unwrap_or(0)).collect();
                c.ride(act & 3, &bytes);
            }
            128..=207 => c.go(c.now + Time::from(act - 127).pow(2) * 20_000),
            208..=239 => {
                c.harm[usize::from(act & 1)] = Some((act, next().unwrap_or(0)));
                c.harmed = true;
            }
            _ => {
                let noise: Vec<u8> = (240..=act).map_while(|_| next()).collect();
                c.hear(&noise);
                c.harmed = true;
            }
        }
    }
    c.go(c.now + 1_000 * MS);
    judge(&c);
}

fn judge(c: &Conversation) {
    let ended = c.told.iter().filter_map(|n| match n {
        BoardEvent::Answered { job, .. } | BoardEvent::Lost { job } => Some(*job),
        BoardEvent::Safe(_) => None,
    });
    assert!(ended.eq(0..c.jobs), "every sample has one end, in order");
    if c.harmed {
        return;
    }
    assert_eq!(c.told.len(), c.modelled.len());
    for (told, modelled) in c.told.iter().zip(&c.modelled) {
        match (told, modelled) {
            // Moments go through stamps in microseconds, and the fit of a clock.
            (
                BoardEvent::Answered { job, bytes, entry_ns, exit_ns },
                BoardEvent::Answered {
                    job: job_too,
                    bytes: bytes_too,
                    entry_ns: entry_too,
                    exit_ns: exit_too,
                },
            ) => {
                assert_eq!((job, bytes), (job_too, bytes_too));
                assert_eq!(exit_ns, exit_too);
                assert!((entry_ns - entry_too).abs() <= MS / 10, "{entry_ns} {entry_too}");
            }
            (told, modelled) => assert_eq!(told, modelled),
        }
    }
}
