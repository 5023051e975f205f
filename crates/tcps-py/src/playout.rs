//! Playout policies over arrivals, for figures and comparisons on one recording.

use crate::{errors::raised, json::read};
use pyo3::prelude::*;
use tcps_plan::RunError;
use tcps_transport::playout::{play, policy, Act, Arrival};

/// What a policy does with arrivals: a list of (what, moment in ns, index of the sample or -1).
///
/// `params_json` names the policy and its parameters; times in ns on the receiver's clock, arrivals in order.
#[pyfunction]
#[pyo3(signature = (params_json, arrivals_ns, origins_ns, indices, end_ns))]
pub(crate) fn playout(
    py: Python<'_>,
    params_json: &str,
    arrivals_ns: Vec<i64>,
    origins_ns: Vec<i64>,
    indices: Vec<u32>,
    end_ns: i64,
) -> PyResult<Vec<(&'static str, i64, i64)>> {
    let mut policy =
        policy(&read("policy", params_json)?).map_err(|e| raised(RunError::of(&e, e.fault())))?;
    let times = arrivals_ns.into_iter().zip(origins_ns).zip(indices);
    let arrivals: Vec<_> = times
        .map(|((at_ns, origin_ns), index)| Arrival { at_ns, origin_ns, index, key: 0, token: 0 })
        .collect();
    let acts = py.detach(|| play(policy.as_mut(), &arrivals, end_ns));
    let row = |act: Act| match act {
        Act::Played { at_ns, sample } => ("played", at_ns, i64::from(sample.index)),
        Act::Late(s) => ("late", s.at_ns, i64::from(s.index)),
        Act::Dropped(s) => ("dropped", s.at_ns, i64::from(s.index)),
        Act::Gap { at_ns } => ("gap", at_ns, -1),
    };
    Ok(acts.into_iter().map(row).collect())
}
