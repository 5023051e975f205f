//! When bytes may leave a line that has no constant rate: a recorded trace, or the slots of a radio link.

use tcps_core::time::Time;

/// Moments at which some bytes may leave each, and the place in them.
pub trait Turns: Send {
    /// The next moment at which bytes may leave.
    fn next(&self) -> Time;
    /// The moment `n` turns after the next one.
    fn after(&self, n: usize) -> Time;
    /// Lets all turns at or before `now` pass unused; called before a packet enters an empty queue.
    fn skip_to(&mut self, now: Time);
    /// Takes at most `want` bytes of the next turn; moves on when it is used up.
    fn take(&mut self, want: u32) -> u32;
    /// Lets what is left of the next turn pass.
    fn pass(&mut self);
    /// Mean time that `bytes` take.
    fn mean_ns(&self, bytes: u32) -> Time;
    /// Bytes of a turn.
    fn bytes(&self) -> u32;
}
