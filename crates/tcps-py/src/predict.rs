//! Predictors over recordings.

use crate::{errors::raised, json::read};
use pyo3::prelude::*;
use tcps_core::time::Time;
use tcps_plan::RunError;

/// RMS error and worst jump at each horizon, mean cost of an update and of a guess at each horizon in ns.
type Replayed = (Vec<(f64, f64)>, f64, Vec<f64>);

/// Replays a recording through a predictor; `rows` are values of `columns` each, `horizons` whole periods.
#[pyfunction]
pub fn replay_predictor(
    py: Python<'_>,
    name: &str,
    params_json: &str,
    rows: Vec<f64>,
    columns: usize,
    period_ns: Time,
    horizons: Vec<usize>,
) -> PyResult<Replayed> {
    let params = read("parameters", params_json)?;
    let made = tcps_control::predictor(name, &params);
    let mut predictor = made.map_err(|e| raised(RunError::of(&e, e.fault())))?;
    let found =
        py.detach(|| tcps_run::replay::replay(predictor.as_mut(), &rows, columns, period_ns, &horizons));
    let errors = found.horizons.iter().map(|h| (h.rms, h.worst)).collect();
    Ok((errors, found.update_ns, found.predict_ns))
}
