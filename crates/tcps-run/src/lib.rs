//! run
pub mod plan;
