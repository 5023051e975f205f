//! What a value of a parameter is: how it is checked, and how a scenario writes it.

use serde::Serialize;
use serde_json::{json, Value};
use std::ops::RangeInclusive;

/// The lower bound of what is above 0.
pub const ABOVE_ZERO: f64 = f64::MIN_POSITIVE;

/// What a parameter is. A plan has it in the base unit, and its key ends with that unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A span of time in whole nanoseconds.
    Ns,
    /// A rate in bit/s.
    Bps,
    /// A size in whole bytes.
    Bytes,
    /// A frequency in hertz.
    Hz,
    /// A drift in parts per billion.
    Ppb,
    /// A whole number of packets.
    Packets,
    /// A share of one.
    Share,
    /// A number without a unit, or with one in its key.
    Number,
    /// A whole number.
    Count,
    /// A differentiated services code point.
    CodePoint,
    /// True or false.
    Flag,
    /// Text.
    Text,
    /// One of these names.
    Choice(&'static [&'static str]),
    /// A list.
    List(&'static Unit),
    /// So many of a kind.
    Array(usize, &'static Unit),
    /// Two values.
    Pair(&'static Unit, &'static Unit),
    /// A value for each of some names.
    Table(&'static Unit),
    /// Parameters of something else.
    Object,
}

impl Unit {
    /// What keys of a plan end with.
    pub fn suffix(&self) -> &'static str {
        match self {
            Self::Ns => "_ns",
            Self::Bps => "_bps",
            Self::Bytes => "_bytes",
            Self::Hz => "_hz",
            Self::Ppb => "_ppb",
            Self::Packets => "_packets",
            Self::List(unit) => unit.suffix(),
            _ => "",
        }
    }

    /// A quantity of this kind, where a scenario writes one.
    pub(super) fn example(&self) -> &'static str {
        match self {
            Self::Ns => "10 ms",
            Self::Bps => "1.5 Mbit/s",
            Self::Bytes => "1500 B",
            Self::Hz => "1 kHz",
            Self::Ppb => "50 ppm",
            Self::Packets => "20 packets",
            Self::Share => "5 %",
            _ => "",
        }
    }

    fn is_whole(&self) -> bool {
        matches!(self, Self::Ns | Self::Bytes | Self::Ppb | Self::Packets | Self::Count | Self::CodePoint)
    }

    /// Whether a value is of this kind and its numbers are within the bounds.
    pub(super) fn fits(&self, value: &Value, within: &RangeInclusive<f64>) -> bool {
        match self {
            Self::Flag => value.is_boolean(),
            Self::Text => value.is_string(),
            Self::Choice(names) => value.as_str().is_some_and(|v| names.contains(&v)),
            Self::Object => value.is_object(),
            Self::List(unit) => value.as_array().is_some_and(|l| l.iter().all(|v| unit.fits(v, within))),
            Self::Array(n, unit) => {
                value.as_array().is_some_and(|l| l.len() == *n && l.iter().all(|v| unit.fits(v, within)))
            }
            Self::Table(unit) => value.as_object().is_some_and(|t| t.values().all(|v| unit.fits(v, within))),
            Self::Pair(a, b) => {
                let pair = value.as_array().filter(|l| l.len() == 2);
                pair.is_some_and(|l| a.fits(&l[0], within) && b.fits(&l[1], within))
            }
            _ if self.is_whole() && !(value.is_i64() || value.is_u64()) => false,
            _ => value.as_f64().is_some_and(|x| within.contains(&x)),
        }
    }

    /// A number as a scenario would write it.
    pub fn shown(&self, x: f64) -> String {
        let scaled = |steps: &[(f64, &str)]| {
            let fits = |(factor, _): &&(f64, &str)| x.abs() >= *factor;
            let (factor, unit) = steps.iter().rfind(fits).unwrap_or(&steps[0]);
            format!("{} {unit}", x / factor)
        };
        match self {
            Self::Ns | Self::Bps | Self::Hz => scaled(self.units()),
            Self::Share => format!("{} %", x * 100.0),
            Self::Bytes => format!("{x} B"),
            Self::Packets => format!("{x} packets"),
            Self::Ppb => format!("{x} ppb"),
            _ => x.to_string(),
        }
    }

    /// What may stand there.
    pub(super) fn allowed(&self, within: &RangeInclusive<f64>) -> String {
        let what = match self {
            Self::Flag => return "true or false".into(),
            Self::Text => return "text in quotes".into(),
            Self::Choice(names) => {
                return names.iter().map(|n| format!("{n:?}")).collect::<Vec<_>>().join(", ")
            }
            Self::Object => return "a table of parameters".into(),
            Self::List(unit) => return format!("a list, each {}", unit.allowed(within)),
            Self::Array(n, unit) => return format!("a list of {n}, each {}", unit.allowed(within)),
            Self::Table(unit) => return format!("a table of names, each with {}", unit.allowed(within)),
            Self::Pair(a, b) => return format!("[{}, {}]", a.allowed(within), b.allowed(within)),
            Self::Ns => "a span of time",
            Self::Bps => "a rate",
            Self::Bytes => "a size",
            Self::Hz => "a frequency",
            Self::Ppb => "a drift",
            Self::Packets => "a number of packets",
            Self::Share => "a share",
            Self::Number => "a number",
            Self::Count => "a whole number",
            Self::CodePoint => "a code point",
        };
        let bound = |x: f64| x.is_finite().then(|| self.shown(x));
        let (low, high) = (*within.start(), bound(*within.end()));
        let low = if low == ABOVE_ZERO { Err("0") } else { Ok(bound(low)) };
        match (low, high) {
            (Err(zero), None) => format!("{what} above {zero}"),
            (Err(zero), Some(high)) => format!("{what} above {zero}, at most {high}"),
            (Ok(Some(low)), None) => format!("{what} from {low} on"),
            (Ok(Some(low)), Some(high)) => format!("{what} from {low} to {high}"),
            (Ok(None), Some(high)) => format!("{what}, at most {high}"),
            (Ok(None), None) => what.into(),
        }
    }

    /// What quantities are written in, from the least.
    fn units(&self) -> &'static [(f64, &'static str)] {
        match self {
            Self::Ns => &[(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")],
            Self::Bps => &[(1.0, "bit/s"), (1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s")],
            Self::Hz => &[(1.0, "Hz"), (1e3, "kHz"), (1e6, "MHz")],
            Self::Bytes => &[(1.0, "B"), (1e3, "kB"), (1e6, "MB")],
            Self::Packets => &[(1.0, "packet"), (1.0, "packets")],
            Self::Ppb => &[(1.0, "ppb"), (1e3, "ppm")],
            _ => &[],
        }
    }

    /// The value that a default says: a quantity as in a scenario, or JSON.
    pub(super) fn parsed(&self, text: &str) -> Option<Value> {
        match self {
            Self::Text | Self::Choice(_) => Some(text.into()),
            Self::Flag | Self::List(_) | Self::Array(..) | Self::Table(_) | Self::Pair(..) | Self::Object => {
                serde_json::from_str(text).ok()
            }
            _ => {
                let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
                let number: f64 = number.parse().ok()?;
                let value = match (self, unit) {
                    (_, "") => number,
                    (Self::Share, "%") => number / 100.0,
                    _ => number * self.units().iter().find(|(_, name)| *name == unit)?.0,
                };
                Some(if self.is_whole() { json!(value as i64) } else { json!(value) })
            }
        }
    }
}
