//! Scheme `position`: position against position, each side pulled to where the other is.
//!
//! ```text
//! leader    sends x, v        F_l = Kp (x - x_s) + Kd (v - v_s), x_s and v_s of the newest message
//! follower  F_s = Kp (x_d - x) + Kd (v_d - v), x_d and v_d of the newest message        sends x, v
//! ```
//! What is lost is held.

use serde_json::Value;
use tcps_core::{
    param::{Fault, Params as _},
    params,
};

use super::{pd, Content, Coupling, Drive, Motion, Received};

params! {
    /// Parameters.
    pub(crate) struct Params {
        kp_n_m: f64 = Number, "200", NOT_NEGATIVE, "stiffness at the leader, in N/m";
        kd_n_s_m: f64 = Number, "2", NOT_NEGATIVE, "damping at the leader, in N s/m";
    }
}

fn read(params: &Value) -> Result<Coupling, Fault> {
    let p = Params::of(params)?;
    Ok(Coupling { kp: p.kp_n_m, kd: p.kd_n_s_m })
}

/// The operator's half.
pub(super) struct Leader {
    coupling: Coupling,
}

impl Leader {
    pub(super) fn new(params: &Value) -> Result<Self, Fault> {
        Ok(Self { coupling: read(params)? })
    }
}

// [model: position-force] position to position
impl super::Leader for Leader {
    fn tick(&mut self, _t: f64, device: Motion, received: Option<Received>) -> (f64, Content) {
        let other = |r: Received| Motion { x: r.content[0], v: r.content[1] };
        let force = received.map_or(0.0, |r| self.coupling.force(device, other(r)));
        (force, [device.x, device.v, 0.0])
    }
}

/// The slave's half.
pub(super) struct Follower(pd::Follower);

impl Follower {
    pub(super) fn new(params: &Value, coupling: Coupling) -> Result<Self, Fault> {
        read(params)?;
        Ok(Self(pd::Follower::new(&Value::Null, coupling)?))
    }
}

impl super::Follower for Follower {
    fn tick(&mut self, t: f64, slave: Motion, contact: f64, received: Option<Received>) -> (Drive, Content) {
        let (drive, _) = self.0.tick(t, slave, contact, received);
        (drive, [slave.x, slave.v, 0.0])
    }
}
