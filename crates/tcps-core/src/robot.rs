//! What answers at the far side: `step(t, command) -> sense`.

use crate::time::Time;

/// A robot, or anything that takes commands and can be felt.
///
/// Built-in robots are Rust; a Python class with the same two methods is wrapped into one. In virtual time it is
/// stepped by its ticks; on sockets a timer runs the same object.
pub trait Robot: Send {
    /// Advances to `now` with the newest command (empty before the first); writes what is sensed, returns how many values.
    fn step(&mut self, now: Time, command: &[f64], sense: &mut [f64]) -> usize;
    /// True once the last command has been carried out (hold-until-done echoes wait for it).
    fn arrived(&self) -> bool {
        true
    }
    /// What went wrong, if anything did.
    fn failure(&self) -> Option<String> {
        None
    }
}
