//! Boards and their lines.

use serde::Serialize;
use tcps_core::time::Time;

/// A board by its component's name, and its line.
#[derive(Debug, Clone, Serialize)]
pub struct Board {
    pub(super) component: String,
    #[serde(flatten)]
    pub(super) line: BoardLine,
}

/// What was counted on the line of a board. What only a real line can tell is absent of a modelled one, on which nothing is
/// damaged and whose moments are exact.
#[derive(Debug, Clone, Default, Serialize)]
pub struct BoardLine {
    /// Samples that the line has taken.
    pub sent: u64,
    /// Samples that the board has given back.
    pub answered: u64,
    /// Samples that the line or the board has lost.
    pub lost: u64,
    /// Times that its watchdog went to the safe output.
    pub safe: u64,
    /// Answers to no sample that was waited for: they came too late.
    pub late: Option<u64>,
    /// What came from the board and was no frame, or not one for us.
    pub damaged: Option<Damage>,
    /// The same of what came to the board, as it told at the end; absent if it did not.
    pub damaged_there: Option<DamageThere>,
    /// Values that were no numbers, as the board told or as its model counted; absent if it did not tell.
    pub refused_values: Option<u32>,
    /// How wrong its stamps can be.
    pub clock_bound_ns: Option<Time>,
    /// Why and when it went away.
    pub gone: Option<Gone>,
}

/// What a reader of frames counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Frames whose checksum was wrong.
    pub no_crc: u32,
    /// Torn frames.
    pub no_cobs: u32,
    /// Stretches that are longer than any frame.
    pub too_long: u32,
    /// Whole frames that mean nothing here.
    pub unknown: u32,
    /// Frames that were numbered and never came.
    pub missing: u32,
}

/// What a board counts of its line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DamageThere {
    /// What its reader of frames counts.
    #[serde(flatten)]
    pub frames: Damage,
    /// Bytes for which its port had no room.
    pub overflown: u32,
}

/// A board that went away.
#[derive(Debug, Clone, Serialize)]
pub struct Gone {
    /// When, seconds of run time.
    pub at_s: f64,
    /// Why.
    pub why: String,
}
