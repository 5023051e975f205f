//! The operator's side, complete: arm, device, a scheme's half, its messages, and the observer of energy at its port.

use serde_json::Value;
use tcps_core::param::Fault;

use super::{arm::ArmParams, leader, Arm, Leader, Mailbox, Motion, VALUES};

/// The side at the operator.
pub struct LeaderSide {
    scheme: Box<dyn Leader>,
    mailbox: Mailbox,
    arm: Arm,
    /// Force into the channel, in N.
    pub force_n: f64,
    /// Energy that has gone into the channel here, in J.
    pub energy_j: f64,
}

impl LeaderSide {
    /// A side with this scheme.
    pub fn new(scheme: &str, params: &Value, arm: ArmParams) -> Result<Self, Fault> {
        arm.check().map_err(|fault| fault.within("arm"))?;
        Ok(Self {
            scheme: leader(scheme, params)?,
            mailbox: Mailbox::default(),
            arm: Arm::new(arm),
            force_n: 0.0,
            energy_j: 0.0,
        })
    }

    /// A tick of `t` seconds after the one before, with the newest values that came back: the message.
    // [Ryu 2004] energy observer, P = v F
    pub fn tick(&mut self, t: f64, wanted: Motion, newest: &[f64]) -> [f64; VALUES] {
        self.arm.advance(t, wanted, self.force_n);
        let (force, content) = self.scheme.tick(t, self.arm.at, self.mailbox.open(newest));
        self.force_n = force;
        self.energy_j += t * force * self.arm.at.v;
        self.mailbox.stamp(content)
    }

    /// Where the device is.
    pub fn at(&self) -> Motion {
        self.arm.at
    }
}
