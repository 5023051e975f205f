//! Built-in hooks: one file each.

pub mod aim;
pub mod arm3;
pub mod arm5;
pub mod brightness;
pub mod conceal;
pub mod environment;
pub mod force;
pub mod glove;
pub mod grip;
pub mod hand;
pub mod imu_wrist;
pub mod leader;
pub mod limit;
pub mod loudness;
pub mod mouse;
pub mod mouse_xy;
pub mod pi;
pub mod pose;
pub mod preview;
pub mod quantise16;
pub mod supervisor;
pub mod vibration;
pub mod zoh;

use tcps_core::hook::{HookOut, Verdict};

/// Gives values out.
fn emit(output: &mut HookOut, values: &[f64]) -> Verdict {
    output.set(values);
    Verdict::Emit
}

/// Refuses a sample.
fn too_few(wanted: &str, found: &[f64]) -> Verdict {
    Verdict::Failed(format!("needs {wanted}, all finite; found {} values", found.len()))
}
