//! Robot `step`: the far side of the step experiment (Polachan 2022: steps).
//!
//! ```text
//! h = s(t) k,  s = 1 before t0, 1/c from then on          command  k (1 before the first)      sense  h
//! ```

use serde::Deserialize;
use serde_json::Value;
use tcps_core::{robot::Robot, time::Time};

use crate::{params::parse, step::Plant};

/// Parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The answer falls to 1/c of what it was; above 1.
    pub c: f64,
    /// Moment of the step.
    pub t0_ns: Time,
}

impl Default for Params {
    fn default() -> Self {
        Self { c: 2.0, t0_ns: 200_000_000 }
    }
}

/// The robot.
#[derive(Debug, Clone)]
pub struct Step {
    plant: Plant,
    command: f64,
}

impl Step {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, String> {
        let p: Params = parse(params)?;
        if !(p.c.is_finite() && p.c > 1.0) {
            return Err(format!("c = {}: it must be above 1", p.c));
        }
        if p.t0_ns < 0 {
            return Err("t0 must be 0 or later".into());
        }
        Ok(Self { plant: Plant { c: p.c, t0_ns: p.t0_ns }, command: 1.0 })
    }
}

impl Robot for Step {
    fn step(&mut self, now: Time, command: &[f64], sense: &mut [f64]) -> usize {
        if let Some(&k) = command.first().filter(|k| k.is_finite()) {
            self.command = k;
        }
        match sense.first_mut() {
            Some(h) => *h = self.plant.scale(now) * self.command,
            None => return 0,
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tcps_core::time::MS;

    /// [Polachan 2022: steps] h = s(t) k, and a command that is no number is left out.
    #[test]
    fn it_answers_at_once_and_jumps_once() {
        let (mut step, mut h) = (Step::new(&json!({"c": 4, "t0_ns": 3_000_000})).unwrap(), [0.0]);
        let mut at = |t: Time, k: &[f64]| {
            assert_eq!(step.step(t, k, &mut h), 1);
            h[0]
        };
        assert_eq!([at(0, &[]), at(MS, &[2.0]), at(2 * MS, &[f64::NAN])], [1.0, 2.0, 2.0]);
        assert_eq!([at(3 * MS, &[2.0]), at(4 * MS, &[4.0])], [0.5, 1.0]);
        assert!(Step::new(&json!({"c": 1})).is_err());
    }
}
