//! The two drivers of tcpsbed (virtual and real), its emulator and its recorder.
//!
//! ```text
//! plan ──► node (sans-IO) ──► Outside ─┬─► virtual_time   simulated clock, network, cores
//!                                      └─► real           sockets, kernel stamps, the machine's clock
//! ```

mod addresses;
pub mod analysis;
pub mod background;
pub mod batch;
mod boundary;
pub mod carrier;
pub mod code;
pub mod cpu;
pub mod crash;
pub mod error;
pub mod library;
mod network_rows;
pub mod node;
pub mod outside;
pub mod pcapng;
pub mod plan;
pub mod proxy;
pub mod real;
pub mod recorder;
pub mod replay;
pub mod report;
mod rounds;
pub mod sample_codec;
pub mod source;
pub mod virtual_time;
