//! Bilateral schemes with a line between their sides, for studies of transparency and stability.

use crate::{errors::refused, json::read};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use tcps_control::bilateral::{
    bench::{self, Setup},
    ArmParams, Motion, SlaveParams,
};
use tcps_core::param::{Fault, Params as _};

/// A setup as JSON has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    scheme: String,
    #[serde(default)]
    params: Value,
    rtt_ms: usize,
    #[serde(default)]
    loss: f64,
    #[serde(default = "single")]
    burst: f64,
    #[serde(default)]
    deadband: f64,
    #[serde(default)]
    arm: Value,
    #[serde(default)]
    slave: Value,
    #[serde(default)]
    seed: u64,
}

fn single() -> f64 {
    1.0
}

/// Runs a scheme at 1 kHz; `wanted` is where the hand wants to be at each tick, in m. For each tick position and velocity of
/// the device, position of the slave, force on the hand, force of the wall, energy that went in, messages that went.
#[pyfunction]
pub fn bilateral(py: Python<'_>, spec_json: &str, wanted: Vec<f64>) -> PyResult<Vec<[f64; 7]>> {
    let spec: Spec = read("bilateral", spec_json)?;
    let share = |key: &str, value: f64| match (0.0..1.0).contains(&value) {
        true => Ok(()),
        false => Err(refused(Fault::new(key, value, "a share from 0 to below 1, such as 0.1"))),
    };
    share("loss", spec.loss)?;
    share("deadband", spec.deadband)?;
    let setup = Setup {
        params: spec.params,
        loss: spec.loss,
        burst: spec.burst,
        deadband: spec.deadband,
        arm: ArmParams::of(&spec.arm).map_err(|fault| refused(fault.within("arm")))?,
        slave: SlaveParams::of(&spec.slave).map_err(|fault| refused(fault.within("slave")))?,
        seed: spec.seed,
        ..Setup::new(&spec.scheme, spec.rtt_ms)
    };
    let at = |s: f64| {
        let n = ((s / bench::TICK_S).round() as usize).min(wanted.len().saturating_sub(1));
        let x = wanted.get(n).copied().unwrap_or(0.0);
        let before = n.checked_sub(1).and_then(|b| wanted.get(b)).copied().unwrap_or(x);
        Motion { x, v: (x - before) / bench::TICK_S }
    };
    let seen = py.detach(|| bench::run(&setup, wanted.len(), at)).map_err(refused)?;
    let row = |s: &bench::Seen| {
        [s.leader.x, s.leader.v, s.slave.x, s.force_n, s.contact_n, s.energy_j, f64::from(s.sent)]
    };
    Ok(seen.iter().map(row).collect())
}
