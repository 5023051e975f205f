//! What can go wrong before and during a run.

use serde::Serialize;
use std::{fmt, io};
use tcps_core::param::Fault;

/// What a caller has to do with an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorKind {
    /// What a scenario asks for cannot be.
    Config,
    /// Nor can this parameter of it.
    Parameter(Box<Fault>),
    /// Code of the user's cannot be loaded, or is not what it is named for.
    Hook,
    /// A file of the user's cannot be read, or holds something else.
    Data,
    /// The machine or another program does not do its part.
    World,
    /// The system refuses it with this number, such as that of a full disk.
    System(i32),
    /// This program is wrong.
    Bug,
}

/// A run that cannot start or go on; the text names the thing and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunError {
    /// What its caller has to do with it.
    pub kind: ErrorKind,
    /// What is wrong, without the words of the system.
    pub found: String,
    /// What is allowed, where `found` does not say it.
    pub allowed: Option<String>,
}

/// An error for who is told by JSON: the class that Python has for it, and its parts.
#[derive(Debug, Serialize)]
pub struct ErrorReport<'a> {
    /// `config`, `hook`, `data` or `world`.
    pub kind: &'static str,
    /// What was found.
    pub error: &'a str,
    /// What is allowed.
    pub allowed: Option<&'a str>,
    /// The number of the system's error.
    pub errno: Option<i32>,
    /// Key of a parameter, what was found there, what is allowed.
    pub fault: Option<[&'a str; 3]>,
}

impl RunError {
    fn new(kind: ErrorKind, found: impl Into<String>) -> Self {
        Self { kind, found: found.into(), allowed: None }
    }

    /// The scenario asks for what cannot be.
    pub fn config(found: impl Into<String>) -> Self {
        Self::new(ErrorKind::Config, found)
    }

    /// Code of the user's cannot be loaded.
    pub fn hook(found: impl Into<String>) -> Self {
        Self::new(ErrorKind::Hook, found)
    }

    /// A file of the user's cannot be used.
    pub fn data(found: impl Into<String>) -> Self {
        Self::new(ErrorKind::Data, found)
    }

    /// The machine, or another program, does not do its part.
    pub fn world(found: impl Into<String>) -> Self {
        Self::new(ErrorKind::World, found)
    }

    /// This program is wrong.
    pub fn bug(found: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Bug, format!("{found} (please report this)"))
    }

    /// The system refuses what is done with `what`: a file, a socket, a device.
    pub fn system(what: impl fmt::Display, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        match error.raw_os_error() {
            Some(number) => Self::new(ErrorKind::System(number), what.to_string()),
            None => Self::world(format!("{what}: {error}")),
        }
    }

    /// The error of something that has parameters.
    pub fn of(error: &dyn fmt::Display, fault: Option<Fault>) -> Self {
        Self::new(fault.map_or(ErrorKind::Config, |f| ErrorKind::Parameter(f.into())), error.to_string())
    }

    /// An error of the class that Python has under this name.
    pub fn named(kind: &str, found: impl Into<String>) -> Self {
        let kind = match kind {
            "config" => ErrorKind::Config,
            "data" => ErrorKind::Data,
            "world" => ErrorKind::World,
            _ => ErrorKind::Hook,
        };
        Self::new(kind, found)
    }

    /// The same of a part of `place`.
    pub fn within(self, place: impl fmt::Display) -> Self {
        Self { found: format!("{place}: {}", self.found), ..self }
    }

    /// The parameter that is to blame, if one is.
    pub fn fault(&self) -> Option<&Fault> {
        match &self.kind {
            ErrorKind::Parameter(fault) => Some(fault),
            _ => None,
        }
    }

    /// Its parts, and the class that Python has for it.
    pub fn report(&self) -> ErrorReport<'_> {
        let (kind, errno) = match self.kind {
            ErrorKind::Config | ErrorKind::Parameter(_) => ("config", None),
            ErrorKind::Hook => ("hook", None),
            ErrorKind::Data => ("data", None),
            ErrorKind::World | ErrorKind::Bug => ("world", None),
            ErrorKind::System(number) => ("world", Some(number)),
        };
        let fault = self.fault().map(|f| [f.key.as_str(), &f.found, &f.allowed]);
        ErrorReport { kind, error: &self.found, allowed: self.allowed.as_deref(), errno, fault }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.found)?;
        if let ErrorKind::System(number) = self.kind {
            write!(f, ": {}", io::Error::from_raw_os_error(number))?;
        }
        self.allowed.as_ref().map_or(Ok(()), |allowed| write!(f, "; allowed: {allowed}"))
    }
}

impl std::error::Error for RunError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// An exception in Python becomes an error here and an exception of the same class again.
    #[test]
    fn an_error_keeps_its_class_on_its_way_through_rust() {
        for kind in ["config", "hook", "data", "world"] {
            assert_eq!(RunError::named(kind, "x").report().kind, kind);
        }
        assert_eq!(RunError::named("", "x").report().kind, "hook", "of no class of its own");
    }

    /// A caller prints the text, or builds an exception of the parts.
    #[test]
    fn an_error_tells_its_parts_and_its_remedy() {
        let fault = Fault::new("rate_bps", -1, "above 0");
        let config = RunError { allowed: Some("udp, tcp".into()), ..RunError::config("found udq") };
        for (error, parts, text) in [
            (config, ("config", "found udq", Some("udp, tcp"), None), "found udq; allowed: udp, tcp"),
            (RunError::of(&"red", Some(fault)), ("config", "red", None, None), "red"),
            (RunError::of(&"red", None).within("l1"), ("config", "l1: red", None, None), "l1: red"),
            (RunError::data("no rows"), ("data", "no rows", None, None), "no rows"),
            (RunError::hook("no C"), ("hook", "no C", None, None), "no C"),
            (RunError::bug("0"), ("world", "0 (please report this)", None, None), "0 (please report this)"),
            (
                RunError::system("a.bin", io::Error::from_raw_os_error(28)),
                ("world", "a.bin", None, Some(28)),
                "a.bin: No space left on device (os error 28)",
            ),
            (
                RunError::system("a.bin", io::Error::other("torn")),
                ("world", "a.bin: torn", None, None),
                "a.bin: torn",
            ),
        ] {
            let report = error.report();
            assert_eq!((report.kind, report.error, report.allowed, report.errno), parts);
            assert_eq!(error.to_string(), text);
            let fault = (error.found == "red").then_some(["rate_bps", "-1", "above 0"]);
            assert_eq!(report.fault, fault);
        }
    }
}
