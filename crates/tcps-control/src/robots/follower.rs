//! Robot `follower`: the slave's side of a bilateral scheme (model: schemes), before a wall.
//!
//! ```text
//! command  the leader's newest message of each axis
//! sense    for each axis: message (4 values), x (m), F_e (N), energy into the channel here (J)
//! ```
//! Axes have nothing to do with each other, and each has such a slave before such a wall. The operator's side is the hook `leader` with the same scheme.

use serde::Deserialize;
use serde_json::Value;
use tcps_core::{robot::Robot, time::Time};

use crate::{
    bilateral::{check_axes, message_of, FollowerSide, SlaveParams, SHORTEST_S},
    params::parse,
};

/// Longest time that one step bridges, in s.
const LONGEST_S: f64 = 0.1;

/// Parameters.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The scheme; absent: `pd`.
    pub scheme: Option<String>,
    /// Its parameters.
    pub with: Value,
    /// The slave and its wall.
    pub slave: SlaveParams,
    /// How many axes it has; absent: one.
    pub axes: Option<usize>,
}

/// The robot.
pub struct Follower {
    sides: Vec<FollowerSide>,
    last: Option<Time>,
    told: Vec<f64>,
}

impl Follower {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, String> {
        let p: Params = parse(params)?;
        let (scheme, axes) = (p.scheme.as_deref().unwrap_or("pd"), p.axes.unwrap_or(1));
        check_axes(axes)?;
        let sides =
            (0..axes).map(|_| FollowerSide::new(scheme, &p.with, p.slave)).collect::<Result<_, _>>()?;
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
