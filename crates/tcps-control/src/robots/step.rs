//! Robot `step`: the far side of the step experiment (Polachan 2022: steps).
//!
//! ```text
//! h = s(t) y(k),  s = 1 before t0, 1/c from then on        command  k (1 before the first)      sense  h
//! h = y(k) - d(t),  d = 0 before t0, 1 - 1/c from then on  (output)
//! ```

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    ids::FlowId,
    param::{Fault, Named, Params as _},
    params,
    robot::Robot,
    time::Time,
};

use crate::step::{
    linear::{Motion, Rule},
    plant, Disturbance, Jump,
};

params! {
    /// Parameters.
    pub struct Params {
        c: f64 = Number, "2", 1.0..=f64::INFINITY, "factor by which h falls at `t0`, above 1";
        t0_ns: Time = Ns, "200 ms", 0.0..=1e15, "time of the step";
        disturbance: Disturbance = Choice(Disturbance::NAMES), "gain", ANY, "how h falls: `gain` divides it by c from then on, so that the loop's gain falls, too; `output` subtracts 1 - 1/c, and the loop stays as it is";
        plant: Option<Named> = Object, ABSENT, ANY, "what the command moves: a plant of `docs/plants.md`, such as `\"lag\"` or `{ kind = \"lag\", time_constant = \"5 ms\" }`, or code of your own; default `\"static\"`";
    }
}

/// What the command moves.
enum Plant {
    /// Computed here.
    Linear(Box<Motion>),
    /// Code of the user's: a hook that is given k at each tick, and answers with y.
    Code(Box<dyn Hook>),
}

/// The robot.
pub struct Step {
    jump: Jump,
    plant: Plant,
    last: Option<Time>,
    ticks: u32,
    command: f64,
    failure: Option<String>,
}

impl Step {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let p = Params::of(params)?;
        let named = p.plant.clone().unwrap_or_else(|| Named::new("static", Value::Null));
        let system = plant::build(&named).map_err(|fault| fault.within("plant"))?;
        Self::of(p, Plant::Linear(Box::new(Motion::new(system, Rule::Held))))
    }

    /// With a plant that has been made elsewhere, from what its parameters name.
    pub fn with(params: &Value, plant: Box<dyn Hook>) -> Result<Self, Fault> {
        Self::of(Params::of(params)?, Plant::Code(plant))
    }

    fn of(p: Params, plant: Plant) -> Result<Self, Fault> {
        if p.c <= 1.0 {
            return Err(Fault::new("c", p.c, "a number above 1, such as 2"));
        }
        let jump = Jump { c: p.c, t0_ns: p.t0_ns, disturbance: p.disturbance };
        Ok(Self { jump, plant, last: None, ticks: 0, command: 1.0, failure: None })
    }

    /// y at this tick.
    fn answer(&mut self, now: Time) -> Result<f64, String> {
        match &mut self.plant {
            Plant::Linear(motion) => {
                motion.pass(now - self.last.unwrap_or(now));
                Ok(motion.obey(self.command))
            }
            Plant::Code(code) => asked(code.as_mut(), now, self.ticks, self.command),
        }
    }
}

/// What code answers to the command `k`.
fn asked(code: &mut dyn Hook, now: Time, tick: u32, k: f64) -> Result<f64, String> {
    let (x, mut y) = ([k], [f64::NAN]);
    let input = HookIn::tick(now, now, tick, FlowId(0)).with_sample(&x, &[]);
    let mut output = HookOut::new(&mut y, &mut []);
    match code.call(&input, &mut output) {
        Verdict::Emit if output.written().0 == 1 && y[0].is_finite() => Ok(y[0]),
        Verdict::Emit => Err(format!("the plant answers {k} with {}, not with a finite number", y[0])),
        Verdict::Nothing => Err("the plant answers with no value, not with y".into()),
        Verdict::Failed(why) | Verdict::Dead(why) => Err(format!("the plant fails: {why}")),
    }
}

impl Robot for Step {
    fn step(&mut self, now: Time, command: &[f64], sense: &mut [f64]) -> usize {
        if let Some(&k) = command.first().filter(|k| k.is_finite()) {
            self.command = k;
        }
        let Some(h) = sense.first_mut() else { return 0 };
        match self.answer(now) {
            Ok(y) => *h = self.jump.h(now, y),
            Err(why) => {
                self.failure.get_or_insert(why);
                return 0;
            }
        }
        self.last = Some(now);
        self.ticks = self.ticks.wrapping_add(1);
        1
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
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
        let refused = Step::new(&json!({"plant": {"kind": "leg"}})).err().unwrap();
        assert_eq!(
            refused.to_string(),
            "plant: found kind = \"leg\"; allowed: static, lag, second-order, mass, state-space, transfer-function"
        );
    }

    #[test]
    fn an_output_disturbance_leaves_the_gain_as_it_is() {
        let (mut step, mut h) =
            (Step::new(&json!({"c": 4, "t0_ns": MS, "disturbance": "output"})).unwrap(), [0.0]);
        let mut at = |t: Time, k: f64| {
            step.step(t, &[k], &mut h);
            h[0]
        };
        assert_eq!([at(0, 1.0), at(MS, 1.0), at(2 * MS, 1.5)], [1.0, 0.25, 0.75]);
        assert!(Step::new(&json!({"disturbance": "input"})).is_err());
    }

    /// Answers with what it is given, and its number; from the second tick on with nothing but that.
    struct Counts;

    impl Hook for Counts {
        fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
            match input.index {
                0 => output.set(&[10.0 * input.x()[0]]),
                1 => output.set(&[f64::INFINITY]),
                _ => return Verdict::Failed("tired".into()),
            }
            Verdict::Emit
        }
    }

    #[test]
    fn code_answers_and_what_it_cannot_answer_is_told() {
        let (mut step, mut h) = (Step::with(&json!({}), Box::new(Counts)).unwrap(), [0.0]);
        assert_eq!((step.step(0, &[3.0], &mut h), h, step.failure()), (1, [30.0], None));
        assert_eq!(step.step(MS, &[], &mut h), 0);
        assert_eq!(step.failure().unwrap(), "the plant answers 3 with inf, not with a finite number");
    }
}
