//! `tcpsbed._tcps`: the only crate that knows Python.
//!
//! ```text
//! run_virtual   a plan in virtual time        analyse     rows to figures
//! run_node      a node process                Drain       rings of a real run to files; merge, merge_captures
//! builtins      what can be named in a scenario    check_*   whether a run would take it
//! tables        parameters of what can be named    completed, complete  checked, with their defaults
//! step_batch    the step experiment over a grid       playout     when a receiver shows what arrived
//! Proxy         the emulator for other programs       run_isolated  a command behind it, in namespaces
//! ```

#![expect(unsafe_code, reason = "a descriptor and an address come from Python")]

mod assets;
#[cfg(target_os = "linux")]
mod attach;
mod batch;
mod bilateral;
mod calls;
mod check;
mod door;
mod errors;
mod hooks;
mod json;
mod live;
mod loaded;
mod network;
mod playout;
mod predict;
#[cfg(target_os = "linux")]
mod proxy;
mod rate;
mod records;
#[cfg(target_os = "linux")]
mod rings;
mod robot;
mod tables;
mod transport;

use assets::PythonHooks;
use json::{foreign_of, plan_of, text};
use pyo3::{exceptions::PyKeyboardInterrupt, prelude::*};
use std::{path::PathBuf, sync::atomic::AtomicU8};
use tcps_core::ids::VertexId;
use tcps_plan::report::Split;
use tcps_run::{
    carrier, crash,
    virtual_time::{self, Goes, Options},
};

/// Runs a plan in virtual time; rows go to `records_path`. Returns the result as JSON.
///
/// `progress(t_ns, split)` is called now and then, and whenever `every_ns` of simulated time have passed, then with where the
/// time of samples went so far, as JSON. A false answer stops the run, and so does what it raises; a text is a list of
/// events that the run takes, as JSON. `foreign_json` names a program that simulates the network:
/// `{"program", "name", "network", "most_lag_ns"}`.
#[pyfunction]
#[pyo3(signature = (plan_json, records_path=None, *, progress=None, pcapng_path=None, foreign_json=None, every_ns=None))]
fn run_virtual(
    py: Python<'_>,
    plan_json: &str,
    records_path: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
    pcapng_path: Option<PathBuf>,
    foreign_json: Option<&str>,
    every_ns: Option<i64>,
) -> PyResult<String> {
    let plan = plan_of(plan_json)?;
    let foreign = foreign_json.map(foreign_of).transpose()?;
    let mut raised = None;
    let mut simulate = || {
        let mut report = |t: i64, split: Vec<Split>| {
            let answer = Python::attach(|py| goes_on(py, progress.as_ref(), t, &split));
            answer.unwrap_or_else(|e| {
                raised = Some(e);
                Goes::Stop
            })
        };
        let options = Options {
            records: records_path.as_deref(),
            pcapng: pcapng_path.as_deref(),
            progress: Some(&mut report),
            every_ns,
        };
        virtual_time::run_over(&plan, &mut PythonHooks, options, foreign.as_ref(), &mut PythonHooks)
    };
    // Without Python code in the run, other threads of the program have the interpreter meanwhile.
    let result = if plan.runs_python() { simulate() } else { py.detach(simulate) };
    match raised {
        Some(e) => Err(e),
        None => text(&result.map_err(errors::raised)?),
    }
}

/// Tells how far the run is; what is raised there, or by Ctrl-C, ends it.
fn goes_on(py: Python<'_>, progress: Option<&Py<PyAny>>, t: i64, split: &[Split]) -> PyResult<Goes> {
    let interrupted = calls::take_interrupt();
    py.check_signals()?;
    let answer = progress.map(|p| p.call1(py, (t, json::text(&split)?))).transpose()?;
    let on = answer.as_ref().map_or(Ok(true), |a| a.is_truthy(py))?;
    if on && interrupted {
        return Err(PyKeyboardInterrupt::new_err("a hook was interrupted"));
    }
    let events = answer.and_then(|a| a.extract::<String>(py).ok());
    let events = events.map_or(Ok(Vec::new()), |e| json::read("events", &e))?;
    Ok(if on { Goes::On(events) } else { Goes::Stop })
}

/// Ends the process at the third Ctrl-C or request to end that is written to a file descriptor, which it then owns.
#[pyfunction]
fn end_at_third(signals: i32) -> PyResult<()> {
    // SAFETY: `tcpsbed.interrupts` gives away the end of a pipe that nothing else reads.
    let signals = unsafe { std::os::fd::FromRawFd::from_raw_fd(signals) };
    crash::end_at_third(signals).map_err(errors::raised)
}

/// Notes in the byte at an address, which must stay, that this process ended and has said why.
#[pyfunction]
fn mark_ends(address: usize) {
    // SAFETY: `tcpsbed.cli.apart` keeps the page, which it shares with another process.
    crash::mark_ends(unsafe { &*(address as *const AtomicU8) });
}

/// How long a node whose run is gone may take to stop its robots and to write its rows.
#[cfg(target_os = "linux")]
const ORPHAN: std::time::Duration = std::time::Duration::from_secs(10);

/// Serves one run as a node process: JSON lines on standard input and output. Returns the exit status.
#[cfg(target_os = "linux")]
#[pyfunction]
fn run_node(py: Python<'_>) -> PyResult<i32> {
    crash::end_without_input(ORPHAN).map_err(errors::raised)?;
    Ok(py.detach(|| {
        let input = std::io::BufReader::new(std::io::stdin());
        let ok = tcps_run::real::control::serve(input, &mut std::io::stdout(), &attach::Interpreter);
        i32::from(!ok)
    }))
}

/// The next link from every vertex of a plan's network to every vertex, as JSON: `routes[v][d]`, 65535 for none.
#[pyfunction]
fn routes(plan_json: &str) -> PyResult<String> {
    let table = carrier::routes(&plan_of(plan_json)?).map_err(errors::raised)?;
    Ok(table.to_string())
}

/// The links from one vertex of a plan's network to another for each of these pairs, `None` where no way leads there.
#[pyfunction]
fn ways(plan_json: &str, pairs: Vec<(u16, u16)>) -> PyResult<Vec<Option<Vec<u16>>>> {
    let pairs: Vec<_> = pairs.into_iter().map(|(from, to)| (VertexId(from), VertexId(to))).collect();
    let ways = carrier::ways(&plan_of(plan_json)?, &pairs).map_err(errors::raised)?;
    Ok(ways.into_iter().map(|way| Some(way?.iter().map(|link| link.0).collect())).collect())
}

/// CLOCK_MONOTONIC in nanoseconds.
#[pyfunction]
fn monotonic_ns() -> i64 {
    tcps_run::os::clock::monotonic_ns()
}

/// How late loops wake up here, in each way of waiting, and how old a kernel's receive stamp is: measured, as JSON.
#[cfg(target_os = "linux")]
#[pyfunction]
fn measure_timing(py: Python<'_>, seconds: f64) -> PyResult<String> {
    py.detach(|| text(&tcps_run::real::quality::measure(seconds)))
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

/// The 0.975 quantile of Student's t.
#[pyfunction]
fn t975(freedom: u64) -> f64 {
    tcps_analysis::interval::t975(freedom)
}

/// Version of the native module.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

#[pymodule]
fn _tcps(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(run_virtual, m)?)?;
    m.add_function(wrap_pyfunction!(records::record_names, m)?)?;
    m.add("RECORD_BYTES", tcps_core::record::RECORD_BYTES)?;
    m.add("PARTS", tcps_core::split::Part::ALL.map(tcps_core::split::Part::name))?;
    m.add("HELD", tcps_core::sample::PointId::HELD)?;
    m.add("LINK_BYTES", tcps_core::size::LINK_BYTES)?;
    m.add("BOARD_BYTES", tcps_wire::board::MAX_PAYLOAD)?;
    m.add("BOARD_CHANNELS", tcps_wire::board::MAX_CHANNELS)?;
    m.add("BOARD_SAFE_VALUES", tcps_wire::board::MAX_SAFE_VALUES)?;
    m.add("MOST_USERS", tcps_net::MOST_USERS)?;
    m.add("STACK_BYTES", tcps_core::size::STACK_BYTES)?;
    m.add("FORKED", &*crash::FORKED.to_string_lossy())?;
    m.add_function(wrap_pyfunction!(end_at_third, m)?)?;
    m.add_function(wrap_pyfunction!(mark_ends, m)?)?;
    m.add_function(wrap_pyfunction!(records::analyse, m)?)?;
    m.add_function(wrap_pyfunction!(records::merge, m)?)?;
    m.add_function(wrap_pyfunction!(monotonic_ns, m)?)?;
    m.add_function(wrap_pyfunction!(routes, m)?)?;
    m.add_function(wrap_pyfunction!(ways, m)?)?;
    m.add_function(wrap_pyfunction!(builtins, m)?)?;
    m.add_function(wrap_pyfunction!(check::check_transport, m)?)?;
    m.add_function(wrap_pyfunction!(check::check_hook, m)?)?;
    m.add_function(wrap_pyfunction!(check::check_robot, m)?)?;
    m.add_function(wrap_pyfunction!(check::check_attacks, m)?)?;
    m.add_function(wrap_pyfunction!(check::check_link, m)?)?;
    m.add_function(wrap_pyfunction!(check::check_users, m)?)?;
    m.add_function(wrap_pyfunction!(check::check_network_code, m)?)?;
    m.add_function(wrap_pyfunction!(check::check_playout, m)?)?;
    m.add_function(wrap_pyfunction!(tables::tables, m)?)?;
    m.add_function(wrap_pyfunction!(tables::completed, m)?)?;
    m.add_function(wrap_pyfunction!(t975, m)?)?;
    m.add_function(wrap_pyfunction!(version, m)?)?;
    m.add_function(wrap_pyfunction!(check::time_hook, m)?)?;
    m.add_class::<live::Ledger>()?;
    m.add_function(wrap_pyfunction!(batch::step_batch, m)?)?;
    m.add_function(wrap_pyfunction!(batch::step_response, m)?)?;
    m.add_function(wrap_pyfunction!(batch::sampled_system, m)?)?;
    m.add_function(wrap_pyfunction!(batch::plant_response, m)?)?;
    m.add_function(wrap_pyfunction!(batch::step_phase, m)?)?;
    m.add_function(wrap_pyfunction!(bilateral::bilateral, m)?)?;
    m.add_function(wrap_pyfunction!(playout::playout, m)?)?;
    m.add_function(wrap_pyfunction!(predict::replay_predictor, m)?)?;
    m.add_class::<network::Arriving>()?;
    m.add_class::<transport::Incoming>()?;
    m.add_class::<transport::Outgoing>()?;
    m.add_class::<rate::Observation>()?;
    m.add_function(wrap_pyfunction!(door::complete, m)?)?;
    #[cfg(target_os = "linux")]
    on_the_clock(m)?;
    Ok(())
}

/// What runs on the machine's clock.
#[cfg(target_os = "linux")]
fn on_the_clock(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(run_node, m)?)?;
    m.add_function(wrap_pyfunction!(rings::merge_captures, m)?)?;
    m.add_function(wrap_pyfunction!(measure_timing, m)?)?;
    m.add_function(wrap_pyfunction!(proxy::run_isolated, m)?)?;
    m.add_class::<proxy::Proxy>()?;
    m.add_class::<rings::Drain>()?;
    Ok(())
}
