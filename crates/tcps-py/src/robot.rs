//! Robots that are Python code.

#![expect(unsafe_code, reason = "what an array of numpy holds is read by its address")]

use crate::{
    calls::{given, interrupted, label, times, told},
    loaded::{item, load, Array},
};
use pyo3::{exceptions::PyValueError, intern, prelude::*, types::PyDict};
use std::ffi::CStr;
use tcps_core::{
    robot::{Pace, Robot},
    time::Time,
};
use tcps_plan::CodePlan;
use tcps_run::crash;

struct PythonRobot {
    object: Py<PyAny>,
    step: Py<PyAny>,
    command: Array,
    sense: Array,
    name: &'static CStr,
    failure: Option<String>,
    failures: u64,
    /// Ends the process of a robot that has one, and tells how that kept its time.
    close: Option<Py<PyAny>>,
}

/// The robot of `module:Class`.
pub fn load_robot(py: Python<'_>, code: &CodePlan) -> PyResult<Box<dyn Robot>> {
    let d = load(py, "load_robot", code, None)?;
    let object: Py<PyAny> = item(&d, "robot")?;
    let step = object.getattr(py, intern!(py, "step"))?;
    let (command, sense) = (Array::new(&d, "x", false)?, Array::new(&d, "y", false)?);
    let close = d.get_item("close")?.map(Bound::unbind);
    let name = label("robot", code);
    Ok(Box::new(PythonRobot { object, step, command, sense, name, failure: None, failures: 0, close }))
}

impl PythonRobot {
    /// Counts a failure and keeps the first: nothing was written, and nothing has been carried out.
    fn failed<T: Default>(&mut self, error: String) -> T {
        self.failures += 1;
        self.failure.get_or_insert(error);
        T::default()
    }
}

/// What the process of a robot said at its end, if it said it.
fn pace(told: &Bound<'_, PyDict>) -> PyResult<Pace> {
    let late = item::<Bound<'_, PyDict>>(told, "late_ns")?;
    Ok(Pace {
        ticks: item(told, "ticks")?,
        missed_ticks: item(told, "missed_ticks")?,
        gaps_over_1ms: item(told, "gaps_over_1ms")?,
        watchdog: item(told, "watchdog")?,
        p50_ns: item(&late, "p50")?,
        p99_ns: item(&late, "p99")?,
        max_ns: item(&late, "max")?,
    })
}

impl Robot for PythonRobot {
    fn step(&mut self, now: Time, command: &[f64], sense: &mut [f64]) -> usize {
        if interrupted() {
            return 0;
        }
        let name = self.name;
        let written = Python::attach(|py| {
            let mut step = || -> PyResult<usize> {
                let x = self.command.load(py, command, &[])?.bind(py).clone();
                let said = self.step.bind(py).call1((now, x, self.sense.whole.bind(py)))?;
                let written: i64 = given(&said, "step", "how many values it wrote into sense, such as 3")?;
                let room = sense.len().min(self.sense.room);
                usize::try_from(written).ok().filter(|n| *n <= room).ok_or_else(|| {
                    let text = format!(
                        "step returned {written} as its number of values; allowed: 0 to {room} (senses)"
                    );
                    PyValueError::new_err(text)
                })
            };
            crash::named(name, &mut step).map_err(|e| told(py, &e))
        });
        match written {
            Ok(n) => {
                // SAFETY: the array has room for at least `n` values.
                sense[..n].copy_from_slice(unsafe { std::slice::from_raw_parts(self.sense.data.cast(), n) });
                n
            }
            Err(e) => self.failed(e),
        }
    }

    fn arrived(&mut self) -> bool {
        if interrupted() {
            return false;
        }
        let name = self.name;
        let arrived = Python::attach(|py| {
            let ask = || self.object.bind(py).call_method0(intern!(py, "arrived"))?.is_truthy();
            crash::named(name, ask).map_err(|e| told(py, &e))
        });
        arrived.unwrap_or_else(|e| self.failed(e))
    }

    fn failure(&self) -> Option<String> {
        self.failure.as_ref().map(|text| format!("{text}, {}", times(self.failures)))
    }

    fn pace(&mut self) -> Option<Pace> {
        let close = self.close.take()?;
        Python::attach(|py| {
            let told = close.bind(py).call0().ok()?;
            pace(told.cast::<PyDict>().ok()?).ok()
        })
    }
}
