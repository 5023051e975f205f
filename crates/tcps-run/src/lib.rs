//! run
pub mod analysis;
pub mod plan;
