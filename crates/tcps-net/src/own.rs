//! Code of the user's in the network: queue disciplines, loss models, delay models and background sources.
//!
//! ```text
//! link ─► queue/own (packets, limit, counts) ─► QueueCode: numbers come, leave and are dropped
//!      └► line (OwnLoss, OwnDelay)           ─► LossCode, DelayCode: numbers start, and are lost or late
//! ```

use crate::packet::Packet;
use tcps_core::{dist::LONGEST, param::Named, time::Time};
use tcps_plan::RunError;

/// A packet that comes to a queue, or starts on a line.
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

/// A loss model of the user's.
pub trait LossCode: Send {
    /// Whether the packet that starts at `now` is lost.
    fn lose(&mut self, now: Time, offer: &Offer) -> Result<bool, String>;
}

/// A delay model of the user's.
pub trait DelayCode: Send {
    /// How much later the packet arrives that is wholly on the line at `now`.
    fn delay(&mut self, now: Time, offer: &Offer) -> Result<Time, String>;
}

/// A background source of the user's.
pub trait SourceCode: Send {
    /// The next packet as (time since the start of the source, bytes), in order of time; `None` after the last.
    fn next(&mut self) -> Result<Option<(Time, u32)>, String>;
}

/// Where code of the user's comes from.
pub trait ForeignCode {
    /// The queue discipline of a link.
    fn queue(&mut self, code: &Named, link: &str, seed: u64) -> Result<Box<dyn QueueCode>, RunError>;
    /// The loss model of a link.
    fn loss(&mut self, code: &Named, link: &str, seed: u64) -> Result<Box<dyn LossCode>, RunError>;
    /// The delay model of a link.
    fn delay(&mut self, code: &Named, link: &str, seed: u64) -> Result<Box<dyn DelayCode>, RunError>;
    /// The background source of a traffic entry.
    fn source(&mut self, code: &Named, entry: &str, seed: u64) -> Result<Box<dyn SourceCode>, RunError>;
}

/// Networks without code of the user's.
pub struct NoCode;

fn none<T>(code: &Named) -> Result<T, RunError> {
    Err(RunError::hook(format!("{} is code, and this network runs without any", code.kind)))
}

impl ForeignCode for NoCode {
    fn queue(&mut self, code: &Named, _: &str, _: u64) -> Result<Box<dyn QueueCode>, RunError> {
        none(code)
    }

    fn loss(&mut self, code: &Named, _: &str, _: u64) -> Result<Box<dyn LossCode>, RunError> {
        none(code)
    }

    fn delay(&mut self, code: &Named, _: &str, _: u64) -> Result<Box<dyn DelayCode>, RunError> {
        none(code)
    }

    fn source(&mut self, code: &Named, _: &str, _: u64) -> Result<Box<dyn SourceCode>, RunError> {
        none(code)
    }
}

/// A loss model that is code of the user's; a packet at which it fails goes on.
pub(crate) struct OwnLoss {
    /// None once another model has taken its place.
    code: Option<Box<dyn LossCode>>,
    next: u32,
    failures: Failures,
}

impl OwnLoss {
    pub fn new(code: Box<dyn LossCode>, name: &str, link: &str) -> Self {
        Self { code: Some(code), next: 0, failures: Failures::of(format!("loss {name} of links.{link}")) }
    }

    pub fn lose(&mut self, now: Time, packet: &Packet) -> bool {
        let Some(code) = &mut self.code else { return false };
        let offer = numbered(&mut self.next, packet);
        code.lose(now, &offer).unwrap_or_else(|what| {
            self.failures.note(what);
            false
        })
    }

    pub fn end(&mut self) {
        self.code = None;
    }

    pub fn failure(&self) -> Option<String> {
        self.failures.told()
    }
}

/// A delay model that is code of the user's; a packet at which it fails has no extra delay.
pub(crate) struct OwnDelay {
    code: Box<dyn DelayCode>,
    next: u32,
    failures: Failures,
}

impl OwnDelay {
    pub fn new(code: Box<dyn DelayCode>, name: &str, link: &str) -> Self {
        Self { code, next: 0, failures: Failures::of(format!("delay {name} of links.{link}")) }
    }

    pub fn delay(&mut self, now: Time, packet: &Packet) -> Time {
        let offer = numbered(&mut self.next, packet);
        let said = self.code.delay(now, &offer).and_then(|span| match span {
            0..=LONGEST => Ok(span),
            _ => Err(format!("delay() returned {span}; allowed: nanoseconds from 0 to {LONGEST}, an hour")),
        });
        said.unwrap_or_else(|what| {
            self.failures.note(what);
            0
        })
    }

    pub fn failure(&self) -> Option<String> {
        self.failures.told()
    }
}

fn numbered(next: &mut u32, packet: &Packet) -> Offer {
    let number = *next;
    *next = number.wrapping_add(1);
    Offer { number, bytes: packet.wire_bytes, flow: packet.class, dscp: packet.dscp }
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
