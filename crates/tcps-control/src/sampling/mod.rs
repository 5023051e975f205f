//! Samplers: which samples travel at all, one file each.
//!
//! ```text
//! sample ──► tagged, first, not finite, or without values? ──► goes
//!        └─► the sampler's own test ──► goes │ suppressed
//! ```
//! A sampler is a hook at `code` of the sending component. What it keeps back is counted as suppressed, not as lost;
//! the receiver holds the last sample, or predicts (`predict`). A sample that carries an echo command always goes.

pub mod deadband;
pub mod level_crossing;
pub mod network_deadband;
pub mod uniform;
pub mod weber;

use std::ops::RangeInclusive;
use tcps_core::{
    hook::{HookIn, Verdict},
    param::ABOVE_ZERO,
};

/// The sample goes as it is, or ends here.
fn verdict(goes: bool) -> Verdict {
    if goes {
        Verdict::Emit
    } else {
        Verdict::Nothing
    }
}

/// Whether a sample must go whatever the sampler says.
// [Hinterseer 2008: deadband] A tagged sample is never suppressed; nobody could say how far one without values is off.
fn must_go(input: &HookIn) -> bool {
    input.tagged != 0 || input.x().is_empty() || !input.x().iter().all(|v| v.is_finite())
}

/// Euclidean length.
fn norm(x: &[f64]) -> f64 {
    libm::sqrt(x.iter().map(|v| v * v).sum())
}

/// Euclidean distance.
fn distance(x: &[f64], y: &[f64]) -> f64 {
    libm::sqrt(x.iter().zip(y).map(|(a, b)| (a - b) * (a - b)).sum())
}

/// Keeps a copy in room that is there already.
fn keep(room: &mut Vec<f64>, x: &[f64]) {
    room.clear();
    room.extend_from_slice(x);
}

/// Shares of a signal.
const SHARES: RangeInclusive<f64> = ABOVE_ZERO..=10.0;
