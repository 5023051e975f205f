//! The door seen from Python: parameters of code of the user's are checked like those of built-in code.

use crate::errors::refused;
use pyo3::{exceptions::PyValueError, prelude::*};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};
use tcps_core::param::{Draws, Entry, Param, Unit};

/// Parameters with defaults for what is absent, checked by a table: a list of `{key, unit, min, max, default, doc}`.
#[pyfunction]
pub fn complete(table_json: &str, given_json: &str) -> PyResult<String> {
    let bad = |e: String| PyValueError::new_err(e);
    let read = |text: &str| serde_json::from_str::<Value>(text).map_err(|e| bad(e.to_string()));
    let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    let groups = match tables.get(table_json) {
        Some(known) => *known,
        None => {
            let table = read(table_json)?;
            let rows = table.as_array().ok_or_else(|| bad("a table of parameters is a list".into()))?;
            let params: Option<Vec<Param>> = rows.iter().map(param).collect();
            let params = params.ok_or_else(|| bad(format!("a parameter that is none is in {table}")))?;
            let groups = leak(vec![leak(params)]);
            tables.insert(table_json.to_owned(), groups);
            groups
        }
    };
    drop(tables);
    let entry = Entry { id: 0, name: "", doc: "", params: groups, draws: Draws::No, make: () };
    let complete = entry.complete(&read(given_json)?).map_err(refused)?;
    Ok(complete.to_string())
}

/// Tables that were read, which stay: a process has as many as it has classes.
static TABLES: Mutex<BTreeMap<String, &[&[Param]]>> = Mutex::new(BTreeMap::new());

fn leak<T>(list: Vec<T>) -> &'static [T] {
    Box::leak(list.into_boxed_slice())
}

fn text(value: &Value) -> Option<&'static str> {
    Some(Box::leak(value.as_str()?.to_owned().into_boxed_str()))
}

fn param(row: &Value) -> Option<Param> {
    let bound = |key: &str, none: f64| match &row[key] {
        Value::Null => Some(none),
        number => number.as_f64(),
    };
    let (min, max) = (bound("min", f64::NEG_INFINITY)?, bound("max", f64::INFINITY)?);
    let unit = unit(&row["unit"])?;
    Some(Param { key: text(&row["key"])?, unit, min, max, default: text(&row["default"])?, doc: "" })
}

/// A unit as tables are handed out with it: `"ns"`, `{"list": "number"}`, `{"choice": ["a", "b"]}`.
fn unit(value: &Value) -> Option<Unit> {
    let inner = |value: &Value| unit(value).map(|u| &leak(vec![u])[0]);
    Some(match value {
        Value::Object(of) => match of.iter().next()? {
            (kind, Value::Array(names)) if kind == "choice" => {
                Unit::Choice(leak(names.iter().map(text).collect::<Option<Vec<_>>>()?))
            }
            (kind, Value::Array(both)) if kind == "pair" && both.len() == 2 => {
                Unit::Pair(inner(&both[0])?, inner(&both[1])?)
            }
            (kind, Value::Array(of)) if kind == "array" && of.len() == 2 => {
                Unit::Array(usize::try_from(of[0].as_u64()?).ok()?, inner(&of[1])?)
            }
            (kind, of) if kind == "list" => Unit::List(inner(of)?),
            (kind, of) if kind == "table" => Unit::Table(inner(of)?),
            _ => return None,
        },
        name => match name.as_str()? {
            "ns" => Unit::Ns,
            "bps" => Unit::Bps,
            "bytes" => Unit::Bytes,
            "hz" => Unit::Hz,
            "ppb" => Unit::Ppb,
            "packets" => Unit::Packets,
            "share" => Unit::Share,
            "number" => Unit::Number,
            "count" => Unit::Count,
            "code_point" => Unit::CodePoint,
            "flag" => Unit::Flag,
            "text" => Unit::Text,
            "object" => Unit::Object,
            _ => return None,
        },
    })
}
