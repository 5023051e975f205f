//! Samples of a flow that have arrived in part.
//!
//! At most [`SLOTS`] are kept. One that needs a slot takes the one that has waited longest, and one that gets
//! nothing for [`PATIENCE_NS`] is given up; late fragments of a given-up sample are dropped without a second
//! count.

use tcps_core::{
    sample::{Echo, Meta},
    time::{Time, SECOND},
};
use tcps_wire::{header::Repr, Error};

/// Samples in parts that are kept for each flow.
pub(crate) const SLOTS: usize = 8;
/// How long a sample in parts waits for its next fragment.
pub(crate) const PATIENCE_NS: Time = 2 * SECOND;

/// A sample in parts. Its memory is used again for later ones.
#[derive(Debug, Default)]
struct Slot {
    open: bool,
    index: u32,
    origin_ns: Time,
    length: u32,
    fragments: u16,
    missing: u16,
    touched_ns: Time,
    echo: Option<Echo>,
    had: Vec<u64>,
    bytes: Vec<u8>,
}

/// What became of a fragment.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome<'a> {
    /// Kept; more are missing.
    Kept,
    /// It has been had.
    Repeated,
    /// Its sample has been given up.
    TooLate,
    /// The sample is complete.
    Complete(Meta, &'a [u8]),
}

/// The samples of one flow that have arrived in part.
#[derive(Debug)]
pub(crate) struct Reassembly {
    slots: Vec<Slot>,
    given_up: [(u32, Time); 4 * SLOTS],
    incomplete: u64,
}

impl Reassembly {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), given_up: [(0, Time::MIN); 4 * SLOTS], incomplete: 0 }
    }

    /// Samples given up so far.
    pub(crate) fn incomplete(&self) -> u64 {
        self.incomplete
    }

    /// Adds a fragment; the error is that it contradicts an earlier one of its sample.
    pub(crate) fn add(
        &mut self,
        now: Time,
        repr: &Repr,
        payload: &[u8],
        echo: Option<Echo>,
    ) -> Result<Outcome<'_>, Error> {
        let at = match self.slots.iter().position(|s| s.open && s.index == repr.index) {
            Some(at) => at,
            None if self.given_up.contains(&(repr.index, repr.origin_ns)) => return Ok(Outcome::TooLate),
            None => self.open(now, repr),
        };
        let slot = &mut self.slots[at];
        let same = slot.length == repr.length
            && slot.fragments == repr.fragments
            && slot.origin_ns == repr.origin_ns;
        if !same {
            return Err(Error::Contradiction);
        }
        slot.touched_ns = now;
        Ok(slot.fill(repr, payload, echo))
    }

    /// Gives up what has waited too long; when to look again, if anything is left.
    pub(crate) fn expire(&mut self, now: Time) -> Option<Time> {
        for at in 0..self.slots.len() {
            if self.slots[at].open && now - self.slots[at].touched_ns >= PATIENCE_NS {
                self.give_up(at);
            }
        }
        self.oldest_ns().map(|t| t + PATIENCE_NS)
    }

    /// When the sample that has waited longest got its last fragment.
    pub(crate) fn oldest_ns(&self) -> Option<Time> {
        self.slots.iter().filter(|s| s.open).map(|s| s.touched_ns).min()
    }

    fn open(&mut self, now: Time, repr: &Repr) -> usize {
        let at = self.free_slot();
        let slot = &mut self.slots[at];
        slot.open = true;
        slot.index = repr.index;
        slot.origin_ns = repr.origin_ns;
        slot.length = repr.length;
        slot.fragments = repr.fragments;
        slot.missing = repr.fragments;
        slot.touched_ns = now;
        slot.echo = None;
        slot.had.clear();
        slot.had.resize(usize::from(repr.fragments).div_ceil(64), 0);
        if slot.bytes.len() < repr.length as usize {
            slot.bytes.resize(repr.length as usize, 0);
        }
        at
    }

    fn free_slot(&mut self) -> usize {
        if let Some(at) = self.slots.iter().position(|s| !s.open) {
            return at;
        }
        if self.slots.len() < SLOTS {
            self.slots.push(Slot::default());
            return self.slots.len() - 1;
        }
        let at = (0..SLOTS).min_by_key(|&at| self.slots[at].touched_ns).unwrap_or(0);
        self.give_up(at);
        at
    }

    fn give_up(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        slot.open = false;
        let place = self.incomplete as usize % self.given_up.len();
        self.given_up[place] = (slot.index, slot.origin_ns);
        self.incomplete += 1;
    }
}

impl Slot {
    fn fill(&mut self, repr: &Repr, payload: &[u8], echo: Option<Echo>) -> Outcome<'_> {
        let (word, bit) = (usize::from(repr.fragment) / 64, 1u64 << (repr.fragment % 64));
        if self.had[word] & bit != 0 {
            return Outcome::Repeated;
        }
        self.had[word] |= bit;
        self.missing -= 1;
        self.bytes[repr.offset()..repr.offset() + payload.len()].copy_from_slice(payload);
        self.echo = self.echo.or(echo);
        if self.missing > 0 {
            return Outcome::Kept;
        }
        self.open = false;
        let meta = Meta { flow: repr.flow, index: self.index, origin_ns: self.origin_ns, echo: self.echo };
        Outcome::Complete(meta, &self.bytes[..self.length as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::ids::FlowId;

    fn part(index: u32, fragment: u16) -> Repr {
        Repr { flow: FlowId(1), index, origin_ns: 9, length: 3, fragment, fragments: 3, has_echo: false }
    }

    fn add(r: &mut Reassembly, now: Time, index: u32, fragment: u16) -> Result<Outcome<'_>, Error> {
        r.add(now, &part(index, fragment), &[b'a' + fragment as u8], None)
    }

    #[test]
    fn any_order_completes_and_a_repeat_is_told() {
        let mut r = Reassembly::new();
        assert_eq!(add(&mut r, 0, 5, 2), Ok(Outcome::Kept));
        assert_eq!(add(&mut r, 0, 5, 0), Ok(Outcome::Kept));
        assert_eq!(add(&mut r, 0, 5, 0), Ok(Outcome::Repeated));
        let meta = Meta { flow: FlowId(1), index: 5, origin_ns: 9, echo: None };
        assert_eq!(add(&mut r, 0, 5, 1), Ok(Outcome::Complete(meta, b"abc")));
        assert_eq!((r.oldest_ns(), r.incomplete()), (None, 0));
    }

    #[test]
    fn fragments_that_contradict_each_other_are_refused() {
        let mut r = Reassembly::new();
        add(&mut r, 0, 5, 2).unwrap();
        let other = Repr { origin_ns: 8, ..part(5, 1) };
        assert_eq!(r.add(0, &other, b"b", None), Err(Error::Contradiction));
    }

    #[test]
    fn a_ninth_sample_takes_the_slot_that_waited_longest() {
        let mut r = Reassembly::new();
        for index in 0..8 {
            add(&mut r, index as Time, index, 0).unwrap();
        }
        add(&mut r, 8, 0, 1).unwrap();
        add(&mut r, 9, 8, 0).unwrap();
        assert_eq!(r.incomplete(), 1);
        assert_eq!(add(&mut r, 10, 1, 1), Ok(Outcome::TooLate), "sample 1 made room");
        assert_eq!(add(&mut r, 10, 2, 1), Ok(Outcome::Kept), "sample 2 did not");
        assert_eq!(r.incomplete(), 1, "a given-up sample counts once");
    }

    #[test]
    fn patience_runs_from_the_last_fragment() {
        let mut r = Reassembly::new();
        add(&mut r, 0, 1, 0).unwrap();
        add(&mut r, 0, 2, 0).unwrap();
        add(&mut r, 100, 2, 1).unwrap();
        assert_eq!(r.expire(PATIENCE_NS - 1), Some(PATIENCE_NS));
        assert_eq!(r.expire(PATIENCE_NS), Some(PATIENCE_NS + 100));
        assert_eq!(r.incomplete(), 1);
        assert_eq!(r.expire(PATIENCE_NS + 100), None);
        assert_eq!(r.incomplete(), 2);
    }
}
