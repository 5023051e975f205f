//! A source that is code of the user's.

use super::Arrivals;
use crate::own::{Failures, SourceCode};
use tcps_core::time::Time;

/// Most packets at one moment: a source with more does not advance in time.
const MOST_AT_ONCE: u32 = 100_000;

/// A source that is code of the user's. It ends with the first failure.
pub(crate) struct OwnSource {
    code: Box<dyn SourceCode>,
    last: Time,
    /// Packets at that moment.
    at_once: u32,
    failures: Failures,
}

impl OwnSource {
    pub fn new(code: Box<dyn SourceCode>, name: &str, entry: &str) -> Self {
        let failures = Failures::of(format!("source {name} of traffic.{entry}"));
        Self { code, last: 0, at_once: 0, failures }
    }
}

impl Arrivals for OwnSource {
    fn next(&mut self) -> Option<(Time, u32)> {
        if self.failures.count > 0 {
            return None;
        }
        match self.code.next() {
            Ok(None) => return None,
            Ok(Some((at, bytes))) if at >= self.last && (1..=65535).contains(&bytes) => {
                self.at_once = if at > self.last { 1 } else { self.at_once + 1 };
                self.last = at;
                if self.at_once <= MOST_AT_ONCE {
                    return Some((at, bytes));
                }
                let found = format!("gave {} packets at {at} ns", self.at_once);
                self.failures.note(format!("{found}; allowed: at most {MOST_AT_ONCE} at one time"));
            }
            Ok(Some((at, bytes))) => self.failures.note(format!(
                "gave a packet of {bytes} B at {at} ns after one at {} ns; allowed: 1 to 65535 B, in order of time",
                self.last
            )),
            Err(what) => self.failures.note(what),
        }
        None
    }

    fn failure(&self) -> Option<String> {
        self.failures.told()
    }
}
