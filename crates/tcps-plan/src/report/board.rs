//! Boards.

use serde::Serialize;
use tcps_core::report::BoardLine;

/// A board by its component's name, and its line.
#[derive(Debug, Clone, Serialize)]
pub struct Board {
    pub(super) component: String,
    #[serde(flatten)]
    pub(super) line: BoardLine,
}
