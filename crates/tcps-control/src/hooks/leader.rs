//! Kinematics `leader`: the operator's side of a bilateral scheme (model: schemes), at each sample of its flow.
//!
//! ```text
//! in     where the hand wants to be (m), value `value` of the sample and the next      other    the follower's newest
//! out    for each axis: message (4 values), then x of the device (m), F_l (N), energy into the channel here (J)
//! ```
//! Axes have nothing to do with each other. The device is in the hand of a modelled arm. The far side is the robot `follower` with the same scheme.

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
    time::Time,
};

use super::{beyond, emit};
use crate::bilateral::{message_of, ArmParams, LeaderSide, Motion, AXES, SHORTEST_S};

/// Longest time that one tick bridges, in s.
const LONGEST_S: f64 = 0.1;
/// Farthest that a hand is, in m, and fastest that it moves, in m/s.
const FARTHEST_M: f64 = 10.0;
const FASTEST_M_S: f64 = 10.0;

params! {
    /// Parameters.
    pub struct Params {
        scheme: String = Text, "pd", ANY, "name of the scheme";
        with: Value = Object, "{}", ANY, "parameters of the scheme";
        arm: Value = Object, "{}", ANY, "parameters of the arm and the device";
        value: usize = Count, "0", NOT_NEGATIVE, "which value is the hand's wanted position on the first axis";
        axes: usize = Count, "1", AXES, "axes of the device";
    }
}

/// The hook.
pub struct LeaderHook {
    sides: Vec<LeaderSide>,
    value: usize,
    last: Option<Time>,
    before: Vec<f64>,
    out: Vec<f64>,
}

impl LeaderHook {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let p = Params::of(params)?;
        let arm = ArmParams::of(&p.arm).map_err(|fault| fault.within("arm"))?;
        let sides =
            (0..p.axes).map(|_| LeaderSide::new(&p.scheme, &p.with, arm)).collect::<Result<_, _>>()?;
        Ok(Self { sides, value: p.value, last: None, before: Vec::new(), out: Vec::new() })
    }
}

impl Hook for LeaderHook {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let end = self.value.saturating_add(self.sides.len());
        let near = |wanted: &&[f64]| wanted.iter().all(|x| x.abs() <= FARTHEST_M);
        let Some(wanted) = input.x().get(self.value..end).filter(near) else {
            let axes = input.x().get(self.value..).unwrap_or_default();
            return beyond("where the hand wants to be on each axis, within 10 m", axes, FARTHEST_M);
        };
        if self.before.is_empty() {
            self.before.extend_from_slice(wanted);
        }
        let last = self.last.replace(input.now_ns).unwrap_or(input.now_ns);
        let t = (input.now_ns.saturating_sub(last) as f64 * 1e-9).clamp(SHORTEST_S, LONGEST_S);
        self.out.clear();
        for (axis, (side, &x)) in self.sides.iter_mut().zip(wanted).enumerate() {
            let v = ((x - self.before[axis]) / t).clamp(-FASTEST_M_S, FASTEST_M_S);
            self.before[axis] = x;
            let message = side.tick(t, Motion { x, v }, message_of(input.other(), axis));
            self.out.extend_from_slice(&message);
            self.out.extend_from_slice(&[side.at().x, side.force_n, side.energy_j]);
        }
        emit(output, &self.out)
    }
}
