//! Kinematics `leader`: the operator's side of a bilateral scheme (PROTOCOLS 8), at each sample of its flow.
//!
//! ```text
//! in     where the hand wants to be (m), value `value` of the sample      other    the follower's newest message
//! out    message (4 values), then x of the device (m), F_l (N), energy into the channel here (J)
//! ```
//! The device is in the hand of a modelled arm. The far side is the robot `follower` with the same scheme.

use serde::Deserialize;
use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    time::Time,
};

use super::{emit, too_few};
use crate::{
    bilateral::{ArmParams, LeaderSide, Motion, SHORTEST_S},
    params::parse,
};

/// Longest time that one tick bridges, in s.
const LONGEST_S: f64 = 0.1;
/// Farthest that a hand is, in m, and fastest that it moves, in m/s.
const FARTHEST_M: f64 = 10.0;
const FASTEST_M_S: f64 = 10.0;

/// Parameters.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The scheme; absent: `pd`.
    pub scheme: Option<String>,
    /// Its parameters.
    pub with: Value,
    /// The arm and the device.
    pub arm: ArmParams,
    /// Which value of the sample is where the hand wants to be.
    pub value: usize,
}

/// The hook.
pub struct LeaderHook {
    side: LeaderSide,
    value: usize,
    last: Option<(Time, f64)>,
}

impl LeaderHook {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, String> {
        let p: Params = parse(params)?;
        let side = LeaderSide::new(p.scheme.as_deref().unwrap_or("pd"), &p.with, p.arm)?;
        Ok(Self { side, value: p.value, last: None })
    }
}

impl Hook for LeaderHook {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let Some(&x) = input.x().get(self.value).filter(|x| x.abs() <= FARTHEST_M) else {
            return too_few("where the hand wants to be, within 10 m", input.x());
        };
        let (last, before) = self.last.replace((input.now_ns, x)).unwrap_or((input.now_ns, x));
        let t = (input.now_ns.saturating_sub(last) as f64 * 1e-9).clamp(SHORTEST_S, LONGEST_S);
        let v = ((x - before) / t).clamp(-FASTEST_M_S, FASTEST_M_S);
        let message = self.side.tick(t, Motion { x, v }, input.other());
        let [n, a, b, c] = message;
        emit(output, &[n, a, b, c, self.side.at().x, self.side.force_n, self.side.energy_j])
    }
}
