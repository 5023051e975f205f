//! Endpoints against each other over bad networks, in virtual time.

mod after;
mod clocksync;
mod pair;
mod quic;
mod session;
mod tcp;
mod telehaptic;
mod udp;
