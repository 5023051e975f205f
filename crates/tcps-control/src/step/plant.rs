//! Plants of the step experiment: what a command moves. A new one is its line in `PLANTS`.
//!
//! ```text
//! at rest k = y = 1      x' = A x + B u,  y = 1 + C x + D u,  u = k - 1          times in s
//! from tick to tick      x <- Ad x + Bd u      [Ad Bd; 0 1] = exp([A B; 0 0] dt): exact while u holds
//! ```

use serde::Serialize;
use serde_json::Value;
use std::{f64::consts::TAU, ops::RangeInclusive};
use tcps_core::{
    param::{Draws, Entry, Fault, Named, Params},
    params,
    time::Time,
};

/// Most values of a state.
const MOST_ORDER: usize = 16;
const ENTRIES: RangeInclusive<f64> = -1e9..=1e9;
/// Terms of the exponential: what is left of it at a norm of 1/2 is below the last bit.
const TERMS: u32 = 16;

params! {
    /// Of a delay of first order.
    pub struct Lag {
        time_constant_ns: Time = Ns, "20 ms", 1e3..=1e13, "time in which the plant covers 63 % of a change";
    }
}
params! {
    /// Of what swings.
    pub struct SecondOrder {
        frequency_hz: f64 = Hz, "10 Hz", 1e-6..=1e6, "natural frequency without damping";
        damping: f64 = Number, "0.7", 0.0..=1e3, "damping ratio; 1 is the fastest response without overshoot";
    }
}
params! {
    /// Of a double integrator.
    pub struct Mass {
        acceleration: f64 = Number, "100", 1e-9..=1e9, "acceleration by a command that is 1 above the weight, per s²";
        friction: f64 = Number, "10", 0.0..=1e9, "share of its speed that the mass loses, per s";
    }
}
params! {
    /// Of any linear plant.
    pub struct StateSpace {
        a: Vec<Vec<f64>> = List(&List(&Number)), GIVEN, ENTRIES, "A, row by row, per s";
        b: Vec<f64> = List(&Number), GIVEN, ENTRIES, "B, per s";
        c: Vec<f64> = List(&Number), GIVEN, ENTRIES, "C";
        d: f64 = Number, "0", ENTRIES, "D";
        code: Option<String> = Text, ABSENT, ANY, "written by tcpsbed: the class that returned these matrices";
    }
}

/// How a plant is made from its parameters, which are complete.
pub type MakePlant = fn(&Value) -> Result<Linear, Fault>;

/// The plants by name.
pub const PLANTS: &[&Entry<MakePlant>] = &[
    &Entry {
        id: 0,
        name: "static",
        doc: "answers a command with itself, at once",
        params: &[],
        draws: Draws::No,
        make: |_| Ok(Linear { d: 1.0, ..Linear::default() }),
    },
    &Entry {
        id: 1,
        name: "lag",
        doc: "follows the command as a first-order lag",
        params: &[Lag::TABLE],
        draws: Draws::No,
        make: |params| {
            let rate = 1e9 / Lag::read(params)?.time_constant_ns as f64;
            Ok(Linear { a: vec![vec![-rate]], b: vec![rate], c: vec![1.0], d: 0.0 })
        },
    },
    &Entry {
        id: 2,
        name: "second-order",
        doc: "follows the command as a mass on a damped spring",
        params: &[SecondOrder::TABLE],
        draws: Draws::No,
        make: |params| {
            let SecondOrder { frequency_hz, damping } = SecondOrder::read(params)?;
            let w = TAU * frequency_hz;
            let a = vec![vec![0.0, w], vec![-w, -2.0 * damping * w]];
            Ok(Linear { a, b: vec![0.0, w], c: vec![1.0, 0.0], d: 0.0 })
        },
    },
    &Entry {
        id: 3,
        name: "mass",
        doc: "the height of a mass with friction; a command of 1 carries its weight (a double integrator)",
        params: &[Mass::TABLE],
        draws: Draws::No,
        make: |params| {
            let Mass { acceleration, friction } = Mass::read(params)?;
            let a = vec![vec![0.0, 1.0], vec![0.0, -friction]];
            Ok(Linear { a, b: vec![0.0, acceleration], c: vec![1.0, 0.0], d: 0.0 })
        },
    },
    &Entry {
        id: 4,
        name: "state-space",
        doc: "any linear plant with one command, x' = A x + B u, y = 1 + C x + D u, u = k - 1",
        params: &[StateSpace::TABLE],
        draws: Draws::No,
        make: |params| {
            let StateSpace { a, b, c, d, .. } = StateSpace::read(params)?;
            let n = a.len();
            let fault = |key: &str, found: String, allowed: String| Err(Fault::new(key, found, allowed));
            if n > MOST_ORDER || a.iter().any(|row| row.len() != n) {
                let rows: Vec<_> = a.iter().map(Vec::len).collect();
                let allowed = format!(
                    "as many values in each row as there are rows, at most {MOST_ORDER}, such as [[-50.0]]"
                );
                return fault("a", format!("rows of {rows:?} values"), allowed);
            }
            for (key, values) in [("b", &b), ("c", &c)] {
                if values.len() != n {
                    return fault(key, format!("{} values", values.len()), format!("{n}, as a has rows"));
                }
            }
            Ok(Linear { a, b, c, d })
        },
    },
];

/// The plant that a plan names.
pub fn build(plant: &Named) -> Result<Linear, Fault> {
    let (entry, params) = plant.of(PLANTS)?;
    (entry.make)(&params)
}

/// The parameters of a plant, checked and completed.
pub fn checked(plant: &Named) -> Result<Value, Fault> {
    let (entry, params) = plant.of(PLANTS)?;
    (entry.make)(&params).map(|_| params)
}

/// A linear plant, in time or from tick to tick.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Linear {
    /// What the state makes of itself.
    pub a: Vec<Vec<f64>>,
    /// What the command makes of it.
    pub b: Vec<f64>,
    /// What is seen of it.
    pub c: Vec<f64>,
    /// What is seen of the command at once.
    pub d: f64,
}

impl Linear {
    /// Whether its answer is the command itself.
    pub fn is_static(&self) -> bool {
        self.a.is_empty() && self.d == 1.0
    }

    /// The same from tick to tick, with the command held between.
    #[must_use]
    pub fn held(&self, tick_ns: Time) -> Self {
        let (n, dt) = (self.a.len(), tick_ns as f64 * 1e-9);
        let mut m: Vec<Vec<f64>> =
            self.a.iter().zip(&self.b).map(|(row, b)| [row, &[*b][..]].concat()).collect();
        m.push(vec![0.0; n + 1]);
        m.iter_mut().flatten().for_each(|x| *x *= dt);
        let norm =
            |m: &Vec<Vec<f64>>| m.iter().map(|row| row.iter().map(|x| x.abs()).sum()).fold(0.0, f64::max);
        let mut squarings = 0;
        while norm(&m) > 0.5 {
            m.iter_mut().flatten().for_each(|x| *x *= 0.5);
            squarings += 1;
        }
        let mut sum: Vec<Vec<f64>> =
            (0..=n).map(|i| (0..=n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
        let mut term = sum.clone();
        for i in 1..=TERMS {
            term = product(&term, &m);
            term.iter_mut().flatten().for_each(|x| *x /= f64::from(i));
            sum.iter_mut().flatten().zip(term.iter().flatten()).for_each(|(s, t)| *s += t);
        }
        for _ in 0..squarings {
            sum = product(&sum, &sum);
        }
        let b = sum.iter().take(n).map(|row| row[n]).collect();
        let a = sum.into_iter().take(n).map(|row| row[..n].to_vec()).collect();
        Self { a, b, c: self.c.clone(), d: self.d }
    }
}

fn product(p: &[Vec<f64>], q: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let entry = |row: &[f64], j: usize| row.iter().zip(q).map(|(x, of)| x * of[j]).sum();
    p.iter().map(|row| (0..q.len()).map(|j| entry(row, j)).collect()).collect()
}

/// A plant that moves.
#[derive(Debug, Clone)]
pub struct Motion {
    plant: Linear,
    held: (Time, Linear),
    x: Vec<f64>,
    u: f64,
}

impl Motion {
    /// A plant at rest, at k = y = 1.
    pub fn new(plant: Linear) -> Self {
        Self { x: vec![0.0; plant.a.len()], held: (0, plant.held(0)), plant, u: 0.0 }
    }

    /// Lets time pass under the last command.
    pub fn pass(&mut self, dt: Time) {
        if self.held.0 != dt {
            self.held = (dt, self.plant.held(dt));
        }
        let Linear { a, b, .. } = &self.held.1;
        let moved = |(row, b): (&Vec<f64>, &f64)| b * self.u + dot(row, &self.x);
        self.x = a.iter().zip(b).map(moved).collect();
    }

    /// y under the command `k`, which holds from now on.
    pub fn answer(&mut self, k: f64) -> f64 {
        if self.plant.is_static() {
            return k;
        }
        self.u = k - 1.0;
        1.0 + self.plant.d * self.u + dot(&self.plant.c, &self.x)
    }
}

fn dot(p: &[f64], q: &[f64]) -> f64 {
    p.iter().zip(q).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tcps_core::time::MS;

    fn built(plant: Value) -> Linear {
        build(&serde_json::from_value(plant).unwrap()).unwrap()
    }

    /// y at some moments after the command went from 1 to 2, in ticks of 1 ms.
    fn stepped(plant: Value, at_ms: &[usize]) -> Vec<f64> {
        let mut motion = Motion::new(built(plant));
        let y: Vec<f64> = (0..=1000)
            .map(|_| {
                let y = motion.answer(2.0);
                motion.pass(MS);
                y
            })
            .collect();
        at_ms.iter().map(|ms| y[*ms]).collect()
    }

    #[test]
    fn step_responses_are_those_of_the_textbook_to_the_last_digits() {
        let near = |found: Vec<f64>, right: &[f64]| {
            for (x, y) in found.iter().zip(right) {
                assert!((x - y).abs() < 1e-12 * y.abs().max(1.0), "{found:?} {right:?}");
            }
        };
        near(stepped(json!({"kind": "static"}), &[0, 9]), &[2.0, 2.0]);
        let lag = [0.0, 0.05, 1.0].map(|t: f64| 2.0 - libm::exp(-t / 0.02));
        near(stepped(json!({"kind": "lag", "time_constant_ns": 20 * MS}), &[0, 50, 1000]), &lag);
        // z = 1: 1 - (1 + w t) exp(-w t); z = 0: 1 - cos(w t)
        let w = TAU * 10.0;
        let critical = [0.004, 0.1].map(|t| 2.0 - (1.0 + w * t) * libm::exp(-w * t));
        near(stepped(json!({"kind": "second-order", "damping": 1}), &[4, 100]), &critical);
        let free = [0.004, 0.1].map(|t| 2.0 - libm::cos(w * t));
        near(stepped(json!({"kind": "second-order", "damping": 0}), &[4, 100]), &free);
        // a (t / f - (1 - exp(-f t)) / f²)
        let fallen = [0.01, 0.5].map(|t| 1.0 + 100.0 * (t / 10.0 - (1.0 - libm::exp(-10.0 * t)) / 100.0));
        near(stepped(json!({"kind": "mass"}), &[10, 500]), &fallen);
        let free = [0.01, 0.5].map(|t: f64| 1.0 + 50.0 * t * t);
        near(stepped(json!({"kind": "mass", "friction": 0}), &[10, 500]), &free);
    }

    #[test]
    fn a_long_tick_is_many_short_ones() {
        let plant = built(json!({"kind": "second-order", "frequency_hz": 300.0, "damping": 0.1}));
        let (mut once, mut often) = (Motion::new(plant.clone()), Motion::new(plant));
        once.answer(3.0);
        often.answer(3.0);
        once.pass(64 * MS);
        (0..64).for_each(|_| often.pass(MS));
        let found: [f64; 2] = [&mut once, &mut often].map(|motion| motion.answer(1.0));
        assert!((found[0] - found[1]).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn matrices_that_do_not_fit_are_refused_with_what_would() {
        let refused = |a: Value, b: Value| {
            let plant = json!({"kind": "state-space", "a": a, "b": b, "c": [1.0, 0.0]});
            build(&serde_json::from_value(plant).unwrap()).unwrap_err().to_string()
        };
        let two = json!([[0.0, 1.0], [0.0, -1.0]]);
        assert_eq!(refused(two, json!([1.0])), "b: found 1 values; allowed: 2, as a has rows");
        let crooked = refused(json!([[0.0], [0.0, -1.0]]), json!([0.0, 1.0]));
        assert!(crooked.starts_with("a: found rows of [1, 2] values; allowed: as many"), "{crooked}");
    }
}
