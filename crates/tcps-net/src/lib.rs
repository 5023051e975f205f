//! net
pub mod spec;
