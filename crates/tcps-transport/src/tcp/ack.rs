//! An acknowledgement, and what it tells.

use super::scoreboard::AckSummary;
use tcps_core::time::Time;

/// An acknowledgement, its numbers as positions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ack<'a> {
    /// Everything before this has arrived.
    pub(super) position: u64,
    /// Number of the segment that brought it, as a position of the peer's stream.
    pub(super) sequence: u64,
    /// Bytes that the peer takes beyond `position`.
    pub(super) window: u64,
    /// What has arrived besides; the first may be a duplicate.
    pub(super) blocks: &'a [(u64, u64)],
    /// When the segment was sent, to a millisecond, that this answers.
    pub(super) echo_ns: Option<Time>,
    /// Whether the segment has content too.
    pub(super) has_content: bool,
    /// Whether the peer has seen a mark of congestion.
    pub(super) has_mark: bool,
}

/// What an acknowledgement tells.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) summary: AckSummary,
    pub(super) has_advanced: bool,
    pub(super) is_duplicate: bool,
    /// A block told that a repeat arrived twice.
    pub(super) duplicated: bool,
}
