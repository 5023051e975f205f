//! Bilateral control through delay: one file a scheme, on each axis by itself (model: schemes).
//!
//! ```text
//!   hand ─► device ─ v_l ─► leader ═ messages ═► follower ─ v_d, F_s ─► slave ─► wall
//!              ◄──── F_l ───       ◄════════════           ◄── x, v ───
//!   energy into the channel    E_l += T F_l v_l                  E_f -= T F_s v_d
//! ```
//! Velocity and force are positive into the channel at the leader. A scheme is two halves that see their own side and
//! the messages of the other. A channel is passive as long as E_l + E_f does not fall below 0: it gives back at most what
//! it was given. Messages carry numbers: of those that come late only what adds up in them is used.

mod arm;
pub mod bench;
mod follower;
mod leader;
mod mmt;
mod pd;
mod position;
mod slave;
mod tdpa;
mod wave;

pub use arm::{Arm, ArmParams};
pub use follower::FollowerSide;
pub use leader::LeaderSide;
pub use slave::{Slave, SlaveParams};

use serde_json::Value;
use std::ops::RangeInclusive;
use tcps_core::param::Fault;

/// Shortest tick, in s: also the first one, before which there was none.
pub(crate) const SHORTEST_S: f64 = 1e-6;

/// Values of a message: its number and three more, whose meaning is the scheme's.
pub const VALUES: usize = 4;

/// Values of an axis on the wire: its message, then position, force and energy for whoever looks on.
pub const TOLD: usize = VALUES + 3;

/// Most axes of a device.
pub const MOST_AXES: usize = 16;

/// The message of an axis in the values of all of them; empty where it is missing.
pub fn message_of(values: &[f64], axis: usize) -> &[f64] {
    let rest = values.get(TOLD * axis..).unwrap_or(&[]);
    &rest[..rest.len().min(VALUES)]
}

/// Axes of a device.
pub(crate) const AXES: RangeInclusive<f64> = 1.0..=MOST_AXES as f64;

/// What goes from one half to the other.
pub type Content = [f64; VALUES - 1];

/// What a half finds at a tick: the newest message, and whether it came since the tick before.
#[derive(Debug, Clone, Copy)]
pub struct Received {
    /// Its content.
    pub content: Content,
    /// True at the first tick after it came.
    pub fresh: bool,
}

/// A position and a velocity, in m and m/s.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Motion {
    /// Position.
    pub x: f64,
    /// Velocity.
    pub v: f64,
}

/// Gains of the follower's local controller, in N/m and N s/m.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coupling {
    /// Stiffness.
    pub kp: f64,
    /// Damping.
    pub kd: f64,
}

/// The half at the operator: impedance causality.
pub trait Leader: Send {
    /// A tick of `t` seconds: the force into the channel, in N, and the message.
    fn tick(&mut self, t: f64, device: Motion, received: Option<Received>) -> (f64, Content);
}

/// The half at the slave: admittance causality.
pub trait Follower: Send {
    /// A tick of `t` seconds with the contact force: velocity wanted (m/s) and force on the slave (N), and the message.
    fn tick(&mut self, t: f64, slave: Motion, contact: f64, received: Option<Received>) -> (Drive, Content);
}

/// What a follower does with its slave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drive {
    /// Velocity out of the channel, in m/s.
    pub v: f64,
    /// Force on the slave, out of the channel, in N.
    pub force: f64,
}

type MakeLeader = fn(&Value) -> Result<Box<dyn Leader>, Fault>;
type MakeFollower = fn(&Value, Coupling) -> Result<Box<dyn Follower>, Fault>;

macro_rules! schemes {
    ($($name:literal => $module:ident),+ $(,)?) => {
        &[$((
            $name,
            |params| Ok(Box::new($module::Leader::new(params)?) as Box<dyn Leader>),
            |params, coupling| Ok(Box::new($module::Follower::new(params, coupling)?) as Box<dyn Follower>),
        )),+]
    };
}

const SCHEMES: &[(&str, MakeLeader, MakeFollower)] = schemes!(
    "mmt" => mmt,
    "pd" => pd,
    "position" => position,
    "tdpa" => tdpa,
    "wave" => wave,
);

/// Names of the schemes.
pub fn schemes() -> impl Iterator<Item = &'static str> {
    SCHEMES.iter().map(|(name, ..)| *name)
}

/// The operator's half of a scheme.
pub fn leader(scheme: &str, params: &Value) -> Result<Box<dyn Leader>, Fault> {
    find(scheme).and_then(|(_, make, _)| make(params).map_err(|fault| fault.within("with")))
}

/// The slave's half of a scheme.
pub fn follower(scheme: &str, params: &Value, coupling: Coupling) -> Result<Box<dyn Follower>, Fault> {
    find(scheme).and_then(|(.., make)| make(params, coupling).map_err(|fault| fault.within("with")))
}

fn find(scheme: &str) -> Result<&'static (&'static str, MakeLeader, MakeFollower), Fault> {
    SCHEMES
        .iter()
        .find(|(name, ..)| *name == scheme)
        .ok_or_else(|| Fault::new("scheme", format!("{scheme:?}"), schemes().collect::<Vec<_>>().join(", ")))
}

/// Numbers messages, and tells new ones from old ones.
#[derive(Debug, Clone, Default)]
pub struct Mailbox {
    sent: f64,
    newest: f64,
    content: Option<Content>,
}

impl Mailbox {
    /// The values of a message to be sent.
    pub fn stamp(&mut self, content: Content) -> [f64; VALUES] {
        self.sent += 1.0;
        let [a, b, c] = content;
        [self.sent, a, b, c]
    }

    /// What has been received when the newest values are these: old, short or broken ones leave it as it was.
    pub fn open(&mut self, values: &[f64]) -> Option<Received> {
        let whole = |v: &&[f64]| v.iter().all(|x| x.is_finite());
        let fresh = match values.get(..VALUES).filter(whole) {
            Some(&[number, a, b, c]) if number > self.newest => {
                (self.newest, self.content) = (number, Some([a, b, c]));
                true
            }
            _ => false,
        };
        self.content.map(|content| Received { content, fresh })
    }
}

impl Coupling {
    /// F = Kp (x_d - x) + Kd (v_d - v).
    fn force(&self, wanted: Motion, is: Motion) -> f64 {
        self.kp * (wanted.x - is.x) + self.kd * (wanted.v - is.v)
    }
}
