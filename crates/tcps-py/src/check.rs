//! Makes and drops what a scenario names, so that a check refuses what a run would refuse.

use crate::{
    assets::PythonHooks,
    errors::{raised, refused},
    json::{plan_of, read},
};
use pyo3::prelude::*;
use serde_json::Value;
use tcps_core::{
    hook::{HookIn, HookOut, Verdict},
    ids::FlowId,
    param::{Fault, Named},
    record::StepKind,
    time::MS,
};
use tcps_net::ForeignCode;
use tcps_node::assets::{self, Shape};
use tcps_plan::{CodePlan, RunError};
use tcps_transport::{playout, ChannelContext, Side};

fn blamed<T>(made: Result<T, RunError>) -> PyResult<()> {
    made.map(drop).map_err(raised)
}

fn params_of(json: &str) -> PyResult<Value> {
    read("parameters", json)
}

/// Refuses a transport that a run would refuse: makes its two endpoints for a flow each way.
#[pyfunction]
pub fn check_transport(name: &str, params_json: &str) -> PyResult<()> {
    let params = params_of(params_json)?;
    let context = ChannelContext::of(&[(0, Side::B, "kinematic"), (1, Side::A, "haptic")]);
    [Side::A, Side::B]
        .into_iter()
        .try_for_each(|side| blamed(assets::endpoint(name, &params, side, &context, &mut PythonHooks)))
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
    blamed(assets::hook(&plan, Shape::of(kind), &mut PythonHooks))
}

/// Refuses a robot that a run would refuse.
#[pyfunction]
pub fn check_robot(name: &str, params_json: &str) -> PyResult<()> {
    blamed(assets::robot(&CodePlan::named(name, params_of(params_json)?), &mut PythonHooks))
}

/// Refuses a `queue` discipline, `loss` model, `delay` model or background `source` of the user's that a run would refuse.
#[pyfunction]
pub fn check_network_code(what: &str, name: &str, params_json: &str) -> PyResult<()> {
    let named = Named::new(name, params_of(params_json)?);
    match what {
        "queue" => blamed(PythonHooks.queue(&named, "links.check", 1)),
        "loss" => blamed(PythonHooks.loss(&named, "links.check", 1)),
        "delay" => blamed(PythonHooks.delay(&named, "links.check", 1)),
        _ => blamed(PythonHooks.source(&named, "check", 1)),
    }
}

/// Refuses attacks of a plan that a run would refuse.
#[pyfunction]
pub fn check_attacks(plan_json: &str) -> PyResult<()> {
    blamed(tcps_run::check_attacks(&plan_of(plan_json)?))
}

/// Refuses a link of a plan that no network takes, wherever it leads and whatever its queue is.
#[pyfunction]
pub fn check_link(link_json: &str) -> PyResult<()> {
    tcps_net::check_link(&read("link", link_json)?).map_err(|e| refused(e.fault))
}

/// Refuses the model of users of background traffic that no network takes, whichever link they are to fill.
#[pyfunction]
pub fn check_users(model_json: &str) -> PyResult<()> {
    let allowed = r#"laws of pages such as {"kind": "exponential", "mean": 5}"#;
    let users = serde_json::from_str(model_json).map_err(|e| refused(Fault::new("pages", e, allowed)))?;
    tcps_net::check_users(&users).map_err(refused)
}

/// Refuses a playout policy that a run would refuse.
#[pyfunction]
pub fn check_playout(kind: &str, params_json: &str) -> PyResult<()> {
    let Value::Object(mut params) = params_of(params_json)? else {
        return Err(raised(RunError::config("parameters: found no object")));
    };
    params.insert("kind".into(), kind.into());
    blamed(playout::policy(&Value::Object(params)).map_err(|e| RunError::of(&e, e.fault())))
}

/// Nanoseconds per call of a hook that stays attached, one figure for each of `rounds` blocks of 1000 calls.
#[pyfunction]
pub fn time_hook(py: Python<'_>, code_json: &str, rounds: usize) -> PyResult<Vec<f64>> {
    let code: CodePlan = read("code", code_json)?;
    let mut hook = assets::hook(&code, Shape::of(StepKind::Work), &mut PythonHooks).map_err(raised)?;
    let (x, mut y, mut bytes) = ([0.5; 6], [0.0; 256], [0u8; 64]);
    let mut figures = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let start = tcps_run::os::clock::monotonic_ns();
        for index in 0..1000 {
            let input = HookIn::tick(i64::from(index) * 1_000_000, 0, index, FlowId(0)).with_sample(&x, &[]);
            let mut output = HookOut::new(&mut y, &mut bytes);
            if let Verdict::Failed(text) = hook.call(&input, &mut output) {
                return Err(raised(RunError::hook(text)));
            }
        }
        figures.push((tcps_run::os::clock::monotonic_ns() - start) as f64 / 1000.0);
        py.check_signals()?;
    }
    Ok(figures)
}
