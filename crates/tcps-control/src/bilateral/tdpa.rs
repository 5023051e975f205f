//! Scheme `tdpa`: time-domain passivity, an observer of energy at each port and a damper that acts when the account is
//! overdrawn.
//!
//! ```text
//! at each port   P >= 0 into the channel: E_in += T P,  else E_out -= T P        each side sends its E_in
//! leader         F = newest F_s of the follower + b v; if E_out would exceed the E_in received: F <- F + alpha v
//! follower       v_d = newest v of the leader (+ drift taken back); if E_out would: v_d <- v_d - beta F_s
//! ```
//! Without energy from the leader the slave could not begin to move, and without its motion the leader would put none in:
//! the follower's account begins with a small credit, which is all that the channel may ever give away. Over a long way
//! that is spent before the first force comes back; the device is damped by b, so that whoever moves it pays for the
//! motion of the slave. What the hand feels of b hides how forces are cut off, too.
//! (Ryu, Artigas and Preusche 2010.) alpha and beta are not computed: force or velocity is made as small as the account
//! asks, which is the same without a division by v^2. Energies add up, so that any delay and any loss are borne.

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
        most_alpha_n_s_m: Option<f64> = Number, ABSENT, NOT_NEGATIVE, "largest damping alpha of the device, in N s/m; the rest stays as a debt; default no limit";
        correction_hz: f64 = Number, "5", NOT_NEGATIVE, "rate of drift correction, in 1/s; 0: none";
        credit_j: f64 = Number, "5e-4", NOT_NEGATIVE, "initial energy of the follower's account, in J";
        damping_n_s_m: f64 = Number, "5", NOT_NEGATIVE, "damping of the device, in N s/m";
    }
}

/// Energy that went through a port, in J.
#[derive(Debug, Clone, Default)]
struct Account {
    in_j: f64,
    out_j: f64,
    /// What the other side has put in, as far as it is known here.
    other_j: f64,
}

impl Account {
    fn hear(&mut self, in_j: f64) {
        self.other_j = self.other_j.max(in_j);
    }

    /// What may still come out.
    fn left(&self) -> f64 {
        (self.other_j - self.out_j).max(0.0)
    }

    // [Ryu 2004] P >= 0: E_in += T P, else E_out -= T P
    fn book(&mut self, work: f64) {
        if work >= 0.0 {
            self.in_j += work;
        } else {
            self.out_j -= work;
        }
    }
}

/// The operator's half.
pub(super) struct Leader {
    params: Params,
    account: Account,
}

impl Leader {
    pub(super) fn new(params: &Value) -> Result<Self, Fault> {
        Ok(Self { params: Params::of(params)?, account: Account::default() })
    }

    /// The force that the account allows.
    // [Ryu 2004] leader, impedance causality
    fn damped(&self, t: f64, v: f64, force: f64) -> f64 {
        let out = -t * force * v;
        if out <= self.account.left() {
            return force;
        }
        let allowed = force * self.account.left() / out;
        match self.params.most_alpha_n_s_m {
            Some(most) if (allowed - force).abs() > most * v.abs() => force + most * v,
            _ => allowed,
        }
    }
}

impl super::Leader for Leader {
    fn tick(&mut self, t: f64, device: Motion, received: Option<Received>) -> (f64, Content) {
        if let Some(r) = received {
            self.account.hear(r.content[1]);
        }
        let wanted = received.map_or(0.0, |r| r.content[0]) + self.params.damping_n_s_m * device.v;
        let force = self.damped(t, device.v, wanted);
        self.account.book(t * force * device.v);
        (force, [device.v, device.x, self.account.in_j])
    }
}

/// The slave's half.
pub(super) struct Follower {
    params: Params,
    coupling: Coupling,
    account: Account,
    /// Where the slave is to be.
    x_d: Option<f64>,
}

impl Follower {
    pub(super) fn new(params: &Value, coupling: Coupling) -> Result<Self, Fault> {
        let params = Params::of(params)?;
        let account = Account { other_j: params.credit_j, ..Account::default() };
        Ok(Self { params, coupling, account, x_d: None })
    }

    /// The velocity nearest to the wanted one with which the work on the slave, T (free + Kd v) v, is within the account.
    // [Ryu 2004] follower, admittance causality
    fn damped(&self, t: f64, free: f64, wanted: f64) -> f64 {
        let (left, kd) = (self.account.left() / t, self.coupling.kd);
        if (free + kd * wanted) * wanted <= left {
            return wanted;
        }
        let free = free * wanted.signum();
        let most = match kd > 0.0 {
            true => ((free * free + 4.0 * kd * left).sqrt() - free) / (2.0 * kd),
            false => left / free,
        };
        most.clamp(0.0, wanted.abs()) * wanted.signum()
    }
}

impl super::Follower for Follower {
    fn tick(&mut self, t: f64, slave: Motion, _contact: f64, received: Option<Received>) -> (Drive, Content) {
        let x_d = *self.x_d.get_or_insert(slave.x);
        let wanted = received.map_or(0.0, |r| {
            self.account.hear(r.content[2] + self.params.credit_j);
            r.content[0] + self.params.correction_hz * (r.content[1] - x_d)
        });
        let free = self.coupling.kp * (x_d - slave.x) - self.coupling.kd * slave.v;
        let v = self.damped(t, free, wanted);
        let force = free + self.coupling.kd * v;
        self.x_d = Some(x_d + t * v);
        self.account.book(-t * force * v);
        (Drive { v, force }, [force, self.account.in_j, 0.0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A force of -2 N on a device that moves with 0.5 m/s gives it 1 J a second; nothing is left in the account.
    #[test]
    fn damping_takes_force_away_up_to_its_limit() {
        let of = |params: Value| Leader::new(&params).unwrap().damped(1.0, 0.5, -2.0);
        assert_eq!(of(json!({})), 0.0);
        assert_eq!(of(json!({"most_alpha_n_s_m": 10.0})), 0.0);
        assert_eq!(of(json!({"most_alpha_n_s_m": 3.0})), -0.5);
    }
}
