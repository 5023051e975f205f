//! Predictors: a signal between and beyond its samples, one file each (model: predictors).
//!
//! ```text
//! update(at, sample or none)        predict(at) -> the signal at `at`, at or after the last update
//! ```
//! Times are those of the samples' origin. Samples that are older than the newest, empty or not finite are left out;
//! a sample with another number of values starts a new signal.

pub mod ar;
pub mod hook;
pub mod kalman;
pub mod kalman_acceleration;
pub mod kalman_velocity;
pub mod linear;
pub mod operator;
pub mod zoh;

use tcps_core::time::Time;

/// What a predictor may use of a sample: none if it is old, empty or not finite.
fn usable(last: Option<Time>, at: Time, sample: Option<&[f64]>) -> Option<&[f64]> {
    sample.filter(|x| last.is_none_or(|t| at > t) && !x.is_empty() && x.iter().all(|v| v.is_finite()))
}

/// Nanoseconds from `from` to `to`, in s; 0 if `to` comes before.
fn seconds(from: Time, to: Time) -> f64 {
    to.saturating_sub(from).max(0) as f64 * 1e-9
}
