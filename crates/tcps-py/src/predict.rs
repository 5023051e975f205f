//! Predictors over recordings.

use pyo3::{exceptions::PyValueError, prelude::*};
use tcps_core::time::Time;

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
    let refuse = |text: String| PyValueError::new_err(text);
    let params = serde_json::from_str(params_json).map_err(|e| refuse(format!("parameters: {e}")))?;
    let mut predictor = tcps_control::predictor(name, &params).map_err(|e| refuse(e.to_string()))?;
    let found =
        py.detach(|| tcps_run::replay::replay(predictor.as_mut(), &rows, columns, period_ns, &horizons));
    let errors = found.horizons.iter().map(|h| (h.rms, h.worst)).collect();
    Ok((errors, found.update_ns, found.predict_ns))
}
