//! Kinematics `mouse_xy`: a mouse (x to the right, y down, in pixels; a button) moves the wrist in a plane before the
//! wall and pushes it forward while a button is down. Out: x, y, z (m).

use serde::Deserialize;
use serde_json::Value;
use tcps_core::hook::{Hook, HookIn, HookOut, Verdict};

use super::{emit, too_few};
use crate::params::{parse, positive};

/// Parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Size of the screen, in pixels.
    pub screen: [f64; 2],
    /// Width and height of the plane, in m.
    pub plane_m: [f64; 2],
    /// Wrist when the mouse is in the middle, in m.
    pub centre_m: [f64; 3],
    /// How far a pressed button pushes, in m.
    pub push_m: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { screen: [1920.0, 1080.0], plane_m: [0.24, 0.135], centre_m: [0.30, 0.0, 0.18], push_m: 0.03 }
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct MouseXy {
    params: Params,
}

impl MouseXy {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, String> {
        let params: Params = parse(params)?;
        for size in params.screen {
            positive("screen", size)?;
        }
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
