//! Calls of Python code: their name, whether they were interrupted, and what went wrong in them.

use crate::errors;
use pyo3::{
    conversion::FromPyObjectOwned,
    exceptions::{PyKeyboardInterrupt, PyTypeError},
    prelude::*,
};
use std::{
    ffi::{CStr, CString},
    sync::atomic::{AtomicBool, Ordering},
};
use tcps_plan::{CodePlan, RunError};
use tcps_run::crash;

/// Ctrl-C arrived while Python code ran: that is no failure of the code, it ends the run.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether Ctrl-C arrived in Python code since the last question.
pub fn take_interrupt() -> bool {
    INTERRUPTED.swap(false, Ordering::Relaxed)
}

/// What went wrong in a call, in words.
pub fn told(py: Python<'_>, e: &PyErr) -> String {
    if e.is_instance_of::<PyKeyboardInterrupt>(py) {
        INTERRUPTED.store(true, Ordering::Relaxed);
    }
    let place = |value: &Bound<'_, PyAny>| -> PyResult<String> {
        py.import("tcpsbed.hooks")?.getattr("told")?.call1((value,))?.extract()
    };
    // Only a value on its own carries the traceback.
    place(e.clone_ref(py).into_value(py).bind(py).as_any()).unwrap_or_else(|_| e.to_string())
}

/// What a method gave, as what it should have given; else what it gave in words, and what it may give.
pub fn given<'py, T: FromPyObjectOwned<'py>>(
    said: &Bound<'py, PyAny>,
    method: &str,
    allowed: &str,
) -> PyResult<T> {
    said.extract().map_err(|_| {
        let found = said.repr().map_or_else(|_| "what cannot be shown".into(), |r| r.to_string());
        let found: String = found.chars().take(80).collect();
        PyTypeError::new_err(format!("{method}() returned {found}; allowed: {allowed}"))
    })
}

/// Whether the run ends, so that no more code is called that was interrupted.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// The name under which code is called.
pub fn label(what: &str, code: &CodePlan) -> &'static CStr {
    crash::lasting(CString::new(format!("{what} {}:{}", code.name, code.symbol)).unwrap_or_default())
}

/// Errors of tcpsbed name the code themselves; any other is given its name.
pub fn failed(code: &CodePlan, e: &PyErr) -> RunError {
    let named = || RunError::hook(format!("{}: {e}", code.label()));
    Python::attach(|py| errors::own(py, e)).ok().flatten().unwrap_or_else(named)
}

/// How often, in words.
pub fn times(count: u64) -> String {
    if count == 1 {
        "once".into()
    } else {
        format!("{count} times")
    }
}
