//! Transports after papers whose texts leave their details open: each publishes its parameters in `docs/transports.md`.
//!
//! ```text
//! alphan         own header, a queue for each priority at the sender
//! nack           the receiver asks for what it misses
//! coarse-copy    a coarser copy of an earlier sample rides along
//! smoothed-sctp  key samples are sent until acknowledged; playout evens out the delay
//! irtp           key samples likewise; the rate follows losses, and the newest sample replaces those that wait
//! merge-span     the samples of 8 ms in a datagram, whatever the network does
//! visual-haptic  force at once, sound and picture in what is left of a known capacity
//! multipath      two ways at once: every datagram on both, or each on one of them
//! ```
//! `hoip`, `loss-triggered`, `nafcah`, `etp`, `napas`, `admux` and `pahcp` are rate controllers of the telehaptic transport.

pub(crate) mod alphan;
mod bundling;
pub(crate) mod coarse_copy;
pub(crate) mod irtp;
mod keys;
pub(crate) mod merge_span;
pub(crate) mod multipath;
pub(crate) mod nack;
pub(crate) mod smoothed_sctp;
pub(crate) mod visual_haptic;
