//! What is said on a line before a run and after it: whether the board is there, its clock, and its counts.

use super::{dialogue::LineEvent, firmware::Firmware, SerialLine};
use crate::os::clock::monotonic_ns;
use std::{io, thread, time::Duration};
use tcps_core::time::{Time, MS, SECOND};
use tcps_node::BoardAt;
use tcps_plan::{BoardPlan, RunError, SafeOutput};
use tcps_wire::board::{Counts, Repr};

/// How long a board may take to answer the first time.
const READY_NS: Time = 10 * SECOND;
/// Time between two HELLO that are not answered.
const AGAIN_NS: Time = 100 * MS;
/// Exchanges before the start by which the clock of a board is known.
const GREETINGS: usize = 16;
/// How long a board may take to tell its counts, and how often it is asked: a line may damage question or answer.
const COUNTS_NS: Time = 200 * MS;
const COUNTS_TRIES: usize = 4;
const LOOK: Duration = Duration::from_micros(200);

impl SerialLine {
    /// Says HELLO until the board answers, and then some times more, by which its clock is known.
    pub(super) fn greet(&mut self, board: &BoardAt) -> Result<(), RunError> {
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
            let ready = self.ask(&hello, AGAIN_NS, |told| matches!(told, LineEvent::Ready))?;
            answered += usize::from(ready);
            if !ready && monotonic_ns() > limit {
                return Err(RunError::world(format!("it has not answered for {} s", READY_NS / SECOND)));
            }
        }
        Ok(())
    }

    /// Writes a frame and waits for an answer of a kind, outside of a run. False if it does not come.
    fn ask(
        &mut self,
        repr: &Repr<'_>,
        limit_ns: Time,
        mut is_it: impl FnMut(&LineEvent) -> bool,
    ) -> Result<bool, RunError> {
        let mut frame = Vec::new();
        let begun = monotonic_ns();
        self.dialogue.say(begun, repr, &mut frame);
        self.port.write(&frame).map_err(|e| self.closed(&e))?;
        let mut bytes = [0; 512];
        while monotonic_ns() - begun < limit_ns {
            let n = self.port.read(&mut bytes).map_err(|e| self.closed(&e))?;
            self.dialogue.receive(monotonic_ns(), &bytes[..n], &mut self.told);
            if self.told.drain(..).any(|t| is_it(&t.1)) {
                return Ok(true);
            }
            if let Some(ended) = self.firmware.as_mut().and_then(Firmware::ended) {
                return Err(RunError::world(ended));
            }
            if n == 0 {
                thread::sleep(LOOK);
            }
        }
        Ok(false)
    }

    /// Why its line is closed.
    fn closed(&mut self, e: &io::Error) -> RunError {
        let ended = self.firmware.as_mut().and_then(Firmware::ends);
        RunError::world(ended.unwrap_or_else(|| format!("its line is closed: {e}")))
    }

    /// What the board has counted since power-on; `None` if it does not tell.
    pub(super) fn count(&mut self) -> Result<Option<Counts>, RunError> {
        let mut counts = None;
        for _ in 0..COUNTS_TRIES {
            let told = self.ask(&Repr::Query, COUNTS_NS, |told| match told {
                LineEvent::Counts(c) => counts.replace(*c).is_none(),
                _ => false,
            })?;
            if told {
                break;
            }
        }
        Ok(counts)
    }
}
