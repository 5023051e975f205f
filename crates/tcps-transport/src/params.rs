//! Parameters of a transport, checked key by key.

use serde_json::Value;
use std::{cell::RefCell, fmt, ops::RangeInclusive};
use tcps_core::{rate::RateController, time::Time};

/// Why there is no endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportError {
    /// No transport has this name.
    UnknownTransport {
        /// The name.
        found: String,
        /// The names that are known.
        known: Vec<&'static str>,
    },
    /// The transport has no such parameter.
    UnknownParameter {
        /// The transport.
        transport: &'static str,
        /// The parameter.
        found: String,
        /// The parameters that it has.
        allowed: &'static [&'static str],
    },
    /// The flows of the channel are not what the transport is for.
    Channel {
        /// The transport.
        transport: &'static str,
        /// The channel.
        channel: String,
        /// What it carries.
        found: String,
        /// What it may carry.
        needed: &'static str,
    },
    /// A parameter, or all of them, cannot have this value.
    BadParameter {
        /// The transport.
        transport: &'static str,
        /// The parameter.
        key: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        allowed: String,
    },
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTransport { found, known } => {
                write!(f, "transport {found:?} is not known; known: {}", known.join(", "))
            }
            Self::UnknownParameter { transport, found, allowed } => {
                let owner = Owner(transport);
                write!(f, "{owner} has no parameter {found:?}; allowed: {}", allowed.join(", "))
            }
            Self::Channel { transport, channel, found, needed } => {
                write!(f, "transport {transport} on channel {channel}: found {found}; allowed: {needed}")
            }
            Self::BadParameter { transport, key, found, allowed } => {
                let verb = if *key == ALL { "are" } else { "is" };
                write!(f, "{}: {key} {verb} {found}; allowed: {allowed}", Owner(transport))
            }
        }
    }
}

impl std::error::Error for TransportError {}

/// Who has parameters: a transport, or playout.
struct Owner<'a>(&'a str);

impl fmt::Display for Owner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            PLAYOUT => f.write_str(PLAYOUT),
            transport => write!(f, "transport {transport}"),
        }
    }
}

const ALL: &str = "parameters";
/// What owns the parameters of a playout policy.
pub(crate) const PLAYOUT: &str = "playout";

/// The parameters as the plan gives them: an object, or null for none.
#[derive(Debug)]
pub(crate) struct Params<'a> {
    transport: &'static str,
    value: &'a Value,
    controller: RefCell<Option<Box<dyn RateController>>>,
}

impl<'a> Params<'a> {
    pub(crate) fn new(transport: &'static str, value: &'a Value) -> Self {
        Self { transport, value, controller: RefCell::new(None) }
    }

    /// With a rate controller that has been made elsewhere, from the code that the parameters name.
    pub(crate) fn led(self, controller: Option<Box<dyn RateController>>) -> Self {
        Self { controller: RefCell::new(controller), ..self }
    }

    /// Whether it has one.
    pub(crate) fn is_led(&self) -> bool {
        self.controller.borrow().is_some()
    }

    /// That controller, once.
    pub(crate) fn controller(&self) -> Option<Box<dyn RateController>> {
        self.controller.borrow_mut().take()
    }

    /// Whether the key is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.value.get(key).is_some()
    }

    /// Refuses every key that is not in `allowed`.
    pub(crate) fn allow(&self, allowed: &'static [&'static str]) -> Result<(), TransportError> {
        let keys = match self.value {
            Value::Null => return Ok(()),
            Value::Object(map) => map.keys(),
            other => return Err(self.bad(ALL, other, "an object".into())),
        };
        match keys.into_iter().find(|k| !allowed.contains(&k.as_str())) {
            None => Ok(()),
            Some(key) => Err(TransportError::UnknownParameter {
                transport: self.transport,
                found: key.clone(),
                allowed,
            }),
        }
    }

    /// A whole number, if the key is there.
    pub(crate) fn integer(
        &self,
        key: &'static str,
        range: RangeInclusive<u32>,
    ) -> Result<Option<u32>, TransportError> {
        let Some(value) = self.value.get(key) else { return Ok(None) };
        let number = value.as_u64().and_then(|n| u32::try_from(n).ok()).filter(|n| range.contains(n));
        let allowed = || format!("a whole number from {} to {}", range.start(), range.end());
        number.map(Some).ok_or_else(|| self.bad(key, value, allowed()))
    }

    /// A number, if the key is there.
    pub(crate) fn number(
        &self,
        key: &'static str,
        range: RangeInclusive<f64>,
    ) -> Result<Option<f64>, TransportError> {
        let Some(value) = self.value.get(key) else { return Ok(None) };
        let number = value.as_f64().filter(|n| range.contains(n));
        let allowed = || format!("a number from {} to {}", range.start(), range.end());
        number.map(Some).ok_or_else(|| self.bad(key, value, allowed()))
    }

    /// Whole numbers in a list; none if the key is not there.
    pub(crate) fn integers(
        &self,
        key: &'static str,
        range: RangeInclusive<i64>,
    ) -> Result<Vec<i64>, TransportError> {
        let Some(value) = self.value.get(key) else { return Ok(Vec::new()) };
        let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        let numbers: Option<Vec<i64>> =
            list.iter().map(|v| v.as_i64().filter(|n| range.contains(n))).collect();
        let allowed = || format!("whole numbers from {} to {}", range.start(), range.end());
        numbers.ok_or_else(|| self.bad(key, value, allowed()))
    }

    /// True or false, if the key is there.
    pub(crate) fn boolean(&self, key: &'static str) -> Result<Option<bool>, TransportError> {
        let Some(value) = self.value.get(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.bad(key, value, "true or false".into()))
    }

    /// A span of time in nanoseconds, if the key is there.
    pub(crate) fn span_ns(
        &self,
        key: &'static str,
        range: RangeInclusive<Time>,
    ) -> Result<Option<Time>, TransportError> {
        let Some(value) = self.value.get(key) else { return Ok(None) };
        let found = value.as_i64().filter(|n| range.contains(n));
        let ms = |t: Time| t as f64 / 1e6;
        let allowed = || format!("a time from {} ms to {} ms", ms(*range.start()), ms(*range.end()));
        found.map(Some).ok_or_else(|| self.bad(key, value, allowed()))
    }

    /// One of a few names, if the key is there.
    pub(crate) fn choice<'n>(
        &self,
        key: &'static str,
        names: &[&'n str],
    ) -> Result<Option<&'n str>, TransportError> {
        let Some(value) = self.value.get(key) else { return Ok(None) };
        let found = names.iter().copied().find(|n| value.as_str() == Some(n));
        found.map(Some).ok_or_else(|| self.bad(key, value, names.join(", ")))
    }

    /// A text that `is_good`, if the key is there.
    pub(crate) fn text(
        &self,
        key: &'static str,
        is_good: impl Fn(&str) -> bool,
        allowed: &str,
    ) -> Result<Option<&'a str>, TransportError> {
        let Some(value) = self.value.get(key) else { return Ok(None) };
        let found = value.as_str().filter(|text| is_good(text));
        found.map(Some).ok_or_else(|| self.bad(key, value, allowed.into()))
    }

    /// Refuses the value of a key.
    pub(crate) fn refuse(&self, key: &'static str, allowed: &str) -> TransportError {
        self.bad(key, self.value.get(key).unwrap_or(&Value::Null), allowed.into())
    }

    /// A parameter whose value led to nothing.
    pub(crate) fn failed(&self, key: &'static str, found: &str, why: &dyn fmt::Display) -> TransportError {
        let (transport, found) = (self.transport, format!("{found} ({why})"));
        TransportError::BadParameter { transport, key, found, allowed: "another one".into() }
    }

    fn bad(&self, key: &'static str, found: &Value, allowed: String) -> TransportError {
        TransportError::BadParameter { transport: self.transport, key, found: found.to_string(), allowed }
    }
}
