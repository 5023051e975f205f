//! Robot `step`: the far side of the step experiment (Polachan 2022: steps).
//!
//! ```text
//! h = s(t) y(k),  s = 1 before t0, 1/c from then on        command  k (1 before the first)      sense  h
//! ```

use serde_json::Value;
use tcps_core::{
    param::{Fault, Named, Params as _},
    params,
    robot::Robot,
    time::Time,
};

use crate::step::{
    plant::{self, Motion},
    Jump,
};

params! {
    /// Parameters.
    pub struct Params {
        c: f64 = Number, "2", 1.0..=f64::INFINITY, "factor by which h falls at `t0`, above 1";
        t0_ns: Time = Ns, "200 ms", 0.0..=1e15, "time of the step";
        plant: Option<Named> = Object, ABSENT, ANY, "what the command moves: a plant of `docs/step.md`, such as `\"lag\"` or `{ kind = \"lag\", time_constant = \"5 ms\" }`, or code of your own; default `\"static\"`";
    }
}

/// The robot.
#[derive(Debug, Clone)]
pub struct Step {
    jump: Jump,
    motion: Motion,
    last: Option<Time>,
    command: f64,
}

impl Step {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let p = Params::of(params)?;
        if p.c <= 1.0 {
            return Err(Fault::new("c", p.c, "a number above 1, such as 2"));
        }
        let plant = p.plant.unwrap_or_else(|| Named::new("static", Value::Null));
        let motion = Motion::new(plant::build(&plant).map_err(|fault| fault.within("plant"))?);
        Ok(Self { jump: Jump { c: p.c, t0_ns: p.t0_ns }, motion, last: None, command: 1.0 })
    }
}

impl Robot for Step {
    fn step(&mut self, now: Time, command: &[f64], sense: &mut [f64]) -> usize {
        if let Some(&k) = command.first().filter(|k| k.is_finite()) {
            self.command = k;
        }
        self.motion.pass(now - self.last.replace(now).unwrap_or(now));
        match sense.first_mut() {
            Some(h) => *h = self.jump.scale(now) * self.motion.answer(self.command),
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

    #[test]
    fn it_moves_a_plant_with_a_memory() {
        let plant = json!({"kind": "lag", "time_constant_ns": 20 * MS});
        let (mut step, mut h) = (Step::new(&json!({"c": 4, "plant": plant})).unwrap(), [0.0]);
        for t in 0..=40 {
            step.step(t * MS, &[2.0], &mut h);
        }
        assert!((h[0] - (2.0 - libm::exp(-2.0))).abs() < 1e-12, "{h:?}");
        let refused = Step::new(&json!({"plant": {"kind": "leg"}})).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "plant: found kind = \"leg\"; allowed: static, lag, second-order, mass, state-space"
        );
    }
}
