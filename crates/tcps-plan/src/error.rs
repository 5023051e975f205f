//! What can go wrong before and during a run.

use std::fmt;

/// A run that cannot start or go on; the text names the thing and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunError(pub String);

impl RunError {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RunError {}
