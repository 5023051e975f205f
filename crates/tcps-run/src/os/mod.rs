//! What the machine gives: clocks, sockets, ways of waiting, network namespaces, and files that outlive who writes them.

pub mod capture;
pub mod clock;
pub(crate) mod handover;
pub mod merge;
pub(crate) mod namespace;
pub mod ring;
pub mod socket;
pub mod wait;
