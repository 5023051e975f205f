//! Makes and drops what a scenario names, so that a check refuses what a run would refuse.

use crate::hooks::PythonHooks;
use pyo3::{exceptions::PyValueError, prelude::*};
use serde_json::Value;
use std::fmt::Display;
use tcps_core::param::Named;
use tcps_core::{record::StepKind, time::MS};
use tcps_net::ForeignCode;
use tcps_node::assets::{self, Shape};
use tcps_plan::CodePlan;
use tcps_transport::{playout, ChannelContext, Side};

fn refused(e: impl Display) -> PyErr {
    PyValueError::new_err(e.to_string())
}

fn params_of(json: &str) -> PyResult<Value> {
    serde_json::from_str(json).map_err(|e| refused(format!("parameters: {e}")))
}

/// Refuses a transport that a run would refuse: makes its two endpoints for a flow each way.
#[pyfunction]
pub fn check_transport(name: &str, params_json: &str) -> PyResult<()> {
    let params = params_of(params_json)?;
    let context = ChannelContext::of(&[(0, Side::B, "kinematic"), (1, Side::A, "haptic")]);
    for side in [Side::A, Side::B] {
        assets::endpoint(name, &params, side, &context, &mut PythonHooks).map_err(refused)?;
    }
    Ok(())
}

/// Refuses a hook that a run would refuse; `kind` is that of its stage, which says where coded bytes are.
#[pyfunction]
#[pyo3(signature = (name, params_json, *, kind="work"))]
pub fn check_hook(name: &str, params_json: &str, kind: &str) -> PyResult<()> {
    let mut plan = CodePlan::named(name, params_of(params_json)?);
    plan.interval_ns = (kind == "predict").then_some(MS);
    let kind = match kind {
        "decode" => StepKind::Decode,
        "code" => StepKind::Code,
        _ => StepKind::Work,
    };
    assets::hook(&plan, Shape::of(kind), &mut PythonHooks).map(drop).map_err(refused)
}

/// Refuses a robot that a run would refuse.
#[pyfunction]
pub fn check_robot(name: &str, params_json: &str) -> PyResult<()> {
    let plan = CodePlan::named(name, params_of(params_json)?);
    assets::robot(&plan, &mut PythonHooks).map(drop).map_err(refused)
}

/// Refuses a `queue` discipline or background `source` of the user's that a run would refuse.
#[pyfunction]
pub fn check_network_code(what: &str, name: &str, params_json: &str) -> PyResult<()> {
    let named = Named::new(name, params_of(params_json)?);
    let made = match what {
        "queue" => PythonHooks.queue(&named, "links.check", 1).map(drop),
        _ => PythonHooks.source(&named, "check", 1).map(drop),
    };
    made.map_err(refused)
}

/// Refuses a playout policy that a run would refuse.
#[pyfunction]
pub fn check_playout(kind: &str, params_json: &str) -> PyResult<()> {
    let Value::Object(mut params) = params_of(params_json)? else {
        return Err(refused("parameters: found no object"));
    };
    params.insert("kind".into(), kind.into());
    playout::policy(&Value::Object(params)).map(drop).map_err(refused)
}
