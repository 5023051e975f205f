//! The models that rooms implement and drivers hand around: no room needs to see another for them.

use crate::time::Time;

/// Decides whether a packet is lost on a link.
pub trait LossModel: Send {
    /// True if the packet that starts at `now` is lost.
    fn lose(&mut self, now: Time) -> bool;
}

/// Guesses a signal between and beyond its samples. Sender and receiver of a deadband codec run the same one.
// [model: predictors]
pub trait Predictor: Send {
    /// A sample of the moment `at`, or none where one was expected.
    fn update(&mut self, at: Time, sample: Option<&[f64]>);
    /// Writes the signal at `at`, at or after the last update, into `out`; false while there is nothing to go by.
    fn predict(&self, at: Time, out: &mut [f64]) -> bool;
}
