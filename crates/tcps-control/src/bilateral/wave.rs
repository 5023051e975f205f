//! Scheme `wave`: wave variables, with an account of energy for what is lost, held and corrected.
//!
//! ```text
//! leader    F_l = b v_l + sqrt(2b) w            u = sqrt(2b) v_l + w           sends u, x, U = sum T u^2 / 2
//! follower  v_d = (sqrt(2b) u - F_s) / b        w = sqrt(2/b) F_s - u          sends w, W = sum T w^2 / 2
//!           F_s = Kp (x_d - x) + Kd (v_d - v), solved together with v_d
//! ```
//! (Niemeyer and Slotine 1991.) At each port F v = (u^2 - w^2) / 2 tick by tick, so that the channel is passive if no
//! side uses more wave energy than the other has sent. Messages carry the energy sent so far; what was lost on the way
//! is thereby known as a credit. Out of the credit a lost wave is replaced by the last one, and the follower's drift is
//! taken back by a slow wave towards the leader's position. Without credit both are cut off.

use serde::Deserialize;
use serde_json::Value;
use tcps_core::{
    param::{Fault, Params as _},
    params,
};

use super::{Content, Coupling, Drive, Motion, Received};

params! {
    /// Parameters.
    #[derive(Copy)]
    pub(crate) struct Params {
        impedance_n_s_m: f64 = Number, "8", POSITIVE, "impedance b, in N s/m";
        lost: Lost = Choice(&["hold", "zero"]), "hold", ANY, "replacement of a lost wave";
        correction_hz: f64 = Number, "5", NOT_NEGATIVE, "rate of drift correction, in 1/s; 0: none";
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Lost {
    /// The last wave, as far as the credit goes.
    Hold,
    /// Nothing.
    Zero,
}

/// Where waves come in.
#[derive(Debug, Clone, Default)]
struct Inlet {
    /// Energy that the other side has sent, and that was used here.
    sent: f64,
    used: f64,
    last: f64,
}

impl Inlet {
    /// The wave of this tick: the received one, a held one or none, plus a correction, within the credit.
    // [Niemeyer 1991] hold only while the energy held is at most the energy received
    fn wave(&mut self, t: f64, message: Option<(f64, f64, bool)>, lost: Lost, correction: f64) -> f64 {
        let mut wanted = if lost == Lost::Hold { self.last } else { 0.0 };
        if let Some((wave, sent, true)) = message {
            (self.last, wanted) = (wave, wave);
            self.sent = self.sent.max(sent);
        }
        let most = (2.0 * (self.sent - self.used).max(0.0) / t).sqrt();
        let wave = (wanted + correction).clamp(-most, most);
        self.used += t * wave * wave / 2.0;
        wave
    }
}

/// The operator's half.
pub(super) struct Leader {
    params: Params,
    inlet: Inlet,
    sent: f64,
}

impl Leader {
    pub(super) fn new(params: &Value) -> Result<Self, Fault> {
        Ok(Self { params: Params::of(params)?, inlet: Inlet::default(), sent: 0.0 })
    }
}

// [Niemeyer 1991] F_l = b v_l + sqrt(2b) w_in, u_out = sqrt(2b) v_l + w_in
impl super::Leader for Leader {
    fn tick(&mut self, t: f64, device: Motion, received: Option<Received>) -> (f64, Content) {
        let message = received.map(|r| (r.content[0], r.content[1], r.fresh));
        let w = self.inlet.wave(t, message, self.params.lost, 0.0);
        let (b, root) = (self.params.impedance_n_s_m, (2.0 * self.params.impedance_n_s_m).sqrt());
        let u = root * device.v + w;
        self.sent += t * u * u / 2.0;
        (b * device.v + root * w, [u, device.x, self.sent])
    }
}

/// The slave's half.
pub(super) struct Follower {
    params: Params,
    coupling: Coupling,
    inlet: Inlet,
    sent: f64,
    /// Where the slave is to be.
    x_d: Option<f64>,
}

impl Follower {
    pub(super) fn new(params: &Value, coupling: Coupling) -> Result<Self, Fault> {
        Ok(Self { params: Params::of(params)?, coupling, inlet: Inlet::default(), sent: 0.0, x_d: None })
    }
}

// [Niemeyer 1991] v_d = (sqrt(2b) u_in - F_e) / b, w_out = sqrt(2/b) F_e - u_in; position drift taken back
impl super::Follower for Follower {
    fn tick(&mut self, t: f64, slave: Motion, _contact: f64, received: Option<Received>) -> (Drive, Content) {
        let b = self.params.impedance_n_s_m;
        let x_d = *self.x_d.get_or_insert(slave.x);
        let drift = received.map_or(0.0, |r| r.content[1] - x_d);
        let correction = (b / 2.0).sqrt() * self.params.correction_hz * drift;
        let message = received.map(|r| (r.content[0], r.content[2], r.fresh));
        let u = self.inlet.wave(t, message, self.params.lost, correction);
        // F_s and v_d depend on each other: F_s = free + Kd v_d.
        let free = self.coupling.kp * (x_d - slave.x) - self.coupling.kd * slave.v;
        let v = ((2.0 * b).sqrt() * u - free) / (b + self.coupling.kd);
        let force = free + self.coupling.kd * v;
        let w = (2.0 / b).sqrt() * force - u;
        self.x_d = Some(x_d + t * v);
        self.sent += t * w * w / 2.0;
        (Drive { v, force }, [w, self.sent, 0.0])
    }
}
