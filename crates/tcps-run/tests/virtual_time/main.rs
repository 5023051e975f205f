//! The virtual driver as a whole.

mod chain;
mod common;
mod faults;
mod interrupts;
mod moving_clock;
mod playout;
mod sampling;
mod split;
mod stages;
