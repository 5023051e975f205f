//! The batch engine of the step experiment.

use crate::{
    assets::PythonHooks,
    errors::{raised, refused},
    json::{read, text},
};
use pyo3::prelude::*;
use serde_json::{json, Value};
use tcps_control::step::{linear::Rule, plant};
use tcps_core::{param::Named, time::Time};
use tcps_node::assets;
use tcps_plan::{CodePlan, RunError};
use tcps_run::batch::{self, Spec};

/// A moment of the step that no response reaches.
const NEVER_NS: Time = 1_000_000_000_000_000;

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

/// A plant of the step experiment, or a controller, from tick to tick, as JSON: `{a, b, c, d}`.
#[pyfunction]
#[pyo3(signature = (system_json, tick_ns, bilinear = false))]
pub fn sampled_system(system_json: &str, tick_ns: Time, bilinear: bool) -> PyResult<String> {
    let system: Named = read("plant", system_json)?;
    let system = plant::build(&system).map_err(refused)?;
    text(&system.sampled(tick_ns, if bilinear { Rule::Bilinear } else { Rule::Held }).map_err(refused)?)
}

/// What a plant of the step experiment, which may be code, answers to commands that hold for a tick each.
#[pyfunction]
pub fn plant_response(plant_json: &str, tick_ns: Time, commands: Vec<f64>) -> PyResult<Vec<f64>> {
    let plant: Value = read("plant", plant_json)?;
    let code = CodePlan::named("step", json!({"plant": plant, "t0_ns": NEVER_NS}));
    let mut robot = assets::robot(&code, &mut PythonHooks).map_err(raised)?;
    let mut found = Vec::with_capacity(commands.len());
    for (number, k) in (0..).zip(commands) {
        let mut h = [f64::NAN];
        robot.step(number * tick_ns, &[k], &mut h);
        if let Some(why) = robot.failure() {
            return Err(raised(RunError::hook(why)));
        }
        found.push(h[0]);
    }
    Ok(found)
}

/// When the far side of a loop of the step experiment ticks in a run, behind the controller.
#[pyfunction]
#[pyo3(signature = (seed, run, period_ns, name = ""))]
pub fn step_phase(seed: u64, run: u32, period_ns: Time, name: &str) -> Time {
    batch::phase(seed, run, period_ns, name)
}
