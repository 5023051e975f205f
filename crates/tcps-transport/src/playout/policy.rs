//! What a policy of playout is fed, and what it does.

use tcps_core::time::Time;

/// Samples that wait in a policy at most.
pub(super) const MOST_WAITING: usize = 1024;

/// A sample that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrival {
    /// When, on the receiver's clock.
    pub at_ns: Time,
    /// When it was made.
    pub origin_ns: Time,
    /// Its number.
    pub index: u32,
    /// What it replaces in an updateable queue: a waiting one with the same key.
    pub key: u64,
    /// What whoever plays knows it by.
    pub token: u32,
}

impl Arrival {
    /// Delay of the sample; what its header says may be anything.
    pub(super) fn delay_ns(&self) -> Time {
        self.at_ns.saturating_sub(self.origin_ns)
    }
}

/// What playout did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// A sample was shown.
    Played {
        /// When.
        at_ns: Time,
        /// Which.
        sample: Arrival,
    },
    /// A sample came after its moment.
    Late(Arrival),
    /// A sample was dropped to keep the delay down, or overwritten.
    Dropped(Arrival),
    /// There was nothing to show: the last sample was shown again.
    Gap {
        /// When.
        at_ns: Time,
    },
}

/// A policy.
pub trait Playout: std::fmt::Debug + Send {
    /// A sample arrived.
    fn arrive(&mut self, arrival: Arrival, acts: &mut Vec<Act>);
    /// The next moment at which it shows something, if it knows one.
    fn next(&self) -> Option<Time>;
    /// Does what is due at `now`, which may be later than that moment: ticks that were missed are left out.
    fn tick(&mut self, now: Time, acts: &mut Vec<Act>);
}
