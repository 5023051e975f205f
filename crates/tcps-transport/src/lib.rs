//! Sans-IO transport endpoints: how the samples of a channel become datagrams, and datagrams samples.
//!
//! ```text
//!            registry: name, parameters ──► Box<dyn Endpoint>
//!  sample ──► udp ──► datagrams      reassembly, window: fragments and repeats on the way back
//!         ──► telehaptic: merges the flows of a channel, as a rate controller asks
//!             tcp ──► IP packets     framing, backlog: samples in a stream and in front of it
//!             quic ──► datagrams
//!             kernel_tcp: frames only; its socket is the driver's
//!             security: seals the datagrams of any of them but tcp, quic and kernel_tcp
//!             tls: seals the stream of tcp and the packets of quic
//!             clocksync ──► clockfit: exchanges of stamps ──► offset, drift and their bound
//! ```
//! A new transport is one new file and one line in `registry`, which stands above all of them; what they need to know of
//! their channel is in `channel`, below them.

#![forbid(unsafe_code)]

mod backlog;
mod channel;
pub mod clockfit;
pub mod clocksync;
mod congestion;
mod fec;
mod framing;
mod had;
mod inbox;
pub mod kernel_tcp;
mod literature;
mod meter;
mod missing;
mod numbered;
mod outbox;
mod params;
pub mod playout;
pub mod quic;
mod reassembly;
mod registry;
pub mod rtp;
pub mod security;
mod standing;
pub mod tcp;
mod telehaptic;
mod tls;
pub mod udp;

pub use backlog::Backlog;
pub use channel::{ChannelContext, ChannelFlow, Side, TlsSecret};
pub use framing::Frames;
pub use outbox::Outbox;
pub use params::TransportError;
pub use registry::{
    by_id, controller, described, described_controllers, encapsulation_bytes, endpoint, has_plain_header,
    is_telehaptic, led, methods, names, sends_datagrams,
};
pub use standing::{Standing, STALL_NS};
