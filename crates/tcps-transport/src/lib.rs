//! Sans-IO transport endpoints: how the samples of a channel become datagrams, and datagrams samples.
//!
//! ```text
//!            registry: name, parameters ──► Box<dyn Endpoint>
//!  sample ──► udp ──► datagrams      reassembly, window: fragments and repeats on the way back
//!             clocksync ──► clockfit: exchanges of stamps ──► offset, drift and their bound
//! ```
//! A new transport is one new file and one line in `registry`.

pub mod clockfit;
pub mod clocksync;
mod outbox;
mod params;
mod reassembly;
mod registry;
pub mod rtp;
pub mod udp;
mod window;

pub use params::TransportError;
pub use registry::{endpoint, names, ChannelContext, ChannelFlow, Side};
