//! Kinematics `mouse_xy`: a mouse (x to the right, y down, in pixels; a button) moves the wrist in a plane before the
//! wall and pushes it forward while a button is down. Out: x, y, z (m).

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
};

use super::{emit, too_few};

params! {
    /// Parameters.
    pub struct Params {
        screen: [f64; 2] = Array(2, &Number), "[1920, 1080]", POSITIVE, "size of the screen, in pixels";
        plane_m: [f64; 2] = Array(2, &Number), "[0.24, 0.135]", ANY, "width and height of the plane, in m";
        centre_m: [f64; 3] = Array(3, &Number), "[0.30, 0, 0.18]", ANY, "position of the wrist for the mouse in the middle, in m";
        push_m: f64 = Number, "0.03", ANY, "travel of a pressed button, in m";
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct MouseXy {
    params: Params,
}

impl MouseXy {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let params = Params::of(params)?;
        Ok(Self { params })
    }
}

impl Hook for MouseXy {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let (&[x, y, ..], p) = (input.x(), &self.params) else {
            return too_few("x and y", input.x());
        };
        if !x.is_finite() || !y.is_finite() {
            return too_few("x and y", input.x());
        }
        let pressed = input.x().get(2).is_some_and(|&button| button >= 0.5);
        let part = |value: f64, i: usize| (value / p.screen[i]).clamp(0.0, 1.0) - 0.5;
        let push = if pressed { p.push_m } else { 0.0 };
        let [cx, cy, cz] = p.centre_m;
        // The robot looks along x with y to its left: right on the screen is -y, down is -z.
        emit(output, &[cx + push, cy - p.plane_m[0] * part(x, 0), cz - p.plane_m[1] * part(y, 1)])
    }
}
