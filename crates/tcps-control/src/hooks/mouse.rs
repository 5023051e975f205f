//! Kinematics `mouse`: a mouse with a wheel moves the tool of an arm, or steers a belt.
//!
//! ```text
//! in    x (to the right), y (down; pixels), left button (0 or 1), counts of the wheel, all since the start
//! out   x, y, z (m), pitch, roll (rad), the wheel's value
//!
//! right / left    the tool goes right / left (-y / +y)       moves count from sample to sample,
//! up / down       the tool goes away / near (+x / -x);       the tool stays within its box
//!                 with the left button held up / down (+z / -z)
//! wheel           a state machine: a click up or down goes to the next or last of `values`, and no click counts
//!                 within `rest_ms` after one that did
//! ```
//! Such a state machine is what runs in ms-embsys-app. Use: gripper `values = [0.032, 0.01]`, belt `[-0.1, 0, 0.1]`.

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
    time::{Time, MS},
};

use super::{emit, too_few};
use crate::vector::V3;

params! {
    /// Parameters.
    pub struct Params {
        pixel_m: f64 = Number, "0.0002", POSITIVE, "travel of the tool per pixel, in m";
        centre_m: V3 = Array(3, &Number), "[0.22, 0, 0.09]", ANY, "start of the tool, in m";
        reach_m: V3 = Array(3, &Number), "[0.06, 0.16, 0.075]", NOT_NEGATIVE, "reach from there in each direction, in m";
        tool_rad: [f64; 2] = Array(2, &Number), "[1.5707963267948966, 0.0]", ANY, "pitch and roll of the tool, in rad";
        values: Vec<f64> = List(&Number), "[0.032, 0.01]", ANY, "outputs for the states of the wheel";
        state: usize = Count, "0", NOT_NEGATIVE, "the state at the start, from 0";
        rest_ms: f64 = Number, "50", NOT_NEGATIVE, "time after a notch of the wheel in which further notches do not count, in ms";
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct Mouse {
    params: Params,
    moved: V3,
    wheel: Wheel,
    last: Option<[f64; 2]>,
}

impl Mouse {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let params = Params::of(params)?;
        if params.state >= params.values.len() {
            let allowed = format!("below {}, the number of values", params.values.len());
            return Err(Fault::new("state", params.state, allowed));
        }
        let wheel = Wheel { state: params.state, counts: None, clicked: None };
        Ok(Self { params, moved: [0.0; 3], wheel, last: None })
    }

    /// The way of the pointer since the last sample.
    fn go(&mut self, at: [f64; 2], button: bool) {
        let [dx, dy] = self.last.map_or([0.0; 2], |last| [at[0] - last[0], at[1] - last[1]]);
        self.last = Some(at);
        let p = &self.params;
        let (right, up) = (dx * p.pixel_m, -dy * p.pixel_m);
        let way = if button { [0.0, -right, up] } else { [up, -right, 0.0] };
        self.moved = std::array::from_fn(|i| (self.moved[i] + way[i]).clamp(-p.reach_m[i], p.reach_m[i]));
    }
}

impl Hook for Mouse {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let (&[x, y, ..], true) = (input.x(), input.x().iter().all(|v| v.is_finite())) else {
            return too_few("x and y", input.x());
        };
        let button = input.x().get(2).is_some_and(|&b| b >= 0.5);
        self.go([x, y], button);
        let counts = input.x().get(3).copied().unwrap_or(0.0);
        self.wheel.turn(counts, input.origin_ns, &self.params);
        let ([cx, cy, cz], [mx, my, mz]) = (self.params.centre_m, self.moved);
        let [pitch, roll] = self.params.tool_rad;
        let value = self.params.values[self.wheel.state];
        emit(output, &[cx + mx, cy + my, cz + mz, pitch, roll, value])
    }
}

/// The state machine of the wheel.
#[derive(Debug, Clone)]
struct Wheel {
    state: usize,
    counts: Option<f64>,
    clicked: Option<Time>,
}

impl Wheel {
    fn turn(&mut self, counts: f64, now: Time, p: &Params) {
        let clicks = self.counts.map_or(0.0, |before| counts - before);
        self.counts = Some(counts);
        // A click from the far future, of a device whose clock was wrong, stops nothing.
        let rest_ns = p.rest_ms * MS as f64;
        let rests = self.clicked.is_some_and(|t| (0.0..rest_ns).contains(&(now.saturating_sub(t) as f64)));
        if clicks.abs() < 0.5 || rests {
            return;
        }
        self.clicked = Some(now);
        self.state = if clicks > 0.0 {
            (self.state + 1).min(p.values.len() - 1)
        } else {
            self.state.saturating_sub(1)
        };
    }
}
