//! Scheme `mmt`: model-mediated teleoperation. The operator feels a model of the environment that the follower learns.
//!
//! ```text
//! follower  F_e = K (x - p) + B v by recursive least squares with forgetting 0.99, while in contact
//!           sends K, p, B anew if K has changed by more than 10 % or p by more than 1 mm
//! leader    F_l = K (x - p) + B v beyond p, without delay around it; changes by at most 0.05 N in a ms;
//!           a surface that would come to lie in front of the hand starts at the hand and moves there slowly
//! ```
//! It does not mind delay and is slow to follow an environment that changes. It keeps no account of energy.

use serde_json::Value;
use tcps_core::{
    param::{Fault, Params as _},
    params,
};

use super::{pd, Content, Coupling, Drive, Motion, Received};
use crate::rls::Rls;

/// Contact begins at this force, in N.
const TOUCH_N: f64 = 0.02;
/// Samples in contact before a first model is sent.
const ENOUGH: u32 = 20;
const FORGETTING: f64 = 0.99;
const P0: f64 = 1e8;
/// The fit learns only while the slave moves by this much, in m: a slave at rest would make it forget what it knows.
const MOVED_M: f64 = 2e-5;

params! {
    /// Parameters.
    #[derive(Copy)]
    pub(crate) struct Params {
        stiffness_change: f64 = Number, "0.1", POSITIVE, "relative change of the stiffness that is sent";
        shift_m: f64 = Number, "0.001", POSITIVE, "shift of the surface that is sent, in m";
        most_n_ms: f64 = Number, "0.05", POSITIVE, "largest change of the force, in N per ms";
        surface_m_s: f64 = Number, "0.05", POSITIVE, "speed at which the modelled surface moves to its measured position, in m/s";
    }
}

/// A surface to the right of which there is a spring with a damper.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Model {
    stiffness: f64,
    surface: f64,
    damping: f64,
}

impl Model {
    fn force(&self, at: Motion) -> f64 {
        let depth = at.x - self.surface;
        if depth > 0.0 {
            (self.stiffness * depth + self.damping * at.v).max(0.0)
        } else {
            0.0
        }
    }
}

/// The operator's half.
pub(super) struct Leader {
    params: Params,
    shown: Option<Model>,
    force: f64,
}

impl Leader {
    pub(super) fn new(params: &Value) -> Result<Self, Fault> {
        Ok(Self { params: Params::of(params)?, shown: None, force: 0.0 })
    }

    /// Takes a model without pushing the hand: its surface comes from where the hand is.
    fn approach(&mut self, t: f64, hand: f64, model: Model) -> Model {
        let before = self.shown.map_or(hand.max(model.surface), |m| m.surface);
        let least = before - self.params.surface_m_s * t;
        // Backing off the surface is free; it comes nearer slowly.
        Model { surface: model.surface.max(least), ..model }
    }
}

// [Xu 2014] the leader renders F = K depth n + B v_n; never more than 0.05 N per ms, never a surface into the hand
impl super::Leader for Leader {
    fn tick(&mut self, t: f64, device: Motion, received: Option<Received>) -> (f64, Content) {
        if let Some(Received { content: [stiffness, surface, damping], .. }) =
            received.filter(|r| r.content[0] > 0.0)
        {
            self.shown = Some(self.approach(t, device.x, Model { stiffness, surface, damping }));
        }
        let wanted = self.shown.map_or(0.0, |m| m.force(device));
        let most = self.params.most_n_ms * t * 1e3;
        self.force += (wanted - self.force).clamp(-most, most);
        (self.force, [device.x, device.v, 0.0])
    }
}

/// The slave's half.
pub(super) struct Follower {
    params: Params,
    local: pd::Follower,
    fit: Fit,
    sent: Model,
}

impl Follower {
    pub(super) fn new(params: &Value, coupling: Coupling) -> Result<Self, Fault> {
        let local = pd::Follower::new(&Value::Null, coupling)?;
        Ok(Self { params: Params::of(params)?, local, fit: Fit::new(), sent: Model::default() })
    }

    // [Xu 2014] update only if the stiffness changed by more than 10 % or the surface by more than the threshold
    fn news(&self, model: Model) -> bool {
        let change = (model.stiffness - self.sent.stiffness).abs();
        change > self.params.stiffness_change * self.sent.stiffness
            || (model.surface - self.sent.surface).abs() > self.params.shift_m
    }
}

impl super::Follower for Follower {
    fn tick(&mut self, t: f64, slave: Motion, contact: f64, received: Option<Received>) -> (Drive, Content) {
        let (drive, _) = self.local.tick(t, slave, contact, received);
        if contact > TOUCH_N {
            self.fit.learn(slave, contact);
        }
        if let Some(model) = self.fit.model().filter(|m| self.news(*m)) {
            self.sent = model;
        }
        (drive, [self.sent.stiffness, self.sent.surface, self.sent.damping])
    }
}

/// F = K x - K p + B v, fitted by recursive least squares.
struct Fit {
    learned_m: f64,
    squares: Rls<3>,
}

impl Fit {
    fn new() -> Self {
        Self { learned_m: f64::NEG_INFINITY, squares: Rls::new(FORGETTING, P0) }
    }

    // [Xu 2014] recursive least squares with forgetting 0.99 on F = K (x - p) + B v
    fn learn(&mut self, at: Motion, force: f64) {
        if (at.x - self.learned_m).abs() < MOVED_M {
            return;
        }
        self.learned_m = at.x;
        self.squares.learn([at.x, 1.0, at.v], force);
    }

    fn model(&self) -> Option<Model> {
        let [stiffness, offset, damping] = self.squares.theta(ENOUGH)?;
        (stiffness > 1.0).then(|| Model {
            stiffness,
            surface: -offset / stiffness,
            damping: damping.max(0.0),
        })
    }
}
