//! `tcpsbed._tcps`: the only crate that knows Python.
//!
//! ```text
//! run_virtual   a plan in virtual time        analyse     rows to figures
//! run_node      a node process                Drain       rings of a real run to files; merge
//! builtins      what can be named in a scenario       step_batch  the step experiment over a grid
//! ```

mod attach;
mod batch;
mod hooks;
mod predict;
mod records;

use attach::Interpreter;
use hooks::PythonHooks;
use pyo3::{exceptions::PyValueError, prelude::*};
use std::path::PathBuf;
use tcps_run::{
    plan::Plan,
    real::control,
    virtual_time::{self, Options},
};

fn plan_of(json: &str) -> PyResult<Plan> {
    serde_json::from_str(json).map_err(|e| PyValueError::new_err(format!("plan: {e}")))
}

fn text<T: serde::Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// Runs a plan in virtual time; rows go to `records_path`. Returns the result as JSON.
///
/// `progress(t_ns)` is called now and then; a false answer stops the run.
#[pyfunction]
#[pyo3(signature = (plan_json, records_path=None, *, progress=None, pcapng_path=None))]
fn run_virtual(
    py: Python<'_>,
    plan_json: &str,
    records_path: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
    pcapng_path: Option<PathBuf>,
) -> PyResult<String> {
    let plan = plan_of(plan_json)?;
    let mut report = |t: i64| match &progress {
        Some(p) => {
            p.call1(py, (t,)).and_then(|r| r.is_truthy(py)).unwrap_or(false) && py.check_signals().is_ok()
        }
        None => py.check_signals().is_ok(),
    };
    let options = Options {
        records: records_path.as_deref(),
        pcapng: pcapng_path.as_deref(),
        progress: Some(&mut report),
    };
    let result = virtual_time::run(&plan, &mut PythonHooks, options);
    text(&result.map_err(|e| PyValueError::new_err(e.to_string()))?)
}

/// Serves one run as a node process: JSON lines on standard input and output. Returns the exit status.
#[pyfunction]
fn run_node(py: Python<'_>) -> i32 {
    py.detach(|| {
        let input = std::io::BufReader::new(std::io::stdin());
        let ok = control::serve(input, &mut std::io::stdout(), &Interpreter);
        i32::from(!ok)
    })
}

/// CLOCK_MONOTONIC in nanoseconds.
#[pyfunction]
fn monotonic_ns() -> i64 {
    tcps_run::real::clock::monotonic_ns()
}

/// What a scenario can name: `{"hooks": [...], "robots": [...], "predictors": [...], "transports": [...]}`.
#[pyfunction]
fn builtins(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let (hooks, robots) = tcps_control::names();
    let names = pyo3::types::PyDict::new(py);
    names.set_item("hooks", hooks)?;
    names.set_item("robots", robots)?;
    names.set_item("predictors", tcps_control::predictor_names().collect::<Vec<_>>())?;
    names.set_item("transports", tcps_transport::names())?;
    Ok(names.into())
}

/// Version of the native module.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

#[pymodule]
fn _tcps(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(run_virtual, m)?)?;
    m.add_function(wrap_pyfunction!(run_node, m)?)?;
    m.add_function(wrap_pyfunction!(records::analyse, m)?)?;
    m.add_function(wrap_pyfunction!(records::merge, m)?)?;
    m.add_function(wrap_pyfunction!(monotonic_ns, m)?)?;
    m.add_function(wrap_pyfunction!(builtins, m)?)?;
    m.add_function(wrap_pyfunction!(version, m)?)?;
    m.add_function(wrap_pyfunction!(hooks::time_hook, m)?)?;
    m.add_function(wrap_pyfunction!(batch::step_batch, m)?)?;
    m.add_function(wrap_pyfunction!(predict::replay_predictor, m)?)?;
    m.add_class::<records::Drain>()?;
    Ok(())
}
