//! A node as a whole, in a world that keeps what it is told.

mod boards;
mod channels;
mod common;
mod playing;
mod rows;
mod stages;
mod workers;
