//! What the machine gives: clocks, sockets, ways of waiting, network namespaces, and files that outlive who writes them.

pub mod capture;
pub mod clock;
#[cfg(target_os = "linux")]
pub(crate) mod handover;
pub mod merge;
#[cfg(target_os = "linux")]
pub(crate) mod namespace;
#[cfg(target_os = "linux")]
pub(crate) mod owner;
#[cfg(target_os = "linux")]
pub mod ring;
#[cfg(target_os = "linux")]
pub mod socket;
#[cfg(target_os = "linux")]
pub mod wait;
