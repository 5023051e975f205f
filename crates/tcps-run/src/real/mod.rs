//! The real driver: one process a node, one run-to-completion loop a session, the machine's clock.
//!
//! ```text
//!  orchestrator ◄─ JSON lines ─► node process ─┬─ loop (session 0) ── sockets ◄─► peers, or the emulator's gates
//!        ▲                                     └─ loop (session 1) ── …
//!        └──────── rings of rows (shared memory, outlive a killed node) ◄── loops
//! ```

pub mod control;
pub mod emulator;
pub mod line;
pub mod quality;
pub mod replayer;
pub mod secrets;
pub mod session;
mod stream;
mod tcp_socket;
mod worker;
