//! The batch engine of the step experiment.

use pyo3::{exceptions::PyValueError, prelude::*};
use tcps_core::time::Time;
use tcps_run::batch::{self, Spec};

/// Runs the step experiment in every cell of a grid; the specification and the results are JSON.
#[pyfunction]
pub fn step_batch(py: Python<'_>, spec_json: &str) -> PyResult<String> {
    let spec: Spec =
        serde_json::from_str(spec_json).map_err(|e| PyValueError::new_err(format!("batch: {e}")))?;
    let results = py.detach(|| batch::run(&spec));
    crate::text(&results.map_err(|e| PyValueError::new_err(e.to_string()))?)
}

/// When the far side of the step experiment ticks in a run, behind the controller.
#[pyfunction]
pub fn step_phase(seed: u64, run: u32, period_ns: Time) -> Time {
    batch::phase(seed, run, period_ns)
}
