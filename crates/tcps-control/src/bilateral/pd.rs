//! Scheme `pd`: position forward, force back. Not passive under delay; what others are compared with.
//!
//! ```text
//! leader    sends x, v        F_l = F_e of the newest message
//! follower  F_s = Kp (x_d - x) + Kd (v_d - v), x_d and v_d of the newest message        sends F_e
//! ```
//! What is lost is held.

use serde_json::Value;
use tcps_core::{
    param::{Fault, Params as _},
    params,
};

use super::{Content, Coupling, Drive, Motion, Received};

params! {
    /// None.
    struct Params {}
}

/// The operator's half.
pub(super) struct Leader;

impl Leader {
    pub(super) fn new(params: &Value) -> Result<Self, Fault> {
        Params::of(params).map(|_| Self)
    }
}

// [model: position-force] position forward, force feedback
impl super::Leader for Leader {
    fn tick(&mut self, _t: f64, device: Motion, received: Option<Received>) -> (f64, Content) {
        (received.map_or(0.0, |r| r.content[0]), [device.x, device.v, 0.0])
    }
}

/// The slave's half.
pub(super) struct Follower {
    coupling: Coupling,
}

impl Follower {
    pub(super) fn new(params: &Value, coupling: Coupling) -> Result<Self, Fault> {
        Params::of(params).map(|_| Self { coupling })
    }
}

impl super::Follower for Follower {
    fn tick(&mut self, _t: f64, slave: Motion, contact: f64, received: Option<Received>) -> (Drive, Content) {
        let wanted = received.map_or(slave, |r| Motion { x: r.content[0], v: r.content[1] });
        let force = self.coupling.force(wanted, slave);
        (Drive { v: wanted.v, force }, [contact, 0.0, 0.0])
    }
}
