//! Bodies of the fuzz targets: functions of bytes that panic when something is wrong.
//!
//! ```text
//! fuzz_targets/NAME.rs ──► tcps_fuzz::NAME ◄── tests/replay.rs
//! libFuzzer, by coverage                       seeds in corpus/NAME, and random changes of them
//! ```
//! A new target is a function here, a line in [`TARGETS`], a file in `fuzz_targets` and a `[[bin]]`.

mod rtp;
mod script;
mod streams;
mod sync;
mod transport;
mod wire;

use tcps_net::spec::NetworkSpec;

pub use rtp::{fec, rtcp, rtp};
pub use streams::{quic, tcp};
pub use sync::clocksync;
pub use transport::{udp, udp_pair};
pub use wire::{clock, echo, header, ip};

/// A fuzz target: panics if something is wrong with what the bytes lead to.
pub type Target = fn(&[u8]);

/// Every target by name.
pub const TARGETS: [(&str, Target); 13] = [
    ("header", header),
    ("echo", echo),
    ("clock", clock),
    ("ip", ip),
    ("udp", udp),
    ("udp_pair", udp_pair),
    ("tcp", tcp),
    ("quic", quic),
    ("rtcp", rtcp),
    ("rtp", rtp),
    ("fec", fec),
    ("clocksync", clocksync),
    ("network", network),
];

/// The network of a plan, as JSON: refused or read, never a panic.
pub fn network(data: &[u8]) {
    let _ = serde_json::from_slice::<NetworkSpec>(data);
}
