//! Linear systems by name: plants of the step experiment, which a command moves, and controllers. A new one is its line in
//! `PLANTS`.
//!
//! ```text
//! at rest k = y = 1      x' = A x + B u,  y = 1 + C x + D u,  u = k - 1          times in s
//! ```

use super::linear::Linear;
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
const COEFFICIENTS: RangeInclusive<f64> = -1e30..=1e30;

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
    /// Of any proper transfer function.
    pub struct TransferFunction {
        num: Vec<f64> = List(&Number), GIVEN, COEFFICIENTS, "coefficients of the numerator, from the highest power of s (in s⁻¹) or z on";
        den: Vec<f64> = List(&Number), GIVEN, COEFFICIENTS, "coefficients of the denominator";
        sample_time_ns: Option<Time> = Ns, ABSENT, 1e3..=1e13, "time between two steps of a system in z, of which the period at which it is used is a multiple; default none: a system in s";
    }
}
params! {
    /// Of any linear plant.
    pub struct StateSpace {
        a: Vec<Vec<f64>> = List(&List(&Number)), GIVEN, ENTRIES, "A, row by row, per s; without a unit if there is a `sample_time`";
        b: Vec<f64> = List(&Number), GIVEN, ENTRIES, "B, as A";
        c: Vec<f64> = List(&Number), GIVEN, ENTRIES, "C";
        d: f64 = Number, "0", ENTRIES, "D";
        sample_time_ns: Option<Time> = Ns, ABSENT, 1e3..=1e13, "time between two steps of a system in z, of which the period at which it is used is a multiple; default none: a system in s";
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
            Ok(Linear { a: vec![vec![-rate]], b: vec![rate], c: vec![1.0], ..Linear::default() })
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
            Ok(Linear { a, b: vec![0.0, w], c: vec![1.0, 0.0], ..Linear::default() })
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
            Ok(Linear { a, b: vec![0.0, acceleration], c: vec![1.0, 0.0], ..Linear::default() })
        },
    },
    &Entry {
        id: 4,
        name: "state-space",
        doc: "any linear plant with one command, x' = A x + B u, y = 1 + C x + D u, u = k - 1; with a `sample_time` x <- A x + B u",
        params: &[StateSpace::TABLE],
        draws: Draws::No,
        make: |params| {
            let StateSpace { a, b, c, d, sample_time_ns, .. } = StateSpace::read(params)?;
            let n = a.len();
            let fault = |key: &str, found: String, allowed: String| Err(Fault::new(key, found, allowed));
            if n > MOST_ORDER || a.iter().any(|row| row.len() != n) {
                let rows: Vec<_> = a.iter().map(Vec::len).collect();
                let allowed = format!(
                    "as many values in each row as there are rows, at most {MOST_ORDER}, such as [[-50.0]]"
                );
                let found = if n > MOST_ORDER { format!("{n} rows") } else { format!("rows of {rows:?} values") };
                return fault("a", found, allowed);
            }
            for (key, values) in [("b", &b), ("c", &c)] {
                if values.len() != n {
                    return fault(key, format!("{} values", values.len()), format!("{n}, as a has rows"));
                }
            }
            Ok(Linear { a, b, c, d, step_ns: sample_time_ns.unwrap_or(0) })
        },
    },
    &Entry {
        id: 5,
        name: "transfer-function",
        doc: "any linear plant by its transfer function, y = 1 + G(s) u, or G(z) with a `sample_time`; u = k - 1",
        params: &[TransferFunction::TABLE],
        draws: Draws::No,
        make: |params| {
            let TransferFunction { num, den, sample_time_ns } = TransferFunction::read(params)?;
            if den.len() > MOST_ORDER + 1 {
                let allowed = format!("at most {}, for {MOST_ORDER} poles", MOST_ORDER + 1);
                return Err(Fault::new("den", format!("{} coefficients", den.len()), allowed));
            }
            Linear::of_polynomials(&num, &den, sample_time_ns.unwrap_or(0))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::linear::{Motion, Rule};
    use serde_json::json;
    use tcps_core::time::MS;

    fn built(plant: Value) -> Linear {
        build(&serde_json::from_value(plant).unwrap()).unwrap()
    }

    /// y at some moments after the command went from 1 to 2, in ticks of 1 ms.
    fn stepped(plant: Value, at_ms: &[usize]) -> Vec<f64> {
        let mut motion = Motion::new(built(plant), Rule::Held);
        let y: Vec<f64> = (0..=1000)
            .map(|_| {
                let y = motion.obey(2.0);
                motion.pass(MS);
                y
            })
            .collect();
        at_ms.iter().map(|ms| y[*ms]).collect()
    }

    /// x <- 0.5 x + u in steps of 1 ms: of a span that is no whole number of them, the nearest number.
    #[test]
    fn a_sampled_system_makes_the_nearest_number_of_steps() {
        let system = Linear::of_polynomials(&[1.0], &[1.0, -0.5], 1_000_000).unwrap();
        for (span_ns, decay) in [(1_400_000, 0.5), (1_600_000, 0.25), (2_000_000, 0.25), (2_400_000, 0.25)] {
            assert_eq!(system.ticked(span_ns, Rule::Held).a, [[decay]]);
        }
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
        let (mut once, mut often) = (Motion::new(plant.clone(), Rule::Held), Motion::new(plant, Rule::Held));
        once.obey(3.0);
        often.obey(3.0);
        once.pass(64 * MS);
        (0..64).for_each(|_| often.pass(MS));
        let found: [f64; 2] = [&mut once, &mut often].map(|motion| motion.obey(1.0));
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

    #[test]
    fn a_transfer_function_answers_as_the_built_in_plant_with_the_same_poles() {
        let at = [0, 1, 7, 50, 400];
        let w = TAU * 10.0;
        let pairs = [
            (json!({"kind": "lag"}), json!({"num": [1.0], "den": [0.02, 1.0]})),
            (json!({"kind": "second-order"}), json!({"num": [w * w], "den": [1.0, 1.4 * w, w * w]})),
            (json!({"kind": "mass"}), json!({"num": [0.0, 100.0], "den": [0.0, 1.0, 10.0, 0.0]})),
            (json!({"kind": "static"}), json!({"num": [2.0], "den": [2.0]})),
        ];
        for (named, mut polynomials) in pairs {
            polynomials["kind"] = "transfer-function".into();
            for (x, y) in stepped(named.clone(), &at).iter().zip(stepped(polynomials, &at)) {
                assert!((x - y).abs() < 1e-12 * y.abs(), "{named}: {x} {y}");
            }
        }
        // (s + 2) / (s + 1) = 1 + 1 / (s + 1)
        let direct = stepped(json!({"kind": "transfer-function", "num": [1.0, 2.0], "den": [1.0, 1.0]}), &at);
        for (y, ms) in direct.iter().zip(at) {
            assert!((y - (3.0 - libm::exp(-(ms as f64) * 1e-3))).abs() < 1e-12, "{direct:?}");
        }
    }

    #[test]
    fn a_system_in_z_is_the_one_in_s_that_it_was_sampled_from() {
        let a = libm::exp(-0.05);
        let sampled = |num: Value| json!({"kind": "transfer-function", "num": num, "den": [1.0, -a], "sample_time_ns": MS});
        let (s, z) = (built(json!({"kind": "lag"})), built(sampled(json!([1.0 - a]))));
        for ticks in [1, 2, 5] {
            let [held, stepped] = [&s, &z].map(|one| one.sampled(ticks * MS, Rule::Held).unwrap());
            assert!((held.a[0][0] - stepped.a[0][0]).abs() < 1e-15);
            let gains = [held, stepped].map(|one| one.c[0] * one.b[0]);
            assert!((gains[0] - gains[1]).abs() < 1e-15, "{gains:?}");
        }
        let refused = z.sampled(MS / 2, Rule::Held).unwrap_err().to_string();
        assert_eq!(
            refused,
            "sample_time_ns: found 1 ms; allowed: a part of the period at which it is used, 0.5 ms"
        );
    }

    /// C = 2 + 3/s + s/(0.1 s + 1) at z = exp(j x): that of s = 2 (z - 1) / (T (z + 1)), [Tustin 1947].
    #[test]
    fn a_controller_is_sampled_by_the_bilinear_rule() {
        let (num, den) = ([1.2, 2.3, 3.0], [0.1, 1.0, 0.0]);
        let system = Linear::of_polynomials(&num, &den, 0).unwrap();
        let t = 0.01;
        let Linear { a, b, c, d, .. } = system.sampled(10 * MS, Rule::Bilinear).unwrap();
        // At z = 2, real, for the test to need no complex numbers.
        let z = 2.0;
        let s = 2.0 / t * (z - 1.0) / (z + 1.0);
        let right = (num[0] * s * s + num[1] * s + num[2]) / (den[0] * s * s + s);
        let m = [[z - a[0][0], -a[0][1]], [-a[1][0], z - a[1][1]]];
        let det = m[0][0] * m[1][1] - m[0][1] * m[1][0];
        let x = [(m[1][1] * b[0] - m[0][1] * b[1]) / det, (m[0][0] * b[1] - m[1][0] * b[0]) / det];
        let found = d + c[0] * x[0] + c[1] * x[1];
        assert!((found - right).abs() < 1e-12 * right, "{found} {right}");
    }

    #[test]
    fn transfer_functions_that_cannot_be_are_refused_with_what_could() {
        let refused = |num: Value, den: Value| {
            let plant = json!({"kind": "transfer-function", "num": num, "den": den});
            build(&serde_json::from_value(plant).unwrap()).unwrap_err().to_string()
        };
        let improper = refused(json!([1.0, 0.0, 0.0]), json!([0.0, 1.0, 1.0]));
        assert_eq!(
            improper,
            "num: found degree 2 over degree 1, which is improper; allowed: at most as many coefficients as den has, here 2"
        );
        assert!(refused(json!([1.0]), json!([0.0])).starts_with("den: found no coefficient but 0"));
        assert!(refused(json!([1.0]), json!(vec![1.0; 18])).starts_with("den: found 18 coefficients"));
        let apart = refused(json!([1e30]), json!([1e-300, 1e30]));
        assert!(apart.starts_with("den: found coefficients too far apart"), "{apart}");
        let fast = built(json!({"kind": "transfer-function", "num": [1.0], "den": [1.0, -1e9]}));
        let refused = fast.sampled(MS, Rule::Held).unwrap_err().to_string();
        assert!(refused.contains("without finite matrices from tick to tick (1 ms)"), "{refused}");
    }
}
