//! What a delay model does.

use crate::{seed::Stream, time::Time};
use std::{fmt::Debug, ops::RangeInclusive};

/// What a span may be, in nanoseconds: up to about eleven days.
pub(super) const LENGTHS: RangeInclusive<f64> = 0.0..=1e15;

/// A delay model.
pub trait Spans: Copied + Debug + Send + Sync {
    /// The next span in nanoseconds; what is below 0 or above an hour is cut.
    fn next(&mut self, stream: &mut Stream) -> Time;
}

/// What can be copied behind a pointer.
pub trait Copied {
    /// A copy.
    fn copied(&self) -> Box<dyn Spans>;
}

impl<T: Spans + Clone + 'static> Copied for T {
    fn copied(&self) -> Box<dyn Spans> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Spans> {
    fn clone(&self) -> Self {
        (**self).copied()
    }
}
