//! The step experiment in bulk: many runs in each cell of a grid of delays, losses, gains and periods, on all cores.
//!
//! ```text
//! cells ─► a thread for each core takes the next one ─► blocks of 8 runs side by side ─► figures of the cell
//!                                                      └ or run by run, with jitter
//! ```
//! It is the loop of `scenarios/step.toml` without anything around it: no packets, no rows, only the difference
//! equations and what becomes of each command and answer. Run `i` of every cell has the random stream `step.run.i`, so
//! that cells differ by their values only; a cell gives the same bits on any number of threads.

mod kernel;
mod lanes;
mod observer;
mod single;
mod spec;

use serde::Serialize;
use std::{
    sync::{
        atomic::{AtomicUsize, Ordering},
        Mutex,
    },
    thread::Builder,
};
use tcps_plan::RunError;

pub use observer::{response, Response};
pub use spec::{phase, Answers, Cell, Limits, Loss, Spec};

/// What a cell came to.
#[derive(Debug, Clone, Serialize)]
pub struct CellResult {
    /// Runs that kept the limits.
    pub good: u32,
    /// Rise time, in ms, of the runs that have one.
    pub rise_ms: Spread,
    /// Overshoot, in percent of the step.
    pub overshoot: Spread,
    /// Undershoot, in percent of the step.
    pub undershoot: Spread,
    /// Settling time, in ms, of the runs that settle.
    pub settling_ms: Spread,
    /// Steady-state error, in percent of the step.
    pub error: Spread,
    /// Each run, if they are kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Response>,
}

/// Number, mean and standard deviation of the finite values.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Spread {
    /// How many.
    pub n: u32,
    /// Mean; absent if there is none.
    pub mean: Option<f64>,
    /// Standard deviation; absent below two.
    pub sd: Option<f64>,
}

/// Computes all cells; the results stand in their order.
pub fn run(spec: &Spec) -> Result<Vec<CellResult>, RunError> {
    spec::check(spec)?;
    let threads = spec.threads.unwrap_or_else(cores).clamp(1, spec.cells.len().max(1));
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(spec.cells.len())));
    let work = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(cell) = spec.cells.get(number) else { return };
        let result = cell_result(spec, responses(spec, cell));
        if let Ok(mut done) = done.lock() {
            done.push((number, result));
        }
    };
    std::thread::scope(|scope| {
        // This thread works, too, and alone where a limit leaves no room for another one.
        (1..threads).for_each(|_| drop(Builder::new().spawn_scoped(scope, work)));
        work();
    });
    let mut results = done.into_inner().map_err(|_| RunError::bug("a thread of the batch failed"))?;
    results.sort_by_key(|(number, _)| *number);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The response of every run of a cell.
pub fn responses(spec: &Spec, cell: &Cell) -> Vec<Response> {
    if cell.jitter.is_some() {
        (0..spec.runs).map(|run| single::run(spec, cell, run)).collect()
    } else {
        kernel::runs(spec, cell)
    }
}

fn cell_result(spec: &Spec, runs: Vec<Response>) -> CellResult {
    let spread = |of: fn(&Response) -> f64| Spread::of(runs.iter().map(of));
    CellResult {
        good: runs.iter().filter(|r| spec.limits.good(r)).count() as u32,
        rise_ms: spread(|r| r.rise_ms),
        overshoot: spread(|r| r.overshoot),
        undershoot: spread(|r| r.undershoot),
        settling_ms: spread(|r| r.settling_ms),
        error: spread(|r| r.error),
        runs: if spec.keep { runs } else { Vec::new() },
    }
}

impl Limits {
    /// Whether a run keeps them; one that never rises does not.
    // [Polachan 2022: steps] good iff t_r <= T_max and overshoot <= O_max
    fn good(&self, r: &Response) -> bool {
        let within = |value: f64, most: Option<f64>| most.is_none_or(|m| value <= m);
        r.rise_ms.is_finite()
            && within(r.rise_ms, self.rise_ms)
            && within(r.overshoot, self.overshoot)
            && within(r.undershoot, self.undershoot)
    }
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let (mut n, mut mean, mut squares) = (0u32, 0.0, 0.0);
        for v in values.filter(|v| v.is_finite()) {
            n += 1;
            let from = v - mean;
            mean += from / f64::from(n);
            squares += from * (v - mean);
        }
        let sd = (n > 1).then(|| (squares / f64::from(n - 1)).sqrt());
        Self { n, mean: (n > 0).then_some(mean), sd }
    }
}
