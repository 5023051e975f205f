//! JSON in and out.

use crate::errors::raised;
use pyo3::{exceptions::PyValueError, prelude::*};
use serde::{de::DeserializeOwned, Serialize};
use tcps_plan::{Plan, RunError};
use tcps_run::carrier::ForeignSpec;

/// What Python hands over, such as a `plan`.
pub fn read<T: DeserializeOwned>(what: &str, json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|e| raised(RunError::config(format!("{what}: {e}"))))
}

/// A plan.
pub fn plan_of(json: &str) -> PyResult<Plan> {
    read("plan", json)
}

/// A program that simulates the network.
pub fn foreign_of(json: &str) -> PyResult<ForeignSpec> {
    read("foreign", json)
}

/// A value as text.
pub fn text<T: Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| PyValueError::new_err(e.to_string()))
}
