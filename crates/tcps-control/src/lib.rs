//! Operators' hooks and robots of tcpsbed, without I/O.
//!
//! ```text
//! hooks    kinematics          imu_wrist, pose, mouse_xy       predict   zoh, linear
//!          inverse kinematics  arm3                            code      quantise16, dequantise16
//!          sense, feedback     force, hand, limit
//! sampling code                uniform, weber, level_crossing, network_deadband
//! robots   arm, wall_mass
//! ```
//! A hook implements [`tcps_core::hook::Hook`], a robot [`tcps_core::robot::Robot`]. Each is one file; the registry
//! lists them. Transcendental functions come from `libm`, so that the bits are the same on every machine.

pub mod hooks;
mod orientation;
mod params;
pub mod registry;
pub mod robots;
pub mod sampling;
mod skeleton;
mod vector;

pub use registry::{hook, names, robot, ControlError};
