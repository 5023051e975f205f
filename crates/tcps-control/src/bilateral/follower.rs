//! The slave's side, complete: slave, a scheme's half, its messages, and the observer of energy at its port.

use serde_json::Value;
use tcps_core::param::Fault;

use super::{follower, Follower, Mailbox, Motion, Slave, SlaveParams, VALUES};

/// The side at the slave.
pub struct FollowerSide {
    scheme: Box<dyn Follower>,
    mailbox: Mailbox,
    slave: Slave,
    force_n: f64,
    /// Energy that has gone into the channel here, in J: what the slave took out counts as negative.
    pub energy_j: f64,
}

impl FollowerSide {
    /// A side with this scheme.
    pub fn new(scheme: &str, params: &Value, slave: SlaveParams) -> Result<Self, Fault> {
        slave.check().map_err(|fault| fault.within("slave"))?;
        Ok(Self {
            scheme: follower(scheme, params, slave.coupling())?,
            mailbox: Mailbox::default(),
            slave: Slave::new(slave),
            force_n: 0.0,
            energy_j: 0.0,
        })
    }

    /// A tick of `t` seconds after the one before, with the newest values that came: the message.
    // [Ryu 2004] energy observer, P = v F
    pub fn tick(&mut self, t: f64, newest: &[f64]) -> [f64; VALUES] {
        self.slave.advance(t, self.force_n);
        let received = self.mailbox.open(newest);
        let (drive, content) = self.scheme.tick(t, self.slave.at, self.slave.contact_n(), received);
        self.force_n = drive.force;
        self.energy_j -= t * drive.force * drive.v;
        self.mailbox.stamp(content)
    }

    /// Where the slave is.
    pub fn at(&self) -> Motion {
        self.slave.at
    }

    /// Force of the wall, in N.
    pub fn contact_n(&self) -> f64 {
        self.slave.contact_n()
    }
}
