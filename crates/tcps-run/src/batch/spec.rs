//! What the batch engine is to compute.

use serde::Deserialize;
use tcps_control::step::{
    linear::{Linear, Rule},
    plant, Disturbance,
};
use tcps_core::{
    dist::Dist,
    param::{Fault, Named, Params},
    seed::Stream,
    time::Time,
};
use tcps_net::loss::{Bursts, Each, LOSSES};
use tcps_plan::RunError;

/// Most ticks of a run.
const MOST_TICKS: f64 = 1e7;

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
    /// How it falls.
    #[serde(default)]
    pub disturbance: Disturbance,
    /// What the command moves; absent: it is answered with itself.
    #[serde(default)]
    pub plant: System,
    /// What makes the far side answer.
    pub answers: Answers,
    /// What a good run keeps.
    pub limits: Limits,
    /// Whether the figures of single runs are given, too.
    #[serde(default)]
    pub keep: bool,
    /// Threads; absent: one for each core.
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

/// A plant or controller of the step experiment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Named")]
pub struct System(pub Linear);

impl TryFrom<Named> for System {
    type Error = Fault;

    fn try_from(named: Named) -> Result<Self, Fault> {
        plant::build(&named).map(Self)
    }
}

impl Default for System {
    /// An answer is the command itself.
    fn default() -> Self {
        Self(Linear { d: 1.0, ..Linear::default() })
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
    pub rise_ms: Option<f64>,
    /// Highest overshoot, in percent of the step.
    pub overshoot: Option<f64>,
    /// Highest undershoot, in percent of the step.
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
    pub jitter: Option<Dist>,
    /// Whether a packet may overtake another.
    #[serde(default)]
    pub reorder: bool,
    /// Loss in each direction.
    pub loss: Option<Loss>,
    /// Whether the far side's ticks have a phase of their own in each run.
    #[serde(default)]
    pub phases: bool,
    /// Proportional gain.
    pub kp: f64,
    /// Integral gain, per ms.
    pub ki_per_ms: f64,
    /// The controller in place of one with these gains.
    #[serde(default)]
    pub controller: Option<System>,
}

impl Cell {
    pub(super) fn period_ns(&self) -> Time {
        (self.period_ms * 1e6).round() as Time
    }
}

/// Refuses what cannot be computed.
pub(super) fn check(spec: &Spec) -> Result<(), RunError> {
    let fail = |text: String| Err(RunError::config(text));
    let positive = |x: f64| x.is_finite() && x > 0.0;
    if !(spec.c.is_finite() && spec.c > 1.0) {
        return fail(format!("c = {}: it must be above 1", spec.c));
    }
    if !(spec.t0_ms.is_finite() && spec.t0_ms >= 0.0 && spec.t0_ms < spec.duration_ms) {
        return fail(format!("the step at {} ms of a run of {} ms", spec.t0_ms, spec.duration_ms));
    }
    for cell in &spec.cells {
        if spec.answers == Answers::Commands && cell.jitter.is_some() && !spec.plant.0.is_static() {
            let found = "a plant with memory cannot answer commands whose delay varies";
            return fail(format!("{found}; allowed: a plant that answers at its own ticks, or no jitter"));
        }
        let found = |e: Fault| RunError::of(&e, Some(e.clone()));
        spec.plant.0.sampled(cell.period_ns(), Rule::Held).map_err(found)?;
        if let Some(System(controller)) = &cell.controller {
            controller.sampled(cell.period_ns(), Rule::Bilinear).map_err(found)?;
        }
        if !positive(cell.period_ms) || spec.duration_ms / cell.period_ms > MOST_TICKS {
            let found = format!("a period of {} ms in a run of {} ms", cell.period_ms, spec.duration_ms);
            return fail(format!(
                "{found}; allowed: at most {MOST_TICKS} periods: a shorter run, or a longer period"
            ));
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

/// The phase of the far side's ticks in a run, behind those of the controller: the same of the engine and of a scenario with
/// one loop; each of several loops has a name, and draws its own.
pub fn phase(seed: u64, run: u32, period_ns: Time, name: &str) -> Time {
    let of = if name.is_empty() { String::new() } else { format!("{name}.") };
    Stream::new(seed, &format!("step.{of}run.{run}.phase")).below(period_ns.max(1) as u64) as Time
}

/// That of a run of a cell; 0 where ticks have none.
pub(super) fn phase_ns(spec: &Spec, cell: &Cell, run: u32) -> Time {
    match cell.phases {
        true => phase(spec.seed, run, cell.period_ns(), ""),
        false => 0,
    }
}
