//! Operators' hooks and robots of tcpsbed, without I/O.
//!
//! ```text
//! hooks       kinematics          imu_wrist, pose, mouse_xy, pi,  predict   zoh, supervisor, environment, conceal,
//!                                 leader                                    preview, the predictors
//!             inverse kinematics  arm3                            code      quantise16, dequantise16, loudness, brightness
//!             sense, feedback     force, hand, limit
//! sampling    uniform, weber, deadband, level_crossing, network_deadband (at code)
//! robots      arm, follower, step, wall_mass
//! predictors  zoh, linear, ar, kalman_velocity, kalman_acceleration, operator
//! ```
//! A hook implements [`tcps_core::hook::Hook`], a robot [`tcps_core::robot::Robot`], a predictor
//! [`tcps_core::model::Predictor`]. Each is one file; the registry lists them. Transcendental functions come from `libm`, so that the bits are the same on every machine.

#![forbid(unsafe_code)]

pub mod bilateral;
mod canvas;
mod chain;
pub mod environment;
mod glyphs;
pub mod hooks;
mod later;
mod orientation;
pub mod predictors;
pub mod registry;
mod rls;
pub mod robots;
pub mod safety;
pub mod sampling;
mod skeleton;
pub mod step;
mod track;
mod vector;

pub use registry::{
    described_hooks, described_robots, hook, moved, names, predictor, predictors as predictor_names, robot,
    supervised, ControlError,
};
