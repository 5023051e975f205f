//! Parameters from the scenario: JSON objects with known keys only.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads parameters; `null` means that none are given.
pub(crate) fn parse<T: DeserializeOwned>(params: &Value) -> Result<T, String> {
    let none = Value::Object(serde_json::Map::new());
    let given = if params.is_null() { &none } else { params };
    T::deserialize(given).map_err(|error| error.to_string())
}

/// Refuses a parameter that is not above zero.
pub(crate) fn positive(key: &str, value: f64) -> Result<(), String> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(format!("{key} = {value}: it must be above 0"))
}

/// Refuses a parameter outside its range.
pub(crate) fn within(key: &str, value: f64, least: f64, most: f64) -> Result<(), String> {
    if value >= least && value <= most {
        return Ok(());
    }
    Err(format!("{key} = {value:?}; allowed: {key} from {least:?} to {most:?}"))
}

/// Refuses a parameter that is below zero.
pub(crate) fn not_negative(key: &str, value: f64) -> Result<(), String> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(format!("{key} = {value}: it must be 0 or more"))
}
