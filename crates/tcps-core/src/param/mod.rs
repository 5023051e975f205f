//! The door: what a scenario can name has a name, a table of parameters, and a way to make it.
//!
//! ```text
//! params! struct ─► table ─┬─ complete  checks a plan's object and fills in what is absent ─► struct
//!                          └─ described  the same as JSON: units in Python, schema, documentation
//! ```

mod unit;

pub use unit::{Unit, ABOVE_ZERO};

use serde::{de::DeserializeOwned, Deserialize, Serialize, Serializer};
use serde_json::{json, Map, Value};
use std::{fmt, ops::RangeInclusive};

/// Default of a parameter that must be given.
pub const GIVEN: &str = "";
/// Default of a parameter that may be absent: an `Option` of its struct.
pub const ABSENT: &str = "-";
/// Bounds of what has none.
pub const ANY: RangeInclusive<f64> = f64::NEG_INFINITY..=f64::INFINITY;
/// Spans of time, at least a nanosecond, at most about eleven days: sums of spans stay far from the end of time.
pub const SPAN: RangeInclusive<f64> = 1.0..=1e15;
/// Shares of one.
pub const SHARE: RangeInclusive<f64> = 0.0..=1.0;
/// Numbers above 0.
pub const POSITIVE: RangeInclusive<f64> = ABOVE_ZERO..=f64::INFINITY;
/// Numbers from 0 on.
pub const NOT_NEGATIVE: RangeInclusive<f64> = 0.0..=f64::INFINITY;
/// Sizes in 32 bits, at least a byte.
pub const SIZE: RangeInclusive<f64> = 1.0..=4_294_967_295.0;

/// A parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Param {
    /// Its key in a plan, with the unit: `target_ns`.
    pub key: &'static str,
    /// What it is.
    pub unit: Unit,
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
    /// As a scenario writes it, or `GIVEN`, or `ABSENT`.
    pub default: &'static str,
    /// What it means.
    pub doc: &'static str,
}

impl Param {
    /// Its key in a scenario, where the value has the unit: `target`.
    pub fn name(&self) -> &'static str {
        self.key.strip_suffix(self.unit.suffix()).unwrap_or(self.key)
    }

    /// What may stand there.
    pub fn allowed(&self) -> String {
        let allowed = self.unit.allowed(&(self.min..=self.max));
        let given = !matches!(self.default, GIVEN | ABSENT);
        match (self.unit.example(), given) {
            ("", _) => allowed,
            (_, true) => format!("{allowed}, such as \"{}\"", self.default),
            (example, false) => format!("{allowed}, such as \"{example}\""),
        }
    }

    /// A value as a scenario would write it.
    fn shown(&self, value: &Value) -> String {
        value.as_f64().map_or_else(|| value.to_string(), |x| self.unit.shown(x))
    }

    /// Its value in a plan's object, checked; the default if it is absent.
    fn value(&self, given: &Map<String, Value>) -> Result<Option<Value>, Fault> {
        match (given.get(self.key), self.default) {
            (None | Some(Value::Null), ABSENT) => Ok(None),
            (Some(value), _) if self.unit.fits(value, &(self.min..=self.max)) => Ok(Some(value.clone())),
            (Some(value), _) => Err(Fault::new(self.key, self.shown(value), self.allowed())),
            (None, GIVEN) => Err(Fault::new(self.key, NOTHING, self.allowed())),
            (None, text) => Ok(self.unit.parsed(text)),
        }
    }

    fn described(&self) -> Value {
        let said = Some(self.default).filter(|text| !matches!(*text, GIVEN | ABSENT));
        json!({
            "key": self.key, "name": self.name(), "unit": self.unit, "min": self.min, "max": self.max,
            "default": self.default, "value": said.and_then(|text| self.unit.parsed(text)), "allowed": self.allowed(),
            "doc": self.doc,
        })
    }
}

/// What a fault finds where there is no such parameter.
pub const UNKNOWN: &str = "an unknown key";
/// What it finds where one is missing.
pub const NOTHING: &str = "nothing";

/// A parameter that cannot be as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its key in a plan; empty: all of them together.
    pub key: String,
    /// What was there.
    pub found: String,
    /// What may stand there.
    pub allowed: String,
}

impl Fault {
    /// A fault of the parameter `key`.
    pub fn new(key: &str, found: impl fmt::Display, allowed: impl Into<String>) -> Self {
        Self { key: key.into(), found: found.to_string(), allowed: allowed.into() }
    }

    /// The fault of a parameter that is itself among those of `key`.
    pub fn within(self, key: &str) -> Self {
        let inner = match (self.key.as_str(), self.found.as_str()) {
            ("", found) => found.to_owned(),
            (own, UNKNOWN) => format!("the unknown key {own}"),
            (own, found) => format!("{own} = {found}"),
        };
        Self { key: key.into(), found: inner, ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, found, allowed } = self;
        let at = if key.is_empty() { "parameters" } else { key };
        match found.as_str() {
            NOTHING => write!(f, "{at} is missing; allowed: {allowed}"),
            found => write!(f, "{at}: found {found}; allowed: {allowed}"),
        }
    }
}

impl std::error::Error for Fault {}

/// A struct of parameters with their table; `params!` makes one.
pub trait Params: DeserializeOwned {
    /// What it holds.
    const TABLE: &'static [Param];

    /// Read from what a plan gives, checked, with defaults for what is absent; null stands for none.
    fn of(given: &Value) -> Result<Self, Fault> {
        let entry =
            Entry { id: 0, name: "", doc: "", params: const { &[Self::TABLE] }, draws: Draws::No, make: () };
        Self::read(&entry.complete(given)?)
    }

    /// Its defaults, where none must be given.
    fn standard() -> Self {
        Self::of(&Value::Null).unwrap_or_else(|fault| panic!("a default: {fault}"))
    }

    /// Read from an object that an entry completed. Other groups of parameters may stand beside these.
    fn read(completed: &Value) -> Result<Self, Fault> {
        Self::deserialize(completed).map_err(|e| Fault::new("", e, "values that fit"))
    }
}

/// A struct of parameters and its table.
///
/// ```
/// tcps_core::params! {
///     /// Of controlled delay.
///     pub struct Control {
///         target_ns: i64 = Ns, "5 ms", 1.0..=1e15, "acceptable standing delay";
///         ecn: bool = Flag, "false", tcps_core::param::ANY, "whether packets are marked";
///     }
/// }
/// ```
#[macro_export]
macro_rules! params {
    ($(#[$outer:meta])* $vis:vis struct $name:ident {
        $($key:ident: $kind:ty = $unit:expr, $default:expr, $within:expr, $doc:expr;)*
    }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, PartialEq, serde::Deserialize)]
        $vis struct $name {
            $(#[doc = $doc] pub $key: $kind,)*
        }

        impl $crate::param::Params for $name {
            const TABLE: &'static [$crate::param::Param] = {
                #[allow(unused_imports)]
                use $crate::param::{Unit::*, ABSENT, ANY, GIVEN, NOT_NEGATIVE, POSITIVE, SHARE, SIZE, SPAN};
                &[$($crate::param::Param {
                    key: stringify!($key),
                    unit: $unit,
                    min: *($within).start(),
                    max: *($within).end(),
                    default: $default,
                    doc: $doc,
                },)*]
            };
        }
    };
}

/// Makes a member from its parameters.
pub type Make<T> = fn(&Value) -> Result<Box<T>, Fault>;

/// Whether a member draws random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draws {
    /// Never.
    No,
    /// Always.
    Yes,
    /// Unless a parameter has this value.
    Unless(&'static str, &'static str),
}

impl Serialize for Draws {
    /// False, true, or the parameter and its value.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::No => false.serialize(to),
            Self::Yes => true.serialize(to),
            Self::Unless(key, value) => [key, value].serialize(to),
        }
    }
}

/// Something that a scenario can name, in the list of its room.
#[derive(Debug, Clone, Copy)]
pub struct Entry<M: 'static> {
    /// Stays as it is when others come and go: what fuzzers found goes by it.
    pub id: u16,
    /// Its name in a scenario.
    pub name: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// Its parameters, in groups that others may share.
    pub params: &'static [&'static [Param]],
    /// Whether it draws from a stream of the scenario's seed.
    pub draws: Draws,
    /// Makes it.
    pub make: M,
}

impl<M> Entry<M> {
    /// All parameters.
    pub fn params(&self) -> impl Iterator<Item = &'static Param> {
        self.params.iter().copied().flatten()
    }

    /// The parameters of a plan, checked, with defaults for what is absent; null stands for none.
    pub fn complete(&self, given: &Value) -> Result<Value, Fault> {
        let none = Map::new();
        let given = match given {
            Value::Null => &none,
            Value::Object(given) => given,
            other => return Err(Fault::new("", other, "a table")),
        };
        if let Some(key) = given.keys().find(|k| !self.params().any(|p| p.key == *k)) {
            let known: Vec<_> = self.params().map(|p| p.key).collect();
            return Err(Fault::new(key, UNKNOWN, format!("no key, or {}", known.join(", "))));
        }
        let mut out = Map::new();
        for param in self.params() {
            out.extend(param.value(given)?.map(|value| (param.key.to_owned(), value)));
        }
        Ok(Value::Object(out))
    }

    /// It with its parameters, as JSON.
    pub fn described(&self) -> Value {
        let params: Vec<_> = self.params().map(Param::described).collect();
        json!({"id": self.id, "name": self.name, "doc": self.doc, "draws": self.draws, "params": params})
    }
}

/// The entry of a room that has this name.
pub fn named<M>(room: &[&'static Entry<M>], name: &str) -> Result<&'static Entry<M>, Fault> {
    let known = || room.iter().map(|e| e.name).collect::<Vec<_>>().join(", ");
    room.iter()
        .copied()
        .find(|e| e.name == name)
        .ok_or_else(|| Fault::new("kind", format!("{name:?}"), known()))
}

/// What a plan names, with its parameters beside the name: `{"kind": "codel", "target_ns": 5000000}`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Named {
    /// Its name: that of an entry, or the place of code.
    pub kind: String,
    /// Its parameters.
    #[serde(flatten)]
    pub params: Value,
}

impl Named {
    /// A name with an object of parameters.
    pub fn new(kind: &str, params: Value) -> Self {
        Self { kind: kind.into(), params }
    }

    /// Whether it names code of the user's: `/lib.so:function`, `module:Class`.
    pub fn is_code(&self) -> bool {
        self.kind.contains(':')
    }

    /// The entry of a room that it names, and its parameters, complete.
    pub fn of<M>(&self, room: &[&'static Entry<M>]) -> Result<(&'static Entry<M>, Value), Fault> {
        let entry = named(room, &self.kind)?;
        Ok((entry, entry.complete(&self.params)?))
    }
}

/// A room's entries and their parameters as JSON.
pub fn described<M>(room: &[&'static Entry<M>]) -> Value {
    room.iter().map(|e| e.described()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    params! {
        /// A group.
        struct Control {
            target_ns: i64 = Ns, "5 ms", 1.0..=1e15, "target";
            max_p: f64 = Share, "0.2 %", 0.0..=1.0, "probability";
        }
    }
    params! {
        /// Another.
        struct Rest {
            min_bytes: u32 = Bytes, GIVEN, 1.0..=65535.0, "least";
            limit_packets: Option<u32> = Packets, ABSENT, 1.0..=9.0, "most";
            classes: Vec<Vec<u8>> = List(&List(&CodePoint)), "[]", 0.0..=63.0, "classes";
            gain: f64 = Number, "1", ABOVE_ZERO..=f64::INFINITY, "gain";
            vary: String = Choice(&["rate", "size"]), "size", ANY, "what varies";
            loops: bool = Flag, "true", ANY, "whether it is repeated";
        }
    }

    const ENTRY: Entry<()> = Entry {
        id: 1,
        name: "mine",
        doc: "",
        params: &[Control::TABLE, Rest::TABLE],
        draws: Draws::No,
        make: (),
    };

    #[test]
    fn absent_parameters_have_their_defaults() {
        let all = ENTRY.complete(&json!({"min_bytes": 100, "classes": [[46], []]})).unwrap();
        assert_eq!(Control::read(&all), Ok(Control { target_ns: 5_000_000, max_p: 0.002 }));
        let rest = Rest::read(&all).unwrap();
        assert_eq!((rest.min_bytes, rest.limit_packets, rest.gain, rest.loops), (100, None, 1.0, true));
        assert_eq!((rest.classes, rest.vary.as_str()), (vec![vec![46], vec![]], "size"));
        assert_eq!(ENTRY.complete(&all), Ok(all), "what is complete stays as it is");
    }

    #[test]
    fn a_fault_names_the_key_and_what_is_allowed() {
        let fault = |key: &str, value: Value| {
            let mut given = json!({"min_bytes": 100});
            given[key] = value;
            ENTRY.complete(&given).unwrap_err().to_string()
        };
        for (key, value, text) in [
            (
                "target_ns",
                json!(0),
                "found 0 ns; allowed: a span of time from 1 ns to 1000000 s, such as \"5 ms\"",
            ),
            (
                "target_ns",
                json!(1.5),
                "found 1.5 ns; allowed: a span of time from 1 ns to 1000000 s, such as \"5 ms\"",
            ),
            ("max_p", json!(2), "found 200 %; allowed: a share from 0 % to 100 %, such as \"0.2 %\""),
            (
                "min_bytes",
                json!("1 B"),
                "found \"1 B\"; allowed: a size from 1 B to 65535 B, such as \"1500 B\"",
            ),
            (
                "classes",
                json!([[64]]),
                "found [[64]]; allowed: a list, each a list, each a code point from 0 to 63",
            ),
            ("gain", json!(0), "found 0; allowed: a number above 0"),
            ("vary", json!("x"), "found \"x\"; allowed: \"rate\", \"size\""),
            ("loops", json!(1), "found 1; allowed: true or false"),
        ] {
            assert_eq!(fault(key, value), format!("{key}: {text}"));
        }
        let unknown = fault("target", json!(1));
        assert!(unknown.starts_with("target: found an unknown key; allowed: no key, or target_ns, max_p"));
        let nothing = ENTRY.complete(&Value::Null).unwrap_err().to_string();
        assert_eq!(nothing, "min_bytes is missing; allowed: a size from 1 B to 65535 B, such as \"1500 B\"");
    }

    #[test]
    fn a_table_describes_itself_for_documentation_and_schema() {
        let table = described(&[&ENTRY]);
        let target = &table[0]["params"][0];
        assert_eq!(
            (&target["name"], &target["unit"], &target["default"]),
            (&json!("target"), &json!("ns"), &json!("5 ms"))
        );
        assert_eq!(table[0]["params"][4]["unit"], json!({"list": {"list": "code_point"}}));
        assert_eq!(
            named(&[&ENTRY], "yours").unwrap_err().to_string(),
            "kind: found \"yours\"; allowed: mine"
        );
    }
}
