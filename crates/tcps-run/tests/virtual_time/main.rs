//! The virtual driver as a whole.

mod chain;
mod common;
mod moving_clock;
mod sampling;
mod stages;
