//! Endpoints against each other over bad networks, in virtual time.

mod clocksync;
mod pair;
mod session;
mod tcp;
mod udp;
