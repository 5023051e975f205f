//! Robot `follower`: the slave's side of a bilateral scheme (PROTOCOLS 8), before a wall.
//!
//! ```text
//! command  the leader's newest message        sense  message (4 values), x (m), F_e (N), energy into the channel here (J)
//! ```
//! The operator's side is the hook `leader` with the same scheme.

use serde::Deserialize;
use serde_json::Value;
use tcps_core::{robot::Robot, time::Time};

use crate::{
    bilateral::{FollowerSide, SlaveParams, SHORTEST_S},
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
}

/// The robot.
pub struct Follower {
    side: FollowerSide,
    last: Option<Time>,
}

impl Follower {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, String> {
        let p: Params = parse(params)?;
        let side = FollowerSide::new(p.scheme.as_deref().unwrap_or("pd"), &p.with, p.slave)?;
        Ok(Self { side, last: None })
    }
}

impl Robot for Follower {
    fn step(&mut self, now: Time, command: &[f64], sense: &mut [f64]) -> usize {
        let last = self.last.replace(now).unwrap_or(now);
        let t = (now.saturating_sub(last) as f64 * 1e-9).clamp(SHORTEST_S, LONGEST_S);
        let [n, a, b, c] = self.side.tick(t, command);
        let all = [n, a, b, c, self.side.at().x, self.side.contact_n(), self.side.energy_j];
        let count = sense.len().min(all.len());
        sense[..count].copy_from_slice(&all[..count]);
        count
    }
}
