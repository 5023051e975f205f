//! The two drivers of tcpsbed (virtual and real), its emulator and its recorder.
//!
//! ```text
//! plan ──► node (sans-IO) ──► Host ─┬─► virtual_time   simulated clock, network, cores
//!                                      └─► real           sockets, kernel stamps, the machine's clock
//! ```
//! Virtual time runs on any Unix; what is on the machine's clock is there on Linux only.

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "for the machine's clock"))]
mod addresses;
pub mod assets;
mod attack;
pub mod background;
pub mod batch;
mod boundary;
pub mod carrier;
pub mod cpu;
pub mod crash;
#[cfg(target_os = "linux")]
mod emu;
#[cfg(target_os = "linux")]
mod events;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "for the machine's clock"))]
mod kernel_tcp;
pub mod library;
mod network_rows;
pub mod os;
pub mod pcapng;
#[cfg(target_os = "linux")]
pub mod proxy;
#[cfg(target_os = "linux")]
pub mod real;
pub mod recorder;
#[cfg(target_os = "linux")]
mod recording;
pub mod replay;
mod threads;
pub mod virtual_time;

pub use attack::check as check_attacks;
