//! Predictors over a recording: at each sample, what it guesses for moments ahead, against what came.

use std::time::Instant;
use tcps_core::{model::Predictor, time::Time};

/// Time at the beginning in which predictors learn and nothing counts, in ns.
const LEARNING_NS: Time = 500_000_000;

/// How a predictor did at one horizon, over all values of the samples together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Horizon {
    /// Root mean square of the length of the error, in the unit of the recording.
    pub rms: f64,
    /// Its largest length: the jump when a sample comes after a gap as long as the horizon.
    pub worst: f64,
}

/// How a predictor did.
#[derive(Debug, Clone)]
pub struct Replay {
    /// One for each horizon.
    pub horizons: Vec<Horizon>,
    /// Mean time that an update took, in ns.
    pub update_ns: f64,
    /// Mean time that a guess took, in ns, for each horizon.
    pub predict_ns: Vec<f64>,
}

/// Replays rows of `columns` values, `period_ns` apart; horizons are whole periods.
// [model: predictors] compared by RMS error at horizons and by the largest jump when a sample replaces a guess
pub fn replay(
    predictor: &mut dyn Predictor,
    rows: &[f64],
    columns: usize,
    period_ns: Time,
    horizons: &[usize],
) -> Replay {
    let samples: Vec<&[f64]> = rows.chunks_exact(columns.max(1)).collect();
    let (mut guess, mut spent) = (vec![0.0; columns], 0u128);
    let mut tallies = vec![(0.0, 0.0f64, 0u64, 0u128); horizons.len()];
    for (n, sample) in samples.iter().enumerate() {
        let now = n as Time * period_ns;
        let begun = Instant::now();
        predictor.update(now, Some(sample));
        spent += begun.elapsed().as_nanos();
        for (tally, ahead) in tallies.iter_mut().zip(horizons) {
            let Some(truth) = samples.get(n + ahead).filter(|_| now >= LEARNING_NS) else { continue };
            let begun = Instant::now();
            predictor.predict(now + *ahead as Time * period_ns, &mut guess);
            tally.3 += begun.elapsed().as_nanos();
            let square: f64 = guess.iter().zip(*truth).map(|(y, x)| (y - x) * (y - x)).sum();
            (tally.0, tally.1, tally.2) = (tally.0 + square, tally.1.max(square), tally.2 + 1);
        }
    }
    let counted = |n: u64| n.max(1) as f64;
    Replay {
        horizons: tallies
            .iter()
            .map(|t| Horizon { rms: (t.0 / counted(t.2)).sqrt(), worst: t.1.sqrt() })
            .collect(),
        update_ns: spent as f64 / counted(samples.len() as u64),
        predict_ns: tallies.iter().map(|t| t.3 as f64 / counted(t.2)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// [model: predictors] Holding a ramp of 1 a second is wrong by the horizon at every sample; continuing it is not.
    #[test]
    fn a_ramp_held_is_wrong_by_the_horizon() {
        let rows: Vec<f64> = (0..2_000).flat_map(|n| [n as f64 * 1e-3, 5.0]).collect();
        for (name, wrong) in [("zoh", 1.0), ("linear", 0.0)] {
            let mut predictor = tcps_control::predictor(name, &Value::Null).expect("a predictor");
            let found = replay(predictor.as_mut(), &rows, 2, 1_000_000, &[5, 20]);
            for (horizon, s) in found.horizons.iter().zip([5e-3, 20e-3]) {
                let (rms, worst) = (horizon.rms - wrong * s, horizon.worst - wrong * s);
                assert!(rms.abs() < 1e-9 && worst.abs() < 1e-9, "{name}: {horizon:?}");
            }
            assert!(found.update_ns > 0.0 && found.predict_ns.iter().all(|ns| *ns > 0.0));
        }
    }
}
