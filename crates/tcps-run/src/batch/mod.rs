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

use serde::{Deserialize, Serialize};
use std::sync::{
    atomic::{AtomicUsize, Ordering},
    Mutex,
};
use tcps_core::{
    dist::Dist,
    param::{Fault, Named, Params},
    seed::Stream,
    time::Time,
};
use tcps_net::loss::{Bursts, Each, LOSSES};
use tcps_plan::RunError;

pub use observer::Response;

/// What is to be computed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Seed of every random stream.
    pub seed: u64,
    /// Runs in each cell.
    pub runs: u32,
    /// Length of a run, in ms.
    pub duration_ms: f64,
    /// The answer falls to 1/c of what it was.
    pub c: f64,
    /// Moment of the step, in ms.
    pub t0_ms: f64,
    /// What makes the far side answer.
    pub answers: Answers,
    /// What a good run keeps.
    pub limits: Limits,
    /// Whether the figures of single runs are given, too.
    #[serde(default)]
    pub keep: bool,
    /// Threads; absent: one for each core.
    #[serde(default)]
    pub threads: Option<usize>,
    /// The grid, cell by cell.
    pub cells: Vec<Cell>,
}

/// A loss that can be computed in bulk.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Named")]
pub enum Loss {
    /// Independent.
    Each(Each),
    /// In bursts.
    Bursts(Bursts),
}

impl TryFrom<Named> for Loss {
    type Error = Fault;

    fn try_from(loss: Named) -> Result<Self, Fault> {
        let (entry, params) = loss.of(LOSSES)?;
        match entry.name {
            "random" => Each::read(&params).map(Self::Each),
            "gilbert-elliott" => Bursts::read(&params).map(Self::Bursts),
            other => Err(Fault::new("loss", other, "random, gilbert-elliott")),
        }
    }
}

/// What makes the far side answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answers {
    /// Each command that arrives is answered, and nothing else is.
    Commands,
    /// Its own tick, with the newest command: the robot of a scenario.
    Ticks,
}

/// What a good run keeps; absent: any.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Longest rise time, in ms.
    #[serde(default)]
    pub rise_ms: Option<f64>,
    /// Highest overshoot, in percent of the step.
    #[serde(default)]
    pub overshoot: Option<f64>,
    /// Highest undershoot, in percent of the step.
    #[serde(default)]
    pub undershoot: Option<f64>,
}

/// One setting.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Time between commands, in ms.
    pub period_ms: f64,
    /// Delay of commands, in ms.
    pub there_ms: f64,
    /// Delay of answers, in ms.
    pub back_ms: f64,
    /// Extra delay of each packet.
    #[serde(default)]
    pub jitter: Option<Dist>,
    /// Whether a packet may overtake another.
    #[serde(default)]
    pub reorder: bool,
    /// Loss in each direction.
    #[serde(default)]
    pub loss: Option<Loss>,
    /// Whether the far side's ticks have a phase of their own in each run.
    #[serde(default)]
    pub phases: bool,
    /// Proportional gain.
    pub kp: f64,
    /// Integral gain, per ms.
    pub ki_per_ms: f64,
}

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

/// Most ticks of a run.
const MOST_TICKS: f64 = 1e7;

/// Computes all cells; the results stand in their order.
pub fn run(spec: &Spec) -> Result<Vec<CellResult>, RunError> {
    check(spec)?;
    let threads = spec.threads.unwrap_or_else(cores).clamp(1, spec.cells.len().max(1));
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(spec.cells.len())));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(cell) = spec.cells.get(number) else { return };
                let result = cell_result(spec, responses(spec, cell));
                if let Ok(mut done) = done.lock() {
                    done.push((number, result));
                }
            });
        }
    });
    let mut results = done.into_inner().map_err(|_| RunError::new("a thread of the batch failed"))?;
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

/// The phase of the far side's ticks in a run, behind those of the controller: the same of the engine and of a scenario.
pub fn phase(seed: u64, run: u32, period_ns: Time) -> Time {
    Stream::new(seed, &format!("step.run.{run}.phase")).below(period_ns.max(1) as u64) as Time
}

fn phase_ns(spec: &Spec, cell: &Cell, run: u32) -> Time {
    match cell.phases {
        true => phase(spec.seed, run, (cell.period_ms * 1e6).round() as Time),
        false => 0,
    }
}

fn check(spec: &Spec) -> Result<(), RunError> {
    let fail = |text: String| Err(RunError::new(text));
    let positive = |x: f64| x.is_finite() && x > 0.0;
    if !(spec.c.is_finite() && spec.c > 1.0) {
        return fail(format!("c = {}: it must be above 1", spec.c));
    }
    if !(spec.t0_ms.is_finite() && spec.t0_ms >= 0.0 && spec.t0_ms < spec.duration_ms) {
        return fail(format!("the step at {} ms of a run of {} ms", spec.t0_ms, spec.duration_ms));
    }
    for cell in &spec.cells {
        if !positive(cell.period_ms) || spec.duration_ms / cell.period_ms > MOST_TICKS {
            return fail(format!("period {} ms in a run of {} ms", cell.period_ms, spec.duration_ms));
        }
        for (what, value) in
            [("delay", cell.there_ms), ("delay", cell.back_ms), ("Kp", cell.kp), ("Ki", cell.ki_per_ms)]
        {
            if !(value.is_finite() && value >= 0.0) {
                return fail(format!("{what} {value}: it must be 0 or more"));
            }
        }
    }
    Ok(())
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
