//! The emulator between a user's own programs: between ports, and around a command in namespaces.

use crate::{
    errors::raised,
    json::{read, text},
};
use pyo3::{exceptions::PyValueError, prelude::*};
use serde_json::{json, Value};
use std::path::PathBuf;
use tcps_run::proxy::{self, netns};

/// An emulated network between ports, at work in threads of its own.
#[pyclass(unsendable)]
pub struct Proxy(Option<proxy::Proxy>);

#[pymethods]
impl Proxy {
    #[new]
    fn new(py: Python<'_>, settings_json: &str) -> PyResult<Self> {
        let settings: proxy::Settings = read("proxy", settings_json)?;
        Ok(Self(Some(py.detach(|| proxy::Proxy::start(&settings)).map_err(raised)?)))
    }

    /// Where clients come, in the order of the doors.
    fn addresses(&self) -> PyResult<Vec<String>> {
        Ok(self.open()?.addresses().iter().map(ToString::to_string).collect())
    }

    /// Counts so far and delays of the last second, as JSON.
    fn snapshot(&self) -> PyResult<String> {
        text(&self.open()?.snapshot())
    }

    /// When run time was 0 (CLOCK_MONOTONIC).
    fn start_ns(&self) -> PyResult<i64> {
        Ok(self.open()?.start_ns())
    }

    /// Puts another network in the place of the present one; where it is recorded, the row has the number of this event.
    #[pyo3(signature = (network_json, event=None))]
    fn change(&self, network_json: &str, event: Option<u32>) -> PyResult<()> {
        self.open()?.change(read("proxy", network_json)?, event).map_err(raised)
    }

    /// Asks for an event of the record's plan, which leads to this network.
    fn event(&self, line_json: &str, network_json: &str) -> PyResult<()> {
        let (line, network) = (read("proxy", line_json)?, read("proxy", network_json)?);
        self.open()?.event(line, network).map_err(raised)
    }

    /// Whether it has ended by itself.
    fn ended(&self) -> PyResult<bool> {
        Ok(self.open()?.ended())
    }

    /// Ends it; how it went, as JSON.
    fn stop(&mut self, py: Python<'_>) -> PyResult<String> {
        let proxy = self.0.take().ok_or_else(|| PyValueError::new_err("the proxy has ended"))?;
        text(&py.detach(|| proxy.stop()).map_err(raised)?)
    }
}

impl Proxy {
    fn open(&self) -> PyResult<&proxy::Proxy> {
        self.0.as_ref().ok_or_else(|| PyValueError::new_err("the proxy has ended"))
    }
}

/// Runs commands behind an emulated network, in namespaces that end with them; how it went is written to `report` as
/// JSON (`error`, or `outcome`, `tcp` and `late_ns`). Returns the exit status of the near command; 2 where it could not begin.
#[pyfunction]
pub fn run_isolated(settings: PathBuf, report: PathBuf) -> PyResult<i32> {
    let inside: netns::Inside = read("proxy", &std::fs::read_to_string(settings)?)?;
    let tell = |told: Value, status: i32| match std::fs::write(&report, told.to_string()) {
        Ok(()) => status,
        Err(_) => 2,
    };
    let run = || match inside.run() {
        Ok(ended) => {
            tell(json!({"outcome": ended.outcome, "tcp": ended.tcp, "late_ns": ended.late}), ended.status)
        }
        Err(e) => tell(json!({"error": e.report()}), 2),
    };
    Ok(netns::isolated(run).unwrap_or_else(|e| tell(json!({"error": e.report()}), 2)))
}
