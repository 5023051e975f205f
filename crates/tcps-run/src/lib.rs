//! The two drivers of tcpsbed (virtual and real), its emulator and its recorder.
//!
//! ```text
//! plan ──► node (sans-IO) ──► Outside ─┬─► virtual_time   simulated clock, network, cores
//!                                      └─► real           sockets, kernel stamps, the machine's clock
//! ```

mod addresses;
pub mod assets;
pub mod background;
pub mod batch;
mod boundary;
pub mod carrier;
pub mod cpu;
pub mod crash;
mod emu;
mod kernel_tcp;
pub mod library;
mod network_rows;
pub mod os;
pub mod pcapng;
pub mod proxy;
pub mod real;
pub mod recorder;
pub mod replay;
pub mod virtual_time;
