//! What a scenario can name, room by room, with the tables of parameters: for schema, documentation and checks.

use pyo3::{exceptions::PyValueError, prelude::*};
use serde_json::Value;
use tcps_core::param::{described, Fault, Named};
use tcps_net::{loss, queue, traffic};

type Describe = fn() -> Value;
type Check = fn(&Named) -> Result<Value, Fault>;

/// The rooms: what describes their entries, and what checks and completes parameters.
const ROOMS: &[(&str, Describe, Check)] = &[
    ("queue", || described(queue::QUEUES), queue::checked),
    ("traffic", || described(traffic::SOURCES), traffic::checked),
    ("loss", || described(loss::LOSSES), loss::checked),
];

/// The entries of every room with their parameters, as JSON: `{"queue": [{"id", "name", "doc", "params": [...]}]}`.
#[pyfunction]
pub fn tables() -> String {
    ROOMS.iter().map(|(room, entries, _)| (*room, entries())).collect::<Value>().to_string()
}

/// The parameters of an entry of a room, complete, as JSON. A `ValueError` has the key, what was found, what is allowed.
#[pyfunction]
pub fn completed(room: &str, name: &str, params_json: &str) -> PyResult<String> {
    let fault = |f: Fault| PyValueError::new_err((f.key, f.found, f.allowed));
    let params = serde_json::from_str(params_json).map_err(|e| fault(Fault::new("", e, "JSON")))?;
    let room = ROOMS.iter().find(|(known, ..)| *known == room);
    let (.., check) = room.ok_or_else(|| PyValueError::new_err("no such room"))?;
    check(&Named::new(name, params)).map(|params| params.to_string()).map_err(fault)
}
