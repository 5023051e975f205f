//! Bodies of the fuzz targets: functions of bytes that panic when something is wrong.
//!
//! ```text
//! fuzz_targets/NAME.rs ──► tcps_fuzz::NAME ◄── tests/replay.rs
//! libFuzzer, by coverage                       seeds in corpus/NAME, and random changes of them
//! ```
//! A new target is a function here, a line in [`TARGETS`], a file in `fuzz_targets` and a `[[bin]]`.

mod after;
mod board;
mod hooks;
mod line;
mod parts;
mod rtp;
mod script;
mod streams;
mod sync;
mod tcp;
mod telehaptic;
mod transport;
mod wire;

use tcps_net::Network;
use tcps_plan::net::NetworkSpec;

pub use after::{alphan, coarse_copy, irtp, merge_span, multipath, nack, smoothed_sctp, visual_haptic};
pub use board::board;
pub use hooks::hooks;
pub use line::line;
pub use parts::parts;
pub use rtp::{fec, rtcp, rtp};
pub use streams::{kernel_tcp, quic, tcp};
pub use sync::clocksync;
pub use tcp::{segment, tcp_any};
pub use telehaptic::{telehaptic, telehaptic_any, telehaptic_pair};
pub use transport::{udp, udp_pair};
pub use wire::{bundle, clock, echo, header, ip, stream};

/// A fuzz target: panics if something is wrong with what the bytes lead to.
pub type Target = fn(&[u8]);

/// Every target by name.
pub const TARGETS: [(&str, Target); 33] = [
    ("board", board),
    ("line", line),
    ("hooks", hooks),
    ("bundle", bundle),
    ("stream", stream),
    ("header", header),
    ("echo", echo),
    ("clock", clock),
    ("ip", ip),
    ("telehaptic", telehaptic),
    ("telehaptic_any", telehaptic_any),
    ("telehaptic_pair", telehaptic_pair),
    ("udp", udp),
    ("udp_pair", udp_pair),
    ("tcp", tcp),
    ("segment", segment),
    ("tcp_any", tcp_any),
    ("kernel_tcp", kernel_tcp),
    ("quic", quic),
    ("rtcp", rtcp),
    ("rtp", rtp),
    ("fec", fec),
    ("clocksync", clocksync),
    ("network", network),
    ("alphan", alphan),
    ("coarse_copy", coarse_copy),
    ("irtp", irtp),
    ("merge_span", merge_span),
    ("multipath", multipath),
    ("nack", nack),
    ("smoothed_sctp", smoothed_sctp),
    ("visual_haptic", visual_haptic),
    ("parts", parts),
];

/// The network of a plan, as JSON: refused or read, never a panic.
pub fn network(data: &[u8]) {
    let Ok(spec) = serde_json::from_slice::<NetworkSpec>(data) else { return };
    let _ = Network::new(&spec, &["kinematic".into()], 1);
}
