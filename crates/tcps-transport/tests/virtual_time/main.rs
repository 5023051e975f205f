//! Endpoints against each other over bad networks, in virtual time.

mod boxed;
mod clocksync;
mod pair;
mod rtp;
mod udp;
