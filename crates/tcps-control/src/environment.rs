//! What a follower touches, as a model that is learned online from position, velocity and force on one axis.
//!
//! ```text
//! spring         F = K (x - p) + B v                  K, p, B by recursive least squares
//! hunt_crossley  F = d^n (K + B v),  d = x - p        K, B by recursive least squares, p where contact began
//! ```
//! Beyond the surface only, and never pulling. The contact may lie on either side: the sign of the force says on which.

use serde::Deserialize;

use crate::{bilateral::Motion, rls::Rls};

/// Contact begins at this force, in N.
const TOUCH_N: f64 = 0.02;
/// Samples in contact before there is a model.
const ENOUGH: u32 = 20;
const FORGETTING: f64 = 0.99;
const P0: f64 = 1e8;
/// It learns only from samples this far apart, in m: at rest it would forget what it knows.
const MOVED_M: f64 = 2e-5;
/// Values beyond this, in m, m/s and N, are none.
const MOST: f64 = 1e6;
/// Exponent of the depth (Hunt and Crossley 1975: 1.5 for spheres).
const EXPONENT: f64 = 1.5;

/// The form of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Spring and damper behind a surface.
    Spring,
    /// Hunt and Crossley 1975: stiffness and damping grow with the depth.
    HuntCrossley,
}

/// The model.
#[derive(Debug, Clone)]
pub struct Environment {
    form: Form,
    spring: Rls<3>,
    hunt: Rls<2>,
    /// Where contact began, by the last free position and the first in contact.
    surface: Option<f64>,
    free: Option<f64>,
    /// 1 if it is touched from the left, -1 from the right.
    side: f64,
    learned: f64,
}

impl Environment {
    /// Nothing known.
    pub fn new(form: Form) -> Self {
        Self {
            form,
            spring: Rls::new(FORGETTING, P0),
            hunt: Rls::new(FORGETTING, P0),
            surface: None,
            free: None,
            side: 1.0,
            learned: f64::NEG_INFINITY,
        }
    }

    /// Learns from what the follower feels where it is. Values that cannot be are left out.
    // [Xu 2014] recursive least squares with forgetting 0.99
    pub fn learn(&mut self, at: Motion, force: f64) {
        if ![at.x, at.v, force].iter().all(|value| value.abs() <= MOST) {
            return;
        }
        if force.abs() <= TOUCH_N {
            self.free = Some(at.x);
            return;
        }
        if let Some(free) = self.free.take() {
            (self.surface, self.side) = (Some((free + at.x) / 2.0), force.signum());
        }
        if (at.x - self.learned).abs() < MOVED_M {
            return;
        }
        self.learned = at.x;
        self.spring.learn([at.x, 1.0, at.v], force);
        if let Some((bend, speed)) = self.surface.and_then(|p| self.bent(p, at)) {
            self.hunt.learn([bend, bend * speed], self.side * force);
        }
    }

    /// The force at a place, in N; none before enough has been learned.
    pub fn force(&self, at: Motion) -> Option<f64> {
        match self.form {
            Form::Spring => {
                let [stiffness, offset, damping] = self.spring.theta(ENOUGH).filter(|t| t[0] > 1.0)?;
                let depth = self.side * (at.x + offset / stiffness);
                let force = stiffness * depth + damping.max(0.0) * self.side * at.v;
                Some(if depth > 0.0 { self.side * force.max(0.0) } else { 0.0 })
            }
            Form::HuntCrossley => {
                let [stiffness, damping] = self.hunt.theta(ENOUGH).filter(|t| t[0] > 0.0)?;
                let Some((bend, speed)) = self.bent(self.surface?, at) else { return Some(0.0) };
                Some(self.side * (bend * (stiffness + damping.max(0.0) * speed)).max(0.0))
            }
        }
    }

    // [Hunt and Crossley 1975]
    /// d^n, and the speed into the surface; none in front of it.
    fn bent(&self, surface: f64, at: Motion) -> Option<(f64, f64)> {
        let depth = self.side * (at.x - surface);
        (depth > 0.0).then(|| (libm::pow(depth, EXPONENT), self.side * at.v))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Presses into `force` beyond 20 mm, to and fro, 4 s at 1 kHz; the other way round for side -1.
    fn taught(form: Form, side: f64, force: impl Fn(f64, f64) -> f64) -> Environment {
        let mut environment = Environment::new(form);
        let w = 2.0 * std::f64::consts::PI * 0.7;
        for ms in 0..4_000 {
            let s = f64::from(ms) * 1e-3;
            let (x, v) = (0.015 * (1.0 - libm::cos(w * s)), 0.015 * w * libm::sin(w * s));
            let depth = x - 0.02;
            let felt = if depth > 0.0 { force(depth, v).max(0.0) } else { 0.0 };
            environment.learn(Motion { x: side * x, v: side * v }, side * felt);
        }
        environment
    }

    /// [Xu 2014] A spring of 500 N/m with a damper of 2 N s/m is learned on either side, and free space is free.
    #[test]
    fn a_spring_is_learned_on_either_side() {
        for side in [1.0, -1.0] {
            let learned = taught(Form::Spring, side, |d, v| 500.0 * d + 2.0 * v);
            let at = |x: f64, v: f64| learned.force(Motion { x: side * x, v: side * v }).unwrap() * side;
            assert!((at(0.026, 0.0) - 3.0).abs() < 0.02, "{}", at(0.026, 0.0));
            assert!((at(0.026, 0.05) - 3.1).abs() < 0.02, "{}", at(0.026, 0.05));
            assert_eq!((at(0.019, 0.0), at(0.021, -1.0)), (0.0, 0.0), "free, and never pulling");
        }
    }

    /// [Hunt and Crossley 1975] What stiffens with depth is learned within 5 %, and by a spring less well.
    #[test]
    fn what_stiffens_with_depth_is_learned() {
        let soft = |d: f64, v: f64| libm::pow(d, 1.5) * (8_000.0 + 6_000.0 * v);
        let place = Motion { x: 0.024, v: 0.02 };
        let truth = soft(0.004, 0.02);
        let error = |form| (taught(form, 1.0, soft).force(place).unwrap() - truth).abs() / truth;
        assert!(error(Form::HuntCrossley) < 0.05, "{}", error(Form::HuntCrossley));
        assert!(error(Form::Spring) > error(Form::HuntCrossley));
    }

    #[test]
    fn nothing_is_said_before_it_is_known_and_nonsense_teaches_nothing() {
        for form in [Form::Spring, Form::HuntCrossley] {
            let mut environment = Environment::new(form);
            for x in [f64::NAN, f64::INFINITY, 0.0] {
                environment.learn(Motion { x, v: 0.0 }, if x == 0.0 { f64::NAN } else { 1.0 });
            }
            assert!(environment.force(Motion { x: 1.0, v: 0.0 }).is_none());
        }
    }
}
