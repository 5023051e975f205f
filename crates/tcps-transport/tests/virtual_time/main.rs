//! Endpoints against each other over bad networks, in virtual time.

mod after;
mod boxed;
mod clocksync;
mod control;
mod fec;
mod hostile;
mod pair;
mod quic;
mod rtp;
mod session;
mod tcp;
mod tcp_recovery;
mod telehaptic;
mod udp;
