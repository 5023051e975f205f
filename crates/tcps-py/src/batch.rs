//! The batch engine of the step experiment.

use crate::{
    errors::{raised, refused},
    json::{read, text},
};
use pyo3::prelude::*;
use tcps_control::step::plant;
use tcps_core::{param::Named, time::Time};
use tcps_run::batch::{self, Spec};

/// Runs the step experiment in every cell of a grid; the specification and the results are JSON.
#[pyfunction]
pub fn step_batch(py: Python<'_>, spec_json: &str) -> PyResult<String> {
    let spec: Spec = read("batch", spec_json)?;
    let results = py.detach(|| batch::run(&spec));
    text(&results.map_err(raised)?)
}

/// Of a step to `1/c` at `t0_ms`: rise time in ms, overshoot and undershoot in percent, settling time, error in percent.
#[pyfunction]
pub fn step_response(c: f64, t0_ms: f64, moments_ms: Vec<f64>, values: Vec<f64>) -> [f64; 5] {
    let found = batch::response(c, t0_ms, &moments_ms, &values);
    [found.rise_ms, found.overshoot, found.undershoot, found.settling_ms, found.error]
}

/// A plant of the step experiment from tick to tick, as JSON: `{a, b, c, d}`.
#[pyfunction]
pub fn held_plant(plant_json: &str, tick_ns: Time) -> PyResult<String> {
    let plant: Named = read("plant", plant_json)?;
    text(&plant::build(&plant).map_err(refused)?.held(tick_ns))
}

/// When the far side of a loop of the step experiment ticks in a run, behind the controller.
#[pyfunction]
#[pyo3(signature = (seed, run, period_ns, name = ""))]
pub fn step_phase(seed: u64, run: u32, period_ns: Time, name: &str) -> Time {
    batch::phase(seed, run, period_ns, name)
}
