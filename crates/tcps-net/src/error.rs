//! Why a specification of a network was refused.

use std::fmt;
use tcps_core::param::Fault;

/// A key of the specification that cannot be used, with what was found and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetError {
    /// The object, for example `links.l1.forward`.
    pub place: String,
    /// Its key, for example `rate_bps`.
    pub key: String,
    /// What was there.
    pub found: String,
    /// What is allowed, or what to do.
    pub remedy: String,
}

impl NetError {
    /// An error at `place.key`.
    pub fn new(place: impl Into<String>, key: &str, found: impl fmt::Display, remedy: &str) -> Self {
        Self { place: place.into(), key: key.into(), found: found.to_string(), remedy: remedy.to_owned() }
    }

    /// The fault of a parameter at `place.key`.
    pub fn of(place: impl Into<String>, key: &str, fault: Fault) -> Self {
        Self::new(place, &format!("{key}.{}", fault.key), fault.found, &format!("allowed: {}", fault.allowed))
    }
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}: found {}; {}", self.place, self.key, self.found, self.remedy)
    }
}

impl std::error::Error for NetError {}
