//! The one timer of a sender.
//!
//! ```text
//! Timeout    nothing was acknowledged for a time-out: send the oldest again, all that is old is lost
//! Probe      nothing was for two round trips: send something new or the last again, so that something is answered
//! Reorder    what may have been reordered is lost by now
//! Closed     the peer takes nothing: ask again
//! ```

use tcps_core::time::Time;

/// A timer, with its moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    Timeout(Time),
    Probe(Time),
    Reorder(Time),
    Closed(Time),
}

impl Timer {
    /// When it runs out.
    pub(super) fn at(self) -> Time {
        match self {
            Self::Timeout(t) | Self::Probe(t) | Self::Reorder(t) | Self::Closed(t) => t,
        }
    }
}
