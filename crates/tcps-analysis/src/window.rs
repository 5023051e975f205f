//! The last few tens of thousands of samples of a flow: which were sent, which arrived.
//!
//! ```text
//! index   ... | head - W ............................ head - 1 | head ...
//!     retired: | in the window: sent at, delay, marks          | not met yet
//!     verdict given
//! ```
//! A sample's fate (lost or not) is decided when it leaves the window or when the run ends, so that memory does not
//! depend on the length of the run.

use tcps_core::time::{Time, SECOND};

/// The source made it.
pub const SENT: u16 = 1;
/// The sink had it.
pub const DELIVERED: u16 = 2;
/// It was replaced or kept back on purpose.
pub const SUPERSEDED: u16 = 4;
/// It was first met after the warm-up.
pub const COUNTED: u16 = 8;
/// A periodic stage made it of no new sample.
pub const REPEATED: u16 = 16;
/// A periodic stage made another of it.
pub const USED: u16 = 32;
/// A periodic stage made it, and it has not left the stage's component yet.
pub const MADE: u16 = 64;
/// It says of itself that it was made when it cannot have been: it has no delay.
pub const UNDATED: u16 = 128;
/// A periodic stage made it of an attacker's: no sample of the flow.
pub const FORGED: u16 = 256;
/// An endpoint that had an attacker's sample with a later number took it for a copy or an old one, and it has not come otherwise.
pub const BEHIND: u16 = 512;

/// Time that a window covers at the flow's nominal rate.
const SPAN_NS: Time = 32 * SECOND;
const FEWEST: u64 = 1024;
const MOST: u64 = 1 << 17;

/// What is known of a sample.
#[derive(Debug, Clone, Copy, Default)]
pub struct Slot {
    /// When it was sent.
    pub sent_ns: Time,
    /// Its delay, once delivered.
    pub delay_ns: i64,
    /// Its number.
    pub index: u32,
    /// `SENT` and so on.
    pub marks: u16,
}

impl Slot {
    /// Whether this mark is set.
    #[inline]
    pub fn is(&self, mark: u16) -> bool {
        self.marks & mark != 0
    }

    /// Sent with something new, and neither replaced nor what `done` says: delivered, or used where its leg ends.
    pub fn missing(&self, done: u16) -> bool {
        self.marks & (SENT | SUPERSEDED | REPEATED | done) == SENT
    }
}

/// A ring of samples.
#[derive(Debug)]
pub struct Window {
    slots: Vec<Slot>,
    mask: u64,
    head: u64,
}

impl Window {
    /// A window for a flow with this period that holds at least twice the grace time, or the whole of a run of `run_ns`.
    pub fn new(period_ns: Time, grace_ns: Time, run_ns: Time) -> Self {
        let span_ns = SPAN_NS.max(grace_ns.saturating_mul(2)).min(run_ns.saturating_mul(2)).max(0) as u64;
        let size = (span_ns / period_ns.max(1) as u64).clamp(FEWEST, MOST).next_power_of_two();
        Self { slots: vec![Slot::default(); size as usize], mask: size - 1, head: 0 }
    }

    /// Number of samples that fit.
    pub fn size(&self) -> usize {
        self.slots.len()
    }

    /// The sample with this number, making room for it if it is new; `None` if it left the window long ago.
    /// Samples that have to go are handed to `retire`.
    #[inline]
    pub fn touch(&mut self, index: u32, retire: impl FnMut(&Slot)) -> Option<&mut Slot> {
        let at = u64::from(index);
        if at >= self.head {
            self.grow(at, retire);
        } else if at + self.mask < self.head.saturating_sub(1) {
            return None;
        }
        Some(&mut self.slots[(at & self.mask) as usize])
    }

    /// Whether a sample with this number can have been made: the newest one started is at most half a window behind.
    #[inline]
    pub fn reaches(&self, index: u32) -> bool {
        u64::from(index) < self.head + self.slots.len() as u64 / 2
    }

    #[inline]
    fn grow(&mut self, at: u64, mut retire: impl FnMut(&Slot)) {
        let from = self.head.max(at.saturating_sub(self.mask));
        for i in from..=at {
            let slot = &mut self.slots[(i & self.mask) as usize];
            if slot.is(SENT) {
                retire(slot);
            }
            *slot = Slot { index: i as u32, ..Slot::default() };
        }
        self.head = at + 1;
    }

    /// The sample with this number, if it is in the window.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&Slot> {
        let slot = &self.slots[(u64::from(index) & self.mask) as usize];
        (slot.index == index && u64::from(index) < self.head).then_some(slot)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, index: u32) -> Option<&mut Slot> {
        let slot = &mut self.slots[(u64::from(index) & self.mask) as usize];
        (slot.index == index && u64::from(index) < self.head).then_some(slot)
    }

    /// Takes out those that are missing.
    pub fn forget(&mut self, done: u16) {
        self.slots.iter_mut().filter(|slot| slot.missing(done)).for_each(|slot| slot.marks = 0);
    }

    /// Samples sent that are still in the window.
    pub fn remaining(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.is(SENT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_found_until_it_has_left() {
        let mut w = Window::new(SECOND, SECOND, Time::MAX);
        assert_eq!(w.size(), 1024);
        let mut retired = Vec::new();
        for i in 0..1500u32 {
            let slot = w.touch(i, |s| retired.push(s.index)).unwrap();
            slot.marks |= SENT;
        }
        assert_eq!(retired, (0..476).collect::<Vec<_>>());
        assert!(w.touch(475, |_| ()).is_none());
        assert!(w.touch(476, |_| ()).is_some_and(|s| s.index == 476));
        assert!(w.get(475).is_none() && w.get(1500).is_none() && w.get(1499).is_some());
        assert_eq!(w.remaining().count(), 1024);
    }

    #[test]
    fn a_leap_retires_everything_once_and_leaves_no_ghosts() {
        let mut w = Window::new(SECOND, SECOND, Time::MAX);
        let mut retired = 0;
        for i in [0, 5, 3_000_000_000u32] {
            w.touch(i, |_| retired += 1).unwrap().marks |= SENT;
        }
        assert_eq!(retired, 2);
        assert_eq!(w.remaining().count(), 1);
        assert!(w.get(5).is_none());
    }

    #[test]
    fn a_number_far_ahead_of_all_that_started_is_out_of_reach() {
        let mut w = Window::new(SECOND, SECOND, Time::MAX);
        w.touch(99, |_| ());
        assert!(w.reaches(0) && w.reaches(100) && w.reaches(99 + 512));
        assert!(!w.reaches(100 + 512) && !w.reaches(u32::MAX));
    }

    #[test]
    fn the_window_covers_half_a_minute_of_a_1_khz_flow_and_twice_the_grace_time() {
        let size = |period_ns, grace_ns, run_ns| Window::new(period_ns, grace_ns, run_ns).size();
        assert_eq!(size(1_000_000, SECOND, Time::MAX), 32_768);
        assert_eq!(size(1_000_000, 30 * SECOND, Time::MAX), 65_536);
        assert_eq!(size(0, i64::MAX, Time::MAX), MOST as usize);
        assert_eq!(size(10_000_000, SECOND, 10 * SECOND), 2048, "a run of 1000 samples");
    }
}
