//! Endpoints against each other over bad networks, in virtual time.

mod clocksync;
mod pair;
mod telehaptic;
mod udp;
