//! Errors of a run as Python has them: classes of `tcpsbed.errors`.

use pyo3::prelude::*;
use tcps_core::param::Fault;
use tcps_plan::RunError;

/// The error of a run.
pub fn raised(e: RunError) -> PyErr {
    let told = e.report();
    let parts = (told.kind, told.error, told.allowed, told.errno, told.fault);
    Python::attach(|py| {
        let error = PyModule::import(py, "tcpsbed.errors").and_then(|m| m.getattr("of_run")?.call1(parts));
        error.map_or_else(|e| e, PyErr::from_value)
    })
}

/// The error of a parameter.
pub fn refused(fault: Fault) -> PyErr {
    raised(RunError::of(&fault, Some(fault.clone())))
}

/// The error of code that Python raised, if it is one of `tcpsbed.errors`.
pub fn own(py: Python<'_>, e: &PyErr) -> PyResult<Option<RunError>> {
    if !e.matches(py, PyModule::import(py, "tcpsbed.errors")?.getattr("TcpsbedError")?)? {
        return Ok(None);
    }
    let (kind, found, allowed): (String, String, _) = e.value(py).getattr("parts")?.extract()?;
    Ok(Some(RunError { allowed, ..RunError::named(&kind, found) }))
}
