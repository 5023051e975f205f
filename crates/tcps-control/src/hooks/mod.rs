//! Built-in hooks: one file each.

pub mod aim;
pub mod arm3;
pub mod arm5;
pub mod brightness;
pub mod compensator;
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
    beyond(wanted, found, f64::INFINITY)
}

/// Refuses a sample for its first value that is not below `most`, or else for the number of its values.
fn beyond(wanted: &str, found: &[f64], most: f64) -> Verdict {
    let number = found.len();
    let culprit = found.iter().enumerate().find(|(_, value)| value.is_nan() || value.abs() >= most);
    let said = match culprit {
        Some((index, value)) => format!("{value:?} at index {index} of {number} values"),
        None => format!("{number} values"),
    };
    Verdict::Failed(format!("needs {wanted}, all finite; found {said}"))
}
