//! Code of the user's in the network: queue disciplines and background sources.
//!
//! ```text
//! link ─► queue/own (packets, limit, counts) ─► QueueCode: numbers come, leave and are dropped
//! ```

use tcps_core::{param::Named, time::Time};

/// A packet that comes to a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// What it is called from now on.
    pub number: u32,
    /// Its size on the wire.
    pub bytes: u32,
    /// Its flow, or 32768 plus the number of the traffic entry.
    pub flow: u16,
    /// Its code point.
    pub dscp: u8,
}

/// A queue discipline of the user's. Numbers in `dropped` are thrown out; an error says what went wrong.
pub trait QueueCode: Send {
    /// A packet comes.
    fn enqueue(&mut self, now: Time, offer: &Offer, dropped: &mut Vec<u32>) -> Result<(), String>;
    /// The line is free and packets wait: the one that goes.
    fn dequeue(&mut self, now: Time, dropped: &mut Vec<u32>) -> Result<Option<u32>, String>;
}

/// A background source of the user's.
pub trait SourceCode: Send {
    /// The next packet as (time since the start of the source, bytes), in order of time; `None` after the last.
    fn next(&mut self) -> Result<Option<(Time, u32)>, String>;
}

/// Where code of the user's comes from.
pub trait ForeignCode {
    /// The queue discipline of a link.
    fn queue(&mut self, code: &Named, link: &str, seed: u64) -> Result<Box<dyn QueueCode>, String>;
    /// The background source of a traffic entry.
    fn source(&mut self, code: &Named, entry: &str, seed: u64) -> Result<Box<dyn SourceCode>, String>;
}

/// Networks without code of the user's.
pub struct NoCode;

impl ForeignCode for NoCode {
    fn queue(&mut self, code: &Named, _: &str, _: u64) -> Result<Box<dyn QueueCode>, String> {
        Err(format!("{} is code, and this network runs without any", code.kind))
    }

    fn source(&mut self, code: &Named, _: &str, _: u64) -> Result<Box<dyn SourceCode>, String> {
        Err(format!("{} is code, and this network runs without any", code.kind))
    }
}

/// What went wrong first, and how often something did.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    label: String,
    first: Option<String>,
    pub count: u64,
}

impl Failures {
    pub fn of(label: String) -> Self {
        Self { label, ..Self::default() }
    }

    pub fn note(&mut self, what: String) {
        self.first.get_or_insert(what);
        self.count += 1;
    }

    pub fn told(&self) -> Option<String> {
        let times = if self.count == 1 { "once".to_owned() } else { format!("{} times", self.count) };
        self.first.as_ref().map(|first| format!("{}: {first}, {times}", self.label))
    }
}
