//! Robot `follower`: the slave's side of a bilateral scheme (model: schemes), before a wall.
//!
//! ```text
//! command  the leader's newest message of each axis
//! sense    for each axis: message (4 values), x (m), F_e (N), energy into the channel here (J)
//! ```
//! Axes have nothing to do with each other, and each has such a slave before such a wall. The operator's side is the hook `leader` with the same scheme.

use serde_json::Value;
use tcps_core::{
    param::{Fault, Params as _},
    params,
    robot::Robot,
    time::Time,
};

use crate::bilateral::{message_of, FollowerSide, SlaveParams, AXES, SHORTEST_S};

/// Longest time that one step bridges, in s.
const LONGEST_S: f64 = 0.1;

params! {
    /// Parameters.
    pub struct Params {
        scheme: String = Text, "pd", ANY, "the scheme of bilateral control";
        with: Value = Object, "{}", ANY, "parameters of the scheme";
        slave: Value = Object, "{}", ANY, "the slave and its wall";
        axes: usize = Count, "1", AXES, "number of axes";
    }
}

/// The robot.
pub struct Follower {
    sides: Vec<FollowerSide>,
    last: Option<Time>,
    told: Vec<f64>,
}

impl Follower {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let p = Params::of(params)?;
        let slave = SlaveParams::of(&p.slave).map_err(|fault| fault.within("slave"))?;
        let sides =
            (0..p.axes).map(|_| FollowerSide::new(&p.scheme, &p.with, slave)).collect::<Result<_, _>>()?;
        Ok(Self { sides, last: None, told: Vec::new() })
    }
}

impl Robot for Follower {
    fn step(&mut self, now: Time, command: &[f64], sense: &mut [f64]) -> usize {
        let last = self.last.replace(now).unwrap_or(now);
        let t = (now.saturating_sub(last) as f64 * 1e-9).clamp(SHORTEST_S, LONGEST_S);
        self.told.clear();
        for (axis, side) in self.sides.iter_mut().enumerate() {
            let message = side.tick(t, message_of(command, axis));
            self.told.extend_from_slice(&message);
            self.told.extend_from_slice(&[side.at().x, side.contact_n(), side.energy_j]);
        }
        let count = sense.len().min(self.told.len());
        sense[..count].copy_from_slice(&self.told[..count]);
        count
    }
}
