//! What a scenario can name, room by room, with the tables of parameters: for schema, documentation and checks.

use crate::errors::refused;
use pyo3::{exceptions::PyValueError, prelude::*};
use serde_json::Value;
use tcps_control::step::plant;
use tcps_core::{
    dist,
    param::{described, Fault, Named},
};
use tcps_net::{loss, queue, traffic};
use tcps_transport::{playout, security};

type Describe = fn() -> Value;
type Check = fn(&Named) -> Result<Value, Fault>;

/// What describes the entries of each room.
const ROOMS: &[(&str, Describe)] = &[
    ("queue", || described(queue::QUEUES)),
    ("traffic", || described(traffic::SOURCES)),
    ("loss", || described(loss::LOSSES)),
    ("delay", || described(dist::DELAYS)),
    ("transport", tcps_transport::described),
    ("controller", tcps_transport::described_controllers),
    ("playout", playout::described),
    ("security", security::described),
    ("hook", tcps_control::described_hooks),
    ("robot", tcps_control::described_robots),
    ("plant", || described(plant::PLANTS)),
];

/// What checks and completes parameters where they stand beside other keys.
const BESIDE: &[(&str, Check)] = &[
    ("queue", queue::checked),
    ("traffic", traffic::checked),
    ("loss", loss::checked),
    ("delay", dist::checked),
    ("plant", plant::checked),
    ("security", security::checked),
];

/// The entries of every room with their parameters, as JSON: `{"queue": [{"id", "name", "doc", "params": [...]}]}`.
#[pyfunction]
pub fn tables() -> String {
    ROOMS.iter().map(|(room, entries)| (*room, entries())).collect::<Value>().to_string()
}

/// The parameters of an entry of a room, complete, as JSON.
#[pyfunction]
pub fn completed(room: &str, name: &str, params_json: &str) -> PyResult<String> {
    let params = serde_json::from_str(params_json).map_err(|e| refused(Fault::new("", e, "JSON")))?;
    let room = BESIDE.iter().find(|(known, _)| *known == room);
    let (_, check) = room.ok_or_else(|| PyValueError::new_err("no such room"))?;
    check(&Named::new(name, params)).map(|params| params.to_string()).map_err(refused)
}
