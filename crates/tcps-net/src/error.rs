//! Why a specification of a network was refused.

use std::fmt;
use tcps_core::param::Fault;
use tcps_plan::{ErrorKind, RunError};

/// A key of the specification that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetError {
    /// The object, for example `links.l1.forward`.
    pub place: String,
    /// Its key, for example `rate_bps`, what was there, and what is allowed.
    pub fault: Fault,
    /// What its caller has to do with it.
    pub kind: ErrorKind,
}

impl NetError {
    /// An error at `place.key`.
    pub fn new(place: impl Into<String>, key: &str, found: impl fmt::Display, allowed: &str) -> Self {
        Self::at(place, Fault::new(key, found, allowed))
    }

    /// The fault of a parameter at `place.key`.
    pub fn of(place: impl Into<String>, key: &str, fault: Fault) -> Self {
        Self::at(place, Fault { key: format!("{key}.{}", fault.key), ..fault })
    }

    /// The fault of a key of `place`.
    pub fn at(place: impl Into<String>, fault: Fault) -> Self {
        Self { place: place.into(), fault, kind: ErrorKind::Config }
    }

    /// Code of the user's at `place.key` that cannot be made: of its own kind, with its own remedy if it says one.
    pub fn code(place: impl Into<String>, key: &str, error: RunError) -> Self {
        let allowed = error.allowed.as_deref().unwrap_or("code that can be loaded");
        Self { kind: error.kind, ..Self::new(place, key, error.found, allowed) }
    }
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.place, self.fault)
    }
}

impl std::error::Error for NetError {}

impl From<NetError> for RunError {
    fn from(e: NetError) -> Self {
        Self { kind: e.kind.clone(), ..Self::config(e.to_string()) }
    }
}
