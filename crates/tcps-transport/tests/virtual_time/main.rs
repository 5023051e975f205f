//! Endpoints against each other over bad networks, in virtual time.

mod boxed;
mod clocksync;
mod control;
mod fec;
mod hostile;
mod literature;
mod pair;
mod quic;
mod rtp;
mod security;
mod session;
mod tcp;
mod tcp_connection;
mod tcp_recovery;
mod tcp_wire;
mod telehaptic;
mod tls;
mod udp;
