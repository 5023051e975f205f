//! Why bytes are refused.

use std::fmt;

/// Why bytes are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// There are fewer bytes than the format needs.
    Truncated,
    /// Magic, version, flags or mode are not known.
    Unknown,
    /// Two fields, or a field and the number of bytes, contradict each other.
    Contradiction,
    /// More bytes than the format can describe.
    TooLong,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Truncated => "too few bytes",
            Error::Unknown => "unknown magic, version, flag or mode",
            Error::Contradiction => "fields contradict each other",
            Error::TooLong => "too many bytes",
        })
    }
}

impl std::error::Error for Error {}
